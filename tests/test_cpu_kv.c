/* tests/test_cpu_kv.c - memory of the KV cache: what each type keeps of a value, where it lies, and that nothing overlaps. */
#include "cpu/isa.h"
#include "cpu/kv.h"

#include "base/half.h"
#include "base/sys.h"
#include "support/blocks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POS NIB_PAGE_POS
#define MAX_DIM 256
#define N_TYPES 4

static const char *const type_names[] = {"f16", "f32", "q8_0", "q16"};
static const uint32_t dims[] = {32, 64, 96, 128, 256};

static const nib_cpu_kv_type *type_of(const char *name) {
    const nib_cpu_kv_type *t;
    assert_int_equal(nib_cpu_kv_type_find(&t, name, NULL), NIB_OK);
    return t;
}

/* The most that a value may change; top: the largest magnitude of its block, which is 32 or, of q16, all of them. */
static double bound(const char *type, double x, double top) {
    if (strcmp(type, "q16") == 0) return top / 5792 * 0.5 * (1 + 0x1p-10) + top * 0x1p-22;
    if (strcmp(type, "f32") == 0) return 0;
    if (strcmp(type, "f16") == 0) return fmax(fabs(x) * 0x1p-11, 0x1p-25);
    /* Half a step of top / 127, and the rounding of the step to f16, which the code multiplies by up to 127. */
    return fmax(top / 127 * 0.5 * (1 + 0x1p-10) + top * 0x1p-11, 127 * 0x1p-25);
}

static void check(const char *type, const float *x, const float *got, size_t stride, size_t dim) {
    size_t block = strcmp(type, "q16") == 0 ? dim : 32;
    for (size_t b = 0; b < dim; b += block) {
        double top = 0;
        for (size_t d = b; d < b + block; d++) top = fabs((double)x[d]) > top ? fabs((double)x[d]) : top;
        for (size_t d = b; d < b + block; d++)
            if (!(fabs((double)x[d] - (double)got[d * stride]) <= bound(type, (double)x[d], top)))
                fail_msg("%s, dimension %zu of %zu: %g became %g", type, d, dim, (double)x[d], (double)got[d * stride]);
    }
}

static void fill(float *x, size_t n, float scale, uint64_t *rng) {
    for (size_t i = 0; i < n; i++) x[i] = blocks_normal(rng) * scale;
}

/* Stores all 32 positions in a mixed order and loads the page: each comes back, keys dimension-major, values not. */
static void round_trip(const char *name, const nib_cpu_ops *ops, size_t dim, float scale, uint64_t *rng) {
    static float x[POS][MAX_DIM], scratch[POS * MAX_DIM];
    static _Alignas(64) unsigned char page[POS * MAX_DIM * 4];
    const nib_cpu_kv_type *t = type_of(name);
    assert_true(t->key_bytes(dim) <= sizeof page && t->value_bytes(dim) <= sizeof page);
    fill(x[0], POS * MAX_DIM, scale, rng);
    for (size_t i = 0; i < POS; i++) t->store_key(page, i * 7 % POS, x[i * 7 % POS], dim, ops);
    const float *k = t->load_keys(page, scratch, dim, ops);
    for (size_t i = 0; i < POS; i++) check(name, x[i], k + i, POS, dim);
    for (size_t i = 0; i < POS; i++) t->store_value(page, i * 5 % POS, x[i * 5 % POS], dim, ops);
    const float *v = t->load_values(page, scratch, dim, ops);
    for (size_t i = 0; i < POS; i++) check(name, x[i], v + i * dim, 1, dim);
}

static void test_round_trips(void **state) {
    (void)state;
    uint64_t rng = 3;
    const nib_cpu_isa *isa;
    for (const char *const *level = nib_isa_names(); *level; level++) {
        if (!nib_isa_usable(*level)) continue;
        assert_int_equal(nib_cpu_isa_find(&isa, *level, NULL), NIB_OK);
        for (size_t t = 0; t < N_TYPES; t++)
            for (size_t d = 0; d < sizeof dims / sizeof *dims; d++)
                for (float scale = 1e-9f; scale < 1e4f; scale *= 30) round_trip(type_names[t], isa->ops, dims[d], scale, &rng);
    }
}

