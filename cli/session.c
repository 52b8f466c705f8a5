/* cli/session.c - options in -> file, tokenizer, model, context out; and batches of ids through nib_decode.
 * Every row of logits that is computed goes into one hash, so that two runs can be compared. */
#include "session.h"

#include "base/status.h"
#include "isa.h"
#include "limits.h"
#include "signals.h"

#include <string.h>

nib_status nib_cli_need_model(const nib_cli_options *opt, nib_error *err) {
    if (opt->model) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "no model: nib %s needs -m FILE.gguf", nib_cli_command_at(opt->command)->name);
}

nib_status nib_cli_open_file(nib_gguf **out, const nib_cli_options *opt, const char *path, nib_error *err) {
    static const bool maps[] = {
        [NIB_CLI_LOAD_AUTO] = false,  [NIB_CLI_LOAD_NONE] = false,       [NIB_CLI_LOAD_MMAP] = true,
        [NIB_CLI_LOAD_MLOCK] = false, [NIB_CLI_LOAD_MMAP_MLOCK] = true, [NIB_CLI_LOAD_DIO] = false,
    };
    nib_gguf_config config = NIB_GGUF_CONFIG_INIT;
    config.mode = opt->mmap || maps[opt->load_mode] ? NIB_LOAD_MMAP : NIB_LOAD_READ;
    return nib_gguf_open(out, path, &config, err);
}

nib_status nib_cli_session_file(nib_cli_session *s, const nib_cli_options *opt, const nib_cli_term *term,
                                const char *path, nib_error *err) {
    *s = (nib_cli_session){.opt = opt, .term = term, .logits_hash = UINT64_C(0xcbf29ce484222325)};
    double start = nib_cli_now_ms();
    nib_status status = nib_cli_open_file(&s->file, opt, path, err);
    s->load_ms = nib_cli_now_ms() - start;
    return status;
}

nib_status nib_cli_session_open(nib_cli_session *s, const nib_cli_options *opt, const nib_cli_term *term,
                                nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(nib_cli_session_file(s, opt, term, opt->model, err));
    nib_tokenizer_config config = NIB_TOKENIZER_CONFIG_INIT;
    config.pre = opt->pre;
    double start = nib_cli_now_ms();
    nib_status status = nib_tokenizer_new(&s->tok, s->file, &config, err);
    if (status == NIB_E_UNSUPPORTED && strstr(err->message, "pre-tokenizer")) /* the library cannot name our option */
        nib_cli_note(term, "--pre NAME uses another pre-tokenizer; a wrong one makes the answers worse");
    NIB_TRY(status);
    s->load_ms += nib_cli_now_ms() - start;
    const char *warning;
    for (size_t i = 0; (warning = nib_tokenizer_warning(s->tok, i)); i++) nib_cli_warning(term, "%s", warning);
    return NIB_OK;
}

static bool load_progress(void *bar, uint64_t done, uint64_t total) {
    nib_cli_bar_draw(bar, done, total);
    return !nib_cli_interrupted();
}

/* As asked for; else the best number that was measured here; else 0: as many as nib_cpu_count. */
static int n_threads(const nib_cli_options *opt) {
    int n = opt->n_threads > 0 ? opt->n_threads : opt->n_threads_batch;
    if (n > 0) return n;
    nib_cli_limits limits;
    nib_error err;
    n = nib_cli_limits_get(&limits, 0, NIB_CLI_LIMITS_KNOWN, NULL, &err) == NIB_OK ? nib_cli_limits_best_threads(&limits) : 0;
    nib_cli_limits_free(&limits);
    return n < nib_cpu_count(NULL) ? n : 0;
}

nib_status nib_cli_session_model(nib_cli_session *s, nib_error *err) {
    const nib_cli_options *opt = s->opt;
    nib_cli_bar bar = {.term = s->term, .label = "load"};
    nib_model_config config = NIB_MODEL_CONFIG_INIT;
    config.isa = opt->isa ? opt->isa : nib_cli_isa_best(s->term);
    config.n_threads = n_threads(opt);
    config.mlock = opt->mlock || opt->load_mode == NIB_CLI_LOAD_MLOCK || opt->load_mode == NIB_CLI_LOAD_MMAP_MLOCK;
    config.check_tensors = opt->check_tensors;
    config.pack_cache = opt->pack_cache;
    config.rope_freq_base = opt->rope_freq_base;
    config.rope_freq_scale = opt->rope_freq_scale;
    config.plan_only = s->plan_only;
    config.progress = load_progress;
    config.user = &bar;
    nib_cli_signals_catch();
    double start = nib_cli_now_ms();
    nib_status status = nib_model_open(&s->model, s->file, &config, err);
    nib_cli_bar_clear(&bar);
    s->load_ms += nib_cli_now_ms() - start;
    NIB_TRY(status);
    const char *what;
    if (nib_model_pack_cache(s->model, &what) != NIB_OK) nib_cli_warning(s->term, "%s", what);
    else if (what && opt->verbose) nib_cli_note(s->term, "%s", what);
    return NIB_OK;
}

