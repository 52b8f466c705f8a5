/* tests/support/tiny.h - tiny random models as GGUF files, for tests of everything that needs a model.
 *
 *     tiny_model m = TINY_MODEL_INIT;
 *     m.arch = "qwen2", m.type = "Q8_0";
 *     tiny_write(&m, path, &err);
 *
 * The same parameters give the same bytes on every machine. */
#ifndef NIB_TESTS_SUPPORT_TINY_H
#define NIB_TESTS_SUPPORT_TINY_H

#include "base/buf.h"
#include "nib.h"

typedef struct tiny_model {
    const char *arch; /* "llama", "qwen2", "qwen3", "gemma3": decides which tensors there are */
    uint32_t n_layer, n_embd, n_ff, n_head, n_kv, head_dim, n_vocab, n_ctx;
    const char *type;      /* of the matrices; Q8_0 or F16 where rows are no multiple of its block */
    const char *embd_type; /* of token_embd and output; NULL: type */
    bool is_tied;          /* no output.weight */
    bool has_biases;       /* llama: attn_{q,k,v,output}.bias; qwen2 has attn_{q,k,v}.bias always */
    uint32_t sliding_window;     /* 0: no key */
    float rms_eps, rope_base;
    const float *rope_factors;   /* rope_freqs.weight: head_dim / 2 numbers; NULL: none */
    const char *rope_scaling;    /* "linear", "yarn"; NULL: no rope.scaling keys */
    float rope_scaling_factor;
    uint32_t rope_original_ctx;  /* 0: no key */
    const char *vocab; /* "bpe", "spm" (support/vocab.h); NULL: no tokenizer */
    uint64_t seed;
} tiny_model;
#define TINY_MODEL_INIT                                                                                                \
    {.arch = "llama", .n_layer = 2, .n_embd = 64, .n_ff = 96, .n_head = 4, .n_kv = 2, .head_dim = 16, .n_vocab = 300,  \
     .n_ctx = 512, .type = "Q8_0", .is_tied = true, .rms_eps = 1e-5f, .rope_base = 10000.0f, .vocab = "bpe", .seed = 1}

nib_status tiny_write(const tiny_model *m, const char *path, nib_error *err);
nib_status tiny_bytes(const tiny_model *m, nib_buf *out, nib_error *err); /* appends */

#endif
