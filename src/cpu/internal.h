/* cpu/internal.h - private to cpu/: the backend's state and the functions of its steps. */
#ifndef NIB_CPU_INTERNAL_H
#define NIB_CPU_INTERNAL_H

#include "base/team.h"
#include "cpu/cpu.h"
#include "cpu/kv.h"
#include "cpu/ops.h"
#include "cpu/product.h"

#include <stdatomic.h>

#define NIB_BLOCK_TOK 8 /* most tokens of a sequence that share the pages which attention loads */

#define NIB_SPLIT_PAIRS 4 /* attention splits contexts when there are fewer (token, key head) pairs than this per thread */

/* Consecutive tokens of one sequence in the batch. */
typedef struct nib_cpu_block {
    uint32_t first, n;
} nib_cpu_block;

struct nib_cpu {
    const nib_plan *plan;
    const nib_cpu_isa *isa;
    const nib_cpu_ops *ops;
    const nib_cpu_weight *weights;
    nib_cpu_config config;
    nib_team *team;
    nib_cpu_kv kv;

    unsigned char *memory;    /* buffers, acts, scratch of the threads, logits: one mapping */
    size_t n_bytes;
    float **buffers;          /* by plan buffer; the logits' entry is their start */
    void **act_memory;        /* by plan act */
    unsigned *act_forms;
    nib_cpu_act *acts;        /* by plan act, bound for the current run */
    nib_plan_rows *act_rows;  /* rows of the step that writes it */
    unsigned char *scratch;   /* scratch_bytes for each thread */
    size_t scratch_bytes;
    atomic_uint *claimed;     /* by step: chunks taken so far */
    float *partials;          /* of split attention; touched only as far as contexts reach */
    size_t partial_bytes;
    atomic_uint *finished;    /* by pair of split attention: segments done */
    double *step_ms;

    /* The current run. */
    const nib_plan_batch *batch;
    int n_active;             /* threads that take part */
    nib_cpu_block *blocks;
    uint32_t n_blocks;
    atomic_uint stop_at;      /* first step that is not run any more */
    nib_status status;
    nib_error error;          /* of the run; written by the thread that won stop_at */
};

/* One thread's part of a step. */
void nib_cpu_op_embed(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_angles(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_norm(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_head_norm(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_quant(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_matmul(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_rope(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_kv_store(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_attention(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_glu(nib_cpu *cpu, const nib_plan_step *s, int index);
void nib_cpu_op_gather(nib_cpu *cpu, const nib_plan_step *s, int index);

/* Scratch that attention needs per thread for a step, and memory for the sums of split contexts of all threads. */
size_t nib_cpu_attention_scratch(const nib_plan_step *s);
size_t nib_cpu_attention_partials(const nib_plan_step *s, int n_threads, uint32_t n_pages);

/* Rows of a step, and the part of them that belongs to a thread. */
static inline uint32_t nib_cpu_n_rows(const nib_cpu *cpu, nib_plan_rows rows) {
    return rows == NIB_ROWS_TOK ? cpu->batch->n_tok : cpu->batch->n_out;
}

static inline void nib_cpu_my_rows(const nib_cpu *cpu, const nib_plan_step *s, int index, uint32_t *first,
                                   uint32_t *last) {
    uint64_t n = nib_cpu_n_rows(cpu, s->rows), t = (uint64_t)cpu->n_active;
    *first = (uint32_t)(n * (uint64_t)index / t);
    *last = (uint32_t)(n * ((uint64_t)index + 1) / t);
}

static inline float *nib_cpu_row(const nib_cpu *cpu, int buffer, uint32_t row) {
    return cpu->buffers[buffer] + (size_t)row * cpu->plan->buffers[buffer].width;
}

static inline void *nib_cpu_scratch(const nib_cpu *cpu, int index) {
    return cpu->scratch + (size_t)index * cpu->scratch_bytes;
}

/* The next chunk of a step that no thread has taken. */
static inline uint32_t nib_cpu_claim(nib_cpu *cpu, const nib_plan_step *s) {
    return atomic_fetch_add_explicit(&cpu->claimed[s - cpu->plan->steps], 1, memory_order_relaxed);
}

/* Ends the run after the current step; the first error is kept. */
void nib_cpu_stop(nib_cpu *cpu, const nib_plan_step *s, const nib_error *error);

#endif
