/* tests/test_quant_type.c - the table of tensor types and their dequantisation.
 *
 * The vectors were made by tests/quant_oracle.py --vectors with the gguf Python package as the reference. */
#include "base/half.h"
#include "quant/type.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_BLOCKS 64
#define MAX_BYTES (N_BLOCKS * 210)
#define MAX_WEIGHTS (N_BLOCKS * 256)

static const struct vector {
    const char *type;
    uint64_t hash; /* of the bits of all weights */
    float samples[3]; /* the first, the one at a third, the last */
} vectors[] = {
    {"F32", 0x66f6a6c0f65c8553, {0x1.3b9b5ep-9f, 0x1.fdd9bap-53f, 0x1.fa6bbcp-17f}},
    {"F16", 0xef2728d425f50825, {0x1.304p-8f, -0x1.054p-11f, 0x1.b08p-5f}},
    {"BF16", 0x678a5da8f88a0825, {0x1.9cp-100f, 0x1.dap-117f, -0x1.7cp-18f}},
    {"Q4_0", 0x5c858d26e2f14b25, {-0x1.b38p-10f, 0x1.c39p+1f, -0x1.4e4p-13f}},
    {"Q4_1", 0xd97e7266a1056672, {-0x1.5efp-8f, -0x1.02662p-2f, 0x1.59e8p+4f}},
    {"Q5_0", 0x89e27398263f2125, {-0x1p-5f, -0x1.18cp-9f, -0x1.7f4p-2f}},
    {"Q5_1", 0xa2bc61f66688daae, {0x1.be9p-8f, 0x1.0c9p+1f, -0x1.bdb3p-3f}},
    {"Q8_0", 0x91fd2e741bf1a5a5, {-0x1.4c49p+5f, -0x1.f56cp-1f, -0x1.d36ap-2f}},
    {"Q2_K", 0x1b3f95864106c990, {-0x1.7493p-1f, -0x1.50354p-2f, -0x1.701p-5f}},
    {"Q3_K", 0xbc09868d83c4f265, {-0x0p+0f, 0x1.b9ep-3f, 0x1.2626p-8f}},
    {"Q4_K", 0x4d838d6ad83bc7df, {-0x1.2ca48p-2f, -0x1.e8e5dp+4f, 0x1.9b7e7p+2f}},
    {"Q5_K", 0x792e0b354b810bf4, {0x1.c8e95p+4f, -0x1.07febp+3f, -0x1.bdd02p-5f}},
    {"Q6_K", 0x5daf0652e6956119, {-0x1.5234p+4f, 0x1.3ce6a8p+1f, -0x1.e32fap-2f}},
    {"IQ4_NL", 0x17391d1d0e194da5, {0x1.104p-11f, -0x1.1ab8p+3f, 0x1.8158p-3f}},
    {"IQ4_XS", 0xb3f675e3d85721f5, {-0x1.25cp-8f, -0x0p+0f, 0x1.1d4a8p-3f}},
    {"MXFP4", 0x8077f3f6f24ec325, {-0x1p-17f, -0x1.8p-96f, -0x1.8p-26f}},
};

/* Where the float16 fields of a block are: how many, from which byte. */
static const struct fields {
    const char *type;
    uint32_t n, at;
} fields[] = {
    {"F16", 1, 0},  {"Q4_0", 1, 0},  {"Q4_1", 2, 0},   {"Q5_0", 1, 0}, {"Q5_1", 2, 0}, {"Q8_0", 1, 0},
    {"Q2_K", 2, 80}, {"Q3_K", 1, 108}, {"Q4_K", 2, 0}, {"Q5_K", 2, 0}, {"Q6_K", 1, 208}, {"IQ4_NL", 1, 0},
    {"IQ4_XS", 1, 0},
};

static struct fields fields_of(const nib_quant_type *t) {
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (strcmp(fields[i].type, t->name) == 0) return fields[i];
    return (struct fields){t->name, 0, 0};
}

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/* N_BLOCKS blocks of random bytes whose scales are finite: what vectors() in quant_oracle.py makes. */
static void fill(const nib_quant_type *t, uint8_t *blocks) {
    uint64_t state = t->gguf_id;
    for (size_t i = 0, n = N_BLOCKS * t->block_bytes; i < n; i += 8) {
        uint64_t r = next(&state);
        memcpy(blocks + i, &r, n - i < 8 ? n - i : 8);
    }
    struct fields f = fields_of(t);
    for (size_t b = 0; b < N_BLOCKS; b++) {
        uint8_t *block = blocks + b * t->block_bytes;
        for (uint32_t k = 0; k < f.n; k++) block[f.at + 2 * k + 1] &= 0xbf;
        if (t->id == NIB_QUANT_F32 || t->id == NIB_QUANT_BF16) block[t->block_bytes - 1] &= 0xbf;
        if (t->id == NIB_QUANT_MXFP4) block[0] &= 0x7f;
    }
}

