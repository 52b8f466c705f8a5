/* tests/test_cpu_q16.c - attention over pages of 16-bit codes: every level gives the bits of the scalar one, which agrees with double
 * precision; sums are exact where they are largest; what nobody sees may be anything; what is broken stays visible. */
#include "cpu/isa.h"
#include "cpu/kv.h"
#include "cpu/q16.h"

#include "base/math.h"
#include "support/blocks.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define POS NIB_PAGE_POS
#define MAX_Q 40
#define MAX_DIM 260

static const size_t dims[] = {1, 2, 7, 8, 15, 16, 31, 32, 64, 65, 72, 80, 96, 128, 192, 256};
static const size_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 40};
#define EACH(list, x) for (size_t i_##x = 0, x; i_##x < sizeof list / sizeof *list && (x = list[i_##x], true); i_##x++)

static uint64_t rng = 11;

static void fill(float *x, size_t n, float scale) {
    for (size_t i = 0; i < n; i++) x[i] = blocks_normal(&rng) * scale;
}

static float uniform(void) {
    return (float)(blocks_random(&rng) % 10000) / 10000;
}

/* One page, queries and weights; `first` and `last`: the positions that are seen. */
typedef struct page_case {
    size_t n, dim, first, last;
    _Alignas(64) unsigned char k[POS * (MAX_DIM + 1) * 2 + POS * 4], v[POS * (MAX_DIM + 1) * 2 + POS * 4];
    float keys[POS][MAX_DIM], values[POS][MAX_DIM], q[MAX_Q][MAX_DIM], p[MAX_Q * POS], corr[MAX_Q], acc[MAX_Q][MAX_DIM], scale[MAX_Q];
    int16_t codes[MAX_Q * MAX_DIM];
} page_case;

static const nib_cpu_kv_type *q16(void) {
    const nib_cpu_kv_type *type;
    assert_int_equal(nib_cpu_kv_type_find(&type, "q16", NULL), NIB_OK);
    return type;
}

static const nib_cpu_ops *scalar(void) {
    return nib_cpu_isa_scalar()->ops;
}

static void set_queries(page_case *c) {
    for (size_t j = 0; j < c->n; j++)
        c->scale[j] = nib_q16_query(scalar(), c->q[j], c->dim, c->codes + j * nib_q16_stride(c->dim));
}

/* Numbers of many magnitudes: weights near and far from the largest, positions with small values, which attend most. */
static void make_case(page_case *c, size_t n, size_t dim, size_t first, size_t last) {
    memset(c->k, 0xff, sizeof c->k), memset(c->v, 0xff, sizeof c->v); /* as scales: NaN */
    c->n = n, c->dim = dim, c->first = first, c->last = last;
    memset(c->p, 0, sizeof c->p);
    for (size_t i = first; i < last; i++) {
        fill(c->keys[i], dim, i % 5 == 0 ? 20 : 1), fill(c->values[i], dim, i % 7 == 0 ? 0.01f : 1);
        if (i % 11 == 3) memset(c->values[i], 0, sizeof c->values[i]);
        q16()->store_key(c->k, i, c->keys[i], dim, scalar());
        q16()->store_value(c->v, i, c->values[i], dim, scalar());
        for (size_t j = 0; j < n; j++) c->p[j * POS + i] = j % 9 == 8 || last - i <= j % 4 ? 0 : /* some see less, some nothing */
                                                           j % 3 == 0 ? uniform() : nib_expf(-30 * uniform());
    }
    for (size_t j = 0; j < n; j++) fill(c->q[j], dim, 2), fill(c->acc[j], dim, 1), c->corr[j] = uniform();
    set_queries(c);
}

static void run_scores(const nib_cpu_isa *isa, const page_case *c, float *s) {
    nib_cpu_page_queries queries = {.n = c->n, .codes = c->codes, .scale = c->scale, .next = c->v};
    isa->q16->scores(c->k, &queries, c->dim, s);
}

static void run_values(const nib_cpu_isa *isa, page_case *c) {
    float *acc[MAX_Q];
    for (size_t j = 0; j < c->n; j++) acc[j] = c->acc[j];
    nib_cpu_page_sums sums = {.n = c->n, .first = c->first, .last = c->last, .p = c->p, .corr = c->corr, .acc = acc, .next = c->k};
    isa->q16->values(c->v, &sums, c->dim);
}

