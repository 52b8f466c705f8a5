/* cpu/act.c - activation buffers: layout, and the scalar quantisation that defines the bits. Form: act.h. */
#include "cpu/act.h"

#include "base/half.h"
#include "cpu/kern/mm.h"

#include <math.h>

/* Bytes of token t's share of every array, for each 256 columns. */
enum {
    Q32_BYTES = 256 + 8 * (4 + 4 + 4 + 4 + 4 + 4),
    Q256_BYTES = 256 + 4 + 8 * 4 + 4 * 4 + 8 * 4 + 16 * 4 + 32 * 4 + 16 * 4,
    MAX_ARRAYS = 16,
    LINE = 64,
};

static size_t padded(uint32_t n, uint32_t unit) {
    return ((size_t)n + unit - 1) / unit * unit;
}

size_t nib_cpu_act_bytes(uint32_t n_tok, uint32_t n_cols, unsigned forms) {
    if (n_tok >= 1u << 24 || n_cols > UINT32_MAX - 255) return SIZE_MAX;
    uint64_t n = n_tok < 2 ? 1 : padded(n_tok, NIB_ACT_PANEL), units = padded(n_cols, 256) / 256;
    uint64_t total = MAX_ARRAYS * LINE;
    if (forms & NIB_ACT_Q32) total += n * units * Q32_BYTES;
    if (forms & NIB_ACT_Q256) total += n * units * Q256_BYTES;
    return total > SIZE_MAX / 2 ? SIZE_MAX : (size_t)total;
}

/* The next array of n_bytes, each on a line of its own. */
static void *take(uint8_t **memory, size_t n_bytes) {
    uint8_t *p = *memory;
    *memory += (n_bytes + LINE - 1) / LINE * LINE;
    return p;
}

void nib_cpu_act_bind(nib_cpu_act *act, void *memory, const float *x, size_t stride, uint32_t n_tok, uint32_t n_cols,
                      unsigned forms) {
    *act = (nib_cpu_act){.x = x, .stride = stride, .n_tok = n_tok, .n_cols = n_cols, .forms = forms};
    act->np = n_tok < 2 ? 1 : NIB_ACT_PANEL;
    size_t n = padded(n_tok, act->np);
    uint8_t *at = memory;
    if (forms & NIB_ACT_Q32) {
        nib_cpu_act_q32 *a = &act->q32;
        a->n_pad = (uint32_t)padded(n_cols, 64);
        size_t n32 = n * (a->n_pad / 32);
        a->q = take(&at, n * a->n_pad);
        a->d = take(&at, n32 * sizeof *a->d);
        a->sum = take(&at, n32 * sizeof *a->sum);
        a->start8 = take(&at, n32 * sizeof *a->start8);
        a->start16 = take(&at, n32 * sizeof *a->start16);
        a->start128 = take(&at, n32 * sizeof *a->start128);
        a->half16 = take(&at, n32 * 2 * sizeof *a->half16);
    }
    if (forms & NIB_ACT_Q256) {
        nib_cpu_act_q256 *a = &act->q256;
        a->n_pad = (uint32_t)padded(n_cols, 256);
        size_t n256 = n * (a->n_pad / 256);
        a->q = take(&at, n * a->n_pad);
        a->d = take(&at, n256 * sizeof *a->d);
        a->sum16 = take(&at, n256 * 16 * sizeof *a->sum16);
        a->sum32 = take(&at, n256 * 8 * sizeof *a->sum32);
        a->start8 = take(&at, n256 * 8 * sizeof *a->start8);
        a->start16 = take(&at, n256 * 16 * sizeof *a->start16);
        a->start32 = take(&at, n256 * 32 * sizeof *a->start32);
        a->half32 = take(&at, n256 * 32 * sizeof *a->half32);
    }
}

/* Sum of the lanes by the tree of all sums (cpu/ops.h). */
static float tree_sum(float lane[32]) {
    for (int half = 16; half >= 1; half /= 2)
        for (int j = 0; j < half; j++) lane[j] += lane[j + half];
    return lane[0];
}

/* Codes of n values (32 or 256); returns the scale. Codes are x / (amax / 127) rounded; the scale is then the one that
 * brings them nearest to x (least squares): it costs nothing later and takes about 3 % off the error of
 * log-probabilities. */
static float quantize_block(const float *x, size_t n, int8_t *code) {
    uint32_t amax = 0; /* magnitudes as bits: a NaN is greater than infinity, that greater than any number */
    for (size_t i = 0; i < n; i++) {
        uint32_t a = nib_f32_bits(x[i]) & 0x7fffffff;
        amax = a > amax ? a : amax;
    }
    float d = nib_f32_from_bits(amax) / 127.0f;
    if (amax >= 0x7f800000 || d < 0x1p-126f) {
        memset(code, 0, n);
        return amax >= 0x7f800000 ? nib_f32_from_bits(0x7fc00000) : 0.0f;
    }
    float id = 1.0f / d, along[32] = {0}, squares = 0;
    for (size_t i = 0; i < n; i++) {
        /* Adding 1.5 * 2^23 leaves the rounded integer in the low bits. */
        code[i] = (int8_t)(nib_f32_bits(x[i] * id + 0x1.8p23f) - nib_f32_bits(0x1.8p23f));
        along[i % 32] = fmaf(x[i] * id, (float)code[i], along[i % 32]);
        squares += (float)(code[i] * code[i]); /* below 2^24: exact */
    }
    return d * (tree_sum(along) / squares);
}

