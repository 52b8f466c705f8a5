/* decode/probe.c - a plan of one kind of step, over and over, with its weights or cache: what a meter of steps runs.
 *
 * A step_info in -> steps of that kind, run by cpu/run as those of a model are, barriers included. Weights are one byte
 * repeated that makes no float subnormal or infinite in any packed form; activations and cache are zeros. No kernel looks
 * at values, so the time is that of real ones. */
#include "base/mem.h"
#include "base/status.h"
#include "cpu/kv.h"
#include "decode/meter.h"
#include "plan/emit.h"

#include <string.h>

enum {
    MAX_STEPS = 4096,
    MAX_WIDTH = 1 << 20,
    MAX_TOK = 1 << 16,
    MAX_POS = 1 << 22,
    N_ROW_STEPS = 16,  /* steps of kinds that read nothing much */
    MAX_LAYERS = 64,
    FILL = 0x34,       /* 0.26 as f16, 1.7e-7 as f32 and bf16 */
};

typedef struct probe {
    nib_decode_probe *out;
    const nib_meter_config *config;
    const nib_step_info *step;
    nib_plan_builder b;
} probe;

static int add_weight(probe *p, nib_plan_weight_kind kind, const nib_quant_type *type, uint64_t n_out) {
    uint32_t n_in = kind == NIB_WEIGHT_VECTOR ? 1 : (uint32_t)p->step->n_in;
    return nib_plan_add_weight(&p->b, &(nib_plan_weight){kind, "probe", type, n_in, (uint32_t)n_out, NULL});
}

/* How many steps go through n_bytes when each takes `each`. */
static size_t count_steps(const probe *p, uint64_t each, size_t most) {
    uint64_t n = p->config->n_bytes / (each ? each : 1);
    return n < 1 ? 1 : n < most ? (size_t)n : most;
}

static nib_status weight_type(const probe *p, const nib_quant_type **type, nib_error *err) {
    *type = nib_quant_type_by_name(p->step->type);
    if (*type) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "a step over weights of the type '%s', which nib does not compute with",
                    p->step->type ? p->step->type : "");
}

/* Matrices of their own for each step, one input for all of them. Quantising it is another kind of step. */
static nib_status emit_matmul(probe *p, nib_error *err) {
    const nib_quant_type *type;
    nib_cpu_matrix shape;
    NIB_TRY(weight_type(p, &type, err));
    NIB_TRY(nib_cpu_matrix_init(&shape, type, (uint32_t)p->step->n_out, (uint32_t)p->step->n_in, err));
    size_t n = count_steps(p, nib_cpu_matrix_bytes(&shape), MAX_STEPS);
    int in = nib_plan_add_buffer(&p->b, (uint32_t)p->step->n_in);
    int result = nib_plan_add_buffer(&p->b, (uint32_t)p->step->n_out), act = nib_plan_quant(&p->b, "quant", in);
    p->out->plan.n_steps = 0; /* the input stays zeros */
    for (size_t i = 0; i < n; i++) {
        nib_plan_product product = {add_weight(p, NIB_WEIGHT_MATRIX, type, p->step->n_out), NIB_PLAN_NONE, result};
        nib_plan_matmul(&p->b, "matmul", act, &product, 1, NIB_PLAN_NONE);
    }
    p->out->n_steps = n;
    p->out->bytes = n * nib_cpu_matrix_bytes(&shape);
    p->out->macs = n * (uint64_t)p->config->n_tok * p->step->n_in * p->step->n_out;
    return p->b.status;
}

/* Steps that work row by row and quantise what they give for a product: one of sixteen outputs follows. */
static nib_status emit_rows(probe *p, nib_error *err) {
    const nib_quant_type *type;
    bool is_norm = !strcmp(p->step->op, "norm");
    NIB_TRY(weight_type(p, &type, err));
    uint32_t width = (uint32_t)p->step->n_in;
    int a = nib_plan_add_buffer(&p->b, width), b = nib_plan_add_buffer(&p->b, width), c = nib_plan_add_buffer(&p->b, width);
    int result = nib_plan_add_buffer(&p->b, NIB_GROUP_ROWS);
    int scale = add_weight(p, NIB_WEIGHT_VECTOR, nib_quant_type_at(NIB_QUANT_F32), width);
    nib_plan_product product = {add_weight(p, NIB_WEIGHT_MATRIX, type, NIB_GROUP_ROWS), NIB_PLAN_NONE, result};
    for (size_t i = 0; i < N_ROW_STEPS; i++) {
        int act = is_norm ? nib_plan_norm(&p->b, "norm", a, scale, 1e-5f, c) : nib_plan_glu(&p->b, NIB_ACT_SILU, a, b, c);
        nib_plan_matmul(&p->b, "matmul", act, &product, 1, NIB_PLAN_NONE);
    }
    p->out->n_steps = N_ROW_STEPS;
    return p->b.status;
}

