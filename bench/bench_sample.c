/* bench/bench_sample.c - milliseconds per sample for common vocabularies and chains.
 *
 * Logits are normal with a few that stand out, as models make them, in four rows used in turn; each figure is the
 * median over the samples. The bound that counts: 262144 tokens, default chain, 0.3 ms. */
#define _POSIX_C_SOURCE 200809L
#include "base/rng.h"
#include "nib.h"
#include "timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_ROWS 4
#define N_SAMPLES 400
#define N_HISTORY 512

static void fill(float *logits, uint32_t n, uint32_t seed) {
    for (uint32_t i = 0; i < n; i++) {
        double u = 1 - nib_rng_uniform(seed, i, 0), v = nib_rng_uniform(seed, i, 1);
        logits[i] = (float)(2.5 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
    }
    for (uint32_t i = 0; i < 40; i++) logits[(size_t)(nib_rng_uniform(seed, i, 2) * n)] = 18 - 0.3f * (float)i;
}

static double bench_sampler(const nib_sampler_params *params, const float *rows, uint32_t n_vocab) {
    static double ms[N_SAMPLES];
    nib_error err;
    nib_sampler *s;
    if (nib_sampler_new(&s, params, n_vocab, &err) != NIB_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    nib_token id;
    for (uint32_t i = 0; i < N_HISTORY; i++) nib_sampler_accept(s, (nib_token)(i * 7919 % n_vocab), NULL);
    for (uint64_t i = 0; i < N_SAMPLES; i++) {
        double start = now_ms();
        if (nib_sampler_sample(s, rows + i % N_ROWS * n_vocab, NULL, i, &id, &err) != NIB_OK) exit(1);
        nib_sampler_accept(s, id, NULL);
        ms[i] = now_ms() - start;
    }
    nib_sampler_free(s);
    return median(ms, N_SAMPLES);
}

static double bench_logprobs(const float *rows, uint32_t n_vocab) {
    static double ms[N_SAMPLES];
    nib_logprob top[10];
    float logprob;
    for (size_t i = 0; i < N_SAMPLES; i++) {
        double start = now_ms();
        if (nib_logprobs(rows + i % N_ROWS * n_vocab, n_vocab, 5, &logprob, top, 10, NULL) != NIB_OK) exit(1);
        ms[i] = now_ms() - start;
    }
    return median(ms, N_SAMPLES);
}

int main(void) {
    static const uint32_t vocabs[] = {262144, 151936, 49152};
    nib_sampler_params base = NIB_SAMPLER_PARAMS_INIT;
    base.seed = 1;
    printf("%9s %9s %9s %9s %9s %9s %9s %9s %9s %9s\n", "n_vocab", "default", "greedy", "penalty", "dry -1", "min_p",
           "top_p", "temp", "mirostat2", "logprobs");
    for (size_t v = 0; v < sizeof vocabs / sizeof *vocabs; v++) {
        uint32_t n = vocabs[v];
        float *rows = malloc((size_t)N_ROWS * n * sizeof *rows);
        if (!rows) return 1;
        for (uint32_t i = 0; i < N_ROWS; i++) fill(rows + (size_t)i * n, n, i + 1);
        nib_sampler_params greedy = base, penalty = base, dry = base;
        nib_sampler_params min_p = base, top_p = base, temp = base, miro = base;
        greedy.temp = 0;
        penalty.penalty_repeat = 1.1f, penalty.penalty_last_n = 256;
        dry.dry_multiplier = 0.8f, dry.dry_penalty_last_n = -1;
        min_p.chain = "min_p;temperature";
        top_p.chain = "top_p;temperature";
        temp.chain = "temperature";
        miro.mirostat = 2;
        printf("%9u %9.4f %9.4f %9.4f %9.4f %9.4f %9.4f %9.4f %9.4f %9.4f\n", n, bench_sampler(&base, rows, n),
               bench_sampler(&greedy, rows, n), bench_sampler(&penalty, rows, n), bench_sampler(&dry, rows, n),
               bench_sampler(&min_p, rows, n), bench_sampler(&top_p, rows, n), bench_sampler(&temp, rows, n),
               bench_sampler(&miro, rows, n), bench_logprobs(rows, n));
        free(rows);
    }
    return 0;
}