static void vectors_agree(void **state) {
    (void)state;
    static uint8_t blocks[MAX_BYTES];
    static float out[MAX_WEIGHTS];
    assert_int_equal(sizeof vectors / sizeof vectors[0], NIB_QUANT_COUNT);
    for (size_t v = 0; v < NIB_QUANT_COUNT; v++) {
        const nib_quant_type *t = nib_quant_type_by_name(vectors[v].type);
        assert_non_null(t);
        assert_true(N_BLOCKS * t->block_bytes <= sizeof blocks && N_BLOCKS * t->block_size <= MAX_WEIGHTS);
        fill(t, blocks);
        size_t n = N_BLOCKS * t->block_size;
        t->dequantize(blocks, out, n);
        uint64_t hash = 0xcbf29ce484222325;
        for (size_t i = 0; i < n; i++) hash = (hash ^ nib_f32_bits(out[i])) * 0x100000001b3;
        const size_t at[3] = {0, n / 3, n - 1};
        for (int k = 0; k < 3; k++)
            if (nib_f32_bits(out[at[k]]) != nib_f32_bits(vectors[v].samples[k]))
                fail_msg("%s: weight %zu is %a, expected %a", t->name, at[k], (double)out[at[k]],
                         (double)vectors[v].samples[k]);
        if (hash != vectors[v].hash) fail_msg("%s: hash %016llx", t->name, (unsigned long long)hash);
        assert_true(t->is_finite(blocks, n));
    }
}

/* Blocks are independent, at any address, and nothing beyond n is read or written. */
static void blocks_are_independent(void **state) {
    (void)state;
    static uint8_t blocks[MAX_BYTES];
    static float whole[MAX_WEIGHTS];
    for (int id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *t = nib_quant_type_at((nib_quant_id)id);
        fill(t, blocks);
        t->dequantize(blocks, whole, N_BLOCKS * t->block_size);
        uint8_t *one = malloc(t->block_bytes + 1);
        float *w = malloc(t->block_size * sizeof *w);
        assert_true(one && w);
        for (size_t b = 0; b < N_BLOCKS; b++) {
            memcpy(one + 1, blocks + b * t->block_bytes, t->block_bytes);
            t->dequantize(one + 1, w, t->block_size);
            assert_memory_equal(w, whole + b * t->block_size, t->block_size * sizeof *w);
        }
        t->dequantize(one + 1, w, 0);
        free(one);
        free(w);
    }
}

static bool all_finite(const float *w, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(w[i])) return false;
    return true;
}

/* is_finite says what a look at every weight would say, in whichever block and field the bad number is. */
static void finite_means_finite(void **state) {
    (void)state;
    static const uint16_t bad[] = {0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0xffff};
    static const uint16_t good[] = {0, 0x8000, 1, 0x7bff, 0xfbff};
    static uint8_t blocks[MAX_BYTES];
    static float out[MAX_WEIGHTS];
    for (int id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *t = nib_quant_type_at((nib_quant_id)id);
        struct fields f = fields_of(t);
        size_t n = N_BLOCKS * t->block_size;
        for (uint32_t k = 0; k < f.n; k++) {
            for (size_t i = 0; i < 11; i++) {
                fill(t, blocks);
                uint16_t v = i < 6 ? bad[i] : good[i - 6];
                uint8_t *p = blocks + (i * 7 % N_BLOCKS) * t->block_bytes + f.at + 2 * k;
                p[0] = (uint8_t)v;
                p[1] = (uint8_t)(v >> 8);
                t->dequantize(blocks, out, n);
                assert_int_equal(t->is_finite(blocks, n), i >= 6);
                assert_int_equal(all_finite(out, n), i >= 6);
            }
        }
        assert_true(t->is_finite(blocks, 0));
    }
}

