/* tests/test_cpu_share.c - who does which rows, and barriers: few for one token, some for a few tokens, one wherever threads exchange
 * rows for many. */
#include "cpu/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* One layer: buffers 0 x, 1 norm, 2 q, 3 k, 4 attention, 5 gate, 6 up, 7 product; acts in the order of their steps. */
enum { N_STEPS = 12, N_ACTS = 4 };
static nib_plan_step steps[N_STEPS] = {
    {.op = NIB_OP_NORM, .in = 0, .in2 = -1, .out = 1, .act = 0},
    {.op = NIB_OP_MATMUL, .in = 1, .in2 = -1, .out = -1, .act = 0, .n_products = 2, .product = {{0, -1, 2}, {1, -1, 3}}},
    {.op = NIB_OP_ROPE, .in = 2, .in2 = -1, .out = 2, .act = -1, .n_head = 4},
    {.op = NIB_OP_ROPE, .in = 3, .in2 = -1, .out = 3, .act = -1, .n_head = 2},
    {.op = NIB_OP_KV_STORE, .in = 3, .in2 = 3, .out = -1, .act = -1, .n_head_kv = 2},
    {.op = NIB_OP_ATTENTION, .in = 2, .in2 = -1, .out = 4, .act = -1},
    {.op = NIB_OP_QUANT, .in = 4, .in2 = -1, .out = -1, .act = 1},
    {.op = NIB_OP_MATMUL, .in = 4, .in2 = -1, .out = 0, .act = 1, .adds = true, .n_products = 1, .product = {{2, -1, 7}}},
    {.op = NIB_OP_NORM, .in = 0, .in2 = -1, .out = 1, .act = 2},
    {.op = NIB_OP_MATMUL, .in = 1, .in2 = -1, .out = -1, .act = 2, .n_products = 2, .product = {{3, -1, 5}, {4, -1, 6}}},
    {.op = NIB_OP_GLU, .in = 5, .in2 = 6, .out = 5, .act = 3},
    {.op = NIB_OP_MATMUL, .in = 5, .in2 = -1, .out = 0, .act = 3, .adds = true, .n_products = 1, .product = {{5, -1, 7}}},
};

typedef struct fixture {
    nib_plan plan;
    nib_plan_act acts[N_ACTS];
    nib_plan_batch batch;
    nib_cpu_share shares[N_STEPS];
    nib_cpu_act_place places[N_ACTS];
    unsigned forms[N_ACTS];
    bool gates[N_STEPS];
    nib_cpu cpu;
} fixture;

static void open_fixture(fixture *f, unsigned forms) {
    *f = (fixture){.plan = {.steps = steps, .n_steps = N_STEPS, .n_acts = N_ACTS, .logits = -1}};
    for (int i = 0; i < N_ACTS; i++) {
        f->forms[i] = forms;
        f->acts[i].width = 576;
    }
    f->plan.acts = f->acts;
    f->cpu.config.n_tok = 1024;
    f->cpu.plan = &f->plan;
    f->cpu.batch = &f->batch;
    f->cpu.shares = f->shares;
    f->cpu.act_places = f->places;
    f->cpu.act_forms = f->forms;
    f->cpu.gates = f->gates;
    f->cpu.n_sums = 512 * NIB_GATE_SUMS;
    f->cpu.n_active = 2;
    nib_cpu_share_plan(&f->cpu);
}

static int barriers_of(fixture *f, uint32_t n_tok, bool folds_heads) {
    int n = 0;
    f->batch.n_tok = n_tok;
    f->cpu.folds_heads = folds_heads;
    for (size_t i = 0; i < N_STEPS; i++) n += nib_cpu_needs_barrier(&f->cpu, i);
    return n;
}

/* Of tokens of one sequence. */
static int barriers(fixture *f, uint32_t n_tok) {
    return barriers_of(f, n_tok, n_tok == 1);
}

static void test_few_tokens_need_fewer_barriers(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    assert_int_equal(barriers(&f, 17), 9); /* around every product and the attention */
    assert_int_equal(barriers(&f, 16), 5); /* norm, quantise and gate are repeated by every thread */
    assert_int_equal(barriers(&f, 2), 5);
    assert_int_equal(barriers(&f, 1), 4); /* heads wait for the attention, too */
    assert_int_equal(barriers_of(&f, 15, true), 4); /* as where every token is of another sequence */
    assert_int_equal(barriers_of(&f, 17, true), 8);
    f.cpu.n_active = 32;
    assert_int_equal(barriers(&f, 16), 9); /* too much to be done 32 times */
    assert_int_equal(barriers(&f, 2), 5);
    f.cpu.n_active = 2;
    f.acts[3].width = 9000;
    assert_int_equal(barriers(&f, 16), 6);
    assert_int_equal(nib_cpu_own_rows(&f.cpu, 9000), 7);
    assert_int_equal(nib_cpu_own_rows(&f.cpu, 1 << 20), 1);
    open_fixture(&f, NIB_ACT_F32);
    assert_int_equal(barriers(&f, 2), 8); /* floats of several rows are in a buffer of all threads */
    assert_int_equal(barriers(&f, 1), 4);
}

