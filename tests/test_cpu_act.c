/* tests/test_cpu_act.c - quantised activations: the formula, the side arrays, odd lengths, broken values; every level
 * gives the same bytes as the scalar one. */
#include "base/half.h"
#include "base/mem.h"
#include "cpu/act.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t state = 88172645463325252u;

static float rnd(float max) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((float)(state >> 48) / 32768.0f - 1.0f) * max;
}

/* Rows with a gap between them; some blocks are zero, tiny, subnormal or hold exact halves. */
static float *make_rows(uint32_t n_tok, size_t stride) {
    float *x = nib_alloc(n_tok * stride, sizeof *x);
    for (size_t i = 0; i < n_tok * stride; i++) {
        unsigned kind = (unsigned)(i / 32 % 7);
        x[i] = kind == 1   ? 0.0f
               : kind == 2 ? rnd(1e-37f)
               : kind == 3 ? rnd(1e-42f)
               : kind == 4 ? (i % 32 ? (float)(i % 16) + 0.5f : 127.0f)
               : kind == 5 ? rnd(3e38f)
                           : rnd(4.0f);
    }
    return x;
}

typedef struct filled {
    nib_cpu_act act;
    uint8_t *memory;
    size_t n_bytes;
} filled;

static filled fill(const char *level, const float *x, size_t stride, uint32_t n_tok, uint32_t n_cols) {
    filled f = {.n_bytes = nib_cpu_act_bytes(n_tok, n_cols, NIB_ACT_Q32 | NIB_ACT_Q256)};
    const nib_cpu_isa *isa;
    assert_int_equal(nib_cpu_isa_find(&isa, level, NULL), NIB_OK);
    f.memory = nib_pages_new(f.n_bytes);
    nib_cpu_act_bind(&f.act, f.memory, x, stride, n_tok, n_cols, NIB_ACT_Q32 | NIB_ACT_Q256);
    nib_cpu_act_quantize(isa, &f.act, n_tok / 2, n_tok);
    nib_cpu_act_quantize(isa, &f.act, 0, n_tok / 2);
    return f;
}

static void release(filled *f) {
    nib_pages_free(f->memory, f->n_bytes);
}

/* Code k of token t; n_pad of its form. */
static int code(const filled *f, const int8_t *q, uint32_t n_pad, uint32_t t, uint32_t k) {
    return q[nib_cpu_act_at(&f->act, t, n_pad / 64, 64) + k / 64 * f->act.np * 64 + k % 64];
}

/* Element i of n of token t in a side array. */
#define SIDE(f, array, n, t, i) ((array)[nib_cpu_act_at(&(f)->act, t, n, 1) + (i) * (f)->act.np])
#define PAIR(f, array, n, t, i, e) ((array)[nib_cpu_act_at(&(f)->act, t, n, 2) + (i) * (f)->act.np * 2 + (e)])

/* The codes and the scale of a block, as the header describes them. */
static void check_block(const float *x, uint32_t n, const int *q, float d) {
    float amax = 0;
    for (uint32_t k = 0; k < n; k++) amax = fmaxf(amax, fabsf(x[k]));
    float want = amax / 127.0f;
    if (want < 0x1p-126f) want = 0;
    double along = 0, squares = 0;
    for (uint32_t k = 0; k < n; k++) {
        int c = want > 0 ? (int)nearbyintf(x[k] * (1.0f / want)) : 0;
        assert_in_range(c + 127, 0, 254);
        assert_int_equal(q[k], c);
        along += (double)x[k] * c;
        squares += (double)c * c;
    }
    double nearest = want > 0 ? along / squares : 0;
    if (!(fabs((double)d - nearest) <= 1e-6 * nearest)) fail_msg("scale %g, nearest is %g", (double)d, nearest);
}

