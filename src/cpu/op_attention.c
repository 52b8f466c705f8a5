/* cpu/op_attention.c - attention over paged keys and values: threads claim (block of tokens, key head[, segment]).
 *
 * For every query the arithmetic depends on absolute positions alone: pages of 32 in ascending order with an online
 * softmax (arXiv 1805.02867), segments of 512 positions each from scratch, merged in ascending order. So it does not
 * matter which queries share a page, how many tokens came with them, or which thread ran a segment. Positions outside
 * the window or after the token are left out, not multiplied by zero (but codes of q16 are: whole numbers): what lies there may
 * be anything.
 *
 * Where every token is of another sequence, the heads' norms, rope and storing before it are done here as well: no other thread needs
 * what a unit makes of its heads, so nobody has to be waited for.
 *
 * When there are only a few single tokens (decode), their segments are claimed one by one; the thread that finishes the
 * last segment of a token and head merges them all. */
#include "cpu/internal.h"

#include "base/math.h"
#include "cpu/fetch.h"
#include "cpu/q16.h"

#include <string.h>

#define SEGMENT_PAGES 16

/* A softmax so far: sum of exp(score - m) in l, and of the same times values in acc (v_dim). */
typedef struct partial {
    float m, l, *acc;
} partial;

typedef struct query {
    partial total;
    uint32_t pos, first_pos; /* its position and the first that it sees */
    float *out;
} query;

/* One thread's unit of work: the heads of one key head, for the tokens of a block. */
typedef struct work {
    nib_cpu *cpu;
    const nib_plan_step *s, *first; /* first … s-1: steps that are done here */
    uint32_t head_kv, n_query;
    query *queries;       /* in the order of their tokens, so that those that see a page stand side by side */
    const float **q;      /* by query: k_dim scaled floats */
    float *m, *l, **acc;  /* by query: the softmax of its segment so far */
    float *corr;          /* by query: the factor of these sums in this page */
    int16_t *codes;       /* by query: the same as q as codes, with their scales, where keys are codes */
    float *scale;
    float *keys, *values; /* scratch of one page */
    float *scores;        /* n_query * 32 */
    float *memory;        /* of queries and their sums */
} work;

static uint32_t heads_per_kv(const nib_plan_step *s) {
    return s->n_head / s->n_head_kv;
}

static size_t round64(size_t n) {
    return (n + 63) & ~(size_t)63;
}

size_t nib_cpu_attention_scratch(const nib_plan_step *s) {
    size_t n = (size_t)NIB_BLOCK_TOK * heads_per_kv(s);
    return round64(n * sizeof(query)) + 2 * round64(n * sizeof(float *)) + 4 * round64(4 * n) + round64(2 * n * nib_q16_stride(s->k_dim)) +
           round64(4 * n * NIB_PAGE_POS) +
           round64(4 * (size_t)NIB_PAGE_POS * s->k_dim) + round64(4 * (size_t)NIB_PAGE_POS * s->v_dim) +
           round64(4 * n * (s->k_dim + 2 * (size_t)s->v_dim));
}

static void *cut(unsigned char **at, size_t n_bytes) {
    void *p = *at;
    *at += round64(n_bytes);
    return p;
}

static void open_work(work *w, unsigned char *scratch) {
    size_t n = (size_t)NIB_BLOCK_TOK * heads_per_kv(w->s);
    w->queries = cut(&scratch, n * sizeof(query));
    w->q = cut(&scratch, n * sizeof(float *));
    w->acc = cut(&scratch, n * sizeof(float *));
    w->m = cut(&scratch, 4 * n);
    w->l = cut(&scratch, 4 * n);
    w->corr = cut(&scratch, 4 * n);
    w->scale = cut(&scratch, 4 * n);
    w->codes = cut(&scratch, 2 * n * nib_q16_stride(w->s->k_dim));
    w->scores = cut(&scratch, 4 * n * NIB_PAGE_POS);
    w->keys = cut(&scratch, 4 * (size_t)NIB_PAGE_POS * w->s->k_dim);
    w->values = cut(&scratch, 4 * (size_t)NIB_PAGE_POS * w->s->v_dim);
    w->memory = (float *)(void *)scratch;
}

