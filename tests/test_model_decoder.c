/* tests/test_model_decoder.c - plans of each architecture: steps, shapes, bytes, multiply-accumulates; tied and untied
 * outputs, biases, windows; and files whose tensors do not fit, each with its message. */
#include "model/decoder.h"

#include "support/edit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct built {
    nib_gguf *file;
    nib_model_source source;
    nib_plan plan;
} built;

static nib_status build(built *b, edit *e, nib_error *err) {
    *b = (built){.file = edit_open(e)};
    nib_status status = nib_model_source_open(&b->source, b->file, err);
    return status == NIB_OK ? nib_model_decoder_build(&b->plan, &b->source, err) : status;
}

static built build_good(edit *e) {
    nib_error err;
    built b;
    if (build(&b, e, &err) != NIB_OK) fail_msg("%s", err.message);
    return b;
}

static void drop(built *b) {
    nib_plan_free(&b->plan);
    nib_gguf_close(b->file);
}

static tiny_model model_of(const char *arch) {
    tiny_model m = TINY_MODEL_INIT;
    m.arch = arch;
    m.sliding_window = strcmp(arch, "gemma3") == 0 ? 8 : 0;
    return m;
}

static edit *start(const char *arch) {
    tiny_model m = model_of(arch);
    return edit_new(&m);
}

static const nib_plan_step *find_step(const built *b, const char *name) {
    for (size_t i = 0; i < b->plan.n_steps; i++)
        if (strcmp(b->plan.steps[i].name, name) == 0) return &b->plan.steps[i];
    fail_msg("no step %s", name);
    return NULL;
}

/* Names of all steps in order, joined by spaces; "blk.0." is left out. */
static void step_names(const built *b, char *out, size_t size) {
    out[0] = 0;
    for (size_t i = 0; i < b->plan.n_steps; i++) {
        const char *name = b->plan.steps[i].name;
        size_t n = strlen(out);
        snprintf(out + n, size - n, "%s%s", i ? " " : "", strncmp(name, "blk.0.", 6) == 0 ? name + 6 : name);
    }
}

