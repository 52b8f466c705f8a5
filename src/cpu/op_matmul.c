/* cpu/op_matmul.c - products with up to three matrices that share an input: threads claim chunks of row groups.
 *
 * Decode is bound by reading weights: chunks of about 64 KiB keep the threads level and the reads contiguous. Prefill is
 * bound by arithmetic: chunks of 8 groups stay in L2 while all tokens pass over them. */
#include "cpu/internal.h"

#define DECODE_CHUNK_BYTES (64 << 10)
#define PREFILL_CHUNK_GROUPS 8
#define PREFILL_ROWS 16

static uint32_t chunk_groups(const nib_cpu_matrix *m, uint32_t n_rows) {
    if (n_rows >= PREFILL_ROWS) return PREFILL_CHUNK_GROUPS;
    size_t n = DECODE_CHUNK_BYTES / m->group_bytes;
    return n < 1 ? 1 : (uint32_t)n;
}

static void run_chunk(nib_cpu *cpu, const nib_plan_step *s, int product, uint32_t g0, uint32_t g1, void *scratch) {
    const nib_cpu_matrix *m = &cpu->weights[s->product[product].weight].matrix;
    int buffer = s->product[product].out, bias = s->product[product].bias;
    size_t width = cpu->plan->buffers[buffer].width, first = (size_t)g0 * NIB_GROUP_ROWS;
    size_t last = (size_t)g1 * NIB_GROUP_ROWS < m->n_rows ? (size_t)g1 * NIB_GROUP_ROWS : m->n_rows;
    uint32_t row = buffer == cpu->plan->logits ? cpu->batch->logits_row : 0, n_rows = nib_cpu_n_rows(cpu, s->rows);
    float *out = nib_cpu_row(cpu, buffer, row);
    const nib_cpu_product p = {cpu->isa, m, &cpu->acts[s->act], out, width, scratch};
    nib_cpu_product_run(&p, g0, g1);
    for (uint32_t t = 0; bias >= 0 && t < n_rows; t++)
        cpu->ops->add(out + t * width + first, cpu->weights[bias].vector + first, last - first);
    for (uint32_t t = 0; s->adds && t < n_rows; t++)
        cpu->ops->add(nib_cpu_row(cpu, s->out, t) + first, out + t * width + first, last - first);
}

void nib_cpu_op_matmul(nib_cpu *cpu, const nib_plan_step *s, int index) {
    uint32_t n_rows = nib_cpu_n_rows(cpu, s->rows), chunk = nib_cpu_claim(cpu, s), before = 0;
    for (int i = 0; i < s->n_products; i++) {
        const nib_cpu_matrix *m = &cpu->weights[s->product[i].weight].matrix;
        uint32_t size = chunk_groups(m, n_rows), n_chunks = (m->n_groups + size - 1) / size;
        while (chunk < before + n_chunks) {
            uint32_t g0 = (chunk - before) * size, g1 = g0 + size < m->n_groups ? g0 + size : m->n_groups;
            run_chunk(cpu, s, i, g0, g1, nib_cpu_scratch(cpu, index));
            chunk = nib_cpu_claim(cpu, s);
        }
        before += n_chunks;
    }
}
