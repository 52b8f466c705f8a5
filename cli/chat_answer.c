/* cli/chat_answer.c - messages in -> the answer out, in events and as the next message.
 *
 * messages -> JSON -> prompt with spans -> ids -> cut to fit -> what is new of them through nib_decode -> text -> parser. */
#include "base/mem.h"
#include "base/status.h"
#include "chat.h"
#include "clock.h"
#include "sampling.h"

#include <string.h>

/* ---- the prompt */

/* The messages that the prompt shall show. */
static json_t *kept_messages(const nib_cli_chat *c) {
    json_t *kept = json_array(), *message;
    size_t i, n_system = nib_cli_chat_n_system(c);
    json_array_foreach(c->messages, i, message)
        if (i < n_system || i >= n_system + c->n_dropped) json_array_append(kept, message);
    return kept;
}

static json_t *request_of(const nib_cli_chat *c) {
    json_t *request = json_object();
    json_object_set_new(request, "messages", kept_messages(c));
    if (c->tools) json_object_set(request, "tools", c->tools);
    if (c->kwargs) json_object_set(request, "chat_template_kwargs", c->kwargs);
    if (c->opt.reasoning == NIB_CLI_REASONING_OFF) json_object_set_new(request, "enable_thinking", json_false());
    return request;
}

static nib_status render(const nib_cli_chat *c, nib_chat_prompt *prompt, nib_token_list *ids, nib_error *err) {
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    config.trust_all = c->opt.permissive;
    NIB_TRY(nib_cli_clock(c->opt.date, &config.now, err));
    json_t *request = request_of(c);
    char *text = json_dumps(request, JSON_COMPACT);
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

typedef struct answer {
    nib_cli_chat *c;
    nib_chat_event_fn event;
    void *user;
    nib_chat_parser *parser;
    nib_buf content, reasoning;
    json_t *calls;
    bool is_reasoning; /* the last event was */
    nib_status status; /* of the parser */
    nib_error err;
} answer;

static bool on_event(void *user, const nib_chat_event *event) {
    answer *a = user;
    a->is_reasoning = event->kind == NIB_CHAT_REASONING;
    if (event->kind == NIB_CHAT_CONTENT) nib_buf_append(&a->content, event->text.ptr, event->text.len);
    if (event->kind == NIB_CHAT_REASONING) nib_buf_append(&a->reasoning, event->text.ptr, event->text.len);
    if (event->kind == NIB_CHAT_TOOL_CALL) {
        json_t *call = json_object(), *function = json_object();
        json_object_set_new(call, "id", nib_cli_json_str(event->id));
        nib_cli_json_set_str(call, "type", "function");
        json_object_set_new(function, "name", nib_cli_json_str(event->name));
        json_object_set_new(function, "arguments", nib_cli_json_str(event->text));
        json_object_set_new(call, "function", function);
        json_array_append_new(a->calls, call);
    }
    return a->event(a->user, event);
}

static bool write_text(void *user, nib_str text) {
    answer *a = user;
    a->status = nib_chat_parser_push(a->parser, text, &a->err);
    a->c->n_reasoning += a->is_reasoning;
    return a->status == NIB_OK;
}

static nib_status open_parser(answer *a, const nib_chat_prompt *prompt, nib_error *err) {
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    char *tools = a->c->tools ? json_dumps(a->c->tools, JSON_COMPACT) : NULL;
    config.format = nib_chat_format(a->c->chat);
    config.starts_thinking = prompt->starts_thinking;
    config.parse_tools = tools != NULL;
    config.tools = tools;
    config.tools_len = tools ? strlen(tools) : 0;
    config.event = on_event;
    config.user = a;
    nib_status status = nib_chat_parser_new(&a->parser, &config, err);
    nib_free(tools);
    return status;
}

/* The answer becomes a message, if there was any. */
static nib_status keep(answer *a, nib_error *err) {
    if (a->content.failed || a->reasoning.failed) return nib_fail_nomem(err, a->content.len, "the answer");
    bool has_calls = json_array_size(a->calls) > 0;
    if (!a->content.len && !a->reasoning.len && !has_calls) return NIB_OK;
    json_t *message = json_object();
    nib_cli_json_set_str(message, "role", "assistant");
    json_object_set_new(message, "content", has_calls && !a->content.len ? json_null() : nib_cli_json_str(nib_cli_bytes(&a->content)));
    if (a->reasoning.len) json_object_set_new(message, "reasoning_content", nib_cli_json_str(nib_cli_bytes(&a->reasoning)));
    if (has_calls) json_object_set(message, "tool_calls", a->calls);
    json_array_append_new(a->c->messages, message);
    return NIB_OK;
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

static nib_status generate(answer *a, const nib_token_list *ids, nib_error *err) {
    nib_cli_chat *c = a->c;
    nib_cli_generate_params params = {
        .prompt = ids->ids, .n_prompt = ids->n, .n_predict = c->opt.n_predict, .stops = c->stops.list.items,
        .n_stops = c->stops.list.n, .chat = c->chat, .write = write_text, .user = a,
    };
    if (!c->sampler) NIB_TRY(nib_cli_sampler_new(&c->sampler, &c->s, err));
    nib_sampler_reset(c->sampler);
    NIB_TRY(reuse(c, ids, &params.n_cached, err));
    nib_status status = nib_cli_generate(&c->s, c->sampler, &params, &c->g, err);
    nib_error later;
    nib_status done = nib_chat_parser_finish(a->parser, &later);
    nib_status followed = follow_sequence(c, ids, &later);
    if (status != NIB_OK) return status;
    if (a->status != NIB_OK && a->status != NIB_E_CANCELLED) {
        if (err) *err = a->err;
        return a->status;
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

nib_status nib_cli_chat_answer(nib_cli_chat *c, nib_chat_event_fn event, void *user, nib_error *err) {
    answer a = {.c = c, .event = event, .user = user, .calls = json_array()};
    nib_chat_prompt prompt = {0};
    nib_token_list ids = {0};
    nib_status status;
    nib_cli_generation_free(&c->g);
    c->n_reasoning = 0;
    NIB_TRY_OUT(fit(c, &prompt, &ids, err));
    for (size_t i = 0; prompt.notes[i] && !c->notes_shown; i++) nib_cli_note(c->s.term, "%s", prompt.notes[i]);
    c->notes_shown = true;
    NIB_TRY_OUT(open_parser(&a, &prompt, err));
    status = generate(&a, &ids, err);
    if (json_array_size(a.calls) && c->g.finish_reason && strcmp(c->g.finish_reason, "stop") == 0)
        c->g.finish_reason = "tool_calls";
    nib_status kept = keep(&a, status == NIB_OK ? err : NULL);
    if (status == NIB_OK) status = kept;
    if (status == NIB_OK) status = check_length(c, err);
out:
    nib_chat_prompt_free(&prompt);
    nib_chat_parser_free(a.parser);
    nib_token_list_free(&ids);
    nib_buf_free(&a.content);
    nib_buf_free(&a.reasoning);
    json_decref(a.calls);
    return status;
}
