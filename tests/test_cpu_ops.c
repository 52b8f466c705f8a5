/* tests/test_cpu_ops.c - vector operations: every level gives the bits of the scalar one, on odd sizes and odd values;
 * and the scalar one agrees with double precision. */
#include "cpu/isa.h"
#include "cpu/kv.h"
#include "cpu/ops.h"

#include "base/math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MAX 640

static uint64_t rng_state = 88172645463325252u;
static float uniform(void) {
    rng_state ^= rng_state << 13, rng_state ^= rng_state >> 7, rng_state ^= rng_state << 17;
    return (float)((double)(rng_state >> 11) * 0x1p-53 * 2 - 1);
}

static void fill(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = uniform() * scale;
}

static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 80, 96, 127, 128, 255, 256, 576, 639};
#define EACH_SIZE(n) for (size_t k_ = 0, n; k_ < sizeof sizes / sizeof *sizes && (n = sizes[k_], true); k_++)

/* Runs `body` for each usable level but scalar; `o` is its table, `s` the scalar one. */
static void each_level(void (*body)(const nib_cpu_ops *o, const nib_cpu_ops *s)) {
    const nib_cpu_isa *isa;
    for (const char *const *name = nib_isa_names(); *name; name++)
        if (strcmp(*name, "scalar") != 0 && nib_isa_usable(*name)) {
            assert_int_equal(nib_cpu_isa_find(&isa, *name, NULL), NIB_OK);
            body(isa->ops, nib_cpu_isa_scalar()->ops);
        }
}

static void same(const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (nib_f32_bits(a[i]) != nib_f32_bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]))
            fail_msg("element %zu of %zu: %a and %a", i, n, (double)a[i], (double)b[i]);
}

static void row_ops(const nib_cpu_ops *o, const nib_cpu_ops *s) {
    float x[MAX], w[MAX], a[MAX], b[MAX];
    EACH_SIZE(n) {
        static const float scales[] = {1e-30f, 1e-3f, 1.0f, 20.0f, 300.0f, 1e18f};
        for (size_t k = 0; k < 6; k++) {
            fill(x, n, scales[k]), fill(w, n, 2.0f);
            s->rms_norm(x, w, 1e-6f, a, n), o->rms_norm(x, w, 1e-6f, b, n), same(a, b, n);
            s->silu_mul(x, w, a, n), o->silu_mul(x, w, b, n), same(a, b, n);
            s->gelu_mul(x, w, a, n), o->gelu_mul(x, w, b, n), same(a, b, n);
            memcpy(a, x, n * 4), memcpy(b, x, n * 4);
            s->add(a, w, n), o->add(b, w, n), same(a, b, n);
            s->scale(a, 0.37f, n), o->scale(b, 0.37f, n), same(a, b, n);
            size_t even = n & ~(size_t)1;
            s->rope_halves(a, w, even), o->rope_halves(b, w, even), same(a, b, n);
            s->rope_pairs(a, w, even), o->rope_pairs(b, w, even), same(a, b, n);
            memcpy(a, x, n * 4); /* in place */
            s->silu_mul(a, w, a, n), o->silu_mul(x, w, x, n), same(a, x, n);
        }
    }
}

/* Blocks of 32, of which one has a value that is none, or is the best, at any place. */
static void block_max(const nib_cpu_ops *o, const nib_cpu_ops *s) {
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0f, 5.0f};
    float x[96], a[3], b[3];
    for (size_t place = 0; place < 96; place++)
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            fill(x, 96, 3.0f), x[place] = odd[k];
            s->block_max(x, a, 96), o->block_max(x, b, 96), same(a, b, 3);
            float want = x[place / 32 * 32];
            for (size_t i = place / 32 * 32; i < place / 32 * 32 + 32; i++) want = x[i] > want || x[i] != x[i] ? x[i] : want;
            assert_true(a[place / 32] == (odd[k] != odd[k] ? INFINITY : want));
        }
}

