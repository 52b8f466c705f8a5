/* tests/test_cpu_matrix.c - packed matrices and their products: the scalar level against the contract worked out from
 * the file's blocks, every other level against the scalar one bit for bit, and packed rows against dequantize. */
#include "base/half.h"
#include "base/mem.h"
#include "cpu/product.h"
#include "support/level.h"
#include "support/matrix_naive.h"
#include "support/slow.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static uint8_t *rnd_rows(const nib_quant_type *type, uint32_t n_rows, uint32_t n_cols) {
    size_t n = (size_t)n_rows * (n_cols / type->block_size);
    uint8_t *rows = nib_alloc(n, type->block_bytes);
    for (size_t i = 0; i < n; i++) naive_rnd_block(type, rows + i * type->block_bytes, naive_rnd() % 8);
    return rows;
}

/* Rows of activations; every fourth row quantises to codes of +-127 alone. */
static float *rnd_acts(uint32_t n_tok, uint32_t n_cols) {
    float *x = nib_alloc((size_t)n_tok * n_cols, sizeof *x);
    for (size_t i = 0; i < (size_t)n_tok * n_cols; i++) {
        unsigned t = (unsigned)(i / n_cols);
        x[i] = t % 4 == 1 ? 1.5f : t % 8 == 3 ? (i & 1 ? 1.5f : -1.5f) : naive_rnd_float(3.0f);
    }
    return x;
}

/* ---- one product */

typedef struct product {
    nib_cpu_matrix m;
    uint8_t *rows;
    float *x;
    void *act;
    uint32_t n_tok;
} product;

static product product_new(const nib_quant_type *type, uint32_t n_rows, uint32_t n_cols, uint32_t n_tok) {
    product p = {.n_tok = n_tok, .rows = rnd_rows(type, n_rows, n_cols), .x = rnd_acts(n_tok, n_cols)};
    nib_error err;
    assert_int_equal(nib_cpu_matrix_init(&p.m, type, n_rows, n_cols, &err), NIB_OK);
    assert_int_equal(p.m.group_bytes % 64, 0);
    p.m.data = nib_pages_new(nib_cpu_matrix_bytes(&p.m));
    memset(p.m.data, 0xff, nib_cpu_matrix_bytes(&p.m)); /* padding must be written */
    nib_cpu_matrix_pack(&p.m, 0, p.m.n_groups, p.rows);
    p.act = nib_pages_new(nib_cpu_act_bytes(n_tok, n_cols, p.m.act_form));
    return p;
}

static void product_free(product *p) {
    nib_pages_free(p->act, nib_cpu_act_bytes(p->n_tok, p->m.n_cols, p->m.act_form));
    nib_pages_free(p->m.data, nib_cpu_matrix_bytes(&p->m));
    nib_free(p->rows);
    nib_free(p->x);
}

/* With a leading dimension of n_rows + 3 and the groups split at `split`; the caller frees. */
static float *product_run(const product *p, const nib_cpu_isa *isa, uint32_t split) {
    size_t ldo = p->m.n_rows + 3;
    float *out = nib_alloc(p->n_tok * ldo, sizeof *out);
    memset(out, 0xaa, p->n_tok * ldo * sizeof *out);
    nib_cpu_act act;
    nib_cpu_act_bind(&act, p->act, p->x, p->m.n_cols, p->n_tok, p->m.n_cols, p->m.act_form);
    nib_cpu_act_quantize(isa, &act, p->n_tok / 2, p->n_tok);
    nib_cpu_act_quantize(isa, &act, 0, p->n_tok / 2);
    size_t n_scratch = nib_cpu_product_scratch(isa, &p->m, p->n_tok);
    void *scratch = n_scratch ? nib_pages_new(n_scratch) : NULL;
    const nib_cpu_product run = {isa, &p->m, &act, out, ldo, 0, scratch};
    nib_cpu_product_run(&run, split, p->m.n_groups);
    nib_cpu_product_run(&run, 0, split);
    if (scratch) nib_pages_free(scratch, n_scratch);
    for (uint32_t t = 0; t < p->n_tok; t++)
        for (size_t r = p->m.n_rows; r < ldo; r++) assert_int_equal(nib_f32_bits(out[t * ldo + r]), 0xaaaaaaaa);
    return out;
}

