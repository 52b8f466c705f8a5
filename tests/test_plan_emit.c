/* tests/test_plan_emit.c - builders of steps: what a step says of itself (names, rows, widths, bytes, multiply-accumulates)
 * and that the first shape that does not fit sticks. */
#include "plan/emit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    nib_plan plan;
    nib_plan_builder b;
    nib_error err;
} fixture;

static fixture *begin(void) {
    static fixture f;
    memset(&f, 0, sizeof f);
    f.b = (nib_plan_builder){.plan = &f.plan, .err = &f.err, .layer = NIB_PLAN_NONE, .rows = NIB_ROWS_TOK};
    return &f;
}

static void end(fixture *f) {
    nib_plan_free(&f->plan);
    assert_int_equal(f->plan.n_steps, 0);
}

static const nib_plan_step *last(const fixture *f) {
    assert_int_equal(f->b.status, NIB_OK);
    assert_true(f->plan.n_steps > 0);
    return &f->plan.steps[f->plan.n_steps - 1];
}

static int add(fixture *f, nib_plan_weight_kind kind, const char *type, uint32_t n_in, uint32_t n_out) {
    nib_plan_weight w = {.kind = kind, .name = "w", .type = nib_quant_type_by_name(type), .n_in = n_in, .n_out = n_out};
    assert_non_null(w.type);
    return nib_plan_add_weight(&f->b, &w);
}

static void test_embed(void **state) {
    (void)state;
    fixture *f = begin();
    int x = nib_plan_add_buffer(&f->b, 256), w = add(f, NIB_WEIGHT_ROWS, "Q4_K", 256, 1000);
    nib_plan_embed(&f->b, w, 2.5f, x);
    const nib_plan_step *s = last(f);
    assert_int_equal(s->op, NIB_OP_EMBED);
    assert_string_equal(s->name, "embed");
    assert_string_equal(nib_plan_op_text(s->op), "embed");
    assert_int_equal(s->layer, NIB_PLAN_NONE);
    assert_int_equal(s->weight, w);
    assert_int_equal(s->out, x);
    assert_int_equal(s->n_out, 256);
    assert_int_equal(s->bytes, 144); /* one row */
    assert_int_equal(s->macs, 0);
    assert_true(s->scale == 2.5f);
    assert_int_equal(nib_plan_bytes_per_token(&f->plan), 144);
    end(f);
}

static void test_norms(void **state) {
    (void)state;
    fixture *f = begin();
    int x = nib_plan_add_buffer(&f->b, 64), h = nib_plan_add_buffer(&f->b, 64), w = add(f, NIB_WEIGHT_VECTOR, "F32", 1, 64);
    f->b.layer = 3;
    int act = nib_plan_norm(&f->b, "attn_norm", x, w, 1e-5f, h);
    const nib_plan_step *s = last(f);
    assert_string_equal(s->name, "blk.3.attn_norm");
    assert_int_equal(s->layer, 3);
    assert_int_equal(s->act, act);
    assert_int_equal(f->plan.acts[act].source, h);
    assert_int_equal(f->plan.acts[act].width, 64);
    assert_int_equal(s->bytes, 256);
    assert_false(s->adds);
    nib_plan_norm_add(&f->b, "post", h, w, 1e-5f, x);
    s = last(f);
    assert_true(s->adds);
    assert_int_equal(s->act, NIB_PLAN_NONE);
    assert_int_equal(s->in, h);
    assert_int_equal(s->out, x);
    int q = nib_plan_add_buffer(&f->b, 4 * 16), head = add(f, NIB_WEIGHT_VECTOR, "F16", 1, 16);
    nib_plan_head_norm(&f->b, "q_norm", q, head, 1e-6f);
    s = last(f);
    assert_int_equal(s->n_head, 4);
    assert_int_equal(s->k_dim, 16);
    assert_int_equal(s->bytes, 64); /* vectors are floats in memory */
    end(f);
}

