/* model/model.c - opens, checks and describes a model (nib_model_* of nib.h). */
#include "model/model.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "cpu/kv.h"
#include "gguf/identity.h"
#include "model/load.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static nib_status check_config(const nib_model_config *c, nib_error *err) {
    if (c->size != sizeof *c)
        return nib_fail(err, NIB_E_ARG, "nib_model_config is %zu bytes, this library expects %zu", c->size, sizeof *c);
    if (c->n_threads < 0 || c->n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "n_threads is %d, expected 0 to 1024", c->n_threads);
    /* As in hparams.def; NaN is no override. */
    if (c->rope_freq_base != 0 && (c->rope_freq_base < 2 || c->rope_freq_base > 1e12f))
        return nib_fail(err, NIB_E_ARG, "rope_freq_base is %g, expected 2 to 1e12", (double)c->rope_freq_base);
    if (c->rope_freq_scale != 0 && (c->rope_freq_scale < 1e-6f || c->rope_freq_scale > 1e3f))
        return nib_fail(err, NIB_E_ARG, "rope_freq_scale is %g, expected 1e-6 to 1000", (double)c->rope_freq_scale);
    return NIB_OK;
}

static void override_rope(nib_model_hparams *hp, const nib_model_config *c) {
    if (c->rope_freq_base > 0) hp->rope_base = c->rope_freq_base;
    if (c->rope_freq_scale > 0) {
        hp->rope_factor = 1.0f / c->rope_freq_scale;
        if (hp->scaling == NIB_ROPE_SCALE_NONE) hp->scaling = NIB_ROPE_SCALE_LINEAR;
    }
}

static void count_params(nib_model *model) {
    for (size_t i = 0; i < nib_gguf_n_tensors(model->source.file); i++)
        model->n_params += nib_gguf_tensor_at(model->source.file, i)->n_elements;
}

/* Messages of read errors begin with the path already. */
static void name_file(nib_error *err, const nib_gguf *file) {
    const char *path = nib_gguf_path(file);
    if (err && strncmp(err->message, path, strlen(path)) != 0) nib_error_prefix(err, "%s", path);
}

nib_status nib_model_open(nib_model **out, const nib_gguf *file, const nib_model_config *config, nib_error *err) {
    static const nib_model_config defaults = NIB_MODEL_CONFIG_INIT;
    if (!config) config = &defaults;
    *out = NULL;
    NIB_TRY(check_config(config, err));
    nib_model *model = nib_calloc(1, sizeof *model);
    if (!model) return nib_fail_nomem(err, sizeof *model, "a model");
    nib_status status;
    NIB_TRY_OUT(nib_cpu_isa_find(&model->isa, config->isa, err));
    NIB_TRY_OUT(nib_model_source_open(&model->source, file, err));
    override_rope(&model->source.hp, config);
    NIB_TRY_OUT(nib_model_decoder_build(&model->plan, &model->source, err));
    count_params(model);
    NIB_TRY_OUT(nib_model_load(model, config, err));
    if (config->mlock && model->memory && mlock(model->memory, model->n_bytes) != 0) {
        status = nib_fail(err, NIB_E_NOMEM, "mlock of %zu MiB failed: %s (raise the limit with ulimit -l, or do without)",
                          model->n_bytes >> 20, strerror(errno));
        goto out;
    }
    *out = model;
    model = NULL;
out:
    if (status != NIB_OK) name_file(err, file);
    nib_model_close(model);
    return status;
}

void nib_model_close(nib_model *model) {
    if (!model) return;
    nib_pages_free(model->memory, model->n_bytes);
    nib_free(model->weights);
    nib_plan_free(&model->plan);
    nib_free(model);
}

typedef struct collector {
    void (*report)(void *user, const nib_error *fault);
    void *user;
    nib_error *first;
    nib_status status;
} collector;

static void collect(void *user, const nib_error *fault) {
    collector *c = user;
    if (c->status == NIB_OK) {
        c->status = fault->code;
        if (c->first) *c->first = *fault;
    }
    if (c->report) c->report(c->user, fault);
}

nib_status nib_model_check(const nib_gguf *file, bool data, void (*report)(void *user, const nib_error *fault),
                           void *user, nib_error *err) {
    collector c = {report, user, err, NIB_OK};
    nib_model_source source;
    nib_plan plan;
    nib_error fault;
    if (nib_model_source_open(&source, file, &fault) != NIB_OK) {
        collect(&c, &fault);
        return c.status;
    }
    source.report = collect;
    source.user = &c;
    if (nib_model_decoder_build(&plan, &source, &fault) != NIB_OK) {
        collect(&c, &fault);
        return c.status;
    }
    if (data && c.status == NIB_OK) (void)nib_model_scan(file, &plan, collect, &c);
    nib_plan_free(&plan);
    return c.status;
}

