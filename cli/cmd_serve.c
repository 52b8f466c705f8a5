/* cli/cmd_serve.c - nib serve: options -> a server that runs until a signal; everything it says goes to stderr.
 *
 * The server listens before the model is loaded, so that probes get an answer. SIGINT and SIGTERM are waited for, not
 * handled: the first lets what runs end, the second does not. */
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "chat.h"
#include "input.h"
#include "limits.h"
#include "notify.h"
#include "session.h"
#include "signals.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef NIB_SERVER
#include "server/server.h"

enum { LAST_WORD_MS = 500 }; /* for clients to read why their answers are cut */
#define TIDY_SECONDS 20.0
#define KEPT_BYTES (1 << 20) /* of free memory at the end of the heap */
#define REQUEST_MIB 2.5 /* seen: memory of a request that runs, its text and the room that malloc keeps */

typedef struct serve_state {
    nib_cli_session s;
    nib_chat *chat;
    nib_engine *engine;
    nib_server *server;
    nib_error no_chat;
    nib_buf key_text; /* of --api-key-file */
    nib_cli_list keys, names; /* nib_str */
    nib_engine_figures figures; /* at the start */
} serve_state;

static void log_line(void *user, const char *line) {
    nib_cli_line(user, "%s", line);
}

/* ---- options */

/* --api-key and the lines of --api-key-file. */
static nib_status read_keys(serve_state *st, const nib_cli_options *opt, nib_error *err) {
    bool ok = nib_cli_list_append(&st->keys, opt->api_keys.items, opt->api_keys.n, sizeof(nib_str));
    if (opt->api_key_file) NIB_TRY(nib_cli_input_file(opt->api_key_file, &st->key_text, err));
    size_t n_before = st->keys.n;
    for (size_t i = 0; i < st->key_text.len && ok;) {
        const char *line = st->key_text.ptr + i;
        const char *end = memchr(line, '\n', st->key_text.len - i);
        nib_str key = {line, end ? (size_t)(end - line) : st->key_text.len - i};
        i += key.len + 1;
        while (key.len && (key.ptr[key.len - 1] == '\r' || key.ptr[key.len - 1] == ' ')) key.len--;
        if (key.len && *key.ptr != '#') ok = nib_cli_list_append(&st->keys, &key, 1, sizeof key);
    }
    if (!ok) return nib_fail_nomem(err, 0, "API keys");
    if (opt->api_key_file && st->keys.n == n_before) return nib_fail(err, NIB_E_ARG, "%s has no keys", opt->api_key_file);
    for (size_t i = 0; i < st->keys.n; i++)
        if (!((const nib_str *)st->keys.items)[i].len) return nib_fail(err, NIB_E_ARG, "--api-key is empty");
    return NIB_OK;
}

/* The names of the model: of --alias, else the file's without its folder and ".gguf". */
static nib_status read_names(serve_state *st, const nib_cli_options *opt, nib_error *err) {
    const char *slash = strrchr(opt->model, '/');
    nib_str name = {slash ? slash + 1 : opt->model, 0};
    name.len = strlen(name.ptr);
    if (name.len > 5 && strcmp(name.ptr + name.len - 5, ".gguf") == 0) name.len -= 5;
    bool ok = opt->aliases.n ? nib_cli_list_append(&st->names, opt->aliases.items, opt->aliases.n, sizeof name)
                             : nib_cli_list_append(&st->names, &name, 1, sizeof name);
    return ok ? NIB_OK : nib_fail_nomem(err, sizeof name, "names");
}

/* As browsers say it; anything else would never fit. */
static bool is_origin(const char *text) {
    const char *host = strstr(text, "://");
    return strcmp(text, "*") == 0 || (host && host != text && host[3] && !strpbrk(host + 3, "/?# \t\r\n"));
}

static bool is_loopback(const char *host) {
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}

static nib_status listen_for_clients(serve_state *st, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(read_keys(st, opt, err));
    NIB_TRY(read_names(st, opt, err));
    if (opt->cors_origin && !is_origin(opt->cors_origin))
        return nib_fail(err, NIB_E_ARG, "--cors-origin %s: expected * or an origin without a path, as https://example.org",
                        opt->cors_origin);
    if (!opt->tls_cert != !opt->tls_key) return nib_fail(err, NIB_E_ARG, "--tls-cert and --tls-key belong together");
    nib_server_config config = {
        .host = opt->host, .port = (uint16_t)opt->port, .tls_cert = opt->tls_cert, .tls_key = opt->tls_key,
        .models = st->names.items, .n_models = st->names.n, .keys = st->keys.items, .n_keys = st->keys.n,
        .cors_origin = opt->cors_origin, .max_connections = opt->max_connections, .max_requests = opt->max_requests,
        .max_body = (size_t)opt->max_body_mib << 20, .timeout_s = opt->timeout_s,
        .queue_s = opt->queue_s, .request_s = opt->request_s, .strict_fields = opt->strict_fields,
        .isolate_keys = opt->isolate_keys, .log_text = opt->log_text, .log = opt->log_requests ? log_line : NULL,
        .user = (void *)(uintptr_t)term,
    };
    NIB_TRY(nib_server_new(&st->server, &config, err));
    if (!is_loopback(opt->host) && !st->keys.n)
        nib_cli_warning(term, "everybody who can reach %s, port %u, can use this server: give it an --api-key, or let it listen on "
                        "127.0.0.1", opt->host, nib_server_port(st->server));
    if (!is_loopback(opt->host) && st->keys.n && !opt->tls_cert)
        nib_cli_note(term, "keys and texts go over the network as they are: use --tls-cert, or a proxy that speaks TLS");
    return NIB_OK;
}

