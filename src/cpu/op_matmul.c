/* cpu/op_matmul.c - products with up to three matrices that share an input: threads claim chunks of row groups.
 *
 * Decode is bound by reading weights: chunks of up to 64 KiB keep the reads contiguous. Prefill is bound by arithmetic:
 * chunks of up to 8 groups stay in L2 while all tokens pass over them. Towards the end of a step chunks shrink, so that
 * the threads finish together: a thread that waits for the last chunk of 64 KiB waits for 4 us, in a step of 9. */
#include "cpu/internal.h"

#define DECODE_CHUNK_BYTES (64 << 10)
#define PREFILL_CHUNK_GROUPS 8
#define PREFILL_ROWS 16

static uint32_t max_chunk(const nib_cpu_matrix *m, uint32_t n_rows) {
    if (n_rows >= PREFILL_ROWS) return PREFILL_CHUNK_GROUPS;
    size_t n = DECODE_CHUNK_BYTES / m->group_bytes;
    return n < 1 ? 1 : (uint32_t)n;
}

/* Groups g0 … g1-1 of a product of a step. */
typedef struct chunk {
    int product;
    uint32_t g0, g1;
} chunk;

/* The next groups of the step that no thread has taken; they are counted through all its products. */
static bool claim(nib_cpu *cpu, const nib_plan_step *s, chunk *c) {
    atomic_uint *claimed = &cpu->claimed[s - cpu->plan->steps];
    uint32_t n_rows = nib_cpu_n_rows(cpu, s->rows), total = 0;
    for (int i = 0; i < s->n_products; i++) total += cpu->weights[s->product[i].weight].matrix.n_groups;
    unsigned at = atomic_load_explicit(claimed, memory_order_relaxed);
    uint32_t n;
    do {
        if (at >= total) return false;
        uint32_t first = at;
        const nib_cpu_matrix *m;
        for (c->product = 0; m = &cpu->weights[s->product[c->product].weight].matrix, first >= m->n_groups; c->product++)
            first -= m->n_groups;
        uint32_t share = (total - at) / (2 * (uint32_t)cpu->n_active), most = max_chunk(m, n_rows);
        n = share < 1 ? 1 : share < most ? share : most;
        if (n > m->n_groups - first) n = m->n_groups - first;
        c->g0 = first;
        c->g1 = first + n;
    } while (!atomic_compare_exchange_weak_explicit(claimed, &at, at + n, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void run_chunk(nib_cpu *cpu, const nib_plan_step *s, const chunk *c, const nib_cpu_act *act, void *scratch) {
    const nib_cpu_matrix *m = &cpu->weights[s->product[c->product].weight].matrix;
    int buffer = s->product[c->product].out, bias = s->product[c->product].bias;
    size_t width = cpu->plan->buffers[buffer].width, first = (size_t)c->g0 * NIB_GROUP_ROWS;
    size_t last = (size_t)c->g1 * NIB_GROUP_ROWS < m->n_rows ? (size_t)c->g1 * NIB_GROUP_ROWS : m->n_rows;
    uint32_t row = buffer == cpu->plan->logits ? cpu->batch->logits_row : 0, n_rows = nib_cpu_n_rows(cpu, s->rows);
    float *out = nib_cpu_row(cpu, buffer, row);
    const nib_cpu_product p = {cpu->isa, m, act, out, width, scratch};
    nib_cpu_product_run(&p, c->g0, c->g1);
    for (uint32_t t = 0; bias >= 0 && t < n_rows; t++)
        cpu->ops->add(out + t * width + first, cpu->weights[bias].vector + first, last - first);
    for (uint32_t t = 0; s->adds && t < n_rows; t++)
        cpu->ops->add(nib_cpu_row(cpu, s->out, t) + first, out + t * width + first, last - first);
}

void nib_cpu_op_matmul(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_act act = nib_cpu_act_of(cpu, s->act, index);
    for (chunk c; claim(cpu, s, &c);) run_chunk(cpu, s, &c, &act, nib_cpu_scratch(cpu, index));
}
