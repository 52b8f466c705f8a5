/* tests/test_model_hparams.c - hyper-parameters: what is read, what stands in for absent keys, and what is refused with
 * which message. */
#include "model/hparams.h"

#include "support/edit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static nib_status read_edited(edit *e, nib_model_hparams *hp, nib_error *err) {
    nib_gguf *file = edit_open(e);
    nib_status status = nib_model_hparams_read(hp, file, "llama", err);
    nib_gguf_close(file);
    return status;
}

static edit *start(void) {
    tiny_model m = TINY_MODEL_INIT;
    return edit_new(&m);
}

static nib_model_hparams read_good(edit *e) {
    nib_error err;
    nib_model_hparams hp;
    if (read_edited(e, &hp, &err) != NIB_OK) fail_msg("%s", err.message);
    return hp;
}

/* The message names the key, what was found and what was expected. */
static void refuses(edit *e, nib_status code, const char *message) {
    nib_error err;
    nib_model_hparams hp;
    nib_status status = read_edited(e, &hp, &err);
    if (status != code) fail_msg("status %d, expected %d: %s", (int)status, (int)code, message);
    if (!strstr(err.message, message)) fail_msg("\"%s\", expected \"%s\"", err.message, message);
}

static void test_read(void **state) {
    (void)state;
    nib_model_hparams hp = read_good(start());
    assert_int_equal(hp.n_layer, 2);
    assert_int_equal(hp.n_embd, 64);
    assert_int_equal(hp.n_ff, 96);
    assert_int_equal(hp.n_head, 4);
    assert_int_equal(hp.n_head_kv, 2);
    assert_int_equal(hp.k_dim, 16);
    assert_int_equal(hp.v_dim, 16);
    assert_int_equal(hp.n_rot, 16);
    assert_int_equal(hp.n_ctx_train, 512);
    assert_int_equal(hp.n_vocab, 300);
    assert_int_equal(hp.window, 0);
    assert_true(hp.rms_eps == 1e-5f && hp.rope_base == 10000);
    assert_int_equal(hp.scaling, NIB_ROPE_SCALE_NONE);
}

static void test_defaults(void **state) {
    (void)state;
    edit *e = start();
    edit_drop(e, "llama.attention.head_count_kv");
    edit_drop(e, "llama.attention.key_length");
    edit_drop(e, "llama.attention.value_length");
    edit_drop(e, "llama.rope.dimension_count");
    edit_drop(e, "llama.rope.freq_base");
    nib_model_hparams hp = read_good(e);
    assert_int_equal(hp.n_head_kv, 4); /* as many as heads */
    assert_int_equal(hp.k_dim, 16);    /* width / heads */
    assert_int_equal(hp.v_dim, 16);
    assert_int_equal(hp.n_rot, 16);    /* the whole head */
    assert_true(hp.rope_base == 10000 && hp.rope_base_local == 10000 && hp.rope_factor == 1);
    assert_true(hp.yarn_ext_factor == 1 && hp.yarn_beta_fast == 32 && hp.yarn_beta_slow == 1);
    assert_int_equal(hp.rope_orig_ctx, 512); /* the context that it was trained for */
}

static void test_every_integer_type(void **state) {
    (void)state;
    static const nib_gguf_type types[] = {NIB_GGUF_U8,  NIB_GGUF_I8,  NIB_GGUF_U16, NIB_GGUF_I16,
                                          NIB_GGUF_U32, NIB_GGUF_I32, NIB_GGUF_U64, NIB_GGUF_I64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        edit *e = start();
        edit_number(e, "llama.feed_forward_length", types[i], 77);
        assert_int_equal(read_good(e).n_ff, 77);
    }
    edit *e = start();
    edit_number(e, "llama.rope.freq_base", NIB_GGUF_F64, 5000);
    assert_true(read_good(e).rope_base == 5000);
}