static void clear_segment(work *w, uint32_t i) {
    w->m[i] = -INFINITY;
    w->l[i] = 0;
    memset(w->acc[i], 0, w->s->v_dim * sizeof(float));
}

/* Whatever the steps before are to do with a head of row t, of queries or keys, when they are done here. */
static void prepare(const work *w, int buffer, uint32_t t, float *x) {
    for (const nib_plan_step *s = w->first; s < w->s; s++)
        if (s->op != NIB_OP_KV_STORE && s->in == buffer) nib_cpu_head(w->cpu, s, t, x);
}

/* The key and the value of the token itself, when they are stored here: by the unit that has its page. */
static void store(const work *w, uint32_t t) {
    for (const nib_plan_step *s = w->first; s < w->s; s++) {
        if (s->op != NIB_OP_KV_STORE) continue;
        memcpy(w->keys, nib_cpu_row(w->cpu, s->in, t) + (size_t)w->head_kv * s->k_dim, s->k_dim * sizeof(float));
        prepare(w, s->in, t, w->keys);
        nib_cpu_store_head(w->cpu, s, t, w->head_kv, w->keys, nib_cpu_row(w->cpu, s->in2, t) + (size_t)w->head_kv * s->v_dim);
    }
}

static void open_queries(work *w, const nib_cpu_block *block, uint32_t head_kv) {
    const nib_plan_step *s = w->s;
    float *memory = w->memory;
    w->head_kv = head_kv;
    w->n_query = 0;
    for (uint32_t t = block->first; t < block->first + block->n; t++)
        for (uint32_t h = head_kv * heads_per_kv(s); h < (head_kv + 1) * heads_per_kv(s); h++) {
            query *q = &w->queries[w->n_query];
            memcpy(memory, nib_cpu_row(w->cpu, s->in, t) + (size_t)h * s->k_dim, s->k_dim * sizeof(float));
            prepare(w, s->in, t, memory);
            w->cpu->ops->scale(memory, s->scale, s->k_dim);
            w->q[w->n_query] = memory;
            if (w->cpu->kv.k_type->form == NIB_CPU_KV_Q16)
                w->scale[w->n_query] =
                    nib_q16_query(w->cpu->ops, memory, s->k_dim, w->codes + w->n_query * nib_q16_stride(s->k_dim));
            w->acc[w->n_query] = memory + s->k_dim;
            clear_segment(w, w->n_query++);
            q->total = (partial){-INFINITY, 0, memory + s->k_dim + s->v_dim};
            memset(q->total.acc, 0, s->v_dim * sizeof(float));
            memory = q->total.acc + s->v_dim;
            q->pos = w->cpu->batch->pos[t];
            q->first_pos = s->window && q->pos + 1 > s->window ? q->pos + 1 - s->window : 0;
            q->out = nib_cpu_row(w->cpu, s->out, t) + (size_t)h * s->v_dim;
        }
}

/* total = total and next as one softmax. A segment that a query does not see leaves it alone. */
static void merge(partial *total, const partial *next, uint32_t v_dim) {
    if (next->m == -INFINITY) return;
    if (total->m == -INFINITY && next->m < INFINITY) { /* what is below makes the same of it: 0 * 0 + x * 1 */
        for (uint32_t d = 0; d < v_dim; d++) total->acc[d] = next->acc[d] + 0.0f;
        total->l = next->l;
        total->m = next->m;
        return;
    }
    float m = next->m > total->m ? next->m : total->m;
    float a = nib_expf(total->m - m), b = nib_expf(next->m - m);
    for (uint32_t d = 0; d < v_dim; d++) total->acc[d] = total->acc[d] * a + next->acc[d] * b;
    total->l = total->l * a + next->l * b;
    total->m = m;
}

