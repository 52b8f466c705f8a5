/* model/decoder.c - the standard decoder: hyper-parameters and tensors of a file in, plan out.
 *
 * `emit_layer` reads like the paper. Everything in which the known architectures differ is a field of nib_arch or the
 * presence of a tensor (biases). Called by model/model at load and by nib_model_check. */
#include "model/decoder.h"

#include "base/status.h"
#include "gguf/value.h"
#include "model/rope.h"
#include "plan/emit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum tensor_id {
#define X(id, name) T_##id,
#include "model/tensors.def"
#undef X
} tensor_id;

static const char *const tensor_names[] = {
#define X(id, name) name,
#include "model/tensors.def"
#undef X
};

typedef struct decoder {
    const nib_model_source *src;
    nib_plan_builder b;
    int x, h, q, k, v, att, gate, up, tmp; /* buffers; x is the residual stream */
    int table_global, table_local;
    uint64_t window_period;             /* 0: no windows */
    const nib_gguf_value *window_flags; /* a flag a layer instead; NULL: none */
} decoder;

static void full_name(const decoder *d, tensor_id id, char *out, size_t size) {
    if (d->b.layer >= 0) snprintf(out, size, "blk.%d.%s", d->b.layer, tensor_names[id]);
    else snprintf(out, size, "%s", tensor_names[id]);
}

/* A fault of one tensor: reported and passed over when somebody collects them, else the end. */
static void fault(decoder *d, const nib_error *found) {
    if (d->src->report) {
        d->src->report(d->src->user, found);
        return;
    }
    d->b.status = found->code;
    if (d->b.err) *d->b.err = *found;
}

static nib_status wrong_shape(const nib_gguf_tensor *t, const nib_plan_weight *w, nib_error *err) {
    char found[100], wanted[40];
    size_t n = 0;
    for (uint32_t i = 0; i < t->n_dims && i < 4; i++)
        n += (size_t)snprintf(found + n, sizeof found - n, "%s%llu", i ? " x " : "", (unsigned long long)t->dims[i]);
    if (w->kind == NIB_WEIGHT_VECTOR) snprintf(wanted, sizeof wanted, "%u", w->n_out);
    else snprintf(wanted, sizeof wanted, "%u x %u", w->n_in, w->n_out);
    return nib_fail(err, NIB_E_FORMAT, "tensor %.*s has the shape %s, expected %s", NIB_STR_ARG(t->name), found, wanted);
}

static nib_status check_tensor(const nib_gguf_tensor *t, const nib_plan_weight *w, nib_error *err) {
    if (!w->type)
        return nib_fail(err, NIB_E_UNSUPPORTED, "tensor %.*s has the type %s, which nib does not compute with",
                        NIB_STR_ARG(t->name), t->type_name);
    if (w->kind == NIB_WEIGHT_VECTOR) {
        if (w->type->block_size != 1)
            return nib_fail(err, NIB_E_UNSUPPORTED, "tensor %.*s has the type %s, expected F32, F16 or BF16",
                            NIB_STR_ARG(t->name), t->type_name);
        return t->dims[0] == w->n_out && t->n_elements == w->n_out ? NIB_OK : wrong_shape(t, w, err);
    }
    bool fits = t->dims[0] == w->n_in && t->dims[1] == w->n_out && t->dims[2] == 1 && t->dims[3] == 1;
    return fits ? NIB_OK : wrong_shape(t, w, err);
}

/* The weight index of a tensor, checked; NIB_PLAN_NONE when it is absent or at fault. */
static int find_weight(decoder *d, tensor_id id, nib_plan_weight w) {
    char name[128];
    full_name(d, id, name, sizeof name);
    const nib_gguf_tensor *t = nib_gguf_find_tensor(d->src->file, name);
    if (d->b.status != NIB_OK || !t) return NIB_PLAN_NONE;
    w.tensor = t;
    w.type = nib_quant_type_by_gguf(t->type);
    nib_error found;
    if (check_tensor(t, &w, &found) != NIB_OK) {
        fault(d, &found);
        if (!w.type || w.kind == NIB_WEIGHT_VECTOR) w.type = nib_quant_type_at(NIB_QUANT_F32);
    }
    char *copy = nib_arena_copy(&d->b.plan->arena, name, strlen(name));
    if (!copy) {
        d->b.status = nib_fail_nomem(d->b.err, strlen(name), "the plan");
        return NIB_PLAN_NONE;
    }
    w.name = copy;
    return nib_plan_add_weight(&d->b, &w);
}

