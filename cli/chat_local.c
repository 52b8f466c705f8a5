/* cli/chat_local.c - a model of this machine answers: messages -> prompt with spans -> ids -> cut to fit -> what is new of
 * them through nib_decode -> text -> parser -> events. */
#include "answerer.h"
#include "api.h"
#include "base/mem.h"
#include "base/status.h"
#include "clock.h"
#include "input.h"
#include "sampling.h"
#include "stats.h"

#include <string.h>

/* ---- the template */

/* --chat-template is a name, or the template itself. */
static nib_status choose_template(const nib_cli_options *opt, nib_buf *text, nib_chat_config *config, nib_error *err) {
    const char *given = opt->chat_template;
    if (given && opt->template_file)
        return nib_fail(err, NIB_E_ARG, "--chat-template and --chat-template-file say the same: leave one out");
    if (opt->template_file) {
        NIB_TRY(nib_cli_input_file(opt->template_file, text, err));
        config->text = text->ptr ? text->ptr : "";
        config->text_len = text->len;
    } else if (given && strchr(given, '{')) {
        config->text = given;
        config->text_len = strlen(given);
    } else if (given) {
        if (!nib_chat_builtin_find(given).ptr)
            return nib_fail(err, NIB_E_ARG, "--chat-template %s: no such template; nib render --list-templates prints the names, and "
                            "--chat-template-file takes a file", given);
        config->builtin = given;
    }
    return NIB_OK;
}

nib_status nib_cli_chat_template(nib_chat **out, const nib_cli_session *s, nib_error *err) {
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    nib_buf text = {0};
    *out = NULL;
    config.format = s->opt->format;
    config.variant = s->opt->template_name;
    nib_status status = choose_template(s->opt, &text, &config, err);
    if (status == NIB_OK) status = nib_chat_new(out, s->file, s->tok, &config, err);
    nib_buf_free(&text);
    return status;
}

static nib_status open_template(nib_cli_chat *c, nib_error *err) {
    NIB_TRY(nib_cli_chat_template(&c->chat, &c->s, err));
    nib_str stop;
    for (size_t i = 0; (stop = nib_chat_stop(c->chat, i)).ptr; i++)
        if (!nib_cli_list_append(&c->stops.list, &stop, 1, sizeof stop)) return nib_fail_nomem(err, sizeof stop, "stop strings");
    if (c->opt.verbose) nib_cli_line(c->s.term, "chat: %s, answers read as %s", nib_chat_source(c->chat), nib_chat_format(c->chat));
    return NIB_OK;
}

/* ---- the prompt */

/* The messages that the prompt shall show. */
static json_t *kept_messages(const nib_cli_chat *c) {
    json_t *kept = json_array(), *message;
    size_t i, n_system = nib_cli_chat_n_system(c);
    json_array_foreach(c->messages, i, message)
        if (i < n_system || i >= n_system + c->n_dropped) json_array_append(kept, message);
    return kept;
}

static bool may_call(const nib_cli_chat *c) {
    return c->tools && !(c->opt.tool_choice && strcmp(c->opt.tool_choice, "none") == 0);
}

static json_t *request_of(const nib_cli_chat *c) {
    json_t *request = json_object();
    json_object_set_new(request, "messages", kept_messages(c));
    if (c->tools) json_object_set(request, "tools", c->tools);
    if (!may_call(c)) json_object_set_new(request, "tool_choice", json_string("none"));
    if (c->kwargs) json_object_set(request, "chat_template_kwargs", c->kwargs);
    if (c->opt.reasoning == NIB_CLI_REASONING_OFF) json_object_set_new(request, "enable_thinking", json_false());
    return request;
}

static nib_status render(const nib_cli_chat *c, nib_chat_prompt *prompt, nib_token_list *ids, nib_error *err) {
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    config.trust_all = c->opt.permissive;
    NIB_TRY(nib_cli_clock(c->opt.date, &config.now, err));
    json_t *request = request_of(c);
    char *text = nib_cli_json_dump(request);
    json_decref(request);
    if (!text) return nib_fail_nomem(err, 0, "the messages");
    nib_status status = nib_chat_render(c->chat, text, strlen(text), &config, prompt, err);
    if (status == NIB_E_LIMIT) nib_error_prefix(err, "a conversation of %zu bytes", strlen(text));
    nib_free(text);
    ids->n = 0;
    if (status == NIB_OK) status = nib_tokenize_spans(c->s.tok, &prompt->rendered, NIB_ADD_SPECIAL, ids, err);
    if (status == NIB_OK && ids->n == 0) status = nib_fail(err, NIB_E_ARG, "the template makes an empty prompt of these messages");
    return status;
}