nib_context_config nib_cli_context_config(const nib_cli_options *opt) {
    nib_context_config config = NIB_CONTEXT_CONFIG_INIT;
    config.n_ctx = opt->n_ctx;
    config.n_batch = opt->n_batch;
    config.n_ubatch = opt->n_ubatch < opt->n_batch ? opt->n_ubatch : opt->n_batch;
    config.n_logits = 1;
    config.n_threads = n_threads(opt);
    config.k_type = opt->k_type;
    config.v_type = opt->v_type;
    config.abort = nib_cli_abort;
    return config;
}

nib_status nib_cli_session_context(nib_cli_session *s, const nib_context_config *config, nib_error *err) {
    NIB_TRY(nib_context_new(&s->ctx, s->model, config, err));
    NIB_TRY(nib_batch_new(&s->batch, nib_context_n_batch(s->ctx), err));
    if (s->opt->verbose) {
        const char *reason;
        int n_cpu = nib_cpu_count(&reason);
        nib_cli_line(s->term, "model: %s, %.1f M parameters, %.1f MiB of weights, instruction set %s",
                     nib_model_arch(s->model), (double)nib_model_n_params(s->model) / 1e6,
                     (double)nib_model_weight_bytes(s->model) / 0x1p20, nib_model_isa(s->model));
        nib_cli_line(s->term, "context: %u positions, cache %.1f MiB (%s keys, %s values), buffers %.1f MiB",
                     nib_context_n_ctx(s->ctx), (double)nib_context_kv_bytes(s->ctx) / 0x1p20, s->opt->k_type,
                     s->opt->v_type, (double)nib_context_buffer_bytes(s->ctx) / 0x1p20);
        nib_cli_line(s->term, "threads: %d; this process may use %d CPUs (%s)", nib_context_n_threads(s->ctx), n_cpu,
                     reason);
    }
    return NIB_OK;
}

void nib_cli_session_end_context(nib_cli_session *s) {
    nib_batch_free(s->batch);
    nib_context_free(s->ctx);
    s->batch = NULL;
    s->ctx = NULL;
}

void nib_cli_session_close(nib_cli_session *s) {
    nib_cli_session_end_context(s);
    nib_model_close(s->model);
    nib_tokenizer_free(s->tok);
    nib_gguf_close(s->file);
    *s = (nib_cli_session){0};
}

nib_status nib_cli_session_decode(nib_cli_session *s, const nib_token *ids, size_t n, size_t n_rows, nib_error *err) {
    nib_batch_clear(s->batch);
    for (size_t i = 0; i < n; i++) NIB_TRY(nib_batch_add(s->batch, ids[i], NIB_POS_NEXT, 0, i + n_rows >= n, err));
    NIB_TRY(nib_decode(s->ctx, s->batch, err));
    if (s->opt->logits_hash) /* FNV's step, a row's hash at a time */
        for (uint32_t i = 0; i < nib_n_logits(s->ctx); i++)
            s->logits_hash = (s->logits_hash ^ nib_logits_hash(s->ctx, i)) * UINT64_C(0x100000001b3);
    return NIB_OK;
}

nib_status nib_cli_session_prefill(nib_cli_session *s, const nib_token *ids, size_t n, nib_error *err) {
    nib_cli_bar bar = {.term = s->term, .label = "prompt"};
    nib_status status = NIB_OK;
    /* The library would cut a larger batch in the same way; here the bar moves in between. */
    size_t most = nib_context_n_batch(s->ctx);
    if (most > s->opt->n_ubatch) most = s->opt->n_ubatch;
    for (size_t i = 0; i < n && status == NIB_OK; i += most) {
        size_t n_now = n - i < most ? n - i : most;
        status = nib_cli_session_decode(s, ids + i, n_now, i + n_now == n, err);
        nib_cli_bar_draw(&bar, i + n_now, n);
    }
    nib_cli_bar_clear(&bar);
    return status;
}

uint32_t nib_cli_logits_rows(const nib_model *model) {
    enum { MOST_BYTES = 64 << 20, MOST_ROWS = 256 };
    uint32_t rows = MOST_BYTES / (uint32_t)sizeof(float) / nib_model_n_vocab(model);
    return rows < 1 ? 1 : rows > MOST_ROWS ? MOST_ROWS : rows;
}

void nib_cli_print_hash(const nib_cli_session *s) {
    if (s->opt->logits_hash) nib_cli_line(s->term, "logits-hash: %016llx", (unsigned long long)s->logits_hash);
}