static void same(const char *level, const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (nib_f32_bits(a[i]) != nib_f32_bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]))
            fail_msg("%s: number %zu of %zu: %a and %a", level, i, n, (double)a[i], (double)b[i]);
}

/* As the scalar level does it, but for what is outside `first` … `last`. */
static void compare(const nib_cpu_isa *isa, page_case *c) {
    static page_case other;
    static float a[MAX_Q * POS], b[MAX_Q * POS];
    run_scores(nib_cpu_isa_scalar(), c, a), run_scores(isa, c, b);
    for (size_t j = 0; j < c->n; j++) same(isa->name, a + j * POS + c->first, b + j * POS + c->first, c->last - c->first);
    other = *c;
    run_values(nib_cpu_isa_scalar(), c), run_values(isa, &other);
    for (size_t j = 0; j < c->n; j++) same(isa->name, c->acc[j], other.acc[j], c->dim);
}

static void each_level(void (*body)(const nib_cpu_isa *isa)) {
    const nib_cpu_isa *isa;
    for (const char *const *name = nib_isa_names(); *name; name++)
        if (nib_isa_usable(*name)) {
            assert_int_equal(nib_cpu_isa_find(&isa, *name, NULL), NIB_OK);
            body(isa);
        }
}

static void compare_shapes(const nib_cpu_isa *isa) {
    static page_case c;
    EACH(dims, dim) {
        EACH(counts, n) {
            make_case(&c, n, dim, 0, POS), compare(isa, &c);
            make_case(&c, n, dim, n % 5, POS - n % 7), compare(isa, &c);
            make_case(&c, n, dim, n % 32, n % 32 + 1), compare(isa, &c);
        }
    }
}

static void compare_rows(const nib_cpu_isa *isa) {
    static const float odd[] = {0, -0.0f, 1e-40f, 1e-31f, 3e38f, INFINITY, -INFINITY, NAN};
    float x[MAX_DIM];
    int16_t a[2 * MAX_DIM], b[2 * MAX_DIM];
    EACH(dims, n) {
        for (size_t at = 0; at < n; at++)
            for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
                fill(x, n, 1), x[at] = odd[k];
                float top = scalar()->top(x, n), found = isa->ops->top(x, n), inverse;
                same(isa->name, &top, &found, 1);
                nib_q16_scale(top, NIB_Q16_VALUE, &inverse);
                if (inverse == 0) continue;
                for (size_t stride = 1; stride <= 2; stride++) {
                    memset(a, 1, sizeof a), memset(b, 1, sizeof b);
                    scalar()->codes(x, inverse, a, stride, n), isa->ops->codes(x, inverse, b, stride, n);
                    assert_memory_equal(a, b, sizeof a);
                }
            }
        for (size_t i = 0; i < n; i++) x[i] = (float)(int)(i % 17) - 8.5f; /* halves: to even */
        scalar()->codes(x, 1, a, 1, n), isa->ops->codes(x, 1, b, 1, n);
        assert_memory_equal(a, b, n * sizeof *a);
        assert_int_equal(a[0], -8);
    }
}

/* Vectors that hold infinity or NaN, queries too; the bits of NaN are nobody's concern. */
static void compare_broken(const nib_cpu_isa *isa) {
    static page_case c;
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < POS; i += 9) {
            make_case(&c, 5, 64, 0, POS);
            c.keys[i][17] = c.values[i][33] = odd[k];
            q16()->store_key(c.k, i, c.keys[i], 64, scalar()), q16()->store_value(c.v, i, c.values[i], 64, scalar());
            c.q[3][5] = odd[k], set_queries(&c);
            for (size_t j = 0; j < 5; j++) c.p[j * POS + i] = 0.5f;
            compare(isa, &c);
            static float s[MAX_Q * POS];
            run_scores(isa, &c, s);
            for (size_t j = 0; j < 5; j++) assert_true(isnan(s[j * POS + i]));
            for (size_t at = 0; at < POS; at++) assert_true(isnan(s[3 * POS + at]));
            for (size_t d = 0; d < 64; d++) assert_true(isnan(c.acc[1][d]));
        }
}

static void test_levels(void **state) {
    (void)state;
    each_level(compare_shapes);
    each_level(compare_rows);
    each_level(compare_broken);
}

static void near(double found, double wanted, double most) {
    if (!(fabs(found - wanted) <= most)) fail_msg("%.9g, expected %.9g within %.3g", found, wanted, most);
}

static double top_of(const float *x, size_t n) {
    double top = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs((double)x[i]) > top) top = fabs((double)x[i]);
    return top;
}