/* Odd head sizes are fine but for q8_0; keys and values of the float types are exact in their own precision. */
static void test_float_types_exactly(void **state) {
    (void)state;
    static float x[80], scratch[POS * 80];
    static _Alignas(64) unsigned char page[POS * 80 * 4];
    uint64_t rng = 5;
    const nib_cpu_ops *ops = nib_cpu_isa_scalar()->ops;
    for (size_t dim = 1; dim <= 80; dim += 13)
        for (size_t slot = 0; slot < POS; slot += 31) {
            fill(x, dim, 3, &rng);
            const nib_cpu_kv_type *t = type_of("f32");
            t->store_key(page, slot, x, dim, ops);
            for (size_t d = 0; d < dim; d++) assert_true(t->load_keys(page, scratch, dim, ops)[d * POS + slot] == x[d]);
            t = type_of("f16");
            t->store_value(page, slot, x, dim, ops);
            const float *v = t->load_values(page, scratch, dim, ops) + slot * dim;
            for (size_t d = 0; d < dim; d++) assert_true(v[d] == nib_f16_to_f32(nib_f16_from_f32(x[d])));
        }
}

/* Storing a position leaves the bytes of all others alone: they may belong to another thread. */
static void test_a_store_touches_one_position(void **state) {
    (void)state;
    static _Alignas(64) unsigned char page[POS * 64 * 4], before[POS * 64 * 4];
    static float x[64], a[POS * 64], b[POS * 64];
    uint64_t rng = 9;
    const nib_cpu_ops *ops = nib_cpu_isa_scalar()->ops;
    for (size_t n = 0; n < N_TYPES; n++) {
        const nib_cpu_kv_type *t = type_of(type_names[n]);
        for (size_t slot = 0; slot < POS; slot++) {
            fill(x, 64, 1, &rng);
            t->store_key(page, slot, x, 64, ops);
        }
        for (size_t slot = 0; slot < POS; slot++) {
            memcpy(before, page, sizeof page);
            fill(x, 64, 1, &rng);
            t->store_key(page, slot, x, 64, ops);
            const float *old = t->load_keys(before, a, 64, ops), *new = t->load_keys(page, b, 64, ops);
            for (size_t i = 0; i < POS * 64; i++) assert_true(i % POS == slot || old[i] == new[i]);
            assert_memory_equal(before + t->key_bytes(64), page + t->key_bytes(64), sizeof page - t->key_bytes(64));
        }
    }
}

/* NaN and infinity must not turn into harmless numbers. */
static void test_broken_values_stay_visible(void **state) {
    (void)state;
    static _Alignas(64) unsigned char page[POS * 32 * 4];
    static float scratch[POS * 32];
    const nib_cpu_ops *ops = nib_cpu_isa_scalar()->ops;
    for (size_t n = 0; n < N_TYPES; n++)
        for (int bad = 0; bad < 3; bad++)
            for (size_t at = 0; at < 32; at += 31) {
                const nib_cpu_kv_type *t = type_of(type_names[n]);
                float x[32] = {1, -2, 3};
                x[at] = bad == 0 ? NAN : bad == 1 ? INFINITY : -INFINITY;
                t->store_key(page, 4, x, 32, ops);
                float y = t->load_keys(page, scratch, 32, ops)[at * POS + 4];
                assert_true(y - y != 0);
                t->store_value(page, 4, x, 32, ops);
                y = t->load_values(page, scratch, 32, ops)[4 * 32 + at];
                assert_true(y - y != 0);
            }
}

static void make_plan(nib_plan *plan, nib_plan_kv_layer *layers, size_t n) {
    *plan = (nib_plan){.kv_layers = layers, .n_kv_layers = n};
}

/* Every (layer, page, head) has keys and values of its own: each writes a number, then all are read. */
static void test_nothing_overlaps(void **state) {
    (void)state;
    nib_plan_kv_layer layers[] = {{3, 64, 32}, {1, 32, 96}, {5, 32, 32}};
    nib_plan plan;
    make_plan(&plan, layers, 3);
    for (size_t a = 0; a < N_TYPES; a++)
        for (size_t b = 0; b < N_TYPES; b++) {
            nib_cpu_kv kv;
            const nib_cpu_kv_type *k = type_of(type_names[a]), *v = type_of(type_names[b]);
            assert_int_equal(nib_cpu_kv_init(&kv, &plan, k, v, 7, NULL), NIB_OK);
            assert_int_equal(kv.n_bytes, 7 * kv.page_bytes);
            for (int pass = 0; pass < 2; pass++)
                for (uint32_t page = 0, n = 0; page < 7; page++)
                    for (int l = 0; l < 3; l++)
                        for (uint32_t h = 0; h < layers[l].n_head_kv; h++, n++) {
                            unsigned char *keys = nib_cpu_kv_keys(&kv, l, page, h), *values = nib_cpu_kv_values(&kv, l, page, h);
                            size_t nk = k->key_bytes(layers[l].k_dim), nv = v->value_bytes(layers[l].v_dim);
                            assert_true(keys >= kv.memory && values + nv <= kv.memory + kv.n_bytes);
                            if (pass == 0) memset(keys, (int)(n & 127), nk), memset(values, (int)(n & 127) + 128, nv);
                            else
                                assert_int_equal(keys[0] + keys[nk - 1] + values[0] + values[nv - 1], 4 * (n & 127) + 256);
                        }
            nib_cpu_kv_fini(&kv);
        }
}

