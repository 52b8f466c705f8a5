/* model/rope.h - frequencies of rotary embeddings, with linear and YaRN scaling and per-dimension factors. */
#ifndef NIB_MODEL_ROPE_H
#define NIB_MODEL_ROPE_H

#include "model/hparams.h"

/* Fills inv_freq[0 … n_rot/2-1] and the factor of cosines and sines. factors: n_rot / 2 divisors (rope_freqs.weight), or
 * NULL. Scaled as the hyper-parameters say; a table without scaling is nib_model_rope_plain. YaRN: arXiv 2309.00071. */
void nib_model_rope_scaled(const nib_model_hparams *hp, const float *factors, float *inv_freq, float *mscale);
void nib_model_rope_plain(float base, uint32_t n_rot, float *inv_freq);

#endif