/* Each product errs by half a step of one times the other; steps are the top divided by the largest code. */
static void test_scalar_is_right(void **state) {
    (void)state;
    static page_case c;
    static float s[MAX_Q * POS];
    static double want[MAX_Q][MAX_DIM];
    EACH(dims, dim) {
        make_case(&c, 7, dim, 3, 30);
        run_scores(nib_cpu_isa_scalar(), &c, s);
        for (size_t j = 0; j < c.n; j++)
            for (size_t i = c.first; i < c.last; i++) {
                double sum = 0;
                for (size_t d = 0; d < dim; d++) sum += (double)c.q[j][d] * (double)c.keys[i][d];
                near((double)s[j * POS + i], sum, 1.01 * (double)dim * top_of(c.q[j], dim) * top_of(c.keys[i], dim) / 5792);
            }
        double most[MAX_Q];
        for (size_t j = 0; j < c.n; j++) {
            most[j] = 1e-6;
            for (size_t d = 0; d < dim; d++) want[j][d] = (double)c.acc[j][d] * (double)c.corr[j];
            double top = 0, tops = 0;
            for (size_t i = c.first; i < c.last; i++) {
                double w = (double)c.p[j * POS + i];
                double most_here = w * top_of(c.values[i], dim);
                tops += most_here;
                if (most_here > top) top = most_here;
                for (size_t d = 0; d < dim; d++) want[j][d] += w * (double)c.values[i][d];
            }
            most[j] += 0.51 / 8191 * (tops + 32 * top);
        }
        run_values(nib_cpu_isa_scalar(), &c);
        for (size_t j = 0; j < c.n; j++)
            for (size_t d = 0; d < dim; d++) near((double)c.acc[j][d], want[j][d], most[j]);
    }
}

/* All codes at their largest, of one sign and of both: 64 * 5792^2 and 32 * 8191^2 must fit. */
static void sum_largest(const nib_cpu_isa *isa) {
    static page_case c;
    static float s[MAX_Q * POS];
    for (int sign = -1; sign <= 1; sign += 2) {
        memset(&c, 0, sizeof c);
        c.n = 17, c.dim = 128, c.last = POS;
        for (size_t i = 0; i < POS; i++) {
            for (size_t d = 0; d < 128; d++) c.keys[i][d] = c.values[i][d] = (float)sign * 4096.0f;
            q16()->store_key(c.k, i, c.keys[i], 128, scalar()), q16()->store_value(c.v, i, c.values[i], 128, scalar());
            for (size_t j = 0; j < c.n; j++) c.p[j * POS + i] = 1;
        }
        for (size_t j = 0; j < c.n; j++)
            for (size_t d = 0; d < 128; d++) c.q[j][d] = 1;
        set_queries(&c), run_scores(isa, &c, s), run_values(isa, &c);
        for (size_t j = 0; j < c.n; j++) {
            for (size_t i = 0; i < POS; i++) near((double)s[j * POS + i], sign * 4096.0 * 128, 0.5);
            for (size_t d = 0; d < 128; d++) near((double)c.acc[j][d], sign * 4096.0 * 32, 0.1);
        }
    }
}

/* What comes out for a query does not depend on the others. */
static void run_alone(const nib_cpu_isa *isa) {
    static page_case all, one, group;
    static float s[MAX_Q * POS], t[POS];
    make_case(&all, 23, 96, 0, POS);
    run_scores(isa, &all, s);
    group = all, run_values(isa, &group);
    for (size_t j = 0; j < all.n; j++) {
        one = all, one.n = 1;
        memcpy(one.codes, all.codes + j * 96, 96 * sizeof *one.codes), one.scale[0] = all.scale[j], one.corr[0] = all.corr[j];
        memcpy(one.p, all.p + j * POS, POS * sizeof *one.p), memcpy(one.acc[0], all.acc[j], sizeof one.acc[0]);
        run_scores(isa, &one, t), run_values(isa, &one);
        same(isa->name, s + j * POS, t, POS);
        same(isa->name, group.acc[j], one.acc[0], 96);
    }
}

static void test_largest_sums(void **state) {
    (void)state;
    each_level(sum_largest);
}

static void test_queries_are_independent(void **state) {
    (void)state;
    each_level(run_alone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_scalar_is_right),
        cmocka_unit_test(test_largest_sums),
        cmocka_unit_test(test_queries_are_independent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
