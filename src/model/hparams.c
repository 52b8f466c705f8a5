/* model/hparams.c - reads and checks the hyper-parameters of a decoder. */
#include "model/hparams.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REQUIRED_MARK (-1.0) /* REQUIRED and AUTO of the table */
#define AUTO_MARK (-2.0)

typedef struct row {
    const char *key;
    double low, high, def;
    size_t offset;
    bool is_float;
} row;

static const row rows[] = {
#define X(field, key, low, high, def) {key, low, high, def, offsetof(nib_model_hparams, field), false},
#define F(field, key, low, high, def) {key, low, high, def, offsetof(nib_model_hparams, field), true},
#define U(key, value, text)
#include "model/hparams.def"
#undef X
#undef F
#undef U
};

static const struct {
    const char *key;
    double value;
    const char *text;
} fixed[] = {
#define X(field, key, low, high, def)
#define F(field, key, low, high, def)
#define U(key, value, text) {key, value, text},
#include "model/hparams.def"
#undef X
#undef F
#undef U
};

static bool is_integer(nib_gguf_type t) {
    return t == NIB_GGUF_U8 || t == NIB_GGUF_I8 || t == NIB_GGUF_U16 || t == NIB_GGUF_I16 || t == NIB_GGUF_U32 ||
           t == NIB_GGUF_I32 || t == NIB_GGUF_U64 || t == NIB_GGUF_I64;
}

static bool is_unsigned(nib_gguf_type t) {
    return t == NIB_GGUF_U8 || t == NIB_GGUF_U16 || t == NIB_GGUF_U32 || t == NIB_GGUF_U64;
}

/* The number in a value; an array of equal integers counts as that integer (per-layer keys of some converters). */
static nib_status number(const nib_gguf_value *v, const char *key, bool wants_float, double *out, nib_error *err) {
    if (v->type == NIB_GGUF_ARRAY && is_integer(v->elem) && v->n > 0 && !wants_float) {
        *out = nib_gguf_number_at(v, 0);
        for (uint64_t i = 1; i < v->n; i++)
            if (nib_gguf_number_at(v, i) != *out)
                return nib_fail(err, NIB_E_UNSUPPORTED, "%s differs from layer to layer (%.0f and %.0f): not supported", key,
                                *out, nib_gguf_number_at(v, i));
        return NIB_OK;
    }
    bool is_float = v->type == NIB_GGUF_F32 || v->type == NIB_GGUF_F64;
    if (wants_float ? !is_float : !is_integer(v->type))
        return nib_fail(err, NIB_E_FORMAT, "%s is of type %s, expected %s", key, nib_gguf_type_name(v->type),
                        wants_float ? "f32" : "an integer such as u32");
    *out = is_float ? v->as.f64 : is_unsigned(v->type) ? (double)v->as.u64 : (double)v->as.i64;
    return NIB_OK;
}

static nib_status read_row(nib_model_hparams *hp, const row *r, const nib_gguf *file, const char *arch,
                           nib_error *err) {
    char key[128];
    snprintf(key, sizeof key, "%s.%s", arch, r->key);
    const nib_gguf_value *v = nib_gguf_find(file, key);
    double x = r->def == AUTO_MARK ? 0 : r->def;
    int digits = r->is_float ? 6 : 17;
    if (!v) {
        if (r->def == REQUIRED_MARK)
            return nib_fail(err, NIB_E_FORMAT, "the key %s is missing, expected %s", key, r->is_float ? "an f32" : "a u32");
    } else {
        NIB_TRY(number(v, key, r->is_float, &x, err));
        if (!(x >= r->low && x <= r->high)) /* false for NaN */
            return nib_fail(err, NIB_E_FORMAT, "%s is %.*g, expected %.*g to %.*g", key, digits, x, digits, r->low, digits,
                            r->high);
    }
    char *place = (char *)hp + r->offset;
    if (r->is_float) *(float *)(void *)place = (float)x;
    else *(uint32_t *)(void *)place = (uint32_t)x;
    return NIB_OK;
}

/* Computing such a model without it would be wrong in silence. */
static nib_status check_fixed(const nib_gguf *file, const char *arch, nib_error *err) {
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        char key[128];
        double x;
        snprintf(key, sizeof key, "%s.%s", arch, fixed[i].key);
        const nib_gguf_value *v = nib_gguf_find(file, key);
        if (!v) continue;
        if (v->type == NIB_GGUF_BOOL) x = v->as.b;
        else NIB_TRY(number(v, key, !is_integer(v->type), &x, err));
        if (x != fixed[i].value)
            return nib_fail(err, NIB_E_UNSUPPORTED, "%s is %.9g: %s is not supported", key, x, fixed[i].text);
    }
    return NIB_OK;
}

