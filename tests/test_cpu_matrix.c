/* tests/test_cpu_matrix.c - packed matrices and their products: the scalar level against the contract worked out from
 * the file's blocks, every other level against the scalar one bit for bit, and packed rows against dequantize. */
#include "base/half.h"
#include "base/mem.h"
#include "cpu/matrix.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* ---- pseudo-random inputs */

static uint64_t state = 88172645463325252u;

static uint32_t rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

static float rnd_float(float max) {
    return ((float)(rnd() & 0xffff) / 32768.0f - 1.0f) * max;
}

static void put16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Where the float16 fields of a block are; -1: none. */
static const struct {
    int d, m;
} fields[NIB_QUANT_COUNT] = {
    [NIB_QUANT_F32] = {-1, -1},  [NIB_QUANT_F16] = {-1, -1},    [NIB_QUANT_BF16] = {-1, -1},  [NIB_QUANT_Q4_0] = {0, -1},
    [NIB_QUANT_Q4_1] = {0, 2},   [NIB_QUANT_Q5_0] = {0, -1},    [NIB_QUANT_Q5_1] = {0, 2},    [NIB_QUANT_Q8_0] = {0, -1},
    [NIB_QUANT_Q2_K] = {80, 82}, [NIB_QUANT_Q3_K] = {108, -1},  [NIB_QUANT_Q4_K] = {0, 2},    [NIB_QUANT_Q5_K] = {0, 2},
    [NIB_QUANT_Q6_K] = {208, -1}, [NIB_QUANT_IQ4_NL] = {0, -1}, [NIB_QUANT_IQ4_XS] = {0, -1}, [NIB_QUANT_MXFP4] = {-1, -1},
};

/* One block of random codes; `kind` 1: all bits zero, 2: all bits one. Scales are always sane numbers. */
static void rnd_block(const nib_quant_type *type, uint8_t *b, unsigned kind) {
    for (uint32_t i = 0; i < type->block_bytes; i++) b[i] = kind == 1 ? 0 : kind == 2 ? 255 : (uint8_t)rnd();
    if (fields[type->id].d >= 0) put16(b + fields[type->id].d, nib_f16_from_f32(rnd_float(0.05f)));
    if (fields[type->id].m >= 0) put16(b + fields[type->id].m, nib_f16_from_f32(rnd_float(0.05f)));
    float f = rnd_float(1.0f);
    if (type->id == NIB_QUANT_F32) memcpy(b, &f, 4);
    if (type->id == NIB_QUANT_F16) put16(b, nib_f16_from_f32(f));
    if (type->id == NIB_QUANT_BF16) put16(b, (uint16_t)(nib_f32_bits(f) >> 16));
    if (type->id == NIB_QUANT_MXFP4) b[0] = (uint8_t)(rnd() % 64 + 96);
}

static uint8_t *rnd_rows(const nib_quant_type *type, uint32_t n_rows, uint32_t n_cols) {
    size_t n = (size_t)n_rows * (n_cols / type->block_size);
    uint8_t *rows = nib_alloc(n, type->block_bytes);
    for (size_t i = 0; i < n; i++) rnd_block(type, rows + i * type->block_bytes, rnd() % 8);
    return rows;
}

/* Rows of activations; every fourth row quantises to codes of +-127 alone. */
static float *rnd_acts(uint32_t n_tok, uint32_t n_cols) {
    float *x = nib_alloc((size_t)n_tok * n_cols, sizeof *x);
    for (size_t i = 0; i < (size_t)n_tok * n_cols; i++) {
        unsigned t = (unsigned)(i / n_cols);
        x[i] = t % 4 == 1 ? 1.5f : t % 8 == 3 ? (i & 1 ? 1.5f : -1.5f) : rnd_float(3.0f);
    }
    return x;
}

/* ---- the product worked out from the blocks of a file */

typedef struct naive {
    int q[256], s[16], m[16]; /* codes, and scales and minima per 16 */
    float d, dm;
} naive;