static void half_ops(const nib_cpu_ops *o, const nib_cpu_ops *s) {
    static uint16_t h[65536], g[65536];
    static float a[65536], b[65536];
    for (uint32_t i = 0; i < 65536; i++) h[i] = (uint16_t)i;
    s->f32_from_f16(h, a, 65536), o->f32_from_f16(h, b, 65536), same(a, b, 65536);
    for (uint32_t round = 0; round < 40; round++) { /* around every half, ties included, and anywhere */
        for (uint32_t i = 0; i < 65536; i++)
            b[i] = round < 8 ? nib_f32_from_bits(nib_f32_bits(a[i]) + (round << 10)) : ldexpf(uniform(), (int)(round * 2) - 50);
        s->f16_from_f32(b, h, 65536), o->f16_from_f32(b, g, 65536);
        for (uint32_t i = 0; i < 65536; i++)
            if (h[i] != g[i] && b[i] == b[i]) fail_msg("%a: %04x and %04x", (double)b[i], h[i], g[i]);
    }
}

/* A page of a type of cache that holds x, and the same as floats. */
static void make_page(nib_cpu_kv_form form, bool keys, const float *x, size_t dim, unsigned char *page, float *floats) {
    const nib_cpu_kv_type *type;
    static const char *const names[] = {[NIB_CPU_KV_F32] = "f32", [NIB_CPU_KV_F16] = "f16", [NIB_CPU_KV_Q8_0] = "q8_0"};
    const nib_cpu_ops *s = nib_cpu_isa_scalar()->ops;
    assert_int_equal(nib_cpu_kv_type_find(&type, names[form], NULL), NIB_OK);
    for (size_t i = 0; i < 32; i++) (keys ? type->store_key : type->store_value)(page, i, x + i * dim, dim, s);
    const float *loaded = (keys ? type->load_keys : type->load_values)(page, floats, dim, s);
    if (loaded != floats) memcpy(floats, loaded, 32 * dim * sizeof *floats);
}

static void attention_page(const nib_cpu_ops *o, nib_cpu_kv_form form, size_t n_q, size_t dim) {
    static float x[256 * 32], k[256 * 32], v[256 * 32], a[15 * 256], b[15 * 256], q[15 * 256], u[15 * 256], w[15 * 256];
    static _Alignas(64) unsigned char pk[256 * 32 * 4], pv[256 * 32 * 4];
    const nib_cpu_page_ops *f32 = &nib_cpu_isa_scalar()->ops->page[NIB_CPU_KV_F32], *page = &o->page[form];
    const float *queries[15];
    float *acc_u[15], *acc_w[15], corr[15];
    fill(x, dim * 32, 1), make_page(form, true, x, dim, pk, k);
    fill(x, dim * 32, 1), make_page(form, false, x, dim, pv, v);
    fill(q, n_q * dim, 2), fill(u, n_q * dim, 1), memcpy(w, u, sizeof w), fill(corr, n_q, 1);
    for (size_t j = 0; j < n_q; j++) queries[j] = q + j * dim, acc_u[j] = u + j * dim, acc_w[j] = w + j * dim;
    nib_cpu_page_queries all = {.n = n_q, .q = queries, .next = k};
    f32->scores(k, &all, dim, a), all.next = pk, page->scores(pk, &all, dim, b), same(a, b, n_q * 32);
    nib_cpu_page_sums sums = {n_q, n_q % 5, 32 - n_q % 3, a, corr, acc_u, v};
    f32->values(v, &sums, dim);
    sums.acc = acc_w, sums.next = pv;
    page->values(pv, &sums, dim), same(u, w, n_q * dim);
}

static void attention_ops(const nib_cpu_ops *o, const nib_cpu_ops *s) {
    static const size_t dims[] = {1, 2, 7, 8, 16, 31, 32, 64, 72, 80, 96, 128, 256};
    for (size_t e = 0; e < sizeof dims / sizeof *dims; e++)
        for (size_t n_q = 1; n_q <= 15; n_q++)
            for (nib_cpu_kv_form form = 0; form < NIB_CPU_KV_COUNT; form++)
                if (o->page[form].scores && (form != NIB_CPU_KV_Q8_0 || dims[e] % 32 == 0))
                    attention_page(o, form, n_q, dims[e]);
    static float a[40 * 32], b[40 * 32];
    float ma[40], la[40], ca[40], mb[40], lb[40], cb[40];
    for (size_t n = 1; n <= 40; n += 1 + n / 4) {
        fill(a, n * 32, 3), fill(ma, n, 3), fill(la, n, 1);
        for (size_t i = 0; i < n * 32; i++)
            if (i % 32 < i / 32 % 5 || i % 32 >= 32 - i / 32 % 3) a[i] = -INFINITY;
            else if (i % 7 == 0) a[i] -= 80.0f + (float)(i % 11); /* about where exp becomes 0 */
        for (size_t j = 0; j < n; j += 3) ma[j] = -INFINITY, la[j] = 0;
        for (size_t j = 0; n > 20 && j < n; j += 2) a[j * 32 + j * 5 % 32] = NAN; /* does not count as the largest, at any place */
        for (size_t j = 1; n > 20 && j < n; j += 8) a[j * 32 + 31] = NAN, ma[j] = -INFINITY;
        memcpy(b, a, sizeof b), memcpy(mb, ma, sizeof mb), memcpy(lb, la, sizeof lb);
        s->page_softmax(n, a, ma, la, ca), o->page_softmax(n, b, mb, lb, cb);
        same(a, b, n * 32), same(ma, mb, n), same(la, lb, n), same(ca, cb, n);
    }
}