static nib_status read_scaling(nib_model_hparams *hp, const nib_gguf *file, const char *arch, nib_error *err) {
    static const struct {
        const char *name;
        nib_rope_scaling kind;
    } kinds[] = {{"none", NIB_ROPE_SCALE_NONE}, {"linear", NIB_ROPE_SCALE_LINEAR}, {"yarn", NIB_ROPE_SCALE_YARN}};
    char key[128];
    snprintf(key, sizeof key, "%s.rope.scaling.type", arch);
    const nib_gguf_value *v = nib_gguf_find(file, key);
    if (hp->rope_factor == 0) hp->rope_factor = hp->rope_scale_linear > 0 ? hp->rope_scale_linear : 1;
    hp->scaling = hp->rope_factor != 1 ? NIB_ROPE_SCALE_LINEAR : NIB_ROPE_SCALE_NONE;
    if (!v) return NIB_OK;
    if (v->type != NIB_GGUF_STRING)
        return nib_fail(err, NIB_E_FORMAT, "%s is of type %s, expected string", key, nib_gguf_type_name(v->type));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (v->as.str.len == strlen(kinds[i].name) && memcmp(v->as.str.ptr, kinds[i].name, v->as.str.len) == 0) {
            hp->scaling = kinds[i].kind;
            if (hp->scaling == NIB_ROPE_SCALE_NONE) hp->rope_factor = 1;
            return NIB_OK;
        }
    return nib_fail(err, NIB_E_UNSUPPORTED, "%s is \"%.*s\", nib knows none, linear and yarn", key, NIB_STR_ARG(v->as.str));
}

static nib_status check_together(nib_model_hparams *hp, const char *arch, nib_error *err) {
    if (hp->n_head_kv == 0) hp->n_head_kv = hp->n_head;
    if (hp->n_head % hp->n_head_kv)
        return nib_fail(err, NIB_E_FORMAT, "%s.attention.head_count %u is not a multiple of head_count_kv %u", arch,
                        hp->n_head, hp->n_head_kv);
    if (hp->k_dim == 0 || hp->v_dim == 0) {
        if (hp->n_embd % hp->n_head)
            return nib_fail(err, NIB_E_FORMAT, "%s.embedding_length %u is not a multiple of attention.head_count %u", arch,
                            hp->n_embd, hp->n_head);
        if (hp->k_dim == 0) hp->k_dim = hp->n_embd / hp->n_head;
        if (hp->v_dim == 0) hp->v_dim = hp->n_embd / hp->n_head;
    }
    if (hp->n_rot == 0) hp->n_rot = hp->k_dim;
    if (hp->n_rot > hp->k_dim || hp->n_rot % 2)
        return nib_fail(err, NIB_E_FORMAT, "%s.rope.dimension_count is %u, expected an even number up to the head size %u",
                        arch, hp->n_rot, hp->k_dim);
    if (hp->rope_orig_ctx == 0) hp->rope_orig_ctx = hp->n_ctx_train;
    if (hp->yarn_ext_factor < 0) hp->yarn_ext_factor = 1; /* -1: some writers' way to say nothing */
    if (hp->n_expert)
        return nib_fail(err, NIB_E_UNSUPPORTED, "%s.expert_count is %u: mixtures of experts are not supported", arch,
                        hp->n_expert);
    return NIB_OK;
}

static nib_status read_vocab_size(nib_model_hparams *hp, const nib_gguf *file, nib_error *err) {
    const nib_gguf_tensor *t = nib_gguf_find_tensor(file, "token_embd.weight");
    if (!t)
        return nib_fail(err, NIB_E_FORMAT, "the tensor token_embd.weight is missing%s",
                        nib_gguf_n_tensors(file) ? "" : ": the file has no tensors, only a vocabulary");
    if (t->n_dims != 2 || t->dims[1] > 1 << 24)
        return nib_fail(err, NIB_E_FORMAT, "token_embd.weight has %u dimensions and %llu rows, expected %u x vocabulary",
                        t->n_dims, (unsigned long long)t->dims[1], hp->n_embd);
    hp->n_vocab = (uint32_t)t->dims[1];
    const nib_gguf_value *tokens = nib_gguf_find(file, "tokenizer.ggml.tokens");
    if (tokens && tokens->type == NIB_GGUF_ARRAY && tokens->n != hp->n_vocab)
        return nib_fail(err, NIB_E_FORMAT, "tokenizer.ggml.tokens has %llu tokens, but token_embd.weight has %u rows",
                        (unsigned long long)tokens->n, hp->n_vocab);
    return NIB_OK;
}

nib_status nib_model_hparams_read(nib_model_hparams *out, const nib_gguf *file, const char *arch, nib_error *err) {
    *out = (nib_model_hparams){0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) NIB_TRY(read_row(out, &rows[i], file, arch, err));
    NIB_TRY(check_fixed(file, arch, err));
    NIB_TRY(read_scaling(out, file, arch, err));
    NIB_TRY(check_together(out, arch, err));
    return read_vocab_size(out, file, err);
}