static float f16_at(const uint8_t *p) {
    return nib_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static const int iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void naive_32(nib_quant_id id, const uint8_t *b, naive *n) {
    static const int at_qs[NIB_QUANT_COUNT] = {[NIB_QUANT_Q4_0] = 2, [NIB_QUANT_Q4_1] = 4,  [NIB_QUANT_Q5_0] = 6,
                                               [NIB_QUANT_Q5_1] = 8, [NIB_QUANT_IQ4_NL] = 2, [NIB_QUANT_MXFP4] = 1,
                                               [NIB_QUANT_Q8_0] = 2};
    const uint8_t *qs = b + at_qs[id];
    bool five = id == NIB_QUANT_Q5_0 || id == NIB_QUANT_Q5_1; /* qh stands before qs */
    n->d = id == NIB_QUANT_MXFP4 ? ldexpf(1.0f, b[0] - 128) : f16_at(b);
    if (fields[id].m >= 0) n->dm = f16_at(b + 2);
    for (int k = 0; k < 32; k++) {
        int low = qs[k % 16] >> (k < 16 ? 0 : 4) & 15, high = five ? qs[k / 8 - 4] >> k % 8 & 1 : 0;
        switch (id) {
        case NIB_QUANT_Q4_0: n->q[k] = low - 8; break;
        case NIB_QUANT_Q4_1: n->q[k] = low; break;
        case NIB_QUANT_Q5_0: n->q[k] = (low | high << 4) - 16; break;
        case NIB_QUANT_Q5_1: n->q[k] = low | high << 4; break;
        case NIB_QUANT_IQ4_NL: n->q[k] = iq4[low]; break;
        case NIB_QUANT_MXFP4: n->q[k] = e2m1[low]; break;
        default: n->q[k] = (int8_t)qs[k]; break;
        }
    }
}

static void naive_scales_k4(const uint8_t *p, naive *n) {
    for (int g = 0; g < 16; g++) {
        int j = g / 2;
        n->s[g] = j < 4 ? p[j] & 63 : (p[j + 4] & 15) | p[j - 4] >> 6 << 4;
        n->m[g] = j < 4 ? p[j + 4] & 63 : p[j + 4] >> 4 | p[j] >> 6 << 4;
    }
}

/* Q4_K and Q5_K: weight k from runs of 64 in 32 bytes, low nibbles first. */
static int nibble64(const uint8_t *qs, int k) {
    return qs[k / 64 * 32 + k % 32] >> k / 32 % 2 * 4 & 15;
}

static void naive_256(nib_quant_id id, const uint8_t *b, naive *n) {
    n->d = f16_at(b + fields[id].d);
    if (fields[id].m >= 0) n->dm = f16_at(b + fields[id].m);
    if (id == NIB_QUANT_Q4_K || id == NIB_QUANT_Q5_K) naive_scales_k4(b + 4, n);
    for (int g = 0; g < 16; g++) {
        if (id == NIB_QUANT_Q2_K) n->s[g] = b[g] & 15, n->m[g] = b[g] >> 4;
        if (id == NIB_QUANT_Q3_K) {
            const uint8_t *p = b + 96;
            n->s[g] = ((g < 8 ? p[g] & 15 : p[g - 8] >> 4) | (p[8 + g % 4] >> 2 * (g / 4) & 3) << 4) - 32;
        }
        if (id == NIB_QUANT_Q6_K) n->s[g] = (int8_t)b[192 + g];
        if (id == NIB_QUANT_IQ4_XS) {
            int j = g / 2;
            n->s[g] = ((b[4 + j / 2] >> j % 2 * 4 & 15) | ((b[2] | b[3] << 8) >> 2 * j & 3) << 4) - 32;
        }
    }
    for (int k = 0; k < 256; k++) {
        int half = k / 128, part = k % 128 / 32, l = k % 32;
        switch (id) {
        case NIB_QUANT_Q2_K: n->q[k] = b[16 + 32 * half + l] >> 2 * part & 3; break;
        case NIB_QUANT_Q3_K:
            n->q[k] = (b[32 + 32 * half + l] >> 2 * part & 3) - (b[l] >> k / 32 & 1 ? 0 : 4);
            break;
        case NIB_QUANT_Q4_K: n->q[k] = nibble64(b + 16, k); break;
        case NIB_QUANT_Q5_K: n->q[k] = nibble64(b + 48, k) | (b[16 + l] >> k / 32 & 1) << 4; break;
        case NIB_QUANT_Q6_K:
            n->q[k] = ((b[64 * half + 32 * (part % 2) + l] >> part / 2 * 4 & 15) |
                       (b[128 + 32 * half + l] >> 2 * part & 3) << 4) -
                      32;
            break;
        default: n->q[k] = iq4[b[8 + k / 32 * 16 + l % 16] >> (l < 16 ? 0 : 4) & 15]; break;
        }
    }
}

static float naive_quantize(const float *x, int n, int *a) {
    float amax = 0;
    for (int k = 0; k < n; k++) amax = fmaxf(amax, fabsf(x[k]));
    float d = amax / 127.0f;
    for (int k = 0; k < n; k++) a[k] = (int)nearbyintf(x[k] * (1.0f / d));
    return d;
}

static float naive_product(const nib_quant_type *type, const uint8_t *row, const float *x, uint32_t n_cols) {
    float acc = 0;
    if (type->block_size == 1) {
        for (uint32_t k = 0; k < n_cols; k++) {
            float w;
            type->dequantize(row + k * type->block_bytes, &w, 1);
            acc = fmaf(w, x[k], acc);
        }
        return acc;
    }
    for (uint32_t k0 = 0; k0 < n_cols; k0 += type->block_size, row += type->block_bytes) {
        naive w = {0};
        int a[256], isum = 0, sum = 0, msum = 0, size = (int)type->block_size;
        float da = naive_quantize(x + k0, size, a);
        size == 32 ? naive_32(type->id, row, &w) : naive_256(type->id, row, &w);
        for (int k = 0; k < size; k++) {
            sum += a[k];
            isum += size == 32 ? w.q[k] * a[k] : w.s[k / 16] * w.q[k] * a[k];
            if (size == 256 && fields[type->id].m >= 0) msum += w.m[k / 16] * a[k];
        }
        if (fields[type->id].m < 0) acc = fmaf((float)isum, w.d * da, acc);
        else if (size == 32) acc = fmaf(fmaf((float)sum, w.dm, (float)isum * w.d), da, acc);
        else acc = fmaf(fmaf(-(float)msum, w.dm, (float)isum * w.d), da, acc);
    }
    return acc;
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
    nib_cpu_matmul(isa, &p->m, &act, split, p->m.n_groups, out, ldo);
    nib_cpu_matmul(isa, &p->m, &act, 0, split, out, ldo);
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
                            float want = naive_product(type, p.rows + r * row_bytes, p.x + (size_t)t * cols[c], cols[c]);
                            if (!same(want, got[t * ldo + r]))
                                fail_msg("%s, %u columns: row %u token %u of %u is %a, expected %a", type->name, cols[c],
                                         r, t, n_tok, (double)got[t * ldo + r], (double)want);
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
    static const uint32_t toks[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};
    const nib_cpu_isa *scalar = nib_cpu_isa_scalar();
    size_t n = 0, n_cases = 0;
    for (unsigned id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *type = nib_quant_type_at(id);
        const uint32_t *cols;
        size_t n_cols = cols_of(type, &cols);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            for (size_t j = 0; j < sizeof toks / sizeof *toks; j++) {
                product p = product_new(type, rows[i], cols[(i * 5 + j) % n_cols], toks[j]);
                float *want = product_run(&p, scalar, 0);
                for (const char *const *name = nib_isa_names(); *name; name++) {
                    const nib_cpu_isa *isa;
                    if (!nib_isa_usable(*name)) continue;
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
    print_message("%zu cases, %zu products equal on all levels\n", n_cases, n);
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
            if (kind < 3) p.x[4 * 512 + 77] = b;
            else if (fields[id].d < 0 && id != NIB_QUANT_F32) { product_free(&p); continue; }
            else if (id == NIB_QUANT_F32) memcpy(p.rows + (7 * 512 + 5) * 4, &b, 4);
            else put16(p.rows + 7 * (512 / type->block_size) * type->block_bytes + fields[id].d, nib_f16_from_f32(b));
            nib_cpu_matrix_pack(&p.m, 0, p.m.n_groups, p.rows);
            float *want = product_run(&p, nib_cpu_isa_scalar(), 0);
            for (uint32_t t = 0; t < 9; t++)
                for (uint32_t r = 0; r < 20; r++)
                    if (kind < 3 ? t == 4 && type->block_size > 1 : r == 7) assert_false(isfinite(want[t * 23 + r]));
                    else if (kind >= 3 || t != 4) assert_true(isfinite(want[t * 23 + r]));
            for (const char *const *name = nib_isa_names(); *name; name++) {
                const nib_cpu_isa *isa;
                if (nib_cpu_isa_find(&isa, *name, NULL) != NIB_OK) continue;
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
