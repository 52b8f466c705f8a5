/* tests/support/tiny.c - tiny random models as GGUF files: parameters in, bytes out. */
#include "support/tiny.h"

#include "base/mem.h"
#include "base/status.h"
#include "support/blocks.h"
#include "support/vocab.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

typedef struct builder {
    const tiny_model *m;
    nib_gguf_writer w;
    nib_arena arena; /* data and names of tensors */
    uint64_t state;
    nib_error *err;
    nib_status status; /* the first failure; later calls do nothing */
} builder;

static const char *name_of(builder *b, int layer, const char *name) {
    char text[64];
    int n = layer < 0 ? snprintf(text, sizeof text, "%s", name) : snprintf(text, sizeof text, "blk.%d.%s", layer, name);
    return nib_arena_copy(&b->arena, text, (size_t)n);
}

/* A tensor of n_rows x n_cols, or of one dimension when n_rows is 0: memory for its data; NULL after a failure. */
static void *add_tensor(builder *b, const char *name, const nib_quant_type *type, uint32_t n_cols, uint32_t n_rows) {
    if (b->status != NIB_OK) return NULL;
    size_t n = (size_t)n_cols * (n_rows ? n_rows : 1), n_bytes = n / type->block_size * type->block_bytes;
    void *data = nib_arena_alloc(&b->arena, n_bytes);
    if (!data || !name) {
        b->status = nib_fail_nomem(b->err, n_bytes, "a tensor");
        return NULL;
    }
    nib_gguf_tensor t = {.name = {name, strlen(name)}, .type = type->gguf_id, .n_dims = n_rows ? 2 : 1,
                         .dims = {n_cols, n_rows}, .n_bytes = n_bytes};
    nib_gguf_write_tensor(&b->w, &t, data);
    return data;
}

/* n_rows x n_cols weights of a standard deviation that keeps activations of order one. */
static void matrix(builder *b, int layer, const char *name, uint32_t n_cols, uint32_t n_rows) {
    bool is_vocab = layer < 0;
    const char *wanted = is_vocab && b->m->embd_type ? b->m->embd_type : b->m->type;
    const nib_quant_type *type = nib_quant_type_by_name(wanted);
    if (!type && b->status == NIB_OK) b->status = nib_fail(b->err, NIB_E_ARG, "no tensor type '%s'", wanted);
    if (type && n_cols % type->block_size) type = nib_quant_type_by_name(n_cols % 32 ? "F16" : "Q8_0");
    void *data = type ? add_tensor(b, name_of(b, layer, name), type, n_cols, n_rows) : NULL;
    if (data) blocks_fill(type, data, (size_t)n_cols * n_rows, 1.0f / sqrtf((float)n_cols), &b->state);
}

static void vector(builder *b, int layer, const char *name, uint32_t n, float mean) {
    float *data = add_tensor(b, name_of(b, layer, name), nib_quant_type_by_name("F32"), n, 0);
    for (uint32_t i = 0; data && i < n; i++) data[i] = mean + 0.1f * blocks_normal(&b->state);
}

static void norm(builder *b, int layer, const char *name, uint32_t n) {
    vector(b, layer, name, n, 1.0f);
}

static void layer(builder *b, int i) {
    const tiny_model *m = b->m;
    bool is_qwen2 = strcmp(m->arch, "qwen2") == 0, is_gemma3 = strcmp(m->arch, "gemma3") == 0;
    uint32_t n_q = m->n_head * m->head_dim, n_kv = m->n_kv * m->head_dim;
    norm(b, i, "attn_norm.weight", m->n_embd);
    matrix(b, i, "attn_q.weight", m->n_embd, n_q);
    matrix(b, i, "attn_k.weight", m->n_embd, n_kv);
    matrix(b, i, "attn_v.weight", m->n_embd, n_kv);
    matrix(b, i, "attn_output.weight", n_q, m->n_embd);
    if (is_qwen2 || m->has_biases) {
        vector(b, i, "attn_q.bias", n_q, 0.0f);
        vector(b, i, "attn_k.bias", n_kv, 0.0f);
        vector(b, i, "attn_v.bias", n_kv, 0.0f);
    }
    if (m->has_biases && !is_qwen2) vector(b, i, "attn_output.bias", m->n_embd, 0.0f);
    if (is_gemma3 || strcmp(m->arch, "qwen3") == 0) {
        norm(b, i, "attn_q_norm.weight", m->head_dim);
        norm(b, i, "attn_k_norm.weight", m->head_dim);
    }
    if (is_gemma3) norm(b, i, "post_attention_norm.weight", m->n_embd);
    norm(b, i, "ffn_norm.weight", m->n_embd);
    matrix(b, i, "ffn_gate.weight", m->n_embd, m->n_ff);
    matrix(b, i, "ffn_up.weight", m->n_embd, m->n_ff);
    matrix(b, i, "ffn_down.weight", m->n_ff, m->n_embd);
    if (is_gemma3) norm(b, i, "post_ffw_norm.weight", m->n_embd);
}