/* Bits, except that a NaN equals a NaN: which operand's payload survives is up to the machine. */
static bool same(float a, float b) {
    return nib_f32_bits(a) == nib_f32_bits(b) || (isnan(a) && isnan(b));
}

static size_t compare(const product *p, const nib_cpu_isa *isa, const float *want, const float *got) {
    size_t ldo = p->m.n_rows + 3;
    for (uint32_t t = 0; t < p->n_tok; t++)
        for (uint32_t r = 0; r < p->m.n_rows; r++)
            if (!same(want[t * ldo + r], got[t * ldo + r]))
                fail_msg("%s %s, %u rows, %u columns, %u tokens: row %u token %u is %a, expected %a", isa->name,
                         p->m.type->name, p->m.n_rows, p->m.n_cols, p->n_tok, r, t, (double)got[t * ldo + r],
                         (double)want[t * ldo + r]);
    return (size_t)p->n_tok * p->m.n_rows;
}

/* ---- tests */

static const uint32_t cols32[] = {32, 64, 96, 160, 256, 576, 896}, cols256[] = {256, 512, 768, 1280};
static const uint32_t cols1[] = {1, 2, 3, 7, 33, 64, 129};

static size_t cols_of(const nib_quant_type *type, const uint32_t **cols) {
    *cols = type->block_size == 1 ? cols1 : type->block_size == 32 ? cols32 : cols256;
    return type->block_size == 256 ? sizeof cols256 / sizeof *cols256 : 7;
}

static void test_scalar_is_the_contract(void **unused) {
    (void)unused;
    const nib_cpu_isa *scalar = nib_cpu_isa_scalar();
    size_t n = 0;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        const uint32_t *cols;
        size_t n_cols = cols_of(type, &cols);
        for (size_t c = 0; c < n_cols; c++)
            for (uint32_t n_rows = 1; n_rows <= 35; n_rows += 17)
                for (uint32_t n_tok = 1; n_tok <= 19; n_tok += 9) {
                    product p = product_new(type, n_rows, cols[c], n_tok);
                    float *got = product_run(&p, scalar, p.m.n_groups / 2);
                    size_t ldo = n_rows + 3, row_bytes = cols[c] / type->block_size * type->block_bytes;
                    for (uint32_t t = 0; t < n_tok; t++)
                        for (uint32_t r = 0; r < n_rows; r++, n++) {
                            float want =
                                naive_product(type, p.rows + r * row_bytes, p.x + (size_t)t * cols[c], cols[c]);
                            if (!same(want, got[t * ldo + r]))
                                fail_msg("%s, %u columns: row %u token %u of %u is %a, expected %a", type->name,
                                         cols[c], r, t, n_tok, (double)got[t * ldo + r], (double)want);
                        }
                    nib_free(got);
                    product_free(&p);
                }
    }
    print_message("%zu products equal the contract\n", n);
}