static void finish(const query *q, uint32_t v_dim) {
    float inverse = 1.0f / q->total.l;
    for (uint32_t d = 0; d < v_dim; d++) q->out[d] = q->total.acc[d] * inverse;
}

static uint32_t first_page(const work *w) {
    return w->queries[0].first_pos / NIB_PAGE_POS;
}

static uint32_t last_page(const work *w) {
    return w->queries[w->n_query - 1].pos / NIB_PAGE_POS;
}

/* Few queries read a page as it lies; for more it is turned into floats once. */
#define DIRECT_QUERIES 8

static const nib_cpu_page_ops *page_ops(const work *w, const nib_cpu_kv_type *type, uint32_t n_query) {
    if (type->form == NIB_CPU_KV_Q16) return w->cpu->isa->q16;
    const nib_cpu_page_ops *direct = &w->cpu->ops->page[type->form];
    return direct->scores && n_query <= DIRECT_QUERIES ? direct : NULL;
}

static void run_scores(work *w, uint32_t a, uint32_t b, uint32_t page, const uint32_t *next) {
    const nib_cpu_kv *kv = &w->cpu->kv;
    const nib_cpu_page_ops *ops = page_ops(w, kv->k_type, b - a);
    const void *keys = nib_cpu_kv_keys(kv, w->s->kv_layer, page, w->head_kv);
    nib_cpu_page_queries queries = {
        .n = b - a, .q = w->q + a, .codes = w->codes + a * nib_q16_stride(w->s->k_dim), .scale = w->scale + a};
    if (next) queries.next = nib_cpu_kv_keys(kv, w->s->kv_layer, *next, w->head_kv);
    if (!ops) {
        if (next) nib_cpu_fetch(queries.next, kv->k_type->key_bytes(w->s->k_dim));
        queries.next = NULL;
        keys = kv->k_type->load_keys(keys, w->keys, w->s->k_dim, w->cpu->ops);
        ops = &w->cpu->ops->page[NIB_CPU_KV_F32];
    }
    ops->scores(keys, &queries, w->s->k_dim, w->scores);
}

/* The positions of the page from `start` on that a query sees. */
static uint32_t first_seen(const query *q, uint32_t start) {
    return q->first_pos > start ? q->first_pos - start : 0;
}

static uint32_t last_seen(const query *q, uint32_t start) {
    return q->pos - start < NIB_PAGE_POS ? q->pos - start + 1 : NIB_PAGE_POS;
}

static void mask(const query *q, uint32_t start, float *scores) {
    for (uint32_t j = 0; j < first_seen(q, start); j++) scores[j] = -INFINITY;
    for (uint32_t j = last_seen(q, start); j < NIB_PAGE_POS; j++) scores[j] = -INFINITY;
}

static bool see_the_same(const query *a, const query *b, uint32_t start) {
    return first_seen(a, start) == first_seen(b, start) && last_seen(a, start) == last_seen(b, start);
}