static void test_steps_of_each_architecture(void **state) {
    (void)state;
    static const struct {
        const char *arch, *steps;
    } cases[] = {
        {"llama", "embed angles attn_norm attn_qkv rope_q rope_k kv_store attention attn_quant attn_output gather ffn_norm "
                  "ffn_gate_up ffn_glu ffn_down output_norm output"},
        {"qwen2", "embed angles attn_norm attn_qkv rope_q rope_k kv_store attention attn_quant attn_output gather ffn_norm "
                  "ffn_gate_up ffn_glu ffn_down output_norm output"},
        {"qwen3", "embed angles attn_norm attn_qkv attn_q_norm attn_k_norm rope_q rope_k kv_store attention attn_quant "
                  "attn_output gather ffn_norm ffn_gate_up ffn_glu ffn_down output_norm output"},
        {"gemma3", "embed angles angles attn_norm attn_qkv attn_q_norm attn_k_norm rope_q rope_k kv_store attention "
                   "attn_quant attn_output post_attention_norm.weight gather ffn_norm ffn_gate_up ffn_glu ffn_down "
                   "post_ffw_norm.weight output_norm output"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char names[2000];
        tiny_model m = model_of(cases[i].arch);
        m.n_layer = 1;
        built b = build_good(edit_new(&m));
        step_names(&b, names, sizeof names);
        assert_string_equal(names, cases[i].steps);
        drop(&b);
    }
}

static void test_choices_of_each_architecture(void **state) {
    (void)state;
    static const struct {
        const char *arch;
        nib_plan_rope_kind rope;
        nib_plan_act_fn fn;
        float embed_scale;
        bool has_bias;
    } cases[] = {
        {"llama", NIB_ROPE_PAIRS, NIB_ACT_SILU, 1, false},
        {"qwen2", NIB_ROPE_HALVES, NIB_ACT_SILU, 1, true},
        {"qwen3", NIB_ROPE_HALVES, NIB_ACT_SILU, 1, false},
        {"gemma3", NIB_ROPE_HALVES, NIB_ACT_GELU, 8, false}, /* sqrt(64) */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        built b = build_good(start(cases[i].arch));
        assert_int_equal(find_step(&b, "blk.1.rope_q")->rope, cases[i].rope);
        assert_int_equal(find_step(&b, "blk.0.ffn_glu")->fn, cases[i].fn);
        assert_true(find_step(&b, "embed")->scale == cases[i].embed_scale);
        const nib_plan_step *qkv = find_step(&b, "blk.1.attn_qkv");
        for (int j = 0; j < 3; j++) assert_int_equal(qkv->product[j].bias >= 0, cases[i].has_bias);
        assert_int_equal(find_step(&b, "blk.0.attn_output")->product[0].bias, NIB_PLAN_NONE);
        assert_true(find_step(&b, "blk.0.attention")->scale == 0.25f); /* 1 / sqrt(16) */
        drop(&b);
    }
}

/* Rows: all tokens up to the last attention, wanted ones from there on. */
static void test_rows(void **state) {
    (void)state;
    built b = build_good(start("llama"));
    const nib_plan_step *gather = find_step(&b, "blk.1.gather");
    for (const nib_plan_step *s = b.plan.steps; s < b.plan.steps + b.plan.n_steps; s++)
        assert_int_equal(s->rows, s <= gather ? NIB_ROWS_TOK : NIB_ROWS_OUT);
    assert_int_equal(b.plan.logits, b.plan.steps[b.plan.n_steps - 1].product[0].out);
    assert_int_equal(b.plan.buffers[b.plan.logits].width, 300);
    drop(&b);
}

static void test_shapes_and_costs(void **state) {
    (void)state;
    built b = build_good(start("llama")); /* n_embd 64, n_ff 96, heads 4 and 2 of 16, vocabulary 300, Q8_0 */
    const nib_plan_step *s = find_step(&b, "blk.1.attn_qkv");
    assert_int_equal(s->n_in, 64);
    assert_int_equal(s->n_out, 64 + 32 + 32);
    assert_int_equal(s->macs, 64 * 128);
    assert_int_equal(s->bytes, 128 * 2 * 34);
    s = find_step(&b, "blk.1.ffn_down");
    assert_int_equal(s->n_in, 96);
    assert_int_equal(s->n_out, 64);
    assert_int_equal(s->macs, 96 * 64);
    assert_int_equal(s->bytes, 64 * 3 * 34);
    s = find_step(&b, "blk.1.attention");
    assert_int_equal(s->macs, 4 * (16 + 16));
    s = find_step(&b, "output");
    assert_int_equal(s->macs, 64 * 300);
    assert_int_equal(s->bytes, 300 * 2 * 34);
    uint64_t layer = 128 * 68 + 64 * 68 + 2 * 96 * 68 + 64 * 102 + 2 * 64 * 4;
    assert_int_equal(nib_plan_bytes_per_token(&b.plan), 68 + 2 * layer + 64 * 4 + 300 * 68);
    assert_int_equal(b.plan.n_kv_layers, 2);
    assert_int_equal(b.plan.kv_layers[1].n_head_kv, 2);
    assert_int_equal(b.plan.kv_layers[1].k_dim, 16);
    drop(&b);
}

static void test_tied_and_untied(void **state) {
    (void)state;
    tiny_model m = model_of("llama");
    built b = build_good(edit_new(&m));
    int embd = find_step(&b, "embed")->weight;
    assert_int_equal(find_step(&b, "output")->product[0].weight, embd);
    assert_int_equal(b.plan.weights[embd].kind, NIB_WEIGHT_MATRIX);
    drop(&b);
    m.is_tied = false;
    b = build_good(edit_new(&m));
    embd = find_step(&b, "embed")->weight;
    int output = find_step(&b, "output")->product[0].weight;
    assert_int_not_equal(output, embd);
    assert_int_equal(b.plan.weights[embd].kind, NIB_WEIGHT_ROWS); /* only rows of it are read */
    assert_int_equal(b.plan.weights[output].kind, NIB_WEIGHT_MATRIX);
    assert_string_equal(b.plan.weights[output].name, "output.weight");
    drop(&b);
}

static void test_biases(void **state) {
    (void)state;
    tiny_model m = model_of("llama");
    m.has_biases = true;
    edit *e = edit_new(&m);
    edit_tensor(e, "output.bias", 0, 300, 0);
    edit_tensor(e, "blk.0.ffn_gate.bias", 0, 96, 0);
    edit_tensor(e, "blk.0.ffn_up.bias", 1, 96, 0);
    edit_tensor(e, "blk.1.ffn_down.bias", 30, 64, 0);
    built b = build_good(e);
    assert_true(find_step(&b, "blk.1.attn_output")->product[0].bias >= 0);
    assert_true(find_step(&b, "output")->product[0].bias >= 0);
    const nib_plan_step *s = find_step(&b, "blk.0.ffn_gate_up");
    assert_true(s->product[0].bias >= 0 && s->product[1].bias >= 0);
    assert_int_equal(s->bytes, 2 * 96 * (68 + 4));
    assert_int_equal(find_step(&b, "blk.0.ffn_down")->product[0].bias, NIB_PLAN_NONE);
    assert_true(find_step(&b, "blk.1.ffn_down")->product[0].bias >= 0);
    drop(&b);
}

/* Which layers of a gemma3 see a window, as a string of 0 and 1; their rope tables must agree. */
static void windows(edit *e, const char *want) {
    built b = build_good(e);
    int global = -1, local = -1;
    for (uint32_t i = 0; i < b.source.hp.n_layer; i++) {
        char name[40];
        snprintf(name, sizeof name, "blk.%u.attention", i);
        bool sees_window = find_step(&b, name)->window != 0;
        assert_int_equal(sees_window, want[i] == '1');
        if (sees_window) assert_int_equal(find_step(&b, name)->window, 8);
        snprintf(name, sizeof name, "blk.%u.rope_k", i);
        int *table = sees_window ? &local : &global;
        if (*table < 0) *table = find_step(&b, name)->table;
        assert_int_equal(find_step(&b, name)->table, *table);
        assert_int_equal(find_step(&b, name)[-1].table, *table); /* rope_q */
    }
    if (global >= 0 && local >= 0) assert_int_not_equal(global, local);
    if (local >= 0) { /* the local base is 10000 with 16 dimensions, the other one of the file */
        assert_true(fabs((double)b.plan.tables[local].inv_freq[1] - pow(10000, -2.0 / 16)) < 1e-7);
        assert_true(b.plan.tables[local].mscale == 1);
    }
    if (global >= 0) assert_true(fabs((double)b.plan.tables[global].inv_freq[1] - pow(1e6, -2.0 / 16) / 8) < 1e-7);
    assert_int_equal(strlen(want), b.source.hp.n_layer);
    drop(&b);
}

static edit *start_windows(uint32_t n_layer) {
    tiny_model m = model_of("gemma3");
    m.n_layer = n_layer;
    m.rope_base = 1e6f, m.rope_scaling = "linear", m.rope_scaling_factor = 8; /* of the global layers alone */
    return edit_new(&m);
}

static void test_windows(void **state) {
    (void)state;
    static const uint32_t flags[] = {1, 0, 1, 1, 0};
    windows(start_windows(13), "1111101111101"); /* five local, one global */
    edit *e = start_windows(5);
    edit_number(e, "gemma3.attention.sliding_window_pattern", NIB_GGUF_U32, 2);
    windows(e, "10101");
    e = start_windows(5);
    edit_number(e, "gemma3.attention.sliding_window_pattern", NIB_GGUF_I32, 1);
    windows(e, "00000");
    e = start_windows(5);
    edit_array(e, "gemma3.attention.sliding_window_pattern", NIB_GGUF_BOOL, flags, 5);
    windows(e, "10110");
    e = start_windows(5);
    edit_array(e, "gemma3.attention.sliding_window_pattern", NIB_GGUF_U32, flags, 5);
    windows(e, "10110");
    e = start_windows(6);
    edit_drop(e, "gemma3.attention.sliding_window");
    windows(e, "000000");
}

static void test_wide_model_scales_by_width(void **state) {
    (void)state;
    tiny_model m = model_of("gemma3");
    m.n_layer = 62, m.n_head = 8, m.n_embd = 64; /* 64 / 8 is not the head size 16 */
    built b = build_good(edit_new(&m));
    assert_true(find_step(&b, "blk.61.attention")->scale == 1 / sqrtf(8));
    drop(&b);
    m.n_layer = 2;
    b = build_good(edit_new(&m));
    assert_true(find_step(&b, "blk.1.attention")->scale == 0.25f);
    drop(&b);
}

static void test_rope_factors(void **state) {
    (void)state;
    static const float factors[8] = {1, 1, 1, 2, 4, 8, 8, 8};
    tiny_model m = model_of("llama");
    m.rope_factors = factors;
    built b = build_good(edit_new(&m));
    for (uint32_t i = 0; i < 8; i++)
        assert_true(fabs((double)b.plan.tables[0].inv_freq[i] * (double)factors[i] / pow(10000, -2.0 * i / 16) - 1) < 1e-6);
    drop(&b);
}

/* The one fault of a file: its status and whole message. */
static void refuses(edit *e, nib_status code, const char *message) {
    nib_error err;
    built b;
    nib_status status = build(&b, e, &err);
    if (status != code || strcmp(err.message, message) != 0)
        fail_msg("%d \"%s\", expected %d \"%s\"", (int)status, err.message, (int)code, message);
    assert_int_equal(b.plan.n_steps, 0); /* freed */
    nib_gguf_close(b.file);
}

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, IQ2_XXS = 16, I32 = 26 };