static void test_levels_agree(void **unused) {
    (void)unused;
    static const uint32_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
    static const uint32_t toks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 33};
    const nib_cpu_isa *scalar = nib_cpu_isa_scalar();
    size_t n = 0, n_cases = 0;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        const uint32_t *cols;
        size_t n_cols = cols_of(type, &cols);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i += IS_SANITIZED ? 3 : IS_EMULATED ? 2 : 1)
            for (size_t j = 0; j < sizeof toks / sizeof *toks; j++) {
                product p = product_new(type, rows[i], cols[(i * 5 + j) % n_cols], toks[j]);
                float *want = product_run(&p, scalar, 0);
                for (const char *const *name = nib_isa_names(); *name; name++) {
                    const nib_cpu_isa *isa;
                    if (!IS_WANTED(*name) || !nib_isa_usable(*name)) continue;
                    assert_int_equal(nib_cpu_isa_find(&isa, *name, NULL), NIB_OK);
                    for (uint32_t split = 0; split <= p.m.n_groups; split += 2, n_cases++) {
                        float *got = product_run(&p, isa, split);
                        n += compare(&p, isa, want, got);
                        nib_free(got);
                    }
                }
                nib_free(want);
                product_free(&p);
            }
    }
    for (const char *const *name = nib_isa_names(); *name; name++)
        if (!nib_isa_usable(*name)) print_message("%s: not on this machine\n", *name);
    print_message("%zu cases, %zu products equal on all levels\n", n_cases, n);
}

/* What matrix units do beyond that: slices of columns, chunks of groups, one and two panels, more tokens than they hold. */
static void test_levels_agree_on_large_products(void **unused) {
    (void)unused;
    static const struct {
        uint32_t rows, cols, toks;
    } shapes[] = {{149, 2304, 24}, {33, 1024, 48}, {129, 1280, 40}, {17, 3072, 33}, {40, 256, 600}};
    const nib_cpu_isa *scalar = nib_cpu_isa_scalar();
    size_t n = 0;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            /* The scalar level takes seconds for the larger ones. */
            if (IS_EMULATED && shapes[i].rows * shapes[i].cols * shapes[i].toks > 2000000) continue;
            product p = product_new(nib_quant_type_at(id), shapes[i].rows, shapes[i].cols, shapes[i].toks);
            float *want = product_run(&p, scalar, 0);
            for (const char *const *name = nib_isa_names(); *name; name++) {
                const nib_cpu_isa *isa;
                if (!IS_WANTED(*name) || nib_cpu_isa_find(&isa, *name, NULL) != NIB_OK) continue;
                float *got = product_run(&p, isa, 1);
                n += compare(&p, isa, want, got);
                nib_free(got);
            }
            nib_free(want);
            product_free(&p);
        }
    print_message("%zu products equal on all levels\n", n);
}

/* A scale that is NaN or infinite, and activations with such values, reach the outputs of their row or token. */
static void test_broken_numbers_stay_visible(void **unused) {
    (void)unused;
    const float broken[] = {INFINITY, -INFINITY, NAN};
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        for (int kind = 0; kind < 6; kind++) {
            product p = product_new(type, 20, 512, 9);
            float b = broken[kind % 3];
            if (kind < 3)
                p.x[4 * 512 + 77] = b;
            else if (naive_fields_of[id].d < 0 && id != NIB_QUANT_F32) {
                product_free(&p);
                continue;
            } else if (id == NIB_QUANT_F32)
                memcpy(p.rows + (7 * 512 + 5) * 4, &b, 4);
            else
                naive_put16(p.rows + 7 * (512 / type->block_size) * type->block_bytes + naive_fields_of[id].d,
                            nib_f16_from_f32(b));
            nib_cpu_matrix_pack(&p.m, 0, p.m.n_groups, p.rows);
            float *want = product_run(&p, nib_cpu_isa_scalar(), 0);
            for (uint32_t t = 0; t < 9; t++)
                for (uint32_t r = 0; r < 20; r++)
                    if (kind < 3 ? t == 4 && type->block_size > 1 : r == 7)
                        assert_false(isfinite(want[t * 23 + r]));
                    else if (kind >= 3 || t != 4)
                        assert_true(isfinite(want[t * 23 + r]));
            for (const char *const *name = nib_isa_names(); *name; name++) {
                const nib_cpu_isa *isa;
                if (!IS_WANTED(*name) || nib_cpu_isa_find(&isa, *name, NULL) != NIB_OK) continue;
                float *got = product_run(&p, isa, 1);
                compare(&p, isa, want, got);
                nib_free(got);
            }
            nib_free(want);
            product_free(&p);
        }
    }
}