static void finite_floats(void **state) {
    (void)state;
    static const float values[] = {0.0f, -0.0f, 1.0f, 3.4028235e38f, -3.4028235e38f, 1e-45f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < 9; i++) {
        float w[3] = {1.0f, values[i], 2.0f}, out[3];
        assert_int_equal(nib_quant_type_at(NIB_QUANT_F32)->is_finite(w, 3), i < 6);
        nib_quant_type_at(NIB_QUANT_F32)->dequantize(w, out, 3);
        assert_memory_equal(w, out, sizeof w);
        uint16_t h[3] = {0x3f80, (uint16_t)(nib_f32_bits(values[i]) >> 16), 0x4000};
        assert_int_equal(nib_quant_type_at(NIB_QUANT_BF16)->is_finite(h, 3), i < 6);
    }
}

/* The largest exponents of MXFP4 overflow with large codes only; 255 is NaN in the format. */
static void finite_mxfp4(void **state) {
    (void)state;
    const nib_quant_type *t = nib_quant_type_at(NIB_QUANT_MXFP4);
    for (int e = 0; e < 256; e++) {
        for (int code = 0; code < 16; code++) {
            uint8_t block[17] = {(uint8_t)e};
            block[1 + code] = (uint8_t)(code << 4);
            float w[32];
            t->dequantize(block, w, 32);
            assert_int_equal(t->is_finite(block, 32), e != 255 && all_finite(w, 32));
        }
    }
}

static void every_f16(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        uint16_t bits = (uint16_t)h;
        float f;
        nib_quant_type_at(NIB_QUANT_F16)->dequantize(&bits, &f, 1);
        int exp = (int)(h >> 10 & 31);
        double man = (double)(h & 0x3ff), value = exp ? ldexp(1024 + man, exp - 25) : ldexp(man, -24);
        if (exp == 31) assert_true(man != 0 ? isnan(f) : isinf(f));
        else assert_true((double)f == (h & 0x8000 ? -value : value) && !signbit(f) == !(h & 0x8000));
    }
}

static void table_is_consistent(void **state) {
    (void)state;
    for (int id = 0; id < NIB_QUANT_COUNT; id++) {
        const nib_quant_type *t = nib_quant_type_at((nib_quant_id)id);
        assert_int_equal(t->id, id);
        assert_ptr_equal(nib_quant_type_by_gguf(t->gguf_id), t);
        assert_ptr_equal(nib_quant_type_by_name(t->name), t);
        uint32_t size = 0, bytes = 0;
        assert_string_equal(nib_quant_gguf_name(t->gguf_id, &size, &bytes), t->name);
        assert_true(size == t->block_size && bytes == t->block_bytes);
    }
    assert_null(nib_quant_type_at(NIB_QUANT_COUNT));
    assert_null(nib_quant_type_by_name("q4_0"));
    assert_null(nib_quant_type_by_name(NULL));
    assert_null(nib_quant_type_by_gguf(16)); /* IQ2_XXS is known, but not computed with */
    assert_null(nib_quant_type_by_gguf(UINT32_MAX));
}

static void known_types(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        const char *name;
        uint32_t size, bytes;
    } some[] = {{4, "Q4_2", 16, 10},      {9, "Q8_1", 32, 36},    {15, "Q8_K", 256, 292}, {16, "IQ2_XXS", 256, 66},
                {24, "I8", 1, 1},         {28, "F64", 1, 8},      {29, "IQ1_M", 256, 56}, {31, "Q4_0_4_4", 32, 18},
                {38, "IQ4_NL_8_8", 32, 18}, {40, "NVFP4", 64, 36}, {42, "Q2_0", 64, 18}};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        uint32_t size = 0, bytes = 0;
        assert_string_equal(nib_quant_gguf_name(some[i].id, &size, &bytes), some[i].name);
        assert_int_equal(size, some[i].size);
        assert_int_equal(bytes, some[i].bytes);
    }
    for (uint32_t id = 0; id <= 42; id++) assert_non_null(nib_quant_gguf_name(id, NULL, NULL));
    assert_null(nib_quant_gguf_name(43, NULL, NULL));
    assert_null(nib_quant_gguf_name(200, NULL, NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_agree),       cmocka_unit_test(blocks_are_independent),
        cmocka_unit_test(finite_means_finite), cmocka_unit_test(finite_floats),
        cmocka_unit_test(finite_mxfp4),        cmocka_unit_test(every_f16),
        cmocka_unit_test(table_is_consistent), cmocka_unit_test(known_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