/* Queries a … b-1 see page number `index` of the sequence. */
static void run_page(work *w, uint32_t a, uint32_t b, uint32_t index, const uint32_t *pages) {
    const nib_plan_step *s = w->s;
    const nib_cpu_kv *kv = &w->cpu->kv;
    const nib_cpu_page_ops *ops = page_ops(w, kv->v_type, b - a);
    const uint32_t *next = index < last_page(w) ? &pages[index + 1] : NULL;
    run_scores(w, a, b, pages[index], next);
    const void *values = nib_cpu_kv_values(kv, s->kv_layer, pages[index], w->head_kv);
    const void *next_values = next ? nib_cpu_kv_values(kv, s->kv_layer, *next, w->head_kv) : NULL;
    if (!ops) {
        if (next) nib_cpu_fetch(next_values, kv->v_type->value_bytes(s->v_dim));
        next_values = NULL;
        values = kv->v_type->load_values(values, w->values, s->v_dim, w->cpu->ops);
        ops = &w->cpu->ops->page[NIB_CPU_KV_F32];
    }
    uint32_t start = index * NIB_PAGE_POS;
    bool see_all = last_seen(&w->queries[a], start) == NIB_PAGE_POS && first_seen(&w->queries[b - 1], start) == 0;
    for (uint32_t i = a; i < b && !see_all; i++) mask(&w->queries[i], start, w->scores + (size_t)(i - a) * NIB_PAGE_POS);
    w->cpu->ops->page_softmax(b - a, w->scores, w->m + a, w->l + a, w->corr + a);
    bool goes_at_once = see_all || kv->v_type->form == NIB_CPU_KV_Q16; /* whole numbers may be multiplied by zero */
    for (uint32_t i = a, next_i; i < b; i = next_i) { /* those that see the same positions, which in most pages all do */
        const query *q = &w->queries[i];
        for (next_i = goes_at_once ? b : i + 1; next_i < b && see_the_same(q, &w->queries[next_i], start);) next_i++;
        nib_cpu_page_sums sums = {.n = next_i - i, .next = next_values};
        sums.first = first_seen(q, start);
        sums.last = last_seen(&w->queries[next_i - 1], start);
        sums.p = w->scores + (size_t)(i - a) * NIB_PAGE_POS;
        sums.corr = w->corr + i;
        sums.acc = w->acc + i;
        ops->values(values, &sums, s->v_dim);
    }
}

/* Queries whose position is at least `pos`: from the one returned on. Tokens of a block are consecutive. */
static uint32_t query_at(const work *w, uint32_t pos) {
    uint32_t first = w->queries[0].pos, n_head = heads_per_kv(w->s);
    if (pos <= first) return 0;
    return pos - first < w->n_query / n_head ? (pos - first) * n_head : w->n_query;
}

/* The pages of one segment that any query sees. */
static void run_segment(work *w, const uint32_t *pages, uint32_t segment) {
    uint32_t index = segment * SEGMENT_PAGES, end = index + SEGMENT_PAGES, window = w->s->window;
    if (index < first_page(w)) index = first_page(w);
    if (end > last_page(w) + 1) end = last_page(w) + 1;
    for (; index < end; index++) {
        uint32_t start = index * NIB_PAGE_POS; /* earlier tokens end before it, windows of later ones may begin after it */
        uint32_t a = query_at(w, start), b = window ? query_at(w, start + NIB_PAGE_POS - 1 + window) : w->n_query;
        if (a < b) run_page(w, a, b, index, pages);
    }
}

/* All segments of a block and key head, one after the other. */
static void run_whole(work *w, const nib_cpu_block *block, uint32_t head_kv) {
    open_queries(w, block, head_kv);
    store(w, block->first);
    const uint32_t *pages = w->cpu->batch->pages[block->first];
    for (uint32_t segment = first_page(w) / SEGMENT_PAGES; segment <= last_page(w) / SEGMENT_PAGES; segment++) {
        run_segment(w, pages, segment);
        for (uint32_t i = 0; i < w->n_query; i++) {
            query *q = &w->queries[i];
            merge(&q->total, &(partial){w->m[i], w->l[i], w->acc[i]}, w->s->v_dim);
            clear_segment(w, i);
        }
    }
    for (uint32_t i = 0; i < w->n_query; i++) finish(&w->queries[i], w->s->v_dim);
}

/* Splitting: segments of a token and key head ("pair") in places of their own: m, l, acc of each head and segment. */

size_t nib_cpu_attention_partials(const nib_plan_step *s, int n_threads, uint32_t n_pages) {
    size_t n_segments = (size_t)n_pages / SEGMENT_PAGES + 2;
    return (size_t)NIB_SPLIT_PAIRS * (size_t)n_threads * n_segments * heads_per_kv(s) * (s->v_dim + 2) * sizeof(float);
}