static void test_rows_are_dequantized(void **unused) {
    (void)unused;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        const uint32_t *cols;
        size_t n_cols = cols_of(type, &cols);
        for (size_t c = 0; c < n_cols; c++) {
            product p = product_new(type, 37, cols[c], 1);
            float *want = nib_alloc(cols[c], sizeof *want), *got = nib_alloc(cols[c], sizeof *got);
            for (uint32_t r = 0; r < 37; r++) {
                size_t row_bytes = cols[c] / type->block_size * type->block_bytes;
                type->dequantize(p.rows + r * row_bytes, want, cols[c]);
                nib_cpu_matrix_row(&p.m, r, got);
                assert_memory_equal(want, got, cols[c] * sizeof *want);
            }
            nib_free(want);
            nib_free(got);
            product_free(&p);
        }
    }
}

/* Every exponent of MXFP4, where the smallest scales are subnormal. */
static void test_mxfp4_scales(void **unused) {
    (void)unused;
    const nib_quant_type *type = nib_quant_type_at(NIB_QUANT_MXFP4);
    product p = product_new(type, 256, 32, 1);
    for (uint32_t r = 0; r < 256; r++) p.rows[r * 17] = (uint8_t)r;
    nib_cpu_matrix_pack(&p.m, 0, p.m.n_groups, p.rows);
    for (uint32_t r = 0; r < 256; r++) {
        float want[32], got[32];
        type->dequantize(p.rows + r * 17, want, 32);
        nib_cpu_matrix_row(&p.m, r, got);
        assert_memory_equal(want, got, sizeof want);
    }
    product_free(&p);
}

static void test_init_refuses(void **unused) {
    (void)unused;
    nib_cpu_matrix m;
    nib_error err;
    const nib_quant_type *q4 = nib_quant_type_at(NIB_QUANT_Q4_0), *f32 = nib_quant_type_at(NIB_QUANT_F32);
    assert_int_equal(nib_cpu_matrix_init(&m, q4, 4, 48, &err), NIB_E_FORMAT);
    assert_int_equal(nib_cpu_matrix_init(&m, q4, 0, 64, &err), NIB_E_FORMAT);
    assert_int_equal(nib_cpu_matrix_init(&m, q4, 4, 0, &err), NIB_E_FORMAT);
    assert_int_equal(nib_cpu_matrix_init(&m, f32, UINT32_MAX, UINT32_MAX, &err), NIB_E_LIMIT);
    assert_true(nib_cpu_act_bytes(UINT32_MAX, UINT32_MAX, NIB_ACT_Q32) == SIZE_MAX);
}

static void test_levels_by_name(void **unused) {
    (void)unused;
    const nib_cpu_isa *isa;
    nib_error err;
    assert_int_equal(nib_cpu_isa_find(&isa, NULL, &err), NIB_OK);
    assert_true(isa->usable());
    assert_int_equal(nib_cpu_isa_find(&isa, "scalar", &err), NIB_OK);
    assert_ptr_equal(isa, nib_cpu_isa_scalar());
    assert_int_equal(nib_cpu_isa_find(&isa, "z80", &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "scalar"));
    assert_true(nib_isa_usable("scalar"));
    assert_false(nib_isa_usable("z80"));
    assert_false(nib_isa_usable(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_by_name),         cmocka_unit_test(test_init_refuses),
        cmocka_unit_test(test_rows_are_dequantized),   cmocka_unit_test(test_mxfp4_scales),
        cmocka_unit_test(test_scalar_is_the_contract), cmocka_unit_test(test_broken_numbers_stay_visible),
        cmocka_unit_test(test_levels_agree),
        cmocka_unit_test(test_levels_agree_on_large_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