static void test_architecture(void **state) {
    (void)state;
    edit *e = start("llama");
    edit_drop(e, "general.architecture");
    refuses(e, NIB_E_FORMAT, "the key general.architecture is missing");
    e = start("llama");
    edit_number(e, "general.architecture", NIB_GGUF_U32, 1);
    refuses(e, NIB_E_FORMAT, "general.architecture is of type u32, expected string");
    e = start("llama");
    edit_array(e, "general.architecture", NIB_GGUF_U8, NULL, 0);
    refuses(e, NIB_E_FORMAT, "general.architecture is of type array, expected string");
    e = start("llama");
    edit_text(e, "general.architecture", "mamba");
    refuses(e, NIB_E_UNSUPPORTED, "general.architecture is \"mamba\"; nib knows llama, qwen2, qwen3, gemma3, and no other");
}

static void test_tensors_that_do_not_fit(void **state) {
    (void)state;
    edit *e = start("llama");
    edit_drop(e, "blk.1.attn_k.weight");
    refuses(e, NIB_E_FORMAT, "the tensor blk.1.attn_k.weight is missing, expected 64 x 32 (architecture llama)");
    e = start("gemma3");
    edit_drop(e, "blk.0.post_ffw_norm.weight");
    refuses(e, NIB_E_FORMAT, "the tensor blk.0.post_ffw_norm.weight is missing, expected 64 values (architecture gemma3)");
    e = start("llama");
    edit_drop(e, "output_norm.weight");
    refuses(e, NIB_E_FORMAT, "the tensor output_norm.weight is missing, expected 64 values (architecture llama)");
    e = start("llama");
    edit_tensor(e, "blk.0.attn_q.weight", F16, 64, 65);
    refuses(e, NIB_E_FORMAT, "tensor blk.0.attn_q.weight has the shape 64 x 65, expected 64 x 64");
    e = start("llama");
    edit_tensor(e, "token_embd.weight", F16, 300, 64);
    edit_strings(e, "tokenizer.ggml.tokens", 64);
    refuses(e, NIB_E_FORMAT, "tensor token_embd.weight has the shape 300 x 64, expected 64 x 64"); /* transposed */
    e = start("llama");
    edit_tensor(e, "blk.1.ffn_norm.weight", F32, 63, 0);
    refuses(e, NIB_E_FORMAT, "tensor blk.1.ffn_norm.weight has the shape 63, expected 64");
    e = start("llama");
    edit_tensor(e, "blk.1.ffn_norm.weight", F32, 32, 2);
    refuses(e, NIB_E_FORMAT, "tensor blk.1.ffn_norm.weight has the shape 32 x 2, expected 64");
    e = start("qwen2");
    edit_tensor(e, "blk.1.attn_q.bias", F32, 32, 0);
    refuses(e, NIB_E_FORMAT, "tensor blk.1.attn_q.bias has the shape 32, expected 64");
    e = start("llama");
    edit_tensor(e, "output_norm.weight", I32, 64, 0);
    refuses(e, NIB_E_UNSUPPORTED, "tensor output_norm.weight has the type I32, which nib does not compute with");
    e = start("llama");
    edit_tensor(e, "output_norm.weight", Q8_0, 64, 0);
    refuses(e, NIB_E_UNSUPPORTED, "tensor output_norm.weight has the type Q8_0, expected F32, F16 or BF16");
    tiny_model m = model_of("llama");
    m.n_ff = 256;
    e = edit_new(&m);
    edit_tensor(e, "blk.0.ffn_down.weight", IQ2_XXS, 256, 64);
    refuses(e, NIB_E_UNSUPPORTED, "tensor blk.0.ffn_down.weight has the type IQ2_XXS, which nib does not compute with");
}