static uint64_t positions_seen(const nib_meter_config *c) {
    uint64_t sum = 0, each = c->n_tok / c->n_seq;
    for (uint64_t i = 0; i < each; i++) {
        uint64_t n = c->n_past + i + 1;
        sum += c->step->window && n > c->step->window ? c->step->window : n;
    }
    return sum * c->n_seq;
}

static nib_status emit_attention(probe *p, nib_error *err) {
    const nib_step_info *s = p->step;
    const nib_cpu_kv_type *k, *v;
    size_t page;
    NIB_TRY(nib_cpu_kv_type_find(&k, p->config->k_type, err));
    NIB_TRY(nib_cpu_kv_type_find(&v, p->config->v_type, err));
    if (s->n_head_kv < 1 || s->n_head < 1 || s->n_head > 4096 || s->n_head % s->n_head_kv || s->head_dim < 1 || s->head_dim > 4096)
        return nib_fail(err, NIB_E_ARG, "attention with %u heads over %u heads of keys of %u values", s->n_head, s->n_head_kv,
                        s->head_dim);
    nib_plan_kv_layer layer = {s->n_head_kv, s->head_dim, s->head_dim};
    uint32_t kv_width = s->n_head_kv * s->head_dim, width = s->n_head * s->head_dim;
    nib_plan_attention_params a = {.n_head = s->n_head, .window = s->window, .scale = 1};
    a.q = nib_plan_add_buffer(&p->b, width);
    a.k = nib_plan_add_buffer(&p->b, kv_width);
    a.v = nib_plan_add_buffer(&p->b, kv_width);
    a.out = nib_plan_add_buffer(&p->b, width);
    a.kv_layer = nib_plan_add_kv_layer(&p->b, &layer);
    NIB_TRY(p->b.status);
    NIB_TRY(nib_cpu_kv_page_bytes(&p->out->plan, k, v, &page, err));
    uint64_t n_pos = (uint64_t)p->config->n_seq * (p->config->n_past + p->config->n_tok / p->config->n_seq);
    size_t n = count_steps(p, n_pos * page / NIB_PAGE_POS, MAX_LAYERS);
    for (size_t i = 0; i < n; i++) {
        if (i) a.kv_layer = nib_plan_add_kv_layer(&p->b, &layer);
        nib_plan_attention(&p->b, &a);
    }
    p->out->n_steps = n;
    p->out->bytes = n * (n_pos * page / NIB_PAGE_POS);
    p->out->macs = n * 2 * (uint64_t)width * positions_seen(p->config);
    return p->b.status;
}

static nib_status check_config(const nib_meter_config *c, nib_error *err) {
    if (c->step->n_in > MAX_WIDTH || c->step->n_out > MAX_WIDTH)
        return nib_fail(err, NIB_E_ARG, "a step of %llu x %llu, expected at most %d", (unsigned long long)c->step->n_in,
                        (unsigned long long)c->step->n_out, MAX_WIDTH);
    if (c->n_tok < 1 || c->n_tok > MAX_TOK) return nib_fail(err, NIB_E_ARG, "n_tok is %u, expected 1 to %d", c->n_tok, MAX_TOK);
    if (c->n_seq < 1 || c->n_tok % c->n_seq)
        return nib_fail(err, NIB_E_ARG, "n_seq is %u, expected a divisor of n_tok, %u", c->n_seq, c->n_tok);
    if (c->n_past > MAX_POS) return nib_fail(err, NIB_E_ARG, "n_past is %u, expected at most %d", c->n_past, MAX_POS);
    return NIB_OK;
}