/* ---- the model */

static void warn(void *user, const char *message) {
    nib_cli_warning(user, "%s", message);
}

static nib_status open_engine(serve_state *st, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    nib_engine_config config = NIB_ENGINE_CONFIG_INIT;
    config.context = nib_cli_context_config(opt);
    config.context.abort = NULL;
    config.context.n_seq = config.context.n_logits = opt->n_parallel;
    if (config.context.n_batch < opt->n_parallel) config.context.n_batch = opt->n_parallel;
    if (config.context.n_ubatch < opt->n_parallel) config.context.n_ubatch = opt->n_parallel;
    config.max_context = opt->max_context;
    config.max_requests = opt->max_requests;
    config.max_queued_tokens = opt->max_queued_tokens;
    config.turn_ms = opt->turn_ms;
    config.stream_ms = opt->stream_ms;
    config.max_chunk = opt->max_chunk;
    config.no_prefix_cache = !opt->prefix_cache;
    config.max_draft = opt->max_draft;
    config.kv_dir = opt->kv_dir;
    config.kv_disk = (uint64_t)opt->kv_disk_mib << 20;
    config.log = warn;
    config.user = (void *)(uintptr_t)term;
    NIB_TRY(nib_engine_new(&st->engine, st->s.model, st->s.tok, &config, err));
    nib_engine_stats(st->engine, &st->figures);
    return NIB_OK;
}

static nib_status load(serve_state *st, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_session_open(&st->s, opt, term, err));
    NIB_TRY(nib_cli_session_model(&st->s, err));
    nib_status status = nib_cli_chat_template(&st->chat, &st->s, &st->no_chat);
    bool is_chosen = opt->chat_template || opt->template_file || opt->template_name || opt->format;
    if (status != NIB_OK && (is_chosen || status != NIB_E_ARG)) {
        *err = st->no_chat;
        return status;
    }
    if (status != NIB_OK) nib_cli_warning(term, "only completions, no chat: %s", st->no_chat.message);
    return NIB_OK;
}

/* Bytes of a set of n_bytes that this machine reads in a second: what nib limits found, or a quick look. */
static double read_speed(const nib_cli_options *opt, double n_bytes) {
    enum { N_RUNS = 3 };
    nib_cli_limits limits;
    nib_meter *meter;
    nib_meter_config config = NIB_METER_CONFIG_INIT;
    bool is_known = nib_cli_limits_get(&limits, 0, NIB_CLI_LIMITS_KNOWN, NULL, NULL) == NIB_OK && limits.n_rows > 0;
    double best = is_known ? nib_cli_limit_read(&limits.rows[limits.n_rows - 1], n_bytes) : 0;
    nib_cli_limits_free(&limits);
    config.isa = opt->isa;
    config.n_bytes = (uint64_t)fmin(fmax(n_bytes, 0x1p20), 0x1p28);
    if (is_known || nib_meter_new(&meter, &config, NULL) != NIB_OK) return best;
    for (int i = 0; i < N_RUNS; i++) {
        double seconds = nib_meter_run(meter, nib_cpu_count(NULL));
        if (seconds > 0 && (double)nib_meter_bytes(meter) / seconds > best) best = (double)nib_meter_bytes(meter) / seconds;
    }
    nib_meter_free(meter);
    return best;
}

/* Memory that the process has now. */
static double resident_mib(void) {
    char text[2048];
    bool is_there = nib_sys_read_file("/proc/self/status", text, sizeof text);
    return is_there ? (double)nib_sys_parse_field(text, "VmRSS:") / 1024 : 0;
}

/* What one may expect. */
static void print_plan(const serve_state *st, const nib_cli_options *opt, const nib_cli_term *term) {
    const nib_engine_figures *f = &st->figures;
    uint64_t n_kv = (uint64_t)f->n_pages * 32;
    double each = (double)nib_model_bytes_per_token(st->s.model), speed = read_speed(opt, each);
    nib_cli_line(term, "cache: %llu tokens, %u answers at once; %llu requests of the full context of %u tokens",
                 (unsigned long long)n_kv, opt->n_parallel, (unsigned long long)(n_kv / f->max_context), f->max_context);
    if (f->n_disk_pages) nib_cli_line(term, "disk: %llu tokens are found in %s", (unsigned long long)f->n_disk_pages * 32, opt->kv_dir);
    double now = resident_mib(), cache = (double)f->kv_bytes / 0x1p20, buffers = (double)f->buffer_bytes / 0x1p20;
    double grammars = NIB_SERVER_GRAMMAR_BYTES / 0x1p20, most = now + cache + buffers + grammars + REQUEST_MIB * opt->n_parallel;
    nib_cli_line(term, "memory: %.0f MiB now, of which weights %.0f; up to %.0f in use: cache %.0f (%s keys, %s values), buffers %.0f, "
                 "grammars %.0f, requests", now, (double)nib_model_weight_bytes(st->s.model) / 0x1p20, most, cache, opt->k_type,
                 opt->v_type, buffers, grammars);
    if (speed > 0 && each > 0)
        nib_cli_line(term, "speed: about %.0f tokens/s for one answer, as memory is read: %.1f MB of weights each, %.1f GB/s", speed / each,
                     each / 1e6, speed / 1e9);
}