/* A model computed without some of its weights would be wrong in silence. */
static void test_tensors_too_many(void **state) {
    (void)state;
    edit *e = start("llama");
    edit_tensor(e, "blk.0.attn_q_norm.weight", F32, 16, 0);
    refuses(e, NIB_E_UNSUPPORTED, "tensor blk.0.attn_q_norm.weight is not part of the architecture llama with 2 layers as nib knows it");
    e = start("llama");
    edit_number(e, "llama.block_count", NIB_GGUF_U32, 1);
    refuses(e, NIB_E_UNSUPPORTED, "tensor blk.1.attn_norm.weight is not part of the architecture llama with 1 layers as nib knows it");
    e = start("llama");
    edit_number(e, "llama.block_count", NIB_GGUF_U32, 3);
    refuses(e, NIB_E_FORMAT, "the tensor blk.2.attn_norm.weight is missing, expected 64 values (architecture llama)");
}

static void test_bad_rope_factors(void **state) {
    (void)state;
    static const float zero = 0, tiny = 1e-30f, nan = NAN;
    edit *e = start("llama");
    edit_tensor(e, "rope_freqs.weight", F32, 7, 0);
    refuses(e, NIB_E_FORMAT, "tensor rope_freqs.weight has the type F32 and 7 values, expected F32 and 8");
    e = start("llama");
    edit_tensor(e, "rope_freqs.weight", F16, 8, 0);
    refuses(e, NIB_E_FORMAT, "tensor rope_freqs.weight has the type F16 and 8 values, expected F32 and 8");
    const float *bad[] = {&zero, &tiny, &nan};
    for (size_t i = 0; i < 3; i++) {
        static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
        tiny_model m = model_of("llama");
        m.rope_factors = ones;
        e = edit_new(&m);
        edit_data(e, "rope_freqs.weight", 3 * sizeof(float), bad[i], sizeof(float));
        char want[120];
        snprintf(want, sizeof want, "tensor rope_freqs.weight: value 3 is %g, expected 0.001 to 1e9", (double)*bad[i]);
        refuses(e, NIB_E_FORMAT, want);
    }
}