static void test_matmul(void **state) {
    (void)state;
    fixture *f = begin();
    int x = nib_plan_add_buffer(&f->b, 64), q = nib_plan_add_buffer(&f->b, 96), k = nib_plan_add_buffer(&f->b, 32);
    int wq = add(f, NIB_WEIGHT_MATRIX, "Q8_0", 64, 96), wk = add(f, NIB_WEIGHT_MATRIX, "Q4_0", 64, 32);
    int bias = add(f, NIB_WEIGHT_VECTOR, "F32", 1, 96), wo = add(f, NIB_WEIGHT_MATRIX, "F16", 96, 64);
    int act = nib_plan_quant(&f->b, "quant", x);
    nib_plan_product p[] = {{wq, bias, q}, {wk, NIB_PLAN_NONE, k}};
    nib_plan_matmul(&f->b, "qk", act, p, 2, NIB_PLAN_NONE);
    const nib_plan_step *s = last(f);
    assert_int_equal(s->n_products, 2);
    assert_int_equal(s->in, x);
    assert_int_equal(s->n_in, 64);
    assert_int_equal(s->n_out, 128);
    assert_int_equal(s->macs, 64 * 128);
    assert_int_equal(s->bytes, 96 * 2 * 34 + 96 * 4 + 32 * 2 * 18);
    assert_int_equal(s->product[0].bias, bias);
    assert_int_equal(s->product[1].bias, NIB_PLAN_NONE);
    assert_false(s->adds);
    int tmp = nib_plan_add_buffer(&f->b, 64);
    act = nib_plan_quant(&f->b, "quant", q);
    nib_plan_matmul(&f->b, "o", act, &(nib_plan_product){wo, NIB_PLAN_NONE, tmp}, 1, x);
    s = last(f);
    assert_true(s->adds);
    assert_int_equal(s->out, x);
    assert_int_equal(s->product[0].out, tmp);
    assert_int_equal(s->bytes, 96 * 64 * 2);
    end(f);
}

static void test_rope_and_attention(void **state) {
    (void)state;
    fixture *f = begin();
    float inv_freq[8] = {1, 0.5f, 0.25f, 0.125f};
    int table = nib_plan_add_rope_table(&f->b, inv_freq, 8, 1.25f);
    const nib_plan_step *s = last(f);
    assert_int_equal(s->op, NIB_OP_ANGLES);
    assert_int_equal(s->n_out, 8);
    inv_freq[0] = 9; /* the plan has a copy */
    assert_true(f->plan.tables[table].inv_freq[0] == 1 && f->plan.tables[table].mscale == 1.25f);
    int q = nib_plan_add_buffer(&f->b, 4 * 16), k = nib_plan_add_buffer(&f->b, 2 * 16), v = nib_plan_add_buffer(&f->b, 2 * 24);
    int out = nib_plan_add_buffer(&f->b, 4 * 24);
    nib_plan_rope(&f->b, "rope_q", q, 16, table, NIB_ROPE_HALVES);
    s = last(f);
    assert_int_equal(s->n_head, 4);
    assert_int_equal(s->in2, f->plan.tables[table].buffer);
    assert_int_equal(s->rope, NIB_ROPE_HALVES);
    f->b.layer = 1;
    int layer = nib_plan_add_kv_layer(&f->b, &(nib_plan_kv_layer){2, 16, 24});
    nib_plan_attention(&f->b, &(nib_plan_attention_params){q, k, v, out, layer, 4, 512, 0.25f});
    s = last(f);
    assert_int_equal(s->op, NIB_OP_ATTENTION);
    assert_int_equal(s[-1].op, NIB_OP_KV_STORE);
    assert_int_equal(s[-1].n_in, 2 * (16 + 24));
    assert_int_equal(s->n_in, 64);
    assert_int_equal(s->n_out, 96);
    assert_int_equal(s->n_head_kv, 2);
    assert_int_equal(s->window, 512);
    assert_int_equal(s->macs, 4 * (16 + 24));
    end(f);
}

static void test_glu_and_gather(void **state) {
    (void)state;
    fixture *f = begin();
    int gate = nib_plan_add_buffer(&f->b, 100), up = nib_plan_add_buffer(&f->b, 100);
    nib_plan_gather(&f->b, gate);
    assert_int_equal(last(f)->rows, NIB_ROWS_TOK); /* gather itself reads all rows */
    int act = nib_plan_glu(&f->b, NIB_ACT_GELU, gate, up, gate);
    assert_int_equal(last(f)->rows, NIB_ROWS_OUT);
    assert_int_equal(last(f)->fn, NIB_ACT_GELU);
    assert_int_equal(f->plan.acts[act].source, gate);
    end(f);
}

/* An error names step, part, found and expected, and nothing is added after it. */
static void refused(fixture *f, const char *message) {
    if (f->b.status != NIB_E_FORMAT || strcmp(f->err.message, message) != 0)
        fail_msg("%d \"%s\", expected \"%s\"", (int)f->b.status, f->err.message, message);
    size_t n_steps = f->plan.n_steps, n_buffers = f->plan.n_buffers, n_weights = f->plan.n_weights;
    assert_int_equal(nib_plan_add_buffer(&f->b, 8), -1);
    assert_int_equal(nib_plan_quant(&f->b, "q", 0), -1);
    assert_int_equal(nib_plan_norm(&f->b, "n", 0, 0, 0, 0), -1);
    assert_int_equal(nib_plan_glu(&f->b, NIB_ACT_SILU, -1, -1, -1), -1);
    assert_int_equal(nib_plan_add_rope_table(&f->b, NULL, 8, 1), -1);
    nib_plan_attention(&f->b, &(nib_plan_attention_params){.kv_layer = -1});
    nib_plan_matmul(&f->b, "m", -1, NULL, 0, -1);
    nib_plan_gather(&f->b, -1);
    assert_int_equal(f->plan.n_steps, n_steps);
    assert_int_equal(f->plan.n_buffers, n_buffers);
    assert_int_equal(f->plan.n_weights, n_weights);
    assert_string_equal(f->err.message, message);
    end(f);
}