static void test_copy(void **state) {
    (void)state;
    nib_plan_kv_layer layers[] = {{2, 64, 64}, {2, 64, 64}};
    nib_plan plan;
    make_plan(&plan, layers, 2);
    nib_cpu_kv kv;
    assert_int_equal(nib_cpu_kv_init(&kv, &plan, type_of("q8_0"), type_of("f16"), 4, NULL), NIB_OK);
    uint64_t rng = 1;
    for (size_t i = 0; i < kv.n_bytes; i++) kv.memory[i] = (unsigned char)blocks_random(&rng);
    unsigned char first = kv.memory[0], last = kv.memory[kv.n_bytes - 1];
    nib_cpu_kv_copy(&kv, 2, 1);
    assert_memory_equal(kv.memory + kv.page_bytes, kv.memory + 2 * kv.page_bytes, kv.page_bytes);
    assert_int_equal(kv.memory[0], first);
    assert_int_equal(kv.memory[kv.n_bytes - 1], last);
    nib_cpu_kv_fini(&kv);
}

static void test_sizes(void **state) {
    (void)state;
    assert_int_equal(type_of("f32")->key_bytes(64), 32 * 64 * 4);
    assert_int_equal(type_of("f16")->key_bytes(64), 32 * 64 * 2);
    assert_int_equal(type_of("q8_0")->key_bytes(64), 32 * (64 + 2 * 2));
    assert_int_equal(type_of("q16")->key_bytes(63), 32 * (64 * 2 + 4));
    assert_int_equal(type_of("q16")->value_bytes(63), 32 * (63 * 2 + 4));
    nib_plan_kv_layer layers[] = {{3, 64, 64}, {3, 64, 64}};
    nib_plan plan;
    make_plan(&plan, layers, 2);
    size_t n;
    assert_int_equal(nib_cpu_kv_page_bytes(&plan, type_of("f16"), type_of("q8_0"), &n, NULL), NIB_OK);
    assert_int_equal(n, 2 * 3 * 32 * (64 * 2 + 68));
}

static void test_errors(void **state) {
    (void)state;
    nib_error err;
    nib_cpu_kv kv;
    const nib_cpu_kv_type *t;
    assert_string_equal(type_of(NULL)->name, "f16");
    assert_int_equal(nib_cpu_kv_type_find(&t, "q4_0", &err), NIB_E_ARG);
    assert_string_equal(err.message, "KV cache type \"q4_0\": nib knows f16, f32, q8_0 and q16");
    nib_plan_kv_layer layers[] = {{2, 48, 64}};
    nib_plan plan;
    make_plan(&plan, layers, 1);
    assert_int_equal(nib_cpu_kv_init(&kv, &plan, type_of("q8_0"), type_of("f16"), 1, &err), NIB_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "q8_0 needs head sizes that are multiples of 32, the model has 48 and 64"));
    nib_cpu_kv_fini(&kv);
    assert_int_equal(nib_cpu_kv_init(&kv, &plan, type_of("f16"), type_of("q8_0"), 1, &err), NIB_OK);
    nib_cpu_kv_fini(&kv);
    /* One page more than the machine has memory for. */
    size_t page = 2 * 32 * (48 + 64) * 4;
    uint64_t n_pages = nib_sys_total_memory() / page + 1;
    if (n_pages > UINT32_MAX) return;
    assert_int_equal(nib_cpu_kv_init(&kv, &plan, type_of("f32"), type_of("f32"), (uint32_t)n_pages, &err), NIB_E_NOMEM);
    char want[200];
    snprintf(want, sizeof want, "a KV cache of %llu tokens needs %llu MiB, this machine has %llu MiB of memory",
             (unsigned long long)n_pages * POS, (unsigned long long)(n_pages * page) >> 20,
             (unsigned long long)nib_sys_total_memory() >> 20);
    assert_memory_equal(err.message, want, strlen(want));
    nib_cpu_kv_fini(&kv);
    assert_int_equal(nib_cpu_kv_init(&kv, &plan, type_of("f32"), type_of("f32"), UINT32_MAX, &err), NIB_E_NOMEM);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_float_types_exactly),
        cmocka_unit_test(test_a_store_touches_one_position),
        cmocka_unit_test(test_broken_values_stay_visible),
        cmocka_unit_test(test_nothing_overlaps),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