/* Sums of n codes: half[0] of those with k % 4 < 2, half[1] of the others. */
static void half_sums(const int8_t *q, int n, int half[2]) {
    half[0] = half[1] = 0;
    for (int k = 0; k < n; k++) half[k % 4 / 2] += q[k];
}

static void quantize32(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q32 *a = &act->q32;
    size_t np = act->np, n32 = a->n_pad / 32, at = nib_cpu_act_at(act, t, n32, 1) + part.k0 / 32 * np;
    int8_t *line = a->q + nib_cpu_act_at(act, t, n32 / 2, LINE);
    for (size_t b = part.k0 / 32; b < part.k1 / 32; b++, at += np) {
        float buf[32];
        int8_t *q = line + b / 2 * np * LINE + b % 2 * 32;
        int half[2];
        a->d[at] = quantize_block(nib_cpu_act_columns(act, part, 32 * b, 32, buf), 32, q);
        half_sums(q, 32, half);
        int sum = half[0] + half[1];
        a->sum[at] = (float)sum;
        a->start8[at] = -8 * sum;
        a->start16[at] = -16 * sum;
        a->start128[at] = -128 * sum;
        a->half16[2 * at] = (int16_t)(-16 * half[0]);
        a->half16[2 * at + 1] = (int16_t)(-16 * half[1]);
    }
}

/* The side arrays of block j (of 8 of 32 columns) of super-block b. */
static void q256_sums(const nib_cpu_act *act, uint32_t t, size_t b, size_t j, const int8_t *q) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t np = act->np, n256 = a->n_pad / 256;
#define AT(per, i) (nib_cpu_act_at(act, t, n256 * (per), 1) + (i)*np)
    int sum[2]; /* of 16 */
    for (size_t g = 0; g < 2; g++) {
        int half[2];
        for (size_t e = 0; e < 2; e++) {
            half_sums(q + 16 * g + 8 * e, 8, half);
            a->start32[AT(32, 32 * b + 4 * j + 2 * g + e)] = -32 * (half[0] + half[1]);
        }
        half_sums(q + 16 * g, 16, half);
        sum[g] = half[0] + half[1];
        size_t at = AT(16, 16 * b + 2 * j + g);
        a->start16[at] = -16 * sum[g];
        a->half32[2 * at] = (int16_t)(-32 * half[0]);
        a->half32[2 * at + 1] = (int16_t)(-32 * half[1]);
        a->sum16[2 * AT(8, 8 * b + j) + g] = (int16_t)sum[g];
    }
    a->start8[AT(8, 8 * b + j)] = -8 * (sum[0] + sum[1]);
    a->sum32[2 * AT(4, 4 * b + j / 2) + j % 2] = (int16_t)(sum[0] + sum[1]);
#undef AT
}

static void quantize256(const nib_cpu_act *act, uint32_t t, nib_cpu_act_part part) {
    const nib_cpu_act_q256 *a = &act->q256;
    size_t np = act->np, n256 = a->n_pad / 256;
    int8_t *line = a->q + nib_cpu_act_at(act, t, 4 * n256, LINE);
    for (size_t b = part.k0 / 256; b < part.k1 / 256; b++) {
        float buf[256];
        int8_t code[256];
        const float *x = nib_cpu_act_columns(act, part, 256 * b, 256, buf);
        a->d[nib_cpu_act_at(act, t, n256, 1) + b * np] = quantize_block(x, 256, code);
        for (size_t i = 0; i < 4; i++) memcpy(line + (4 * b + i) * np * LINE, code + LINE * i, LINE);
        for (size_t j = 0; j < 8; j++) q256_sums(act, t, b, j, code + 32 * j);
    }
}

const nib_cpu_mm_quantize nib_cpu_mm_quantize_scalar = {quantize32, quantize256};

static void quantize_columns(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t, const float *x, uint32_t k0, uint32_t k1) {
    bool ends = k1 >= act->n_cols;
    if (act->forms & NIB_ACT_Q32) isa->mm->quantize->q32(act, t, (nib_cpu_act_part){x, k0, ends ? act->q32.n_pad : k1});
    if (act->forms & NIB_ACT_Q256) isa->mm->quantize->q256(act, t, (nib_cpu_act_part){x, k0, ends ? act->q256.n_pad : k1});
}

/* Kernels that take four tokens at once may read up to three behind the last: as a row of zeros. */
static void zero_rest(const nib_cpu_isa *isa, const nib_cpu_act *act) {
    static const float none[1];
    nib_cpu_act zero = *act;
    zero.n_cols = 0;
    for (uint32_t t = act->n_tok; t % 4 != 0; t++) quantize_columns(isa, &zero, t, none, 0, act->n_cols);
}

void nib_cpu_act_quantize(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t0, uint32_t t1) {
    for (uint32_t t = t0; t < t1; t++) quantize_columns(isa, act, t, act->x + t * act->stride, 0, act->n_cols);
    if (t1 == act->n_tok && t0 < t1 && act->np > 1) zero_rest(isa, act);
}

void nib_cpu_act_quantize_part(const nib_cpu_isa *isa, const nib_cpu_act *act, uint32_t t, const float *x, uint32_t k0,
                               uint32_t k1) {
    quantize_columns(isa, act, t, x, k0, k1);
    if (t + 1 == act->n_tok && k1 >= act->n_cols && act->np > 1) zero_rest(isa, act);
}
