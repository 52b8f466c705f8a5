/* cli/stats.c - a generation in -> its speed out, for people and as JSON.
 * Decode reads every weight and the cache of the sequence once a token; bytes by time is the bandwidth that was used,
 * which is what bounds it. */
#include "stats.h"

typedef struct figures {
    uint64_t n_decoded;           /* steps of decode: generated tokens after the first */
    double prefill_tok_s, decode_tok_s, tpot_ms;
    uint64_t weight_bytes, kv_bytes; /* read a token */
    double gb_s;
} figures;

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static figures compute(const nib_cli_session *s, const nib_cli_generation *g) {
    figures f = {.n_decoded = g->ids.n > 1 ? g->ids.n - 1 : 0};
    f.prefill_tok_s = ratio(1e3 * (double)(g->n_prompt - g->n_cached), g->prefill_ms);
    f.tpot_ms = ratio(g->decode_ms, (double)f.n_decoded);
    f.decode_tok_s = ratio(1e3, f.tpot_ms);
    f.weight_bytes = nib_model_bytes_per_token(s->model);
    uint64_t kv = nib_model_kv_bytes_per_token(s->model, s->opt->k_type, s->opt->v_type);
    f.kv_bytes = f.n_decoded ? kv * (g->kv_positions / f.n_decoded) : 0;
    f.gb_s = ratio((double)(f.weight_bytes + f.kv_bytes) / 1e6, f.tpot_ms);
    return f;
}

void nib_cli_stats_print(const nib_cli_session *s, const nib_cli_generation *g) {
    figures f = compute(s, g);
    nib_cli_line(s->term, "load    %9.1f ms, %.1f MiB of weights, %d threads, %s", s->load_ms,
                 (double)nib_model_weight_bytes(s->model) / 0x1p20, nib_context_n_threads(s->ctx),
                 nib_model_isa(s->model));
    nib_cli_line(s->term, "prefill %9.1f ms, %zu tokens, %.1f tokens/s, TTFT %.1f ms", g->prefill_ms, g->n_prompt - g->n_cached,
                 f.prefill_tok_s, g->ttft_ms);
    nib_cli_line(s->term, "decode  %9.1f ms, %zu tokens, %.1f tokens/s, TPOT %.2f ms", g->decode_ms, g->ids.n,
                 f.decode_tok_s, f.tpot_ms);
    nib_cli_line(s->term, "memory  %u of %u positions of KV cache; a token reads %.1f MB of weights and %.1f MB of "
                 "cache, %.2f GB/s",
                 nib_seq_length(s->ctx, 0), nib_context_n_ctx(s->ctx), (double)f.weight_bytes / 1e6,
                 (double)f.kv_bytes / 1e6, f.gb_s);
}

json_t *nib_cli_stats_json(const nib_cli_session *s, const nib_cli_generation *g) {
    figures f = compute(s, g);
    const struct {
        const char *key;
        double value;
    } reals[] = {
        {"load_ms", s->load_ms},       {"ttft_ms", g->ttft_ms},     {"tpot_ms", f.tpot_ms},
        {"prefill_ms", g->prefill_ms}, {"decode_ms", g->decode_ms}, {"prefill_tok_s", f.prefill_tok_s},
        {"decode_tok_s", f.decode_tok_s}, {"gb_s", f.gb_s},
    };
    const struct {
        const char *key;
        uint64_t value;
    } counts[] = {
        {"prompt_tokens", g->n_prompt},
        {"cached_tokens", g->n_cached},
        {"generated_tokens", g->ids.n},
        {"kv_used", nib_seq_length(s->ctx, 0)},
        {"kv_size", nib_context_n_ctx(s->ctx)},
        {"weight_bytes_per_token", f.weight_bytes},
        {"kv_bytes_per_token", f.kv_bytes},
        {"threads", (uint64_t)nib_context_n_threads(s->ctx)},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++)
        json_object_set_new(object, reals[i].key, nib_cli_json_number(reals[i].value));
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(object, counts[i].key, json_integer((json_int_t)counts[i].value));
    return object;
}