static void print_address(const serve_state *st, const nib_cli_options *opt, const nib_cli_term *term) {
    bool is_v6 = strchr(opt->host, ':') != NULL;
    nib_cli_line(term, "listening on %s://%s%s%s:%u", opt->tls_cert ? "https" : "http", is_v6 ? "[" : "", opt->host, is_v6 ? "]" : "",
                 nib_server_port(st->server));
}

/* ---- memory */

/* glibc gives every thread a heap of its own, which keeps the most that it ever held, and lets blocks of up to 32 MiB stay in it: a
 * server grew by tenths in half an hour of mixed load. Requests allocate little, so one heap is no place to wait at. */
static void share_one_heap(void) {
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_THRESHOLD, 256 << 10);
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
#endif
}

/* Free memory between what is in use goes back as well, some milliseconds of work. */
static void give_back_memory(void) {
#ifdef __GLIBC__
    malloc_trim(KEPT_BYTES);
#endif
}

/* ---- the time between signals */

static void block_signals(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    pthread_sigmask(how, &set, NULL);
}

/* Waits for a signal at most so long; 0: none came. A hang-up of the terminal that nohup ignores does not come. */
static int wait_signal(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    int signal_number = sigtimedwait(&set, NULL, &time);
    return signal_number < 0 ? 0 : signal_number;
}

static void serve(serve_state *st, const nib_cli_options *opt, const nib_cli_term *term) {
    nib_cli_notify("READY=1");
    while (!wait_signal(TIDY_SECONDS)) give_back_memory();
    nib_cli_notify("STOPPING=1");
    nib_cli_line(term, "shutting down: running answers have %u s; another signal ends them at once", opt->shutdown_s);
    double until = nib_cli_now_ms() + 1e3 * opt->shutdown_s;
    nib_server_drain(st->server);
    while (!nib_server_is_idle(st->server) && nib_cli_now_ms() < until && !wait_signal(0.02)) {
    }
    nib_server_cut(st->server);
    for (until = nib_cli_now_ms() + LAST_WORD_MS; !nib_server_is_idle(st->server) && nib_cli_now_ms() < until;) wait_signal(0.02);
}

static nib_status start(serve_state *st, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    block_signals(SIG_BLOCK); /* for the threads of the server */
    NIB_TRY(listen_for_clients(st, opt, term, err));
    print_address(st, opt, term);
    nib_cli_signals_catch();
    block_signals(SIG_UNBLOCK); /* while it is loaded a signal ends the work */
    nib_status status = load(st, opt, term, err);
    block_signals(SIG_BLOCK);
    if (status == NIB_OK && nib_cli_interrupted()) status = nib_fail(err, NIB_E_CANCELLED, "interrupted");
    NIB_TRY(status);
    NIB_TRY(open_engine(st, opt, term, err));
    nib_server_model model = {st->s.model, st->s.tok, st->chat, st->no_chat.message, st->engine, st->figures.max_context,
                              st->figures.n_pages * 32, opt->n_parallel};
    NIB_TRY(nib_server_open(st->server, &model, err));
    print_plan(st, opt, term);
    nib_cli_line(term, "ready");
    return NIB_OK;
}

/* More connections than the usual 1024 descriptors, where that is allowed. */
static void raise_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int nib_cli_cmd_serve(const nib_cli_options *opt, const nib_cli_term *term) {
    serve_state st = {0};
    nib_error err;
    share_one_heap();
    raise_descriptors();
    nib_status status = start(&st, opt, term, &err);
    if (status == NIB_OK) serve(&st, opt, term);
    nib_server_free(st.server);
    nib_engine_free(st.engine);
    nib_chat_free(st.chat);
    nib_cli_session_close(&st.s);
    nib_cli_list_free(&st.keys);
    nib_cli_list_free(&st.names);
    nib_buf_free(&st.key_text);
    if (status == NIB_OK || status == NIB_E_CANCELLED) return NIB_CLI_DONE;
    return nib_cli_fail(term, &err);
}

#else

int nib_cli_cmd_serve(const nib_cli_options *opt, const nib_cli_term *term) {
    (void)opt;
    nib_cli_error(term, "this nib was built without its server (NIB_SERVER)");
    return NIB_CLI_USAGE;
}
#endif