static void test_scaling(void **state) {
    (void)state;
    static const struct {
        const char *type;
        double factor, linear; /* 0: no key */
        nib_rope_scaling want;
        float want_factor;
    } cases[] = {
        {NULL, 0, 0, NIB_ROPE_SCALE_NONE, 1},      {NULL, 4, 0, NIB_ROPE_SCALE_LINEAR, 4}, /* as older files have it */
        {NULL, 0, 2, NIB_ROPE_SCALE_LINEAR, 2},    {NULL, 4, 2, NIB_ROPE_SCALE_LINEAR, 4},
        {"none", 4, 0, NIB_ROPE_SCALE_NONE, 1},    {"linear", 8, 0, NIB_ROPE_SCALE_LINEAR, 8},
        {"yarn", 8, 0, NIB_ROPE_SCALE_YARN, 8},    {"linear", 0, 0, NIB_ROPE_SCALE_LINEAR, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        edit *e = start();
        if (cases[i].type) edit_text(e, "llama.rope.scaling.type", cases[i].type);
        if (cases[i].factor > 0) edit_number(e, "llama.rope.scaling.factor", NIB_GGUF_F32, cases[i].factor);
        if (cases[i].linear > 0) edit_number(e, "llama.rope.scale_linear", NIB_GGUF_F32, cases[i].linear);
        nib_model_hparams hp = read_good(e);
        assert_int_equal(hp.scaling, cases[i].want);
        assert_true(hp.rope_factor == cases[i].want_factor);
    }
    edit *e = start();
    edit_number(e, "llama.rope.scaling.yarn_ext_factor", NIB_GGUF_F32, -1);
    assert_true(read_good(e).yarn_ext_factor == 1);
    e = start();
    edit_text(e, "llama.rope.scaling.type", "longrope");
    refuses(e, NIB_E_UNSUPPORTED, "llama.rope.scaling.type is \"longrope\", nib knows none, linear and yarn");
    e = start();
    edit_number(e, "llama.rope.scaling.type", NIB_GGUF_U32, 2);
    refuses(e, NIB_E_FORMAT, "llama.rope.scaling.type is of type u32, expected string");
}

static void test_missing(void **state) {
    (void)state;
    static const char *const keys[] = {"block_count", "context_length", "embedding_length", "feed_forward_length",
                                       "attention.head_count", "attention.layer_norm_rms_epsilon"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char key[100], want[200];
        snprintf(key, sizeof key, "llama.%s", keys[i]);
        snprintf(want, sizeof want, "the key %s is missing, expected %s", key, i == 5 ? "an f32" : "a u32");
        edit *e = start();
        edit_drop(e, key);
        refuses(e, NIB_E_FORMAT, want);
    }
}

static void test_bad_numbers(void **state) {
    (void)state;
    static const struct {
        const char *key;
        nib_gguf_type type;
        double value;
        nib_status code;
        const char *message;
    } cases[] = {
        {"llama.block_count", NIB_GGUF_U32, 0, NIB_E_FORMAT, "llama.block_count is 0, expected 1 to 4096"},
        {"llama.block_count", NIB_GGUF_U32, 4294967295, NIB_E_FORMAT,
         "llama.block_count is 4294967295, expected 1 to 4096"},
        {"llama.block_count", NIB_GGUF_I32, -2, NIB_E_FORMAT, "llama.block_count is -2, expected 1 to 4096"},
        {"llama.block_count", NIB_GGUF_F32, 2, NIB_E_FORMAT,
         "llama.block_count is of type f32, expected an integer such as u32"},
        {"llama.block_count", NIB_GGUF_BOOL, 1, NIB_E_FORMAT,
         "llama.block_count is of type bool, expected an integer such as u32"},
        {"llama.attention.head_count", NIB_GGUF_U32, 0, NIB_E_FORMAT,
         "llama.attention.head_count is 0, expected 1 to 16384"},
        {"llama.attention.head_count_kv", NIB_GGUF_U32, 3, NIB_E_FORMAT,
         "llama.attention.head_count 4 is not a multiple of head_count_kv 3"},
        {"llama.attention.head_count_kv", NIB_GGUF_U32, 8, NIB_E_FORMAT,
         "llama.attention.head_count 4 is not a multiple of head_count_kv 8"},
        {"llama.rope.dimension_count", NIB_GGUF_U32, 64, NIB_E_FORMAT,
         "llama.rope.dimension_count is 64, expected an even number up to the head size 16"},
        {"llama.rope.dimension_count", NIB_GGUF_U32, 5, NIB_E_FORMAT,
         "llama.rope.dimension_count is 5, expected an even number up to the head size 16"},
        {"llama.rope.freq_base", NIB_GGUF_F32, 0, NIB_E_FORMAT, "llama.rope.freq_base is 0, expected 2 to 1e+12"},
        {"llama.rope.freq_base", NIB_GGUF_F32, (double)NAN, NIB_E_FORMAT, "llama.rope.freq_base is "},
        {"llama.rope.freq_base", NIB_GGUF_F32, (double)INFINITY, NIB_E_FORMAT, "llama.rope.freq_base is inf"},
        {"llama.rope.freq_base", NIB_GGUF_U32, 10000, NIB_E_FORMAT,
         "llama.rope.freq_base is of type u32, expected f32"},
        {"llama.attention.layer_norm_rms_epsilon", NIB_GGUF_F32, -1e-5, NIB_E_FORMAT,
         "llama.attention.layer_norm_rms_epsilon is -1e-05, expected 0 to 1"},
        {"llama.attention.key_length", NIB_GGUF_U64, 1e15, NIB_E_FORMAT,
         "llama.attention.key_length is 1000000000000000, expected 1 to 4096"},
        {"llama.expert_count", NIB_GGUF_U32, 8, NIB_E_UNSUPPORTED,
         "llama.expert_count is 8: mixtures of experts are not supported"},
        {"llama.attention.causal", NIB_GGUF_BOOL, 0, NIB_E_UNSUPPORTED,
         "llama.attention.causal is 0: attention to later tokens is not supported"},
        {"llama.final_logit_softcapping", NIB_GGUF_F32, 30, NIB_E_UNSUPPORTED,
         "llama.final_logit_softcapping is 30: a soft cap of logits is not supported"},
        {"llama.attn_logit_softcapping", NIB_GGUF_F32, 50, NIB_E_UNSUPPORTED,
         "llama.attn_logit_softcapping is 50: a soft cap of attention scores is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        edit *e = start();
        edit_number(e, cases[i].key, cases[i].type, cases[i].value);
        refuses(e, cases[i].code, cases[i].message);
    }
    edit *e = start();
    edit_number(e, "llama.attention.causal", NIB_GGUF_BOOL, 1);
    edit_number(e, "llama.final_logit_softcapping", NIB_GGUF_F32, 0);
    read_good(e); /* values that change nothing */
    e = start();
    edit_text(e, "llama.block_count", "2");
    refuses(e, NIB_E_FORMAT, "llama.block_count is of type string, expected an integer such as u32");
    e = start();
    edit_text(e, "llama.final_logit_softcapping", "thirty");
    refuses(e, NIB_E_FORMAT, "llama.final_logit_softcapping is of type string, expected f32");
    e = start();
    edit_drop(e, "llama.attention.key_length");
    edit_number(e, "llama.attention.head_count", NIB_GGUF_U32, 6);
    refuses(e, NIB_E_FORMAT, "llama.embedding_length 64 is not a multiple of attention.head_count 6");
}

/* Some converters write a value for every layer. */
static void test_arrays(void **state) {
    (void)state;
    static const uint32_t same[] = {2, 2}, other[] = {2, 4};
    edit *e = start();
    edit_array(e, "llama.attention.head_count_kv", NIB_GGUF_I32, same, 2);
    assert_int_equal(read_good(e).n_head_kv, 2);
    e = start();
    edit_array(e, "llama.attention.head_count_kv", NIB_GGUF_U32, other, 2);
    refuses(e, NIB_E_UNSUPPORTED, "llama.attention.head_count_kv differs from layer to layer (2 and 4): not supported");
    e = start();
    edit_array(e, "llama.attention.head_count_kv", NIB_GGUF_U32, NULL, 0);
    refuses(e, NIB_E_FORMAT, "llama.attention.head_count_kv is of type array, expected an integer such as u32");
    e = start();
    edit_array(e, "llama.attention.head_count_kv", NIB_GGUF_F32, same, 2);
    refuses(e, NIB_E_FORMAT, "llama.attention.head_count_kv is of type array, expected an integer such as u32");
    e = start();
    edit_array(e, "llama.rope.freq_base", NIB_GGUF_F32, same, 2);
    refuses(e, NIB_E_FORMAT, "llama.rope.freq_base is of type array, expected f32");
    e = start();
    edit_strings(e, "llama.attention.head_count", 2);
    refuses(e, NIB_E_FORMAT, "llama.attention.head_count is of type array, expected an integer such as u32");
}

static void test_vocabulary(void **state) {
    (void)state;
    edit *e = start();
    edit_drop(e, "token_embd.weight");
    refuses(e, NIB_E_FORMAT, "the tensor token_embd.weight is missing");
    e = start();
    edit_strings(e, "tokenizer.ggml.tokens", 301);
    refuses(e, NIB_E_FORMAT, "tokenizer.ggml.tokens has 301 tokens, but token_embd.weight has 300 rows");
    e = start();
    edit_tensor(e, "token_embd.weight", 0, 64, 0);
    refuses(e, NIB_E_FORMAT, "token_embd.weight has 1 dimensions");
    e = start();
    edit_drop(e, "tokenizer.ggml.tokens");
    assert_int_equal(read_good(e).n_vocab, 300); /* a model may come without a tokenizer */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_defaults), cmocka_unit_test(test_every_integer_type),
        cmocka_unit_test(test_scaling),     cmocka_unit_test(test_missing),  cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
