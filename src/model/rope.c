/* model/rope.c - frequencies of rotary embeddings. */
#include "model/rope.h"

#include "base/math.h"

static double frequency(double base, uint32_t i, uint32_t n_rot) {
    return nib_exp(-2.0 * i / n_rot * nib_log(base));
}

void nib_model_rope_plain(float base, uint32_t n_rot, float *inv_freq) {
    for (uint32_t i = 0; i < n_rot / 2; i++) inv_freq[i] = (float)frequency((double)base, i, n_rot);
}

/* The dimension whose wave turns `turns` times over the original context. */
static double yarn_dimension(const nib_model_hparams *hp, double turns) {
    return hp->n_rot * nib_log(hp->rope_orig_ctx / (turns * 6.283185307179586)) / (2 * nib_log((double)hp->rope_base));
}

/* The factor of cosines and sines: the paper's, or the model's own in its place (1 is what writers put for none). */
static double yarn_attention_factor(const nib_model_hparams *hp) {
    if (hp->yarn_attn_factor != 1 || !(hp->yarn_ext_factor > 0) || hp->rope_factor <= 1) return (double)hp->yarn_attn_factor;
    return 1 + 0.1 * nib_log((double)hp->rope_factor);
}

void nib_model_rope_scaled(const nib_model_hparams *hp, const float *factors, float *inv_freq, float *mscale) {
    double scale = 1.0 / (double)hp->rope_factor, low = 0, high = 0;
    bool is_yarn = hp->scaling == NIB_ROPE_SCALE_YARN && hp->yarn_ext_factor > 0;
    *mscale = hp->rope_attn_factor * (hp->scaling == NIB_ROPE_SCALE_YARN ? (float)yarn_attention_factor(hp) : 1.0f);
    if (is_yarn) {
        low = floor(yarn_dimension(hp, (double)hp->yarn_beta_fast));
        high = ceil(yarn_dimension(hp, (double)hp->yarn_beta_slow));
        low = low < 0 ? 0 : low;
        high = high > hp->n_rot - 1 ? hp->n_rot - 1 : high;
    }
    for (uint32_t i = 0; i < hp->n_rot / 2; i++) {
        double f = frequency((double)hp->rope_base, i, hp->n_rot) / (factors ? (double)factors[i] : 1.0);
        double mix = 0;
        if (is_yarn) { /* 1: high frequencies stay as they are; 0: low ones are stretched */
            double y = (i - low) / (high - low > 0.001 ? high - low : 0.001);
            mix = (1 - (y < 0 ? 0 : y > 1 ? 1 : y)) * (double)hp->yarn_ext_factor;
        }
        inv_freq[i] = (float)(f * scale * (1 - mix) + f * mix);
    }
}