static void test_bad_windows(void **state) {
    (void)state;
    static const uint32_t flags[] = {1, 0, 1};
    const char *key = "gemma3.attention.sliding_window_pattern";
    edit *e = start("gemma3");
    edit_text(e, key, "6");
    refuses(e, NIB_E_FORMAT, "gemma3.attention.sliding_window_pattern is of type string, expected a u32 from 1 on or an array");
    e = start("gemma3");
    edit_number(e, key, NIB_GGUF_U32, 0);
    refuses(e, NIB_E_FORMAT, "gemma3.attention.sliding_window_pattern is of type u32, expected a u32 from 1 on or an array");
    e = start("gemma3");
    edit_array(e, key, NIB_GGUF_BOOL, flags, 3);
    refuses(e, NIB_E_FORMAT, "gemma3.attention.sliding_window_pattern is an array of 3 bool, expected 2 flags, one for each layer");
    e = start("gemma3");
    edit_strings(e, key, 2);
    refuses(e, NIB_E_FORMAT, "gemma3.attention.sliding_window_pattern is an array of 2 string, expected 2 flags, one for each layer");
}

typedef struct list {
    size_t n;
    nib_error faults[16];
} list;

static void collect(void *user, const nib_error *fault) {
    list *l = user;
    if (l->n < 16) l->faults[l->n] = *fault;
    l->n++;
}

