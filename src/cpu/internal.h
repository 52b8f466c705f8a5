/* cpu/internal.h - private to cpu/: the backend's state and the functions of its steps. */
#ifndef NIB_CPU_INTERNAL_H
#define NIB_CPU_INTERNAL_H

#include "base/team.h"
#include "cpu/cpu.h"
#include "cpu/kv.h"
#include "cpu/ops.h"
#include "cpu/product.h"

#include <stdatomic.h>

#define NIB_BLOCK_TOK 32 /* most tokens of a sequence that share the pages which attention loads */

#define NIB_SPLIT_PAIRS 4 /* attention splits contexts when there are fewer (token, key head) pairs than this per thread */

/* Gating chunk by chunk: sums of a token that a chunk may have, and units of groups that there must be for each thread. */
#define NIB_GATE_SUMS 512
#define NIB_GATE_UNITS 4

/* Consecutive tokens of one sequence in the batch. */
typedef struct nib_cpu_block {
    uint32_t first, n;
} nib_cpu_block;

/* Who does a by-row step of a few rows: one thread each of them; every thread all of them for itself, as a barrier costs more than a
 * norm; or, head by head, those that claim the heads in the attention after it. */
typedef enum nib_cpu_share { NIB_SHARE_ROW, NIB_SHARE_OWN, NIB_SHARE_ATTENTION } nib_cpu_share;

/* What each thread has of its own of an act: all of it, or the row of floats that it is made of. */
typedef struct nib_cpu_act_place {
    bool own_when_few, own_row_when_single, own_row;
    size_t writer; /* step */
} nib_cpu_act_place;

/* Groups g0 … g1-1 of a product of a step; of both where they are gated. */
typedef struct nib_cpu_chunk {
    int product;
    uint32_t g0, g1;
} nib_cpu_chunk;

/* What is left of a thread's part of this product and of the next one (cpu/claim.c), in lines of its own. */
typedef struct nib_cpu_lane {
    _Alignas(128) _Atomic uint64_t left[2]; /* by turn: groups lo and, in the high half, hi */
    unsigned turn;                          /* the thread's own: products opened so far */
} nib_cpu_lane;

struct nib_cpu {
    const nib_plan *plan;
    const nib_cpu_isa *isa;
    const nib_cpu_ops *ops;
    const nib_cpu_weight *weights;
    nib_cpu_config config;
    nib_team *team;
    nib_cpu_kv kv;

    unsigned char *memory;    /* lanes, buffers, acts, scratch of the threads, logits: one mapping */
    size_t n_bytes;
    float **buffers;          /* by plan buffer; the logits' entry is their start */
    float *best;              /* of the logits: by row and block of 32 values */
    void **act_memory;        /* by plan act */
    unsigned *act_forms;
    nib_plan_rows *act_rows;  /* rows of the step that writes it */
    nib_cpu_share *shares;    /* by step: who does it when there are few rows */
    nib_cpu_act_place *act_places; /* by plan act */
    bool *gates;              /* by step: only the gate after these products reads them */
    unsigned char *own;       /* own_bytes for each thread: a row of floats, then an act */
    size_t own_bytes, own_act_at;
    unsigned char *scratch;   /* scratch_bytes for each thread */
    size_t scratch_bytes, sums_at, n_sums; /* in it, floats: what a product leaves that goes no further than its chunk */
    nib_cpu_lane *lanes;      /* by thread */
    atomic_uint *claimed;     /* by step: units of attention taken so far */
    float *partials;          /* of split attention; touched only as far as contexts reach */
    size_t partial_bytes;
    atomic_uint *finished;    /* by pair of split attention: segments done */
    double *step_ms;          /* by step; NULL: not wanted */
    double *wait_ms;          /* by thread and step: at the barrier after it */

    /* The current run. */
    const nib_plan_batch *batch;
    int n_active;             /* threads that take part */
    nib_cpu_block *blocks;
    uint32_t n_blocks;
    bool folds_heads;         /* no token sees another one: NIB_SHARE_ATTENTION holds */
    atomic_uint stop_at;      /* first step that is not run any more */
    nib_status status;
    nib_error error;          /* of the run; written by the thread that won stop_at */
};