static int need_weight(decoder *d, tensor_id id, nib_plan_weight w) {
    int i = find_weight(d, id, w);
    if (i >= 0 || d->b.status != NIB_OK) return i;
    char name[128];
    full_name(d, id, name, sizeof name);
    nib_error missing;
    if (w.kind == NIB_WEIGHT_VECTOR)
        nib_fail(&missing, NIB_E_FORMAT, "the tensor %s is missing, expected %u values (architecture %s)", name, w.n_out,
                 d->src->arch->name);
    else
        nib_fail(&missing, NIB_E_FORMAT, "the tensor %s is missing, expected %u x %u (architecture %s)", name, w.n_in, w.n_out,
                 d->src->arch->name);
    fault(d, &missing);
    if (d->b.status != NIB_OK) return NIB_PLAN_NONE;
    w.name = "missing"; /* a stand-in, so that the faults of later tensors are found too */
    w.type = nib_quant_type_at(NIB_QUANT_F32);
    return nib_plan_add_weight(&d->b, &w);
}

static int matrix(decoder *d, tensor_id id, uint32_t n_in, uint32_t n_out) {
    return need_weight(d, id, (nib_plan_weight){.kind = NIB_WEIGHT_MATRIX, .n_in = n_in, .n_out = n_out});
}

static int vector(decoder *d, tensor_id id, uint32_t n) {
    return need_weight(d, id, (nib_plan_weight){.kind = NIB_WEIGHT_VECTOR, .n_in = 1, .n_out = n});
}

static int optional_vector(decoder *d, tensor_id id, uint32_t n) {
    return find_weight(d, id, (nib_plan_weight){.kind = NIB_WEIGHT_VECTOR, .n_in = 1, .n_out = n});
}

/* Product of buffer `in` (n_in wide) with a matrix and its bias when the file has one. */
static nib_plan_product product(decoder *d, tensor_id weight, tensor_id bias, int in, int out) {
    const nib_plan_buffer *buffers = d->b.plan->buffers;
    if (d->b.status != NIB_OK) return (nib_plan_product){NIB_PLAN_NONE, NIB_PLAN_NONE, NIB_PLAN_NONE};
    uint32_t n_in = buffers[in].width, n_out = buffers[out].width;
    int w = matrix(d, weight, n_in, n_out);
    return (nib_plan_product){w, optional_vector(d, bias, n_out), out};
}

/* Which layers see only a window: the file may say so by a period or a flag a layer; else the architecture does. */
static void read_windows(decoder *d) {
    if (!d->src->arch->window_period || !d->src->hp.window) return;
    char key[128];
    snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", d->src->arch->name);
    const nib_gguf_value *v = nib_gguf_find(d->src->file, key);
    d->window_period = d->src->arch->window_period;
    if (!v) return;
    if (v->type == NIB_GGUF_ARRAY && nib_gguf_value_size(v->elem) && v->n == d->src->hp.n_layer) {
        d->window_flags = v;
        return;
    }
    if (nib_gguf_value_u64(v, &d->window_period) && d->window_period > 0) return;
    nib_error found;
    if (v->type == NIB_GGUF_ARRAY)
        nib_fail(&found, NIB_E_FORMAT, "%s is an array of %llu %s, expected %u flags, one for each layer", key,
                 (unsigned long long)v->n, nib_gguf_type_name(v->elem), d->src->hp.n_layer);
    else
        nib_fail(&found, NIB_E_FORMAT, "%s is of type %s, expected a u32 from 1 on or an array", key, nib_gguf_type_name(v->type));
    fault(d, &found);
}

