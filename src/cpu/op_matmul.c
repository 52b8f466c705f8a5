/* cpu/op_matmul.c - products with up to three matrices that share an input, chunk by chunk of their rows (cpu/claim.c), and what
 * is done with a chunk while it is near: biases, the residual stream, the gate, the best of the logits. */
#include "cpu/internal.h"

#include <math.h>

/* The rows of a chunk: where they begin, how many there are, and where they go. */
typedef struct sums {
    size_t first, n, stride;
    float *out;
} sums;

static sums sums_of(const nib_cpu_matrix *m, const nib_cpu_chunk *c) {
    size_t first = (size_t)c->g0 * NIB_GROUP_ROWS, last = (size_t)c->g1 * NIB_GROUP_ROWS;
    return (sums){.first = first, .n = (last < m->n_rows ? last : m->n_rows) - first};
}

/* In memory of the thread, for what goes no further than the chunk; false when it does not fit. */
static bool keep(const nib_cpu *cpu, const nib_plan_step *s, int index, sums *y) {
    y->out = (float *)(void *)((unsigned char *)nib_cpu_scratch(cpu, index) + cpu->sums_at);
    y->stride = (y->n + NIB_GROUP_ROWS - 1) / NIB_GROUP_ROWS * NIB_GROUP_ROWS;
    return y->stride * nib_cpu_n_rows(cpu, s->rows) <= cpu->n_sums;
}

/* One product of the chunk, with its bias, into y. */
static void multiply(nib_cpu *cpu, const nib_plan_step *s, const nib_cpu_chunk *c, const nib_cpu_act *act, const sums *y, void *scratch) {
    int bias = s->product[c->product].bias;
    const nib_cpu_product p = {cpu->isa, nib_cpu_matrix_of(cpu, s, c->product), act, y->out, y->stride, c->g0, scratch};
    nib_cpu_product_run(&p, c->g0, c->g1);
    for (uint32_t t = 0; bias >= 0 && t < act->n_tok; t++)
        cpu->ops->add(y->out + t * y->stride, cpu->weights[bias].vector + y->first, y->n);
}

/* While a chunk of logits is near: the best of each block, so that samplers need not read them all (sample/set.h). */
static void note_best(nib_cpu *cpu, const sums *y, uint32_t n_rows) {
    size_t n = y->n / NIB_BLOCK_VALUES * NIB_BLOCK_VALUES;
    for (uint32_t t = 0; t < n_rows; t++) {
        const float *x = y->out + t * y->stride;
        float *best = nib_cpu_best_row(cpu, cpu->batch->logits_row + t) + y->first / NIB_BLOCK_VALUES;
        cpu->ops->block_max(x, best, n);
        if (n == y->n) continue;
        float last[NIB_BLOCK_VALUES];
        for (size_t i = 0; i < NIB_BLOCK_VALUES; i++) last[i] = n + i < y->n ? x[n + i] : -INFINITY;
        cpu->ops->block_max(last, best + n / NIB_BLOCK_VALUES, NIB_BLOCK_VALUES);
    }
}

static void run_chunk(nib_cpu *cpu, const nib_plan_step *s, const nib_cpu_chunk *c, const nib_cpu_act *act, int index) {
    sums y = sums_of(nib_cpu_matrix_of(cpu, s, c->product), c);
    int buffer = s->product[c->product].out;
    if (!s->adds || !keep(cpu, s, index, &y)) {
        y.out = nib_cpu_row(cpu, buffer, buffer == cpu->plan->logits ? cpu->batch->logits_row : 0) + y.first;
        y.stride = cpu->plan->buffers[buffer].width;
    }
    multiply(cpu, s, c, act, &y, nib_cpu_scratch(cpu, index));
    if (buffer == cpu->plan->logits) note_best(cpu, &y, act->n_tok);
    for (uint32_t t = 0; s->adds && t < act->n_tok; t++)
        cpu->ops->add(nib_cpu_row(cpu, s->out, t) + y.first, y.out + t * y.stride, y.n);
}

/* Both products of the chunk and the gate after them, which would find them in memory only. */
static void run_gated_chunk(nib_cpu *cpu, const nib_plan_step *s, const nib_cpu_chunk *c, const nib_cpu_act *act, int index) {
    const nib_plan_step *gate = s + 1;
    nib_cpu_act codes = nib_cpu_act_of(cpu, gate->act, index);
    bool keeps_floats = !cpu->act_places[gate->act].own_row;
    sums y[2] = {sums_of(nib_cpu_matrix_of(cpu, s, 0), c), sums_of(nib_cpu_matrix_of(cpu, s, 1), c)};
    for (int i = 0; i < 2; i++) {
        keep(cpu, s, index, &y[i]);
        y[i].out += (size_t)i * y[0].stride * act->n_tok;
        multiply(cpu, s, &(nib_cpu_chunk){i, c->g0, c->g1}, act, &y[i], nib_cpu_scratch(cpu, index));
    }
    for (uint32_t t = 0; t < act->n_tok; t++) {
        const float *in[2] = {y[0].out + t * y[0].stride, y[1].out + t * y[1].stride};
        float *out = keeps_floats ? nib_cpu_row(cpu, gate->out, t) + y[0].first : y[0].out + t * y[0].stride;
        nib_cpu_gate_row(cpu, gate, in, out, y[0].n);
        nib_cpu_act_quantize_part(cpu->isa, &codes, t, out, (uint32_t)y[0].first, (uint32_t)(y[0].first + y[0].n));
    }
}

void nib_cpu_op_matmul(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_act act = nib_cpu_act_of(cpu, s->act, index);
    bool gates = nib_cpu_gates_chunks(cpu, s);
    nib_cpu_claims claims = nib_cpu_claims_of(cpu, s, index);
    for (nib_cpu_chunk c; nib_cpu_claim_chunk(&claims, &c);)
        if (gates) run_gated_chunk(cpu, s, &c, &act, index);
        else run_chunk(cpu, s, &c, &act, index);
}