static void check_token(const filled *f, const float *row, uint32_t t) {
    const nib_cpu_act_q32 *a = &f->act.q32;
    const nib_cpu_act_q256 *b = &f->act.q256;
    float *x = nib_calloc(b->n_pad, sizeof *x);
    int *q = nib_calloc(b->n_pad, sizeof *q);
    if (row) memcpy(x, row, f->act.n_cols * sizeof *x);
    for (uint32_t j = 0; j < a->n_pad / 32; j++) {
        int half[2] = {0, 0};
        for (uint32_t k = 0; k < 32; k++) {
            q[k] = code(f, a->q, a->n_pad, t, 32 * j + k);
            half[k % 4 / 2] += q[k];
        }
        int sum = half[0] + half[1];
        check_block(x + 32 * j, 32, q, SIDE(f, a->d, a->n_pad / 32, t, j));
        assert_true(SIDE(f, a->sum, a->n_pad / 32, t, j) == (float)sum);
        assert_int_equal(SIDE(f, a->start8, a->n_pad / 32, t, j), -8 * sum);
        assert_int_equal(SIDE(f, a->start16, a->n_pad / 32, t, j), -16 * sum);
        assert_int_equal(SIDE(f, a->start128, a->n_pad / 32, t, j), -128 * sum);
        for (size_t e = 0; e < 2; e++) assert_int_equal(PAIR(f, a->half16, a->n_pad / 32, t, j, e), -16 * half[e]);
    }
    for (uint32_t j = 0; j < b->n_pad; j += 256) {
        for (uint32_t k = 0; k < 256; k++) q[j + k] = code(f, b->q, b->n_pad, t, j + k);
        check_block(x + j, 256, q + j, SIDE(f, b->d, b->n_pad / 256, t, j / 256));
    }
    for (uint32_t j = 0; j < b->n_pad / 8; j++) { /* each block of 8 columns adds to the sums that it closes */
        int s[4] = {0}, half[2] = {0};            /* of the last 8, 16, 32 columns */
        for (uint32_t w = 0; w < 3; w++)
            for (uint32_t k = 8 * j / (8u << w) * (8u << w); k < 8 * j + 8; k++) s[w] += q[k];
        for (uint32_t k = j / 2 * 16; k < 8 * j + 8; k++) half[k % 4 / 2] += q[k];
        assert_int_equal(SIDE(f, b->start32, b->n_pad / 8, t, j), -32 * s[0]);
        if (j % 2 == 0) continue;
        assert_int_equal(SIDE(f, b->start16, b->n_pad / 16, t, j / 2), -16 * s[1]);
        assert_int_equal(PAIR(f, b->sum16, b->n_pad / 32, t, j / 4, j / 2 % 2), s[1]);
        for (size_t e = 0; e < 2; e++) assert_int_equal(PAIR(f, b->half32, b->n_pad / 16, t, j / 2, e), -32 * half[e]);
        if (j % 4 != 3) continue;
        assert_int_equal(SIDE(f, b->start8, b->n_pad / 32, t, j / 4), -8 * s[2]);
        assert_int_equal(PAIR(f, b->sum32, b->n_pad / 64, t, j / 8, j / 4 % 2), s[2]);
    }
    nib_free(x);
    nib_free(q);
}

static const uint32_t lengths[] = {1, 31, 32, 33, 64, 65, 100, 256, 257, 576, 896};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };

static void test_formula(void **unused) {
    (void)unused;
    for (int i = 0; i < N_LENGTHS; i++)
        for (uint32_t n_tok = 1; n_tok <= 18; n_tok++) {
            float *x = make_rows(n_tok, lengths[i] + 5);
            filled f = fill("scalar", x, lengths[i] + 5, n_tok, lengths[i]);
            for (uint32_t t = 0; t < n_tok; t++) check_token(&f, x + t * (lengths[i] + 5), t);
            if (n_tok > 1) /* what a kernel of four tokens reads behind the last */
                for (uint32_t t = n_tok; t % 4; t++) check_token(&f, NULL, t);
            release(&f);
            nib_free(x);
        }
}

static void test_levels_agree(void **unused) {
    (void)unused;
    for (int i = 0; i < N_LENGTHS; i++)
        for (uint32_t n_tok = 1; n_tok <= 18; n_tok++) {
            float *x = make_rows(n_tok, lengths[i] + 5);
            filled want = fill("scalar", x, lengths[i] + 5, n_tok, lengths[i]);
            for (const char *const *name = nib_isa_names(); *name; name++) {
                if (!nib_isa_usable(*name)) continue;
                filled got = fill(*name, x, lengths[i] + 5, n_tok, lengths[i]);
                assert_memory_equal(want.memory, got.memory, want.n_bytes);
                release(&got);
            }
            release(&want);
            nib_free(x);
        }
}

/* One bad value makes the scale of its block NaN, and nothing else. */
static void test_broken_values(void **unused) {
    (void)unused;
    const float broken[] = {INFINITY, -INFINITY, NAN, -NAN};
    for (size_t i = 0; i < 4; i++)
        for (const char *const *name = nib_isa_names(); *name; name++) {
            if (!nib_isa_usable(*name)) continue;
            float *x = make_rows(3, 600);
            x[600 + 70] = broken[i];
            filled f = fill(*name, x, 600, 3, 600);
            for (uint32_t t = 0; t < 3; t++) {
                for (uint32_t j = 0; j < 20; j++)
                    assert_int_equal(isnan(SIDE(&f, f.act.q32.d, 20, t, j)) != 0, t == 1 && j == 2);
                for (uint32_t j = 0; j < 3; j++)
                    assert_int_equal(isnan(SIDE(&f, f.act.q256.d, 3, t, j)) != 0, t == 1 && j == 0);
            }
            for (uint32_t k = 64; k < 96; k++) assert_int_equal(code(&f, f.act.q32.q, 640, 1, k), 0);
            for (uint32_t k = 0; k < 256; k++) assert_int_equal(code(&f, f.act.q256.q, 768, 1, k), 0);
            release(&f);
            nib_free(x);
        }
}

/* Fewer tokens never need more memory, so that a buffer for the largest batch serves all. */
static void test_bytes_grow(void **unused) {
    (void)unused;
    for (uint32_t n = 1; n < 70; n++)
        assert_true(nib_cpu_act_bytes(n, 896, NIB_ACT_Q32) <= nib_cpu_act_bytes(n + 1, 896, NIB_ACT_Q32));
    assert_true(nib_cpu_act_bytes(UINT32_MAX, 64, NIB_ACT_Q32) == SIZE_MAX);
    assert_true(nib_cpu_act_bytes(1, UINT32_MAX, NIB_ACT_Q32) == SIZE_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_levels_agree),
        cmocka_unit_test(test_broken_values),
        cmocka_unit_test(test_bytes_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
