/* tests/support/blocks.c - random numbers and random weights of any tensor type. */
#include "support/blocks.h"

#include "base/half.h"

#include <math.h>
#include <string.h>

uint64_t blocks_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

float blocks_uniform(uint64_t *state) {
    return (float)(blocks_random(state) >> 40) * 0x1p-24f;
}

float blocks_normal(uint64_t *state) { /* a sum of twelve: no function of libm, so the same bits everywhere */
    float sum = -6;
    for (int i = 0; i < 12; i++) sum += blocks_uniform(state);
    return sum;
}

/* Random codes have a root mean square of `rms` under a scale of 1; a minimum of min_over_scale scales makes the mean
 * 0. Fields are byte positions in the block; min_at < 0: the type has no minimum. */
static const struct layout {
    nib_quant_id id;
    int scale_at, min_at;
    float rms, min_over_scale;
} layouts[] = {
    {NIB_QUANT_Q4_0, 0, -1, 4.64f, 0},    {NIB_QUANT_Q4_1, 0, 2, 4.61f, -7.5f},  {NIB_QUANT_Q5_0, 0, -1, 9.25f, 0},
    {NIB_QUANT_Q5_1, 0, 2, 9.23f, -15.5f}, {NIB_QUANT_Q8_0, 0, -1, 73.9f, 0},     {NIB_QUANT_Q2_K, 80, 82, 9.84f, 1.5f},
    {NIB_QUANT_Q3_K, 108, -1, 43.3f, 0},  {NIB_QUANT_Q4_K, 0, 2, 168.8f, 7.5f},  {NIB_QUANT_Q5_K, 0, 2, 337.9f, 15.5f},
    {NIB_QUANT_Q6_K, 208, -1, 1366, 0},   {NIB_QUANT_IQ4_NL, 0, -1, 67.4f, 0},   {NIB_QUANT_IQ4_XS, 0, -1, 1245, 0},
};

static void put_f16(uint8_t *p, float f) {
    uint16_t h = nib_f16_from_f32(f);
    p[0] = (uint8_t)h;
    p[1] = (uint8_t)(h >> 8);
}

/* Where scales and minima are packed together, makes every minimum equal to its scale. */
static void equal_minima(nib_quant_id id, uint8_t *block) {
    if (id == NIB_QUANT_Q2_K)
        for (int i = 0; i < 16; i++) block[i] = (uint8_t)((block[i] & 15) * 17);
    if (id != NIB_QUANT_Q4_K && id != NIB_QUANT_Q5_K) return;
    uint8_t *scales = block + 4;
    for (int i = 0; i < 4; i++) {
        scales[4 + i] = scales[i];
        scales[8 + i] = (uint8_t)((scales[8 + i] & 15) * 17);
    }
}

static void fill_block(const nib_quant_type *type, uint8_t *block, float sd, uint64_t *state) {
    for (uint32_t i = 0; i < type->block_bytes; i++) block[i] = (uint8_t)(blocks_random(state) >> 56);
    float scale = sd * (0.75f + 0.5f * blocks_uniform(state));
    if (blocks_random(state) >> 63) scale = -scale;
    if (type->id == NIB_QUANT_MXFP4) { /* a power of two only: the nearest one below */
        int e;
        frexpf(sd / 5.85f, &e);
        block[0] = (uint8_t)(128 + e - 1);
        return;
    }
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *l = &layouts[i];
        if (l->id != type->id) continue;
        put_f16(block + l->scale_at, scale / l->rms);
        if (l->min_at >= 0) put_f16(block + l->min_at, scale / l->rms * l->min_over_scale);
    }
    equal_minima(type->id, block);
}

void blocks_fill(const nib_quant_type *type, void *blocks, size_t n, float sd, uint64_t *state) {
    uint8_t *p = blocks;
    for (size_t i = 0; i < n; i += type->block_size, p += type->block_bytes) {
        float f = type->block_size == 1 ? sd * blocks_normal(state) : 0;
        uint32_t bits = nib_f32_bits(f);
        uint16_t bf16 = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        if (type->id == NIB_QUANT_F32) memcpy(p, &f, sizeof f);
        else if (type->id == NIB_QUANT_F16) put_f16(p, f);
        else if (type->id == NIB_QUANT_BF16) memcpy(p, &bf16, sizeof bf16);
        else fill_block(type, p, sd, state);
    }
}