static float *partial_at(const work *w, uint32_t pair, uint32_t segment, uint32_t head) {
    size_t n_segments = (size_t)w->cpu->config.n_pages / SEGMENT_PAGES + 2;
    return w->cpu->partials + ((pair * n_segments + segment) * heads_per_kv(w->s) + head) * (w->s->v_dim + 2);
}

static void merge_pair(work *w, uint32_t pair, uint32_t n_segments) {
    for (uint32_t i = 0; i < w->n_query; i++) {
        query *q = &w->queries[i];
        for (uint32_t segment = 0; segment < n_segments; segment++) {
            float *p = partial_at(w, pair, segment, i);
            merge(&q->total, &(partial){p[0], p[1], p + 2}, w->s->v_dim);
        }
        finish(q, w->s->v_dim);
    }
}

static void run_split(work *w, uint32_t pair, const nib_cpu_block *block, uint32_t segment, uint32_t n_segments) {
    open_queries(w, block, pair % w->s->n_head_kv);
    if (segment + 1 == n_segments) store(w, block->first);
    run_segment(w, w->cpu->batch->pages[block->first], first_page(w) / SEGMENT_PAGES + segment);
    for (uint32_t i = 0; i < w->n_query; i++) {
        float *p = partial_at(w, pair, segment, i);
        p[0] = w->m[i];
        p[1] = w->l[i];
        memcpy(p + 2, w->acc[i], w->s->v_dim * sizeof(float));
    }
    if (atomic_fetch_add(&w->cpu->finished[pair], 1) + 1 < n_segments) return;
    atomic_store(&w->cpu->finished[pair], 0); /* for the next layer */
    merge_pair(w, pair, n_segments);
}

static uint32_t count_segments(const work *w, const nib_cpu_block *block) {
    uint32_t pos = w->cpu->batch->pos[block->first], window = w->s->window;
    uint32_t first = window && pos + 1 > window ? pos + 1 - window : 0, per = SEGMENT_PAGES * NIB_PAGE_POS;
    return pos / per - first / per + 1;
}

/* Unit `unit` of all tokens' segments: pairs of a token stand together, segments of a pair too. False: beyond the last. */
static bool run_split_unit(work *w, uint32_t unit) {
    for (uint32_t b = 0; b < w->cpu->n_blocks; b++) {
        uint32_t n_segments = count_segments(w, &w->cpu->blocks[b]), n = n_segments * w->s->n_head_kv;
        if (unit < n) {
            uint32_t pair = b * w->s->n_head_kv + unit / n_segments;
            run_split(w, pair, &w->cpu->blocks[b], unit % n_segments, n_segments);
            return true;
        }
        unit -= n;
    }
    return false;
}

void nib_cpu_op_attention(nib_cpu *cpu, const nib_plan_step *s, int index) {
    work w = {.cpu = cpu, .s = s, .first = s};
    while (w.first > cpu->plan->steps && nib_cpu_is_in_attention(cpu, w.first - 1)) w.first--;
    open_work(&w, nib_cpu_scratch(cpu, index));
    uint32_t n = cpu->n_blocks * s->n_head_kv;
    bool splits = cpu->n_blocks == cpu->batch->n_tok && n < NIB_SPLIT_PAIRS * (uint32_t)cpu->n_active;
    if (splits) {
        while (run_split_unit(&w, nib_cpu_claim_unit(cpu, s))) {}
        return;
    }
    for (uint32_t unit; (unit = nib_cpu_claim_unit(cpu, s)) < n;) { /* late tokens see most, and come first: ends are small */
        uint32_t block = cpu->n_blocks - 1 - unit / s->n_head_kv;
        run_whole(&w, &cpu->blocks[block], unit % s->n_head_kv);
    }
}