static bool is_local(const decoder *d) {
    uint64_t layer = (uint64_t)d->b.layer;
    if (d->window_flags) return nib_gguf_number_at(d->window_flags, layer) != 0;
    return d->window_period && (layer + 1) % d->window_period != 0;
}

/* out_weight (and bias) of `act`, added to the residual stream, through the post norm where the architecture has one. */
static void residual(decoder *d, const char *name, int act, nib_plan_product p, tensor_id post_norm) {
    if (!(d->src->arch->flags & NIB_ARCH_POST_NORM)) {
        nib_plan_matmul(&d->b, name, act, &p, 1, d->x);
        return;
    }
    nib_plan_matmul(&d->b, name, act, &p, 1, NIB_PLAN_NONE);
    int norm = vector(d, post_norm, d->src->hp.n_embd);
    nib_plan_norm_add(&d->b, tensor_names[post_norm], d->tmp, norm, d->src->hp.rms_eps, d->x);
}

static void emit_attention(decoder *d) {
    const nib_model_hparams *hp = &d->src->hp;
    const nib_arch *arch = d->src->arch;
    nib_plan_builder *b = &d->b;
    int act = nib_plan_norm(b, "attn_norm", d->x, vector(d, T_ATTN_NORM, hp->n_embd), hp->rms_eps, d->h);
    nib_plan_product qkv[] = {
        product(d, T_ATTN_Q, T_ATTN_Q_BIAS, d->h, d->q),
        product(d, T_ATTN_K, T_ATTN_K_BIAS, d->h, d->k),
        product(d, T_ATTN_V, T_ATTN_V_BIAS, d->h, d->v),
    };
    nib_plan_matmul(b, "attn_qkv", act, qkv, 3, NIB_PLAN_NONE);
    if (arch->flags & NIB_ARCH_QK_NORM) {
        nib_plan_head_norm(b, "attn_q_norm", d->q, vector(d, T_ATTN_Q_NORM, hp->k_dim), hp->rms_eps);
        nib_plan_head_norm(b, "attn_k_norm", d->k, vector(d, T_ATTN_K_NORM, hp->k_dim), hp->rms_eps);
    }
    bool local = is_local(d);
    int table = local ? d->table_local : d->table_global;
    nib_plan_rope(b, "rope_q", d->q, hp->k_dim, table, arch->rope);
    nib_plan_rope(b, "rope_k", d->k, hp->k_dim, table, arch->rope);
    uint32_t dim = arch->n_layer_wide == hp->n_layer ? hp->n_embd / hp->n_head : hp->k_dim;
    nib_plan_attention_params p = {
        .q = d->q, .k = d->k, .v = d->v, .out = d->att, .n_head = hp->n_head,
        .kv_layer = nib_plan_add_kv_layer(b, &(nib_plan_kv_layer){hp->n_head_kv, hp->k_dim, hp->v_dim}),
        .window = local ? hp->window : 0,
        .scale = 1.0f / sqrtf((float)dim),
    };
    nib_plan_attention(b, &p);
    act = nib_plan_quant(b, "attn_quant", d->att);
    residual(d, "attn_output", act, product(d, T_ATTN_OUTPUT, T_ATTN_OUTPUT_BIAS, d->att, d->tmp), T_POST_ATTN_NORM);
}

static void emit_feed_forward(decoder *d) {
    const nib_model_hparams *hp = &d->src->hp;
    nib_plan_builder *b = &d->b;
    int act = nib_plan_norm(b, "ffn_norm", d->x, vector(d, T_FFN_NORM, hp->n_embd), hp->rms_eps, d->h);
    nib_plan_product gate_up[] = {
        product(d, T_FFN_GATE, T_FFN_GATE_BIAS, d->h, d->gate),
        product(d, T_FFN_UP, T_FFN_UP_BIAS, d->h, d->up),
    };
    nib_plan_matmul(b, "ffn_gate_up", act, gate_up, 2, NIB_PLAN_NONE);
    act = nib_plan_glu(b, d->src->arch->act, d->gate, d->up, d->gate);
    residual(d, "ffn_down", act, product(d, T_FFN_DOWN, T_FFN_DOWN_BIAS, d->gate, d->tmp), T_POST_FFN_NORM);
}

