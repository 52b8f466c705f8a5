/* plan/plan.h - a model as a flat list of steps over buffers: made once at load, run for every batch.
 *
 * Straight line, inference only. Row counts are symbolic: TOK is the number of tokens in the batch, OUT the number of
 * rows that want logits. Buffers and weights are indices; a backend turns them into addresses. Nothing here knows an
 * architecture or computes anything. Built by plan/emit, run by cpu/run, printed through nib_model_step. */
#ifndef NIB_PLAN_PLAN_H
#define NIB_PLAN_PLAN_H

#include "base/mem.h"
#include "quant/type.h"

typedef enum nib_plan_op {
#define X(name, text, by_row) NIB_OP_##name,
#include "plan/ops.def"
#undef X
    NIB_OP_COUNT
} nib_plan_op;

typedef enum nib_plan_rows { NIB_ROWS_TOK, NIB_ROWS_OUT } nib_plan_rows;
typedef enum nib_plan_act_fn { NIB_ACT_SILU, NIB_ACT_GELU } nib_plan_act_fn;
typedef enum nib_plan_rope_kind { NIB_ROPE_PAIRS, NIB_ROPE_HALVES } nib_plan_rope_kind;

#define NIB_PLAN_NONE (-1)

typedef struct nib_plan_buffer {
    uint32_t width; /* floats in a row; rows: as many as tokens of a batch */
} nib_plan_buffer;

/* A quantised copy of a buffer, for matrix products; in which forms, the backend sees from the products that read it. */
typedef struct nib_plan_act {
    int source; /* buffer */
    uint32_t width;
} nib_plan_act;

typedef enum nib_plan_weight_kind {
    NIB_WEIGHT_MATRIX, /* packed for products; its rows may be read too (tied embeddings) */
    NIB_WEIGHT_VECTOR, /* floats */
    NIB_WEIGHT_ROWS,   /* a table of which only rows are read: untied embeddings */
} nib_plan_weight_kind;

typedef struct nib_plan_weight {
    nib_plan_weight_kind kind;
    const char *name;           /* of the tensor; borrowed from the file */
    const nib_quant_type *type;
    uint32_t n_in, n_out;       /* columns, rows; a vector has n_out values and n_in 1 */
    const nib_gguf_tensor *tensor; /* borrowed from the file */
} nib_plan_weight;

/* Angles of rotary embeddings: value i of a row is position * inv_freq[i]; cosines and sines times mscale. */
typedef struct nib_plan_rope_table {
    uint32_t n_rot;             /* rotated dimensions, even */
    const float *inv_freq;      /* n_rot / 2, in the plan's arena */
    float mscale;
    int buffer;                 /* cosines, then sines, of each token: width n_rot */
} nib_plan_rope_table;

typedef struct nib_plan_kv_layer { /* shape of a layer's cache */
    uint32_t n_head_kv, k_dim, v_dim;
} nib_plan_kv_layer;

#define NIB_PLAN_MAX_PRODUCTS 3

typedef struct nib_plan_step {
    nib_plan_op op;
    nib_plan_rows rows;
    int layer;                 /* NIB_PLAN_NONE outside layers */
    const char *name;          /* "blk.3.attn_qkv"; in the plan's arena */
    int in, in2, out;          /* buffers; NIB_PLAN_NONE when unused */
    int weight;                /* of embed and norms */
    int act;                   /* written by norm, quant, glu; read by matmul */
    uint32_t n_in, n_out;      /* row widths */
    float scale;               /* embed: factor of the rows; attention: of the scores */
    float eps;                 /* norms */
    bool adds;                 /* norm: added to out instead of stored; matmul: the product is added to out as well */
    nib_plan_act_fn fn;        /* glu */
    nib_plan_rope_kind rope;   /* rope */
    int table;                 /* angles, rope */
    uint32_t n_head, n_head_kv, k_dim, v_dim; /* head_norm, rope (k_dim), kv_store, attention */
    uint32_t window;           /* attention: positions seen, the token's own included; 0: all */
    int kv_layer;              /* kv_store, attention */
    struct {
        int weight, bias, out;
    } product[NIB_PLAN_MAX_PRODUCTS]; /* matmul: matrices that share the input */
    int n_products;
    uint64_t bytes, macs;      /* weights read by one run; multiply-accumulates a row (attention: and position) */
} nib_plan_step;

typedef struct nib_plan {
    nib_arena arena;
    nib_plan_step *steps;
    size_t n_steps, cap_steps;
    nib_plan_buffer *buffers;
    size_t n_buffers, cap_buffers;
    nib_plan_act *acts;
    size_t n_acts, cap_acts;
    nib_plan_weight *weights;
    size_t n_weights, cap_weights;
    nib_plan_rope_table *tables;
    size_t n_tables, cap_tables;
    nib_plan_kv_layer *kv_layers;
    size_t n_kv_layers, cap_kv_layers;
    int hidden; /* the buffer with the output of the final norm, rows OUT, which the last step reads; NIB_PLAN_NONE: none */
    int logits; /* the buffer that the last step writes, rows OUT: n_vocab wide; the backend keeps it apart */
    uint32_t n_vocab;
} nib_plan;

void nib_plan_free(nib_plan *plan);
const char *nib_plan_op_text(nib_plan_op op);
bool nib_plan_op_is_by_row(nib_plan_op op);
/* Bytes of the weights that one decoded token reads: matrices once, and one row of an embedding table. */
uint64_t nib_plan_bytes_per_token(const nib_plan *plan);

#endif