/* Turns that may be left out beside the first n_dropped messages: each a message of the user and what follows, but never
 * the last. *dropped: the messages that are left out with the oldest `most` of them. */
static size_t turns_to_drop(const nib_cli_chat *c, size_t n_dropped, size_t most, size_t *dropped) {
    size_t n = json_array_size(c->messages), first = nib_cli_chat_n_system(c) + n_dropped, n_turns = 0;
    *dropped = n_dropped;
    for (size_t i = first + 1; i < n && n_turns < most; i++) {
        const char *role = json_string_value(json_object_get(json_array_get(c->messages, i), "role"));
        if (!role || strcmp(role, "user") != 0) continue;
        *dropped = n_dropped + i - first;
        n_turns++;
    }
    return n_turns;
}

/* Positions to keep free for the answer, so that turns are not left out one by one, each at the price of a new prefill. */
static size_t reserve(const nib_cli_chat *c) {
    size_t quarter = nib_context_n_ctx(c->s.ctx) / 4;
    int32_t wanted = c->opt.n_predict;
    return wanted >= 0 && (size_t)wanted < quarter ? (size_t)wanted : quarter;
}

/* Leaves out as few turns as make the prompt fit; each try is a render, so their number is halved, not counted down. */
static nib_status trim(nib_cli_chat *c, nib_chat_prompt *prompt, nib_token_list *ids, size_t most, nib_error *err) {
    size_t before = c->n_dropped, low = 1, high = turns_to_drop(c, before, SIZE_MAX, &c->n_dropped);
    for (size_t tried = 0; high && (low < high || tried != high);) {
        tried = low + (high - low) / 2;
        turns_to_drop(c, before, tried, &c->n_dropped);
        nib_chat_prompt_free(prompt);
        NIB_TRY(render(c, prompt, ids, err));
        if (ids->n <= most) high = tried;
        else if (tried < high) low = tried + 1;
    }
    return NIB_OK;
}

static nib_status fit(nib_cli_chat *c, nib_chat_prompt *prompt, nib_token_list *ids, nib_error *err) {
    size_t n_ctx = nib_context_n_ctx(c->s.ctx), before = c->n_dropped, most = n_ctx - reserve(c);
    bool trims = c->opt.overflow == NIB_CLI_OVERFLOW_TRIM;
    nib_status status = render(c, prompt, ids, err);
    if (status == NIB_OK && trims && ids->n > most) status = trim(c, prompt, ids, most, err);
    if (status == NIB_OK && ids->n > n_ctx)
        status = nib_fail(err, NIB_E_LIMIT, "the conversation has %zu tokens and the context holds %zu: shorten it, raise -c%s",
                          ids->n, n_ctx, trims ? "" : ", or use --overflow trim");
    if (status != NIB_OK) c->n_dropped = before; /* the turns are not what was too long */
    if (c->n_dropped > before)
        nib_cli_warning(c->s.term, "the context of %zu tokens is full: the %zu oldest messages are no longer shown to the model",
                        n_ctx, c->n_dropped);
    return status;
}

/* ---- what the model says */

typedef struct local_answer {
    nib_cli_answer *a;
    nib_chat_parser *parser;
    nib_status status; /* of the parser */
    nib_error err;
} local_answer;

static bool write_text(void *user, nib_str text) {
    local_answer *l = user;
    l->status = nib_chat_parser_push(l->parser, text, &l->err);
    l->a->c->last.n_reasoning += l->a->is_reasoning;
    return l->status == NIB_OK;
}

static nib_status open_parser(local_answer *l, const nib_chat_prompt *prompt, nib_error *err) {
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    const nib_cli_chat *c = l->a->c;
    const char *tools = may_call(c) ? c->tools_text : NULL;
    config.format = nib_chat_format(c->chat);
    config.starts_thinking = prompt->starts_thinking;
    config.parse_tools = tools != NULL;
    config.tools = tools;
    config.tools_len = tools ? strlen(tools) : 0;
    config.event = nib_cli_answer_event;
    config.user = l->a;
    return nib_chat_parser_new(&l->parser, &config, err);
}

/* Makes the matcher of the next answer, which begins inside of thoughts or not. */
static nib_status constrain(nib_cli_chat *c, bool starts_thinking, nib_error *err) {
    nib_chat_grammar_config config;
    nib_str tools = {c->tools_text, c->tools_text ? strlen(c->tools_text) : 0};
    nib_cli_constraint_choice(&c->constraint, &c->opt, tools, &config);
    config.format = nib_chat_format(c->chat);
    config.starts_thinking = starts_thinking;
    config.no_thinking = c->opt.reasoning == NIB_CLI_REASONING_OFF || strcmp(config.format, "generic") == 0; /* it may know nothing of it */
    return nib_cli_constraint_answer(&c->constraint, c->chat, &config, err);
}