static void tensors(builder *b) {
    const tiny_model *m = b->m;
    matrix(b, -1, "token_embd.weight", m->n_embd, m->n_vocab);
    norm(b, -1, "output_norm.weight", m->n_embd);
    if (!m->is_tied) matrix(b, -1, "output.weight", m->n_embd, m->n_vocab);
    if (m->rope_factors) {
        const nib_quant_type *f32 = nib_quant_type_by_name("F32");
        float *data = add_tensor(b, name_of(b, -1, "rope_freqs.weight"), f32, m->head_dim / 2, 0);
        if (data) memcpy(data, m->rope_factors, m->head_dim / 2 * sizeof *data);
    }
    for (uint32_t i = 0; i < m->n_layer; i++) layer(b, (int)i);
}

static const char *arch_key(builder *b, const char *key) {
    char text[96];
    int n = snprintf(text, sizeof text, "%s.%s", b->m->arch, key);
    const char *copy = nib_arena_copy(&b->arena, text, (size_t)n);
    return copy ? copy : "";
}

static void number(builder *b, const char *key, uint32_t value) {
    nib_gguf_write_uint(&b->w, arch_key(b, key), NIB_GGUF_U32, value);
}

static void real(builder *b, const char *key, float value) {
    nib_gguf_write_float(&b->w, arch_key(b, key), NIB_GGUF_F32, (double)value);
}

static void keys(builder *b) {
    const tiny_model *m = b->m;
    nib_gguf_write_str(&b->w, "general.architecture", m->arch);
    nib_gguf_write_str(&b->w, "general.name", "tiny random model");
    number(b, "block_count", m->n_layer);
    number(b, "context_length", m->n_ctx);
    number(b, "embedding_length", m->n_embd);
    number(b, "feed_forward_length", m->n_ff);
    number(b, "attention.head_count", m->n_head);
    number(b, "attention.head_count_kv", m->n_kv);
    number(b, "attention.key_length", m->head_dim);
    number(b, "attention.value_length", m->head_dim);
    real(b, "attention.layer_norm_rms_epsilon", m->rms_eps);
    if (m->sliding_window) number(b, "attention.sliding_window", m->sliding_window);
    number(b, "rope.dimension_count", m->head_dim);
    real(b, "rope.freq_base", m->rope_base);
    if (m->rope_scaling) {
        nib_gguf_write_str(&b->w, arch_key(b, "rope.scaling.type"), m->rope_scaling);
        real(b, "rope.scaling.factor", m->rope_scaling_factor);
        if (m->rope_original_ctx) number(b, "rope.scaling.original_context_length", m->rope_original_ctx);
    }
    number(b, "vocab_size", m->n_vocab);
}

/* Builds the model and gives it to *out or, when that is NULL, to `stream`. */
static nib_status build(const tiny_model *m, nib_buf *out, FILE *stream, nib_error *err) {
    builder b = {.m = m, .state = m->seed, .err = err};
    keys(&b);
    nib_status status = vocab_write(&b.w, m->vocab, m->n_vocab, err);
    if (status == NIB_OK) {
        tensors(&b);
        status = b.status;
    }
    if (status == NIB_OK)
        status = out ? nib_gguf_write_bytes(&b.w, out, err) : nib_gguf_write_file(&b.w, stream, err);
    nib_gguf_write_free(&b.w);
    nib_arena_free(&b.arena);
    return status;
}

nib_status tiny_bytes(const tiny_model *m, nib_buf *out, nib_error *err) {
    return build(m, out, NULL, err);
}

nib_status tiny_write(const tiny_model *m, const char *path, nib_error *err) {
    FILE *stream = fopen(path, "wb");
    if (!stream) return nib_fail_errno(err, errno, "%s", path);
    nib_status status = build(m, NULL, stream, err);
    if (fclose(stream) != 0 && status == NIB_OK) status = nib_fail_errno(err, errno, "%s", path);
    return status;
}