static nib_status emit(probe *p, nib_error *err) {
    static const struct {
        const char *op;
        nib_status (*emit)(probe *p, nib_error *err);
    } kinds[] = {{"matmul", emit_matmul}, {"attention", emit_attention}, {"norm", emit_rows}, {"glu", emit_rows}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (p->step->op && !strcmp(p->step->op, kinds[i].op)) {
            NIB_TRY(kinds[i].emit(p, err));
            p->out->plan.hidden = NIB_PLAN_NONE;
            p->out->plan.logits = nib_plan_add_buffer(&p->b, 1); /* a plan has one, and a cache; they may stay unused */
            if (!p->out->plan.n_kv_layers) nib_plan_add_kv_layer(&p->b, &(nib_plan_kv_layer){1, 32, 32});
            return p->b.status;
        }
    return nib_fail(err, NIB_E_UNSUPPORTED, "no meter for steps of the kind '%s'", p->step->op ? p->step->op : "");
}

static nib_status make_weights(nib_decode_probe *out, nib_error *err) {
    const nib_plan *plan = &out->plan;
    out->weights = nib_calloc(plan->n_weights + 1, sizeof *out->weights);
    if (!out->weights) return nib_fail_nomem(err, 0, "a meter");
    for (size_t i = 0; i < plan->n_weights; i++) {
        const nib_plan_weight *w = &plan->weights[i];
        nib_cpu_matrix *m = &out->weights[i].matrix;
        if (w->kind == NIB_WEIGHT_MATRIX) NIB_TRY(nib_cpu_matrix_init(m, w->type, w->n_out, w->n_in, err));
        out->n_bytes += w->kind == NIB_WEIGHT_MATRIX ? nib_cpu_matrix_bytes(m) : ((size_t)w->n_out * 4 + 63) & ~(size_t)63;
    }
    if (!out->n_bytes) return NIB_OK;
    out->memory = nib_pages_new(out->n_bytes);
    if (!out->memory) return nib_fail_nomem(err, out->n_bytes, "the weights of a meter");
    memset(out->memory, FILL, out->n_bytes);
    unsigned char *at = out->memory;
    for (size_t i = 0; i < plan->n_weights; i++) {
        const nib_plan_weight *w = &plan->weights[i];
        out->weights[i].matrix.data = at;
        out->weights[i].vector = (const float *)(void *)at;
        at += w->kind == NIB_WEIGHT_MATRIX ? nib_cpu_matrix_bytes(&out->weights[i].matrix)
                                           : ((size_t)w->n_out * 4 + 63) & ~(size_t)63;
    }
    return NIB_OK;
}

/* Tokens in consecutive positions after n_past, sequence by sequence; every sequence has pages of its own. */
static nib_status make_batch(nib_decode_probe *out, const nib_meter_config *c, uint32_t per_seq, nib_error *err) {
    uint32_t each = c->n_tok / c->n_seq;
    out->pos = nib_calloc(c->n_tok, sizeof *out->pos);
    out->pages = nib_calloc(c->n_tok, sizeof *out->pages);
    out->page_numbers = nib_calloc((size_t)per_seq * c->n_seq, sizeof *out->page_numbers);
    if (!out->pos || !out->pages || !out->page_numbers) return nib_fail_nomem(err, 0, "a meter");
    for (uint32_t i = 0; i < per_seq * c->n_seq; i++) out->page_numbers[i] = i;
    for (uint32_t t = 0; t < c->n_tok; t++) {
        out->pos[t] = c->n_past + t % each;
        out->pages[t] = out->page_numbers + (size_t)(t / each) * per_seq;
    }
    out->batch = (nib_plan_batch){.n_tok = c->n_tok, .pos = out->pos, .pages = out->pages};
    return NIB_OK;
}

nib_status nib_decode_probe_init(nib_decode_probe *out, const nib_meter_config *config, const nib_cpu_isa *isa,
                                 nib_error *err) {
    NIB_TRY(check_config(config, err));
    probe p = {.out = out, .config = config, .step = config->step};
    p.b = (nib_plan_builder){.plan = &out->plan, .err = err, .layer = NIB_PLAN_NONE, .rows = NIB_ROWS_TOK};
    NIB_TRY(emit(&p, err));
    NIB_TRY(make_weights(out, err));
    uint32_t per_seq = (config->n_past + config->n_tok / config->n_seq - 1) / NIB_PAGE_POS + 1;
    uint64_t n_pages = (uint64_t)per_seq * config->n_seq;
    if (n_pages > MAX_POS) return nib_fail(err, NIB_E_LIMIT, "a meter over %llu pages of cache", (unsigned long long)n_pages);
    NIB_TRY(make_batch(out, config, per_seq, err));
    nib_cpu_config cpu = {
        .isa = isa, .weights = out->weights, .n_threads = config->n_threads, .n_tok = config->n_tok, .n_logits = 1,
        .n_pages = (uint32_t)n_pages, .k_type = config->k_type, .v_type = config->v_type,
    };
    NIB_TRY(nib_cpu_new(&out->cpu, &out->plan, &cpu, err));
    /* The cache must be written before it is read: pages that nobody touched are all the same memory. */
    NIB_TRY(nib_cpu_run(out->cpu, &out->batch, err));
    uint32_t written = config->n_past / NIB_PAGE_POS;
    for (uint32_t i = 0; i < n_pages; i++)
        if (i != written) nib_cpu_copy_page(out->cpu, written, i);
    return NIB_OK;
}

void nib_decode_probe_fini(nib_decode_probe *p) {
    nib_cpu_free(p->cpu);
    nib_plan_free(&p->plan);
    nib_free(p->weights);
    nib_free(p->pos);
    nib_free(p->pages);
    nib_free(p->page_numbers);
    nib_pages_free(p->memory, p->n_bytes);
}