static void emit_layer(decoder *d, int layer) {
    d->b.layer = layer;
    emit_attention(d);
    /* What follows the last attention concerns one token alone: only the rows whose logits are wanted go on. */
    if ((uint32_t)layer + 1 == d->src->hp.n_layer) nib_plan_gather(&d->b, d->x);
    emit_feed_forward(d);
    d->b.layer = NIB_PLAN_NONE;
}

/* Divisors of the frequencies that Llama 3.1 and later bring as a tensor; they are part of the plan, not a weight. */
static nib_status rope_factors(decoder *d, float *out, bool *found, nib_error *err) {
    const nib_gguf_tensor *t = nib_gguf_find_tensor(d->src->file, tensor_names[T_ROPE_FREQS]);
    *found = t != NULL;
    if (!t) return NIB_OK;
    uint32_t n = d->src->hp.n_rot / 2;
    if (t->type != nib_quant_type_at(NIB_QUANT_F32)->gguf_id || t->n_elements != n)
        return nib_fail(err, NIB_E_FORMAT, "tensor %s has the type %s and %llu values, expected F32 and %u",
                        tensor_names[T_ROPE_FREQS], t->type_name, (unsigned long long)t->n_elements, n);
    NIB_TRY(nib_gguf_read(d->src->file, t, 0, n * sizeof *out, out, err));
    for (uint32_t i = 0; i < n; i++)
        if (!(out[i] >= 1e-3f && out[i] <= 1e9f))
            return nib_fail(err, NIB_E_FORMAT, "tensor %s: value %u is %g, expected 0.001 to 1e9", tensor_names[T_ROPE_FREQS],
                            i, (double)out[i]);
    return NIB_OK;
}

static void emit_tables(decoder *d) {
    const nib_model_hparams *hp = &d->src->hp;
    float factors[2048], inv_freq[2048], mscale; /* n_rot is at most 4096 (hparams.def) */
    bool has_factors;
    nib_error found;
    if (rope_factors(d, factors, &has_factors, &found) != NIB_OK) {
        fault(d, &found);
        has_factors = false;
    }
    nib_model_rope_scaled(hp, has_factors ? factors : NULL, inv_freq, &mscale);
    d->table_global = d->table_local = nib_plan_add_rope_table(&d->b, inv_freq, hp->n_rot, mscale);
    if (!d->src->arch->window_period) return;
    nib_model_rope_plain(hp->rope_base_local, hp->n_rot, inv_freq);
    d->table_local = nib_plan_add_rope_table(&d->b, inv_freq, hp->n_rot, 1.0f);
}

