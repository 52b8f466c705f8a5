/* cli/options.h - the options of all commands: one table that the parser, --help, the manual page and the shell
 * completions share.
 *
 * Rows are in options.def. The default text of a row is parsed by the same function as what the user types, so the help
 * cannot say anything else than what happens. */
#ifndef NIB_CLI_OPTIONS_H
#define NIB_CLI_OPTIONS_H

#include "command.h"
#include "list.h"
#include "nib.h"
#include "term.h"

enum {
#define GROUP(id, title) NIB_CLI_GROUP_##id,
#include "groups.def"
#undef GROUP
    NIB_CLI_N_GROUPS
};

enum {
#define KIND(id, takes_value, is_list, type) NIB_CLI_KIND_##id,
#include "kinds.def"
#undef KIND
    NIB_CLI_N_KINDS
};

#define NIB_CLI_MAX_OPTIONS 256

/* Words of "[auto|on|off]". */
enum { NIB_CLI_AUTO, NIB_CLI_ON, NIB_CLI_OFF };

/* Words of --key-order. */
enum { NIB_CLI_KEYS_ANY, NIB_CLI_KEYS_SCHEMA };

/* Words of --load-mode. */
enum {
    NIB_CLI_LOAD_AUTO, NIB_CLI_LOAD_NONE, NIB_CLI_LOAD_MMAP, NIB_CLI_LOAD_MLOCK, NIB_CLI_LOAD_MMAP_MLOCK,
    NIB_CLI_LOAD_DIO,
};

/* The values. Strings are borrowed from argv and from the table; NULL: not given. */
typedef struct nib_cli_options {
    int command; /* NIB_CLI_RUN … */
    bool given[NIB_CLI_MAX_OPTIONS];
    nib_cli_list operands; /* nib_str, each ends in NUL */

    /* input */
    const char *model, *prompt, *file, *pre, *template_file, *template_name, *chat_template, *date, *format, *tools, *tool_choice;
    const char *template_kwargs, *system, *system_file, *messages_file, *session_file;
    bool escape, add_bos, parse_special, jsonl, list_templates, thinking, permissive;

    /* output */
    bool display_prompt, special, verbose_prompt, json, ids_only, show_count, spans, plan, scdoc, logits_hash, stats;
    uint32_t n_logprobs;
    int32_t color, reasoning; /* NIB_CLI_REASONING_SHOW … */
    int32_t pooling;          /* nib_pooling; 0: the model's */
    bool plain, normalize;

    /* length and context */
    int32_t n_predict, overflow; /* NIB_CLI_OVERFLOW_TRIM … */
    nib_cli_list stops; /* nib_str */
    uint32_t n_ctx, n_batch, n_ubatch;
    nib_cli_list bench_prompt, bench_gen, bench_depth, bench_batch, bench_threads; /* uint32_t */
    uint32_t repetitions, plan_prompt, plan_gen, plan_concurrency;

    /* sampling; biases, breakers and chain stand below, not in the struct */
    nib_sampler_params sampling;
    const char *samplers, *sampler_letters;
    nib_cli_list dry_breakers; /* nib_str */
    nib_cli_list biases; /* nib_logit_bias */
    bool ignore_eos;

    /* grammar */
    const char *grammar, *grammar_file, *json_schema, *json_schema_file, *regex, *choice;
    bool json_object, jump_ahead, is_schema, is_regex;
    int32_t json_space, key_order; /* nib_json_space, NIB_CLI_KEYS_… */

    /* client of a server */
    const char *server, *client_key;
    nib_cli_list serve_concurrency; /* uint32_t */
    int32_t serve_workload; /* NIB_CLI_WORKLOAD_UNIQUE … */
    const char *serve_extra;
    uint32_t serve_requests, serve_prompt, serve_prefix, serve_turns, serve_max_tokens;

    /* server */
    const char *host, *api_key_file, *cors_origin, *tls_cert, *tls_key, *kv_dir;
    uint32_t port, n_parallel, max_context, max_requests, max_queued_tokens, max_chunk, max_connections, max_body_mib;
    uint32_t shutdown_s, timeout_s, queue_s, request_s, kv_disk_mib, max_draft;
    float turn_ms, stream_ms;
    nib_cli_list aliases, api_keys; /* nib_str */
    bool prefix_cache, strict_fields, isolate_keys, log_requests, log_text;

    /* loading and computing */
    int32_t n_threads, n_threads_batch;
    int32_t load_mode; /* NIB_CLI_LOAD_AUTO … */
    const char *isa, *k_type, *v_type, *machine, *pack_cache;
    bool mmap, mlock, check_tensors, refresh, kernels;
    nib_cli_list types; /* nib_str */
    float rope_freq_base, rope_freq_scale;

    /* general */
    bool verbose, help, version, ignored;
} nib_cli_options;

typedef struct nib_cli_option {
    uint32_t commands; /* bits 1 << NIB_CLI_RUN … */
    int group, kind;
    size_t offset;            /* of the field in nib_cli_options */
    const char *spellings;    /* "-e --escape !--no-escape": '!' sets the opposite */
    const char *arg;          /* shown after the spellings; "" no value, "[a|b]" may be left out */
    const char *default_text; /* parsed as if typed; "" leaves zero */
    double low, high;         /* of numbers */
    const char *help;
} nib_cli_option;

/* ---- the table */
size_t nib_cli_n_options(void);
const nib_cli_option *nib_cli_option_at(size_t i);
bool nib_cli_option_belongs(const nib_cli_option *option, int command);
bool nib_cli_option_takes_value(const nib_cli_option *option);
bool nib_cli_option_is_list(const nib_cli_option *option); /* grows with every use */
/* Walks spellings: zero-initialise *left, which then holds the rest. False at the end. */
bool nib_cli_spelling_next(const nib_cli_option *option, nib_str *left, nib_str *spelling, bool *negated);
/* The same for the words of an argument text "a|b|c" or "[a|b|c]". */
bool nib_cli_word_next(const nib_cli_option *option, nib_str *left, nib_str *word);
/* Whether arg is a list of words to choose from. */
bool nib_cli_option_has_words(const nib_cli_option *option);

/* The row of a command that has this spelling; NULL: there is none. */
const nib_cli_option *nib_cli_option_find(int command, nib_str spelling);

/* ---- the values */
/* Zeroes *opt, sets opt->command and fills the rest from argv, which ends in NULL. NIB_E_ARG says what is wrong and
 * names the nearest option. Notes about ignored options go to stderr. Stops at --help and --version. Free *opt in any
 * case. */
nib_status nib_cli_options_parse(nib_cli_options *opt, int command, char *const *argv, const nib_cli_term *term,
                                 nib_error *err);
void nib_cli_options_free(nib_cli_options *opt);
/* Whether the user gave the option whose field is at this offset of nib_cli_options. */
bool nib_cli_given(const nib_cli_options *opt, size_t offset);

/* The same for one option at a later time; text must stay as long as *opt. name: as typed, for messages. */
nib_status nib_cli_option_change(nib_cli_options *opt, const nib_cli_option *option, nib_str name, const char *text,
                                 nib_error *err);

/* options_value.c: parses text into the field; for FLAG it is "on" or "off". name: as typed, for messages. */
nib_status nib_cli_value_parse(const nib_cli_option *option, nib_str name, const char *text, nib_cli_options *opt,
                               nib_error *err);
/* Appends the value as it would be typed; of lists their length. */
void nib_cli_value_print(const nib_cli_option *option, const nib_cli_options *opt, nib_buf *out);

#endif
