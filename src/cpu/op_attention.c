/* cpu/op_attention.c - attention over paged keys and values: threads claim (block of tokens, heads).
 *
 * For every query the arithmetic depends on absolute positions alone: pages of 32 in ascending order with an online
 * softmax (arXiv 1805.02867), segments of 512 positions each from scratch, merged in ascending order. So it does not
 * matter which queries share a page, or how many tokens came with them. Positions outside the window or after the token
 * are left out, not multiplied by zero: what lies there may be anything. */
#include "cpu/internal.h"

#include "base/math.h"

#include <string.h>

#define SEGMENT_PAGES 16

typedef struct query {
    float *acc, *total;      /* v_dim each: of the segment, of all segments before */
    float m, l, total_m, total_l;
    uint32_t pos, first_pos; /* its position and the first that it sees */
    float *out;
} query;

typedef struct work {
    const nib_cpu *cpu;
    const nib_plan_step *s;
    uint32_t n_query;
    query *queries;
    const float **q;         /* n_query scaled queries of k_dim */
    float *keys, *values;    /* scratch of one page */
    float *scores;           /* n_query * 32 */
} work;

static uint32_t heads_per_kv(const nib_plan_step *s) {
    return s->n_head / s->n_head_kv;
}

static uint32_t max_queries(const nib_plan_step *s) {
    return NIB_BLOCK_TOK * heads_per_kv(s);
}

static size_t round64(size_t n) {
    return (n + 63) & ~(size_t)63;
}

size_t nib_cpu_attention_scratch(const nib_plan_step *s) {
    size_t n = max_queries(s);
    return round64(n * sizeof(query)) + round64(n * sizeof(float *)) +
           round64(sizeof(float) * (n * (s->k_dim + 2 * (size_t)s->v_dim + NIB_PAGE_POS))) +
           round64(sizeof(float) * NIB_PAGE_POS * s->k_dim) + round64(sizeof(float) * NIB_PAGE_POS * s->v_dim);
}

/* Cuts the thread's scratch into the arrays of a unit. */
static float *open_work(work *w, unsigned char *scratch) {
    size_t n = max_queries(w->s);
    w->queries = (query *)(void *)scratch;
    scratch += round64(n * sizeof(query));
    w->q = (const float **)(void *)scratch;
    scratch += round64(n * sizeof(float *));
    w->keys = (float *)(void *)scratch;
    scratch += round64(sizeof(float) * NIB_PAGE_POS * w->s->k_dim);
    w->values = (float *)(void *)scratch;
    scratch += round64(sizeof(float) * NIB_PAGE_POS * w->s->v_dim);
    w->scores = (float *)(void *)scratch;
    return w->scores + n * NIB_PAGE_POS;
}

/* Queries in the order of their tokens, so that those that see a page stand side by side. */
static void add_queries(work *w, const nib_cpu_block *block, uint32_t head0, uint32_t head1, float *memory) {
    const nib_plan_step *s = w->s;
    w->n_query = 0;
    for (uint32_t t = block->first; t < block->first + block->n; t++)
        for (uint32_t h = head0; h < head1; h++) {
            query *q = &w->queries[w->n_query];
            float *scaled = memory;
            memcpy(scaled, nib_cpu_row(w->cpu, s->in, t) + (size_t)h * s->k_dim, s->k_dim * sizeof(float));
            w->cpu->ops->scale(scaled, s->scale, s->k_dim);
            memory += s->k_dim;
            *q = (query){.acc = memory, .total = memory + s->v_dim, .m = -INFINITY, .total_m = -INFINITY};
            memory += 2 * (size_t)s->v_dim;
            memset(q->acc, 0, 2 * (size_t)s->v_dim * sizeof(float));
            q->pos = w->cpu->batch->pos[t];
            q->first_pos = s->window && q->pos + 1 > s->window ? q->pos + 1 - s->window : 0;
            q->out = nib_cpu_row(w->cpu, s->out, t) + (size_t)h * s->v_dim;
            w->q[w->n_query++] = scaled;
        }
}