static void test_levels(void **state) {
    (void)state;
    each_level(row_ops);
    each_level(half_ops);
    each_level(block_max);
    each_level(attention_ops);
}

static void near(double found, double wanted, double tolerance) {
    if (!(fabs(found - wanted) <= tolerance * (1 + fabs(wanted)))) fail_msg("%.9g, expected %.9g", found, wanted);
}

static void test_scalar_is_right(void **state) {
    (void)state;
    const nib_cpu_ops *s = nib_cpu_isa_scalar()->ops;
    float x[MAX], w[MAX], y[MAX];
    EACH_SIZE(n) {
        fill(x, n, 3), fill(w, n, 2);
        double sum = 0;
        for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
        s->rms_norm(x, w, 1e-5f, y, n);
        for (size_t i = 0; i < n; i++) near((double)y[i], (double)x[i] / sqrt(sum / (double)n + 1e-5) * (double)w[i], 1e-6);
        s->silu_mul(x, w, y, n);
        for (size_t i = 0; i < n; i++) near((double)y[i], (double)x[i] / (1 + exp(-(double)x[i])) * (double)w[i], 1e-6);
        s->gelu_mul(x, w, y, n);
        for (size_t i = 0; i < n; i++) {
            double g = (double)x[i], t = tanh(0.7978845608028654 * (g + 0.044715 * g * g * g));
            near((double)y[i], 0.5 * g * (1 + t) * (double)w[i], 1e-6);
        }
    }
    float angle[4] = {cosf(0.3f), cosf(0.7f), sinf(0.3f), sinf(0.7f)}, pairs[4] = {1, 0, 0, 1}, halves[4] = {1, 0, 0, 1};
    s->rope_pairs(pairs, angle, 4);
    near((double)pairs[0], cos(0.3), 1e-6), near((double)pairs[1], sin(0.3), 1e-6);
    near((double)pairs[2], -sin(0.7), 1e-6), near((double)pairs[3], cos(0.7), 1e-6);
    s->rope_halves(halves, angle, 4);
    near((double)halves[0], cos(0.3), 1e-6), near((double)halves[2], sin(0.3), 1e-6);
    near((double)halves[1], -sin(0.7), 1e-6), near((double)halves[3], cos(0.7), 1e-6);
}

/* Softmax over three pages is that of all scores at once. */
static void test_online_softmax(void **state) {
    (void)state;
    const nib_cpu_ops *s = nib_cpu_isa_scalar()->ops;
    float scores[96], p[96], v[96 * 4], acc[4] = {0}, m = -INFINITY, l = 0, corr;
    fill(scores, 96, 8), fill(v, 96 * 4, 1);
    memcpy(p, scores, sizeof p);
    double total = 0, want[4] = {0};
    for (size_t i = 0; i < 96; i++) total += exp((double)scores[i]);
    for (size_t i = 0; i < 96; i++)
        for (size_t d = 0; d < 4; d++) want[d] += exp((double)scores[i]) / total * (double)v[i * 4 + d];
    for (size_t page = 0; page < 3; page++) {
        s->page_softmax(1, p + 32 * page, &m, &l, &corr);
        nib_cpu_page_sums sums = {1, 0, 32, p + 32 * page, &corr, (float *[]){acc}, v};
        s->page[NIB_CPU_KV_F32].values(v + 32 * 4 * page, &sums, 4);
    }
    for (size_t d = 0; d < 4; d++) near((double)(acc[d] / l), want[d], 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_scalar_is_right),
        cmocka_unit_test(test_online_softmax),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