/* Says when an answer ended before it was what it must be. */
static void check_cut(const nib_cli_chat *c) {
    const nib_matcher *matcher = c->constraint.matcher;
    if (matcher && c->g.finish_reason && strcmp(c->g.finish_reason, "interrupted") != 0 && !nib_matcher_may_end(matcher))
        nib_cli_warning(c->s.term, "the answer was cut (%s) before it matched the grammar", c->g.finish_reason);
}

/* ---- the sequence */

/* Keeps of the sequence what the prompt begins with, but never all of it: the last token gives the logits. */
static nib_status reuse(nib_cli_chat *c, const nib_token_list *ids, size_t *n_cached, nib_error *err) {
    size_t n = 0, most = c->ids.n < ids->n ? c->ids.n : ids->n - 1;
    while (n < most && c->ids.ids[n] == ids->ids[n]) n++;
    NIB_TRY(nib_seq_truncate(c->s.ctx, 0, (uint32_t)n, err));
    c->ids.n = n;
    *n_cached = n;
    return NIB_OK;
}

/* c->ids again what the sequence holds, which is the beginning of prompt and answer. */
static nib_status follow_sequence(nib_cli_chat *c, const nib_token_list *prompt, nib_error *err) {
    c->ids.n = 0;
    bool ok = nib_cli_append_ids(&c->ids, prompt->ids, prompt->n) && nib_cli_append_ids(&c->ids, c->g.ids.ids, c->g.ids.n);
    if (ok) c->ids.n = nib_seq_length(c->s.ctx, 0);
    else nib_seq_free(c->s.ctx, 0), c->ids.n = 0;
    return ok ? NIB_OK : nib_fail_nomem(err, 0, "ids");
}

static nib_status generate(local_answer *l, const nib_token_list *ids, nib_error *err) {
    nib_cli_chat *c = l->a->c;
    nib_cli_generate_params params = {
        .prompt = ids->ids, .n_prompt = ids->n, .n_predict = c->opt.n_predict, .stops = c->stops.list.items,
        .n_stops = c->stops.list.n, .chat = c->chat, .matcher = c->constraint.matcher, .jump_ahead = c->opt.jump_ahead,
        .write = write_text, .user = l,
    };
    if (!c->sampler) NIB_TRY(nib_cli_sampler_new(&c->sampler, &c->s, err));
    nib_sampler_reset(c->sampler);
    NIB_TRY(reuse(c, ids, &params.n_cached, err));
    nib_status status = nib_cli_generate(&c->s, c->sampler, &params, &c->g, err);
    nib_error later;
    nib_status done = nib_chat_parser_finish(l->parser, &later);
    nib_status followed = follow_sequence(c, ids, &later);
    if (status != NIB_OK) return status;
    if (l->status != NIB_OK && l->status != NIB_E_CANCELLED) {
        if (err) *err = l->err;
        return l->status;
    }
    if (done == NIB_E_CANCELLED) done = NIB_OK;
    if (err && (done != NIB_OK || followed != NIB_OK)) *err = later;
    return done != NIB_OK ? done : followed;
}

static nib_status check_length(const nib_cli_chat *c, nib_error *err) {
    uint32_t n_ctx = nib_context_n_ctx(c->s.ctx);
    bool is_full = c->g.finish_reason && strcmp(c->g.finish_reason, "length") == 0 && nib_seq_length(c->s.ctx, 0) == n_ctx;
    if (!is_full) return NIB_OK;
    if (c->opt.overflow == NIB_CLI_OVERFLOW_ERROR)
        return nib_fail(err, NIB_E_LIMIT, "the answer was cut: the context of %u tokens is full; raise -c", n_ctx);
    nib_cli_warning(c->s.term, "the answer was cut: the context of %u tokens is full; -c raises it", n_ctx);
    return NIB_OK;
}

static void take_figures(nib_cli_chat *c) {
    const nib_cli_generation *g = &c->g;
    c->last.finish_reason = g->finish_reason;
    c->last.n_prompt = g->n_prompt;
    c->last.n_cached = g->n_cached;
    c->last.n_generated = g->ids.n;
    c->last.ttft_ms = g->ttft_ms;
    c->last.decode_ms = g->decode_ms;
}