/* One thread's part of a step. */
void nib_cpu_op_embed(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_angles(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_norm(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_heads(nib_cpu *cpu, const nib_plan_step *s, int index); /* head norms and rope */
void nib_cpu_op_quant(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_matmul(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_kv_store(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_attention(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_glu(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_gather(nib_cpu *cpu, const nib_plan_step *s, int index);

/* Head norms and rope: one head of row t, in place. Storing: keys and values of a head of row t. */
void nib_cpu_head(const nib_cpu *cpu, const nib_plan_step *s, uint32_t t, float *x);
void nib_cpu_store_head(const nib_cpu *cpu, const nib_plan_step *s, uint32_t t, uint32_t head, const float *k, const float *v);

/* n values of a row of the gate s. */
void nib_cpu_gate_row(nib_cpu *cpu, const nib_plan_step *s, const float *const in[2], float *out, size_t n);

/* Scratch that attention needs per thread for a step, and memory for the sums of split contexts of all threads. */
size_t nib_cpu_attention_scratch(const nib_plan_step *s);
size_t nib_cpu_attention_partials(const nib_plan_step *s, int n_threads, uint32_t n_pages);

/* Rows of a step, and the part of them that belongs to a thread. */
static inline uint32_t nib_cpu_n_rows(const nib_cpu *cpu, nib_plan_rows rows) {
    return rows == NIB_ROWS_TOK ? cpu->batch->n_tok : cpu->batch->n_out;
}

static inline bool nib_cpu_is_single(const nib_cpu *cpu) {
    return cpu->batch->n_tok == 1;
}

/* Rows of an act of some width that a thread has memory for, for itself. */
uint32_t nib_cpu_own_rows(const nib_cpu *cpu, uint32_t width);
/* Does every thread do all of by-row step i for itself in this run? */
bool nib_cpu_does_own(const nib_cpu *cpu, size_t i);

/* A thread's part of a by-row step: rows t0 … t1-1. */
typedef struct nib_cpu_part {
    uint32_t t0, t1;
} nib_cpu_part;

/* The first row of thread i's part. Panels share lines of acts, so they are not split where all threads have one. */
static inline uint32_t nib_cpu_part_start(uint64_t n, uint64_t n_threads, uint64_t i) {
    uint64_t t = n * i / n_threads;
    if (n < NIB_ACT_PANEL * n_threads || t == n) return (uint32_t)t;
    return (uint32_t)((t + NIB_ACT_PANEL / 2) / NIB_ACT_PANEL * NIB_ACT_PANEL);
}

static inline nib_cpu_part nib_cpu_my_part(const nib_cpu *cpu, const nib_plan_step *s, int index) {
    uint32_t n = nib_cpu_n_rows(cpu, s->rows);
    uint64_t t = (uint64_t)cpu->n_active, i = (uint64_t)index;
    if (nib_cpu_does_own(cpu, (size_t)(s - cpu->plan->steps))) return (nib_cpu_part){0, n};
    return (nib_cpu_part){nib_cpu_part_start(n, t, i), nib_cpu_part_start(n, t, i + 1)};
}

/* Is the step done by the attention after it in this run? */
static inline bool nib_cpu_is_in_attention(const nib_cpu *cpu, const nib_plan_step *s) {
    return cpu->folds_heads && cpu->shares[s - cpu->plan->steps] == NIB_SHARE_ATTENTION;
}

/* Fills shares, act_places and gates. */
void nib_cpu_share_plan(nib_cpu *cpu);
/* Does the step, a product, gate its chunks in this run? Then the gate after it has nothing left to do. */
bool nib_cpu_gates_chunks(const nib_cpu *cpu, const nib_plan_step *s);
/* Groups that go together then: whole blocks of the gate's act. */
uint32_t nib_cpu_gate_unit(const nib_cpu *cpu, const nib_plan_step *s);
/* Does anything cross threads between step i-1 and step i of this run? */
bool nib_cpu_needs_barrier(const nib_cpu *cpu, size_t i);
/* The quantised input of products, as thread `index` sees it; its x is the row of floats it is made of. */
nib_cpu_act nib_cpu_act_of(const nib_cpu *cpu, int act, int index);
/* Where a step puts a row: into its buffer, or into the thread's own. */
float *nib_cpu_out_row(const nib_cpu *cpu, const nib_plan_step *s, int index, uint32_t row);

static inline const nib_cpu_matrix *nib_cpu_matrix_of(const nib_cpu *cpu, const nib_plan_step *s, int product) {
    return &cpu->weights[s->product[product].weight].matrix;
}

static inline float *nib_cpu_row(const nib_cpu *cpu, int buffer, uint32_t row) {
    return cpu->buffers[buffer] + (size_t)row * cpu->plan->buffers[buffer].width;
}

/* The best of each block of a row of logits, and how many there are. */
static inline size_t nib_cpu_n_best(const nib_cpu *cpu) {
    return ((size_t)cpu->plan->n_vocab + NIB_BLOCK_VALUES - 1) / NIB_BLOCK_VALUES;
}

static inline float *nib_cpu_best_row(const nib_cpu *cpu, uint32_t row) {
    return cpu->best + row * nib_cpu_n_best(cpu);
}

static inline void *nib_cpu_scratch(const nib_cpu *cpu, int index) {
    return cpu->scratch + (size_t)index * cpu->scratch_bytes;
}

/* Chunks of products. A thread's part of the step is opened by it, or by the caller of the run for all, before the barrier that all
 * pass before they claim, and when nobody claims any more from the step whose parts were opened two openings ago: there are two sets. */
void nib_cpu_open_part(nib_cpu *cpu, const nib_plan_step *s, int index);
/* What claiming from a step needs to know; of products that are gated together only the first counts. */
typedef struct nib_cpu_claims {
    nib_cpu_lane *lanes;
    int n_lanes, index;                     /* threads, and the one that claims */
    uint32_t n_groups;                      /* of all products */
    uint32_t unit;                          /* groups that go together: blocks of the gate's act, or of logits of which the best is noted */
    uint32_t most[NIB_PLAN_MAX_PRODUCTS];   /* by product: groups of a chunk, at most */
    uint32_t first[NIB_PLAN_MAX_PRODUCTS + 1]; /* by product: its first group, counted through */
} nib_cpu_claims;
nib_cpu_claims nib_cpu_claims_of(const nib_cpu *cpu, const nib_plan_step *s, int index);
/* The next chunk for the thread, of its part or another one's; false when all are taken. */
bool nib_cpu_claim_chunk(const nib_cpu_claims *c, nib_cpu_chunk *chunk);

/* The next unit of an attention that no thread has taken. */
static inline uint32_t nib_cpu_claim_unit(nib_cpu *cpu, const nib_plan_step *s) {
    return atomic_fetch_add_explicit(&cpu->claimed[s - cpu->plan->steps], 1, memory_order_relaxed);
}

/* Ends the run after the current step; the first error is kept. */
void nib_cpu_stop(nib_cpu *cpu, const nib_plan_step *s, const nib_error *error);

#endif