/* Products that gate their chunks leave one act for all threads. */
static void test_gated_chunks_are_shared(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    steps[10].n_in = 256;
    assert_int_equal(barriers(&f, 16), 6);
    assert_int_equal(barriers(&f, 15), 5);
    steps[10].n_in = 0;
}

/* Every row is somebody's, and panels stay whole where all threads have one. */
static void test_parts(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    for (int n_threads = 1; n_threads <= 9; n_threads++)
        for (uint32_t n = 17; n < 700; n++) {
            uint32_t next = 0;
            f.batch.n_tok = n;
            f.cpu.n_active = n_threads;
            for (int i = 0; i < n_threads; i++) {
                nib_cpu_part p = nib_cpu_my_part(&f.cpu, &steps[3], i);
                assert_int_equal(p.t0, next);
                assert_true(p.t1 >= p.t0 && p.t1 <= n);
                if (n >= 16u * (unsigned)n_threads && p.t1 < n) assert_int_equal(p.t1 % 16, 0);
                next = p.t1;
            }
            assert_int_equal(next, n);
        }
}

static void test_rows_and_heads(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    f.batch.n_tok = 1;
    for (int index = 0; index < 2; index++) {
        nib_cpu_part own = nib_cpu_my_part(&f.cpu, &steps[0], index);
        assert_int_equal(own.t1 - own.t0, 1);
    }
    f.cpu.folds_heads = true;
    for (int i = 0; i < N_STEPS; i++) assert_int_equal(nib_cpu_is_in_attention(&f.cpu, &steps[i]), i >= 2 && i <= 4);
    f.batch.n_tok = 3;
    f.cpu.folds_heads = false;
    nib_cpu_part a = nib_cpu_my_part(&f.cpu, &steps[3], 0), b = nib_cpu_my_part(&f.cpu, &steps[3], 1);
    assert_true(a.t0 == 0 && a.t1 == b.t0 && b.t1 == 3);
    for (int i = 0; i < N_STEPS; i++) assert_false(nib_cpu_is_in_attention(&f.cpu, &steps[i]));
}

/* A product that reads the floats themselves finds them in the buffer of all rows; codes need them no longer. */
static void test_rows_of_floats(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    assert_true(f.places[0].own_row && f.places[3].own_row && !f.places[1].own_row);
    open_fixture(&f, NIB_ACT_F32);
    assert_false(f.places[0].own_row || f.places[3].own_row);
    assert_true(f.places[0].own_row_when_single);
}

/* The gate joins the products before it when there are rows, memory and blocks of its act enough. */
static void test_gating_by_chunks(void **unused) {
    (void)unused;
    fixture f;
    open_fixture(&f, NIB_ACT_Q32);
    for (int i = 0; i < N_STEPS; i++) assert_int_equal(f.gates[i], i == 9);
    steps[10].n_in = 256;
    f.batch.n_tok = 16;
    assert_true(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    assert_int_equal(nib_cpu_gate_unit(&f.cpu, &steps[9]), 2);
    f.batch.n_tok = 15;
    assert_false(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    f.batch.n_tok = 513;
    assert_false(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    f.batch.n_tok = 512;
    steps[10].n_in = 224;
    assert_false(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    open_fixture(&f, NIB_ACT_Q256);
    f.batch.n_tok = 512;
    steps[10].n_in = 8 * 256;
    assert_true(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    assert_int_equal(nib_cpu_gate_unit(&f.cpu, &steps[9]), 16);
    steps[10].n_in += 32;
    assert_false(nib_cpu_gates_chunks(&f.cpu, &steps[9]));
    steps[11].in2 = 6; /* somebody else wants what the product left */
    open_fixture(&f, NIB_ACT_Q256);
    assert_false(f.gates[9]);
    steps[11].in2 = -1;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_tokens_need_fewer_barriers),
        cmocka_unit_test(test_gated_chunks_are_shared),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_rows_and_heads),
        cmocka_unit_test(test_rows_of_floats),
        cmocka_unit_test(test_gating_by_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