const char *nib_model_arch(const nib_model *model) {
    return model->source.arch->name;
}

const char *nib_model_isa(const nib_model *model) {
    return model->isa->name;
}

uint32_t nib_model_n_vocab(const nib_model *model) {
    return model->source.hp.n_vocab;
}

uint32_t nib_model_n_ctx_train(const nib_model *model) {
    return model->source.hp.n_ctx_train;
}

uint32_t nib_model_n_embd(const nib_model *model) {
    return model->source.hp.n_embd;
}

uint32_t nib_model_n_layer(const nib_model *model) {
    return model->source.hp.n_layer;
}

nib_pooling nib_model_pooling(const nib_model *model) {
    uint32_t pooling = model->source.hp.pooling;
    return pooling <= NIB_POOLING_LAST ? (nib_pooling)pooling : NIB_POOLING_NONE;
}

uint64_t nib_model_n_params(const nib_model *model) {
    return model->n_params;
}

nib_status nib_model_fingerprint(const nib_model *model, uint64_t *out, nib_error *err) {
    nib_gguf_identity identity = {0};
    NIB_TRY(nib_gguf_identify(model->source.file, &identity, err));
    uint64_t hash = identity.content;
    for (size_t i = 0; i < model->plan.n_tables; i++) { /* of rope: options may replace what the file says */
        const nib_plan_rope_table *t = &model->plan.tables[i];
        hash = nib_hash64(hash, &t->mscale, sizeof t->mscale);
        hash = nib_hash64(hash, t->inv_freq, t->n_rot / 2 * sizeof *t->inv_freq);
    }
    *out = hash;
    return NIB_OK;
}

nib_status nib_model_pack_cache(const nib_model *model, const char **what) {
    if (what) *what = *model->pack_cache.message ? model->pack_cache.message : NULL;
    return model->pack_cache.code;
}

uint64_t nib_model_weight_bytes(const nib_model *model) {
    return model->n_bytes;
}

uint64_t nib_model_bytes_per_token(const nib_model *model) {
    return nib_plan_bytes_per_token(&model->plan);
}

uint64_t nib_model_kv_bytes_per_token(const nib_model *model, const char *k_type, const char *v_type) {
    const nib_cpu_kv_type *k, *v;
    size_t n;
    if (nib_cpu_kv_type_find(&k, k_type, NULL) != NIB_OK || nib_cpu_kv_type_find(&v, v_type, NULL) != NIB_OK ||
        nib_cpu_kv_page_bytes(&model->plan, k, v, &n, NULL) != NIB_OK)
        return 0;
    return n / NIB_PAGE_POS;
}

size_t nib_model_n_steps(const nib_model *model) {
    return model->plan.n_steps;
}

static const char *weight_type(const nib_plan *plan, const nib_plan_step *s) {
    int weight = s->n_products ? s->product[0].weight : s->weight;
    if (weight < 0) return "";
    for (int i = 1; i < s->n_products; i++)
        if (plan->weights[s->product[i].weight].type != plan->weights[weight].type) return "mixed";
    return plan->weights[weight].type->name;
}

nib_status nib_model_step(const nib_model *model, size_t i, nib_step_info *out) {
    if (i >= model->plan.n_steps) return NIB_E_ARG;
    const nib_plan_step *s = &model->plan.steps[i];
    *out = (nib_step_info){
        .op = nib_plan_op_text(s->op),
        .fused = s->adds ? "add" : s->act >= 0 && (s->op == NIB_OP_NORM || s->op == NIB_OP_GLU) ? "quant" : "",
        .name = s->name,
        .type = weight_type(&model->plan, s),
        .rows = s->rows == NIB_ROWS_TOK ? "TOK" : "OUT",
        .layer = s->layer,
        .n_in = s->n_in,
        .n_out = s->n_out,
        .n_head = s->op == NIB_OP_ATTENTION ? s->n_head : 0,
        .n_head_kv = s->op == NIB_OP_ATTENTION ? s->n_head_kv : 0,
        .head_dim = s->op == NIB_OP_ATTENTION ? s->k_dim : 0,
        .window = s->window,
        .bytes = s->bytes,
        .macs = s->macs,
    };
    return NIB_OK;
}