static nib_status answer(nib_cli_answer *a, nib_error *err) {
    nib_cli_chat *c = a->c;
    local_answer l = {.a = a};
    nib_chat_prompt prompt = {0};
    nib_token_list ids = {0};
    nib_status status;
    nib_cli_generation_free(&c->g);
    NIB_TRY_OUT(fit(c, &prompt, &ids, err));
    for (size_t i = 0; prompt.notes[i] && !c->notes_shown; i++) nib_cli_note(c->s.term, "%s", prompt.notes[i]);
    c->notes_shown = true;
    NIB_TRY_OUT(open_parser(&l, &prompt, err));
    NIB_TRY_OUT(constrain(c, prompt.starts_thinking, err));
    status = generate(&l, &ids, err);
    if (status == NIB_OK) check_cut(c);
    take_figures(c);
    if (status == NIB_OK) status = check_length(c, err);
out:
    nib_chat_prompt_free(&prompt);
    nib_chat_parser_free(l.parser);
    nib_token_list_free(&ids);
    return status;
}

/* ---- the rest of answerer.h */

/* What is wrong with an option shows before the file is read. */
static nib_status check_options(const nib_cli_options *opt, nib_error *err) {
    const char *const *name = nib_chat_format_names();
    int64_t now;
    NIB_TRY(nib_cli_sampling_check(opt, err));
    NIB_TRY(nib_cli_clock(opt->date, &now, err));
    while (opt->format && *name && strcmp(*name, opt->format) != 0) name++;
    if (*name) return NIB_OK;
    nib_buf names = {0};
    for (name = nib_chat_format_names(); *name; name++) nib_buf_printf(&names, " %s", *name);
    nib_fail(err, NIB_E_ARG, "--format %s: no such format of answers; there are:%s", opt->format, nib_buf_cstr(&names) ? names.ptr : "");
    nib_buf_free(&names);
    return NIB_E_ARG;
}

static nib_status open_local(nib_cli_chat *c, nib_error *err) {
    NIB_TRY(nib_cli_api_check(&c->opt, NULL, err));
    NIB_TRY(check_options(&c->opt, err));
    NIB_TRY(nib_cli_session_open(&c->s, &c->opt, c->s.term, err));
    NIB_TRY(open_template(c, err));
    NIB_TRY(constrain(c, false, err)); /* what is wrong with it shows before the model is loaded */
    NIB_TRY(nib_cli_session_model(&c->s, err));
    nib_context_config config = nib_cli_context_config(&c->opt);
    return nib_cli_session_context(&c->s, &config, err);
}

static void close_local(nib_cli_chat *c) {
    nib_sampler_free(c->sampler);
    nib_cli_generation_free(&c->g);
    nib_token_list_free(&c->ids);
    nib_chat_free(c->chat);
    nib_cli_session_close(&c->s);
}

static nib_status check(const nib_cli_chat *c, nib_error *err) {
    nib_sampler *trial = NULL;
    nib_status status = nib_cli_sampler_new(&trial, &c->s, err);
    nib_sampler_free(trial);
    return status;
}

/* What the file recommends holds where nothing was given. */
static bool defaults(const nib_cli_chat *c, nib_cli_options *now) {
    nib_cli_sampling_hints(&c->s, &now->sampling);
    return true;
}

static void forget(nib_cli_chat *c) {
    nib_seq_free(c->s.ctx, 0);
    c->ids.n = 0;
    nib_cli_generation_free(&c->g);
}

static void introduce(const nib_cli_chat *c, nib_buf *text) {
    const nib_gguf_value *name = nib_gguf_find(c->s.file, "general.name");
    bool has_name = name && name->type == NIB_GGUF_STRING && name->as.str.len;
    nib_buf_printf(text, "%.*s, %s", has_name ? (int)name->as.str.len : 5, has_name ? name->as.str.ptr : "model",
                   nib_chat_source(c->chat));
}

static void context(const nib_cli_chat *c, uint32_t *used, uint32_t *total) {
    *used = nib_seq_length(c->s.ctx, 0);
    *total = nib_context_n_ctx(c->s.ctx);
}

static void describe(const nib_cli_chat *c, json_t *object) {
    nib_cli_json_set_str(object, "model", c->opt.model);
    nib_cli_json_set_str(object, "template", nib_chat_source(c->chat));
    nib_cli_json_set_str(object, "format", nib_chat_format(c->chat));
    nib_cli_json_set_int(object, "dropped_messages", (int64_t)c->n_dropped);
    nib_cli_json_set_int(object, "seed", nib_sampler_seed(c->sampler));
    if (c->opt.logits_hash) json_object_set_new(object, "logits_hash", nib_cli_json_hash(c->s.logits_hash));
    json_object_set_new(object, "timings", nib_cli_stats_json(&c->s, &c->g));
}

static void print_stats(const nib_cli_chat *c) {
    nib_cli_stats_print(&c->s, &c->g);
}

const nib_cli_answerer nib_cli_chat_local = {
    .open = open_local, .close = close_local, .answer = answer, .check = check, .defaults = defaults, .forget = forget,
    .introduce = introduce, .context = context, .describe = describe, .print_stats = print_stats,
};
