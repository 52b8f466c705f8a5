/* tests/support/matrix_naive.c - random blocks of every type, and products worked out from the blocks of a file. */
#include "support/matrix_naive.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

uint32_t naive_rnd(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

float naive_rnd_float(float max) {
    return ((float)(naive_rnd() & 0xffff) / 32768.0f - 1.0f) * max;
}

void naive_put16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Where the float16 fields of a block are; -1: none. */
const naive_fields naive_fields_of[NIB_QUANT_COUNT] = {
    [NIB_QUANT_F32] = {-1, -1},   [NIB_QUANT_F16] = {-1, -1},   [NIB_QUANT_BF16] = {-1, -1},
    [NIB_QUANT_Q4_0] = {0, -1},   [NIB_QUANT_Q4_1] = {0, 2},    [NIB_QUANT_Q5_0] = {0, -1},
    [NIB_QUANT_Q5_1] = {0, 2},    [NIB_QUANT_Q8_0] = {0, -1},   [NIB_QUANT_Q2_K] = {80, 82},
    [NIB_QUANT_Q3_K] = {108, -1}, [NIB_QUANT_Q4_K] = {0, 2},    [NIB_QUANT_Q5_K] = {0, 2},
    [NIB_QUANT_Q6_K] = {208, -1}, [NIB_QUANT_IQ4_NL] = {0, -1}, [NIB_QUANT_IQ4_XS] = {0, -1},
    [NIB_QUANT_MXFP4] = {-1, -1},
};

/* One block of random codes; `kind` 1: all bits zero, 2: all bits one. Scales are always sane numbers. */
void naive_rnd_block(const nib_quant_type *type, uint8_t *b, unsigned kind) {
    for (uint32_t i = 0; i < type->block_bytes; i++) b[i] = kind == 1 ? 0 : kind == 2 ? 255 : (uint8_t)naive_rnd();
    if (naive_fields_of[type->id].d >= 0)
        naive_put16(b + naive_fields_of[type->id].d, nib_f16_from_f32(naive_rnd_float(0.05f)));
    if (naive_fields_of[type->id].m >= 0)
        naive_put16(b + naive_fields_of[type->id].m, nib_f16_from_f32(naive_rnd_float(0.05f)));
    float f = naive_rnd_float(1.0f);
    if (type->id == NIB_QUANT_F32) memcpy(b, &f, 4);
    if (type->id == NIB_QUANT_F16) naive_put16(b, nib_f16_from_f32(f));
    if (type->id == NIB_QUANT_BF16) naive_put16(b, (uint16_t)(nib_f32_bits(f) >> 16));
    if (type->id == NIB_QUANT_MXFP4) b[0] = (uint8_t)(naive_rnd() % 64 + 96);
}

typedef struct block {
    int q[256], s[16], m[16]; /* codes, and scales and minima per 16 */
    float d, dm;
} block;

static float f16_at(const uint8_t *p) {
    return nib_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static const int iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static void naive_32(nib_quant_id id, const uint8_t *b, block *n) {
    static const int at_qs[NIB_QUANT_COUNT] = {
        [NIB_QUANT_Q4_0] = 2,   [NIB_QUANT_Q4_1] = 4,  [NIB_QUANT_Q5_0] = 6, [NIB_QUANT_Q5_1] = 8,
        [NIB_QUANT_IQ4_NL] = 2, [NIB_QUANT_MXFP4] = 1, [NIB_QUANT_Q8_0] = 2};
    const uint8_t *qs = b + at_qs[id];
    bool five = id == NIB_QUANT_Q5_0 || id == NIB_QUANT_Q5_1; /* qh stands before qs */
    n->d = id == NIB_QUANT_MXFP4 ? ldexpf(1.0f, b[0] - 128) : f16_at(b);
    if (naive_fields_of[id].m >= 0) n->dm = f16_at(b + 2);
    for (int k = 0; k < 32; k++) {
        int low = qs[k % 16] >> (k < 16 ? 0 : 4) & 15, high = five ? qs[k / 8 - 4] >> k % 8 & 1 : 0;
        switch (id) {
        case NIB_QUANT_Q4_0:
            n->q[k] = low - 8;
            break;
        case NIB_QUANT_Q4_1:
            n->q[k] = low;
            break;
        case NIB_QUANT_Q5_0:
            n->q[k] = (low | high << 4) - 16;
            break;
        case NIB_QUANT_Q5_1:
            n->q[k] = low | high << 4;
            break;
        case NIB_QUANT_IQ4_NL:
            n->q[k] = iq4[low];
            break;
        case NIB_QUANT_MXFP4:
            n->q[k] = e2m1[low];
            break;
        default:
            n->q[k] = (int8_t)qs[k];
            break;
        }
    }
}

static void naive_scales_k4(const uint8_t *p, block *n) {
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

static void naive_256(nib_quant_id id, const uint8_t *b, block *n) {
    n->d = f16_at(b + naive_fields_of[id].d);
    if (naive_fields_of[id].m >= 0) n->dm = f16_at(b + naive_fields_of[id].m);
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
        case NIB_QUANT_Q2_K:
            n->q[k] = b[16 + 32 * half + l] >> 2 * part & 3;
            break;
        case NIB_QUANT_Q3_K:
            n->q[k] = (b[32 + 32 * half + l] >> 2 * part & 3) - (b[l] >> k / 32 & 1 ? 0 : 4);
            break;
        case NIB_QUANT_Q4_K:
            n->q[k] = nibble64(b + 16, k);
            break;
        case NIB_QUANT_Q5_K:
            n->q[k] = nibble64(b + 48, k) | (b[16 + l] >> k / 32 & 1) << 4;
            break;
        case NIB_QUANT_Q6_K:
            n->q[k] = ((b[64 * half + 32 * (part % 2) + l] >> part / 2 * 4 & 15) |
                       (b[128 + 32 * half + l] >> 2 * part & 3) << 4) -
                      32;
            break;
        default:
            n->q[k] = iq4[b[8 + k / 32 * 16 + l % 16] >> (l < 16 ? 0 : 4) & 15];
            break;
        }
    }
}

static float naive_quantize(const float *x, int n, int *a) {
    float amax = 0, lane[32] = {0}, squares = 0;
    for (int k = 0; k < n; k++) amax = fmaxf(amax, fabsf(x[k]));
    float d = amax / 127.0f;
    for (int k = 0; k < n; k++) {
        a[k] = d > 0 ? (int)nearbyintf(x[k] * (1.0f / d)) : 0;
        lane[k % 32] = d > 0 ? fmaf(x[k] * (1.0f / d), (float)a[k], lane[k % 32]) : 0;
        squares += (float)(a[k] * a[k]);
    }
    for (int half = 16; half; half /= 2)
        for (int k = 0; k < half; k++) lane[k] += lane[k + half];
    return d > 0 ? d * (lane[0] / squares) : 0;
}

float naive_product(const nib_quant_type *type, const uint8_t *row, const float *x, uint32_t n_cols) {
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
        block w = {0};
        int a[256], isum = 0, sum = 0, msum = 0, size = (int)type->block_size;
        float da = naive_quantize(x + k0, size, a);
        size == 32 ? naive_32(type->id, row, &w) : naive_256(type->id, row, &w);
        for (int k = 0; k < size; k++) {
            sum += a[k];
            isum += size == 32 ? w.q[k] * a[k] : w.s[k / 16] * w.q[k] * a[k];
            if (size == 256 && naive_fields_of[type->id].m >= 0) msum += w.m[k / 16] * a[k];
        }
        if (naive_fields_of[type->id].m < 0)
            acc = fmaf((float)isum, w.d * da, acc);
        else if (size == 32)
            acc = fmaf(fmaf((float)sum, w.dm, (float)isum * w.d), da, acc);
        else
            acc = fmaf(fmaf(-(float)msum, w.dm, (float)isum * w.d), da, acc);
    }
    return acc;
}