static void test_shapes_that_do_not_fit(void **state) {
    (void)state;
    fixture *f = begin();
    nib_plan_embed(&f->b, add(f, NIB_WEIGHT_ROWS, "F32", 32, 10), 1, nib_plan_add_buffer(&f->b, 33));
    refused(f, "step embed: the embedding is 32 wide, expected 33");

    f = begin(), f->b.layer = 2;
    nib_plan_norm(&f->b, "norm", nib_plan_add_buffer(&f->b, 8), add(f, NIB_WEIGHT_VECTOR, "F32", 1, 9), 0, 0);
    refused(f, "step blk.2.norm: the weight is 9 wide, expected 8");

    f = begin();
    nib_plan_head_norm(&f->b, "heads", nib_plan_add_buffer(&f->b, 50), add(f, NIB_WEIGHT_VECTOR, "F32", 1, 16), 0);
    refused(f, "step heads: all heads together is 48 wide, expected 50");

    f = begin();
    int x = nib_plan_add_buffer(&f->b, 32), y = nib_plan_add_buffer(&f->b, 16), act = nib_plan_quant(&f->b, "quant", x);
    nib_plan_product p = {add(f, NIB_WEIGHT_MATRIX, "Q8_0", 64, 16), NIB_PLAN_NONE, y};
    nib_plan_matmul(&f->b, "mm", act, &p, 1, NIB_PLAN_NONE);
    refused(f, "step mm: w is 64 wide, expected 32");

    f = begin();
    x = nib_plan_add_buffer(&f->b, 32), y = nib_plan_add_buffer(&f->b, 16), act = nib_plan_quant(&f->b, "quant", x);
    p = (nib_plan_product){add(f, NIB_WEIGHT_MATRIX, "Q8_0", 32, 16), add(f, NIB_WEIGHT_VECTOR, "F32", 1, 15), y};
    nib_plan_matmul(&f->b, "mm", act, &p, 1, NIB_PLAN_NONE);
    refused(f, "step mm: the bias is 15 wide, expected 16");

    f = begin();
    x = nib_plan_add_buffer(&f->b, 32), y = nib_plan_add_buffer(&f->b, 16), act = nib_plan_quant(&f->b, "quant", x);
    p = (nib_plan_product){add(f, NIB_WEIGHT_MATRIX, "Q8_0", 32, 16), NIB_PLAN_NONE, y};
    nib_plan_matmul(&f->b, "mm", act, &p, 1, x);
    refused(f, "step mm: the sum is 32 wide, expected 16");

    f = begin();
    int gate = nib_plan_add_buffer(&f->b, 4), up = nib_plan_add_buffer(&f->b, 5);
    nib_plan_glu(&f->b, NIB_ACT_SILU, gate, up, gate);
    refused(f, "step ffn_glu: up is 5 wide, expected 4");

    f = begin();
    gate = nib_plan_add_buffer(&f->b, 4), up = nib_plan_add_buffer(&f->b, 4);
    nib_plan_glu(&f->b, NIB_ACT_SILU, gate, up, nib_plan_add_buffer(&f->b, 6));
    refused(f, "step ffn_glu: the output is 6 wide, expected 4");

    f = begin();
    int heads = nib_plan_add_buffer(&f->b, 40), table = nib_plan_add_rope_table(&f->b, (float[8]){1}, 16, 1);
    nib_plan_rope(&f->b, "rope", heads, 16, table, NIB_ROPE_PAIRS);
    refused(f, "step rope: all heads together is 32 wide, expected 40");

    f = begin();
    int q = nib_plan_add_buffer(&f->b, 64), k = nib_plan_add_buffer(&f->b, 32);
    nib_plan_attention_params a = {q, k, k, q, nib_plan_add_kv_layer(&f->b, &(nib_plan_kv_layer){2, 16, 15}), 4, 0, 1};
    nib_plan_attention(&f->b, &a);
    refused(f, "step kv_store: the value is 32 wide, expected 30");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_rope_and_attention),
        cmocka_unit_test(test_glu_and_gather),
        cmocka_unit_test(test_shapes_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