static void emit_model(decoder *d) {
    const nib_model_hparams *hp = &d->src->hp;
    nib_plan_builder *b = &d->b;
    d->x = nib_plan_add_buffer(b, hp->n_embd);
    d->h = nib_plan_add_buffer(b, hp->n_embd);
    d->tmp = nib_plan_add_buffer(b, hp->n_embd);
    d->q = nib_plan_add_buffer(b, hp->n_head * hp->k_dim);
    d->k = nib_plan_add_buffer(b, hp->n_head_kv * hp->k_dim);
    d->v = nib_plan_add_buffer(b, hp->n_head_kv * hp->v_dim);
    d->att = nib_plan_add_buffer(b, hp->n_head * hp->v_dim);
    d->gate = nib_plan_add_buffer(b, hp->n_ff);
    d->up = nib_plan_add_buffer(b, hp->n_ff);
    b->plan->logits = nib_plan_add_buffer(b, hp->n_vocab);
    b->plan->n_vocab = hp->n_vocab;

    bool is_tied = nib_gguf_find_tensor(d->src->file, tensor_names[T_OUTPUT]) == NULL;
    nib_plan_weight table = {.kind = is_tied ? NIB_WEIGHT_MATRIX : NIB_WEIGHT_ROWS, .n_in = hp->n_embd, .n_out = hp->n_vocab};
    int embd = need_weight(d, T_TOKEN_EMBD, table);
    float scale = d->src->arch->flags & NIB_ARCH_EMBED_SCALE ? sqrtf((float)hp->n_embd) : 1.0f;
    nib_plan_embed(b, embd, scale, d->x);
    emit_tables(d);
    read_windows(d);
    for (uint32_t i = 0; i < hp->n_layer && b->status == NIB_OK; i++) emit_layer(d, (int)i);
    int act = nib_plan_norm(b, "output_norm", d->x, vector(d, T_OUTPUT_NORM, hp->n_embd), hp->rms_eps, d->h);
    b->plan->hidden = d->h;
    nib_plan_product out = {is_tied ? embd : matrix(d, T_OUTPUT, hp->n_embd, hp->n_vocab), NIB_PLAN_NONE, b->plan->logits};
    out.bias = optional_vector(d, T_OUTPUT_BIAS, hp->n_vocab);
    nib_plan_matmul(b, "output", act, &out, 1, NIB_PLAN_NONE);
}

static bool is_used(const nib_plan *plan, const nib_gguf_tensor *t) {
    if (t->name.len == strlen(tensor_names[T_ROPE_FREQS]) && memcmp(t->name.ptr, tensor_names[T_ROPE_FREQS], t->name.len) == 0)
        return true;
    for (size_t i = 0; i < plan->n_weights; i++)
        if (plan->weights[i].tensor == t) return true;
    return false;
}

static void check_unused(decoder *d) {
    size_t n = nib_gguf_n_tensors(d->src->file), n_used = 0;
    for (size_t i = 0; i < d->b.plan->n_weights; i++) n_used += d->b.plan->weights[i].tensor != NULL;
    if (n_used == n) return;
    for (size_t i = 0; i < n && d->b.status == NIB_OK; i++) {
        const nib_gguf_tensor *t = nib_gguf_tensor_at(d->src->file, i);
        if (is_used(d->b.plan, t)) continue;
        nib_error found;
        nib_fail(&found, NIB_E_UNSUPPORTED, "tensor %.*s is not part of the architecture %s with %u layers as nib knows it",
                 NIB_STR_ARG(t->name), d->src->arch->name, d->src->hp.n_layer);
        fault(d, &found);
    }
}

nib_status nib_model_source_open(nib_model_source *src, const nib_gguf *file, nib_error *err) {
    *src = (nib_model_source){.file = file};
    const nib_gguf_value *v = nib_gguf_find(file, "general.architecture");
    if (!v) return nib_fail(err, NIB_E_FORMAT, "the key general.architecture is missing");
    if (v->type != NIB_GGUF_STRING)
        return nib_fail(err, NIB_E_FORMAT, "general.architecture is of type %s, expected string", nib_gguf_type_name(v->type));
    src->arch = nib_arch_find(v->as.str);
    if (!src->arch)
        return nib_fail(err, NIB_E_UNSUPPORTED, "general.architecture is \"%.*s\"; nib knows %s", NIB_STR_ARG(v->as.str),
                        nib_arch_names());
    return nib_model_hparams_read(&src->hp, file, src->arch->name, err);
}

nib_status nib_model_decoder_build(nib_plan *plan, const nib_model_source *src, nib_error *err) {
    *plan = (nib_plan){0};
    decoder d = {.src = src, .b = {.plan = plan, .err = err, .layer = NIB_PLAN_NONE, .rows = NIB_ROWS_TOK}};
    emit_model(&d);
    if (d.b.status == NIB_OK) check_unused(&d);
    if (d.b.status != NIB_OK) nib_plan_free(plan);
    return d.b.status;
}
