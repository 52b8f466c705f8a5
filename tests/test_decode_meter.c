/* tests/test_decode_meter.c - meters: every kind does its work with any number of threads, and counts it rightly; every
 * op and type that has a meter runs on every level; wrong configs are error values. */
#include "nib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static nib_meter *open_meter(const nib_meter_config *config) {
    nib_error err;
    nib_meter *meter;
    if (nib_meter_new(&meter, config, &err) != NIB_OK) fail_msg("%s", err.message);
    return meter;
}

static void runs(nib_meter *meter, int n_threads) {
    for (int n = 0; n <= n_threads + 1; n++) { /* numbers out of range are moved into it */
        double seconds = nib_meter_run(meter, n);
        assert_true(seconds > 0 && seconds < 60);
    }
    nib_meter_free(meter);
}

static void test_read(void **state) {
    (void)state;
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    config.n_threads = 3;
    config.n_bytes = 5 << 20;
    nib_meter *meter = open_meter(&config);
    assert_true(nib_meter_bytes(meter) == 5 << 20);
    assert_true(nib_meter_macs(meter) == 0 && nib_meter_steps(meter) == 0);
    runs(meter, 3);
}

static void test_peaks(void **state) {
    (void)state;
    for (const char *const *isa = nib_isa_names(); *isa; isa++) {
        nib_meter_config config = NIB_METER_CONFIG_INIT;
        if (!nib_isa_usable(*isa)) continue;
        config.isa = *isa;
        config.n_threads = 2;
        for (config.kind = NIB_METER_INT8; config.kind <= NIB_METER_F32; config.kind++) {
            nib_meter *meter = open_meter(&config);
            assert_true(nib_meter_macs(meter) > 0 && nib_meter_bytes(meter) == 0);
            runs(meter, 2);
        }
    }
}

static void test_matmul(void **state) {
    (void)state;
    for (const char *const *isa = nib_isa_names(); *isa; isa++)
        for (const char *const *type = nib_type_names(); nib_isa_usable(*isa) && *type; type++)
            for (uint32_t n_tok = 1; n_tok <= 33; n_tok += 16) {
                nib_step_info step = {.op = "matmul", .type = *type, .n_in = 512, .n_out = 40};
                nib_meter_config config = NIB_METER_CONFIG_INIT;
                config.kind = NIB_METER_STEP;
                config.isa = *isa;
                config.n_threads = 2;
                config.n_bytes = 1 << 17;
                config.step = &step;
                config.n_tok = n_tok;
                nib_meter *meter = open_meter(&config);
                uint64_t n = nib_meter_steps(meter);
                assert_true(n >= 1 && n_tok * n * 512 * 40 == nib_meter_macs(meter));
                assert_true(nib_meter_bytes(meter) <= 1 << 17 && nib_meter_bytes(meter) > 1 << 14);
                runs(meter, 2);
            }
}

static void test_attention(void **state) {
    (void)state;
    nib_step_info step = {.op = "attention", .n_head = 6, .n_head_kv = 2, .head_dim = 32};
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    config.kind = NIB_METER_STEP;
    config.n_threads = 2;
    config.n_bytes = 0; /* one step */
    config.step = &step;
    config.n_tok = 3;
    config.n_past = 100;
    nib_meter *meter = open_meter(&config);
    assert_true(nib_meter_steps(meter) == 1);
    assert_true(nib_meter_macs(meter) == 2 * 6 * 32 * (101 + 102 + 103));
    assert_true(nib_meter_bytes(meter) == 103 * 2 * 2 * 32 * 2); /* f16 keys and values of two heads */
    runs(meter, 2);
    config.n_tok = config.n_seq = 4;
    config.k_type = config.v_type = "q8_0";
    config.n_bytes = 1 << 20;
    step.window = 50;
    meter = open_meter(&config);
    assert_true(nib_meter_steps(meter) > 1);
    assert_true(nib_meter_macs(meter) == nib_meter_steps(meter) * 2 * 6 * 32 * 4 * 50);
    runs(meter, 2);
}

static void test_rows(void **state) {
    (void)state;
    const char *const ops[] = {"norm", "glu"}, *const types[] = {"Q4_0", "Q4_K", "F16"};
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < 3; k++) {
            nib_step_info step = {.op = ops[i], .type = types[k], .n_in = 768};
            nib_meter_config config = NIB_METER_CONFIG_INIT;
            config.kind = NIB_METER_STEP;
            config.n_threads = 2;
            config.step = &step;
            config.n_tok = 5;
            nib_meter *meter = open_meter(&config);
            assert_true(nib_meter_steps(meter) > 0);
            runs(meter, 2);
        }
}

static void test_wrong_configs(void **state) {
    (void)state;
    nib_step_info step = {.op = "matmul", .type = "Q4_K", .n_in = 512, .n_out = 16};
    nib_meter_config good = NIB_METER_CONFIG_INIT, c;
    good.kind = NIB_METER_STEP;
    good.n_bytes = 0;
    good.step = &step;
    nib_error err;
    nib_meter *meter;
#define REFUSED(change, status, words)                                                                                 \
    do {                                                                                                               \
        c = good;                                                                                                      \
        nib_step_info s = step;                                                                                        \
        c.step = &s;                                                                                                   \
        change;                                                                                                        \
        assert_int_equal(nib_meter_new(&meter, &c, &err), status);                                                     \
        assert_null(meter);                                                                                            \
        if (!strstr(err.message, words)) fail_msg("%s, expected %s", err.message, words);                              \
    } while (0)
    REFUSED(c.size = 1, NIB_E_ARG, "nib_meter_config");
    REFUSED(c.kind = (nib_meter_kind)9, NIB_E_ARG, "kind is 9");
    REFUSED(c.n_threads = -1, NIB_E_ARG, "n_threads");
    REFUSED(c.isa = "nonsense", NIB_E_ARG, "nonsense");
    REFUSED(c.step = NULL, NIB_E_ARG, "needs a step");
    REFUSED(c.n_tok = 0, NIB_E_ARG, "n_tok is 0");
    REFUSED(c.n_tok = UINT32_MAX, NIB_E_ARG, "n_tok");
    REFUSED(c.n_seq = 2, NIB_E_ARG, "n_seq is 2");
    REFUSED(c.n_past = UINT32_MAX, NIB_E_ARG, "n_past");
    REFUSED(s.op = "rope", NIB_E_UNSUPPORTED, "rope");
    REFUSED(s.op = NULL, NIB_E_UNSUPPORTED, "no meter");
    REFUSED(s.type = "Q9", NIB_E_ARG, "Q9");
    REFUSED(s.type = NULL, NIB_E_ARG, "type ''");
    REFUSED(s.n_in = 500, NIB_E_FORMAT, "blocks of 256");
    REFUSED(s.n_out = UINT64_MAX, NIB_E_ARG, "at most");
    REFUSED(s.op = "attention", NIB_E_ARG, "0 heads");
    assert_int_equal(nib_meter_new(&meter, &good, NULL), NIB_OK);
    nib_meter_free(meter);
    nib_meter_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_peaks), cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_rows), cmocka_unit_test(test_wrong_configs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