/* total = total and segment as one softmax; the segment starts again. */
static void merge_segment(query *q, uint32_t v_dim) {
    if (q->m == -INFINITY) return;
    float m = q->m > q->total_m ? q->m : q->total_m;
    float old = nib_expf(q->total_m - m), new = nib_expf(q->m - m);
    for (uint32_t d = 0; d < v_dim; d++) q->total[d] = q->total[d] * old + q->acc[d] * new;
    q->total_l = q->total_l * old + q->l * new;
    q->total_m = m;
    memset(q->acc, 0, v_dim * sizeof(float));
    q->m = -INFINITY;
    q->l = 0;
}

/* Queries a … b-1 see page number `index` of the sequence. */
static void run_page(work *w, uint32_t a, uint32_t b, uint32_t index, uint32_t page, uint32_t head_kv) {
    const nib_plan_step *s = w->s;
    const nib_cpu_kv *kv = &w->cpu->kv;
    const nib_cpu_ops *ops = w->cpu->ops;
    const float *keys = kv->k_type->load_keys(nib_cpu_kv_keys(kv, s->kv_layer, page, head_kv), w->keys, s->k_dim, ops);
    const float *values = kv->v_type->load_values(nib_cpu_kv_values(kv, s->kv_layer, page, head_kv), w->values, s->v_dim, ops);
    uint32_t start = index * NIB_PAGE_POS;
    ops->page_scores(keys, w->q + a, b - a, s->k_dim, w->scores);
    for (uint32_t i = a; i < b; i++) {
        query *q = &w->queries[i];
        float *scores = w->scores + (size_t)(i - a) * NIB_PAGE_POS, corr;
        uint32_t first = q->first_pos > start ? q->first_pos - start : 0;
        uint32_t last = q->pos - start < NIB_PAGE_POS ? q->pos - start + 1 : NIB_PAGE_POS;
        for (uint32_t j = 0; j < first; j++) scores[j] = -INFINITY;
        for (uint32_t j = last; j < NIB_PAGE_POS; j++) scores[j] = -INFINITY;
        ops->page_softmax(scores, &q->m, &q->l, &corr);
        ops->page_values(values, scores, first, last, s->v_dim, corr, q->acc);
    }
}

static void run_unit(work *w, const nib_cpu_block *block, uint32_t head_kv) {
    const nib_plan_step *s = w->s;
    const uint32_t *pages = w->cpu->batch->pages[block->first];
    uint32_t n = w->n_query, first = w->queries[0].first_pos / NIB_PAGE_POS, last = w->queries[n - 1].pos / NIB_PAGE_POS;
    for (uint32_t index = first; index <= last; index++) {
        if (index % SEGMENT_PAGES == 0)
            for (uint32_t i = 0; i < n; i++) merge_segment(&w->queries[i], s->v_dim);
        uint32_t start = index * NIB_PAGE_POS, a = 0, b = n;
        while (a < n && w->queries[a].pos < start) a++; /* earlier tokens end before this page */
        while (b > a && w->queries[b - 1].first_pos >= start + NIB_PAGE_POS) b--; /* windows of later ones begin after it */
        if (a < b) run_page(w, a, b, index, pages[index], head_kv);
    }
    for (uint32_t i = 0; i < n; i++) {
        query *q = &w->queries[i];
        merge_segment(q, s->v_dim);
        float inverse = 1.0f / q->total_l;
        for (uint32_t d = 0; d < s->v_dim; d++) q->out[d] = q->total[d] * inverse;
    }
}

void nib_cpu_op_attention(nib_cpu *cpu, const nib_plan_step *s, int index) {
    work w = {.cpu = cpu, .s = s};
    float *memory = open_work(&w, nib_cpu_scratch(cpu, index));
    /* Heads that share keys and values go together when there is enough work for all threads. */
    uint32_t group = heads_per_kv(s);
    uint32_t step = (uint64_t)cpu->n_blocks * s->n_head_kv >= 4 * (uint64_t)cpu->config.n_threads ? group : 1;
    uint32_t per_block = s->n_head / step, n = cpu->n_blocks * per_block;
    for (uint32_t unit; (unit = nib_cpu_claim(cpu, s)) < n;) {
        const nib_cpu_block *block = &cpu->blocks[unit / per_block];
        uint32_t head = unit % per_block * step;
        add_queries(&w, block, head, head + step, memory);
        run_unit(&w, block, head / group);
    }
}
