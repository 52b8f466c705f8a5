/* plan/emit.h - builders that append one step each to a plan and check that shapes fit.
 *
 * A builder never fails in the middle of an expression: the first error sticks in plan_builder.status and every later
 * call does nothing, so that a decoder reads like the paper. Buffer, act and table numbers are returned as ints. */
#ifndef NIB_PLAN_EMIT_H
#define NIB_PLAN_EMIT_H

#include "plan/plan.h"

typedef struct nib_plan_builder {
    nib_plan *plan;
    nib_status status;
    nib_error *err;
    int layer;          /* of the steps that follow; NIB_PLAN_NONE outside layers */
    nib_plan_rows rows; /* of the steps that follow */
} nib_plan_builder;

int nib_plan_add_buffer(nib_plan_builder *b, uint32_t width);
int nib_plan_add_weight(nib_plan_builder *b, const nib_plan_weight *weight);
int nib_plan_add_kv_layer(nib_plan_builder *b, const nib_plan_kv_layer *layer);
/* inv_freq (n_rot / 2 values) is copied. The step that fills the table each batch is emitted too. */
int nib_plan_add_rope_table(nib_plan_builder *b, const float *inv_freq, uint32_t n_rot, float mscale);

/* out = scale * row of the embedding table for each token */
void nib_plan_embed(nib_plan_builder *b, int weight, float scale, int out);
/* Norm of `in`, stored in out (may be in) and quantised: returns the act. */
int nib_plan_norm(nib_plan_builder *b, const char *name, int in, int weight, float eps, int out);
/* out += norm of in */
void nib_plan_norm_add(nib_plan_builder *b, const char *name, int in, int weight, float eps, int out);
/* Norm of each of the heads of a buffer, in place. */
void nib_plan_head_norm(nib_plan_builder *b, const char *name, int buffer, int weight, float eps);
int nib_plan_quant(nib_plan_builder *b, const char *name, int in);

typedef struct nib_plan_product {
    int weight, bias; /* bias: NIB_PLAN_NONE or a vector */
    int out;
} nib_plan_product;
/* n matrices times the same act. add_to: a buffer to which the one product is added too, or NIB_PLAN_NONE. */
void nib_plan_matmul(nib_plan_builder *b, const char *name, int act, const nib_plan_product *products, int n,
                     int add_to);
/* Rotates the first dimensions of every head (head_dim wide) of a buffer, in place. */
void nib_plan_rope(nib_plan_builder *b, const char *name, int buffer, uint32_t head_dim, int table,
                   nib_plan_rope_kind kind);

typedef struct nib_plan_attention_params {
    int q, k, v, out; /* buffers */
    int kv_layer;
    uint32_t n_head, window;
    float scale;
} nib_plan_attention_params;
/* Stores k and v of the batch in the cache, then out = attention of q over the cache. */
void nib_plan_attention(nib_plan_builder *b, const nib_plan_attention_params *p);
/* out = fn(gate) * up, and its act is returned. */
int nib_plan_glu(nib_plan_builder *b, nib_plan_act_fn fn, int gate, int up, int out);
/* Keeps the rows that want logits; steps that follow have rows OUT. */
void nib_plan_gather(nib_plan_builder *b, int buffer);

#endif