static void test_check_reports_all(void **state) {
    (void)state;
    nib_error err;
    list l = {0};
    edit *e = start("gemma3");
    edit_drop(e, "blk.0.attn_k.weight");
    edit_drop(e, "blk.1.attn_norm.weight");
    edit_tensor(e, "blk.0.ffn_up.weight", Q4_0, 64, 97);
    edit_tensor(e, "output_norm.weight", I32, 64, 0);
    edit_tensor(e, "blk.7.odd.weight", F32, 5, 0);
    edit_number(e, "gemma3.attention.sliding_window_pattern", NIB_GGUF_U32, 0);
    nib_gguf *file = edit_open(e);
    assert_int_equal(nib_model_check(file, true, collect, &l, &err), NIB_E_FORMAT);
    static const char *const want[] = {
        "gemma3.attention.sliding_window_pattern is of type u32", "the tensor blk.0.attn_k.weight is missing",
        "tensor blk.0.ffn_up.weight has the shape 64 x 97",       "the tensor blk.1.attn_norm.weight is missing",
        "tensor output_norm.weight has the type I32",             "tensor blk.7.odd.weight is not part of",
    };
    assert_int_equal(l.n, sizeof want / sizeof *want);
    for (size_t i = 0; i < l.n; i++)
        if (!strstr(l.faults[i].message, want[i])) fail_msg("\"%s\", expected \"%s\"", l.faults[i].message, want[i]);
    assert_string_equal(err.message, l.faults[0].message);
    assert_int_equal(nib_model_check(file, true, NULL, NULL, &err), NIB_E_FORMAT); /* nobody wants the rest */
    assert_string_equal(err.message, l.faults[0].message);
    assert_int_equal(nib_model_check(file, false, NULL, NULL, NULL), NIB_E_FORMAT);
    nib_gguf_close(file);
}

static void test_check_of_good_files(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3"};
    for (size_t i = 0; i < 4; i++) {
        list l = {0};
        nib_gguf *file = edit_open(start(archs[i]));
        assert_int_equal(nib_model_check(file, true, collect, &l, NULL), NIB_OK);
        assert_int_equal(l.n, 0);
        nib_gguf_close(file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_of_each_architecture),
        cmocka_unit_test(test_choices_of_each_architecture),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_shapes_and_costs),
        cmocka_unit_test(test_tied_and_untied),
        cmocka_unit_test(test_biases),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_wide_model_scales_by_width),
        cmocka_unit_test(test_rope_factors),
        cmocka_unit_test(test_architecture),
        cmocka_unit_test(test_tensors_that_do_not_fit),
        cmocka_unit_test(test_tensors_too_many),
        cmocka_unit_test(test_bad_rope_factors),
        cmocka_unit_test(test_bad_windows),
        cmocka_unit_test(test_check_reports_all),
        cmocka_unit_test(test_check_of_good_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
