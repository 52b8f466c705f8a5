/* chat/prompt.c - nib_chat_render: a request in, the prompt with its spans out; and the tries that a new nib_chat makes. */
#include "base/buf.h"
#include "base/status.h"
#include "chat/build.h"
#include "chat/chat.h"
#include "jinja/template.h"

static const char *const g_notes[] = {
#define NOTE(id, text) text,
#include "chat/notes.def"
};
_Static_assert(NIB_CHAT_N_NOTES < sizeof((nib_chat_prompt){0}).notes / sizeof(char *), "the last one is NULL");

static bool set_token(const nib_chat *chat, nib_arena *arena, const jinja_value *vars, const char *name, const char *role) {
    nib_token id = nib_tokenizer_special(chat->tok, role);
    nib_str text = id == NIB_TOKEN_NONE ? (nib_str){"", 0} : nib_tokenizer_text(chat->tok, id);
    jinja_value v = jinja_str(text.ptr, text.len);
    return nib_chat_set(arena, vars, name, &v);
}

/* "NAME:LINE:COLUMN: …" */
static void name_place(const nib_chat_template *t, nib_error *err) {
    uint32_t line, column;
    if (!err || err->offset == NIB_NO_OFFSET) return;
    nib_template_place(t->text, t->len, err->offset, &line, &column);
    nib_error_prefix(err, "%s:%u:%u", t->source, line, column);
}

nib_status nib_chat_template_run(const nib_chat *chat, const nib_chat_template *t, nib_chat_reader *r,
                                 const jinja_value *vars, const nib_chat_render_config *config, nib_rendered *out) {
    const nib_template_config limits = {sizeof limits,     config->max_steps, config->max_bytes,
                                        config->max_depth, config->now,       ""};
    if (!set_token(chat, r->arena, vars, "bos_token", "bos") || !set_token(chat, r->arena, vars, "eos_token", "eos"))
        return nib_chat_field_nomem(r);
    nib_status status = nib_jinja_template_run(t->parsed, r->arena, vars->as.dict, &limits, out, r->err);
    if (status != NIB_OK) name_place(t, r->err);
    return status;
}

nib_status nib_chat_try(const nib_chat *chat, const nib_chat_template *t, const char *json, nib_rendered *out,
                        nib_error *err) {
    static const nib_chat_render_config config = {.max_steps = 200000, .max_bytes = 8 << 20, .max_depth = 200};
    nib_arena arena = {.limit = config.max_bytes};
    nib_error local;
    nib_chat_reader r = {.arena = &arena, .err = &local};
    nib_chat_request request;
    jinja_value vars;
    unsigned notes = 0;
    *out = (nib_rendered){0};
    nib_status status = nib_chat_request_read(&r, (nib_str){json, strlen(json)}, &request);
    if (status == NIB_OK) status = nib_chat_request_write(&r, &request, &t->caps, &notes, &vars);
    if (status == NIB_OK) status = nib_chat_template_run(chat, t, &r, &vars, &config, out);
    nib_arena_free(&arena);
    if (status == NIB_E_NOMEM && err) *err = local;
    return status == NIB_E_NOMEM ? status : NIB_OK;
}

/* ---- what is done to the text */

/* Cuts the text behind its first n bytes. */
static void cut(nib_rendered *r, size_t n) {
    size_t at = 0, i = 0;
    for (; i < r->n_spans && at < n; at += r->spans[i++].len)
        if (r->spans[i].len > n - at) r->spans[i].len = n - at;
    r->n_spans = i;
    r->len = n;
    if (r->text) r->text[n] = 0;
}

static void trust_all(nib_rendered *r) {
    if (!r->n_spans) return;
    r->spans[0] = (nib_span){r->len, true};
    r->n_spans = 1;
}

/* Where the text of the last message ends, blanks around it aside: its last place in text that came from messages. SIZE_MAX:
 * nowhere. Blanks that the template left at its end are part of it. */
static size_t end_of_message(const nib_rendered *r, nib_str message) {
    size_t end = r->len, kept = message.len;
    while (message.len && nib_chat_is_blank(*message.ptr)) message.ptr++, message.len--, kept--;
    while (message.len && nib_chat_is_blank(message.ptr[message.len - 1])) message.len--;
    for (size_t i = r->n_spans; i-- > 0; end -= r->spans[i].len) {
        const nib_span *span = &r->spans[i];
        if (span->is_trusted || span->len < message.len) continue;
        const char *start = r->text + end - span->len;
        for (size_t at = span->len - message.len + 1; at-- > 0;) {
            if (memcmp(start + at, message.ptr, message.len) != 0) continue;
            bool is_whole = span->len - at >= kept && memcmp(start + at, message.ptr, kept) == 0;
            return end - span->len + at + (is_whole ? kept : message.len);
        }
    }
    return SIZE_MAX;
}

/* The last text of a message. */
static nib_str text_of(const nib_chat_message *message) {
    const jinja_value *content = &message->content;
    if (content->type == JINJA_LIST) {
        const jinja_list *parts = content->as.list;
        content = nib_jinja_dict_get(parts->items[parts->n - 1].as.dict, "text");
    }
    return content->type == JINJA_STR ? (nib_str){content->as.ptr, content->len} : (nib_str){"", 0};
}

/* Leaves the last message open. */
static nib_status open_message(nib_chat_reader *r, const nib_chat_request *q, nib_chat_prompt *out, const nib_chat *chat) {
    nib_str text = text_of(&q->messages[q->n_messages - 1]);
    nib_chat_field_enter(r, "messages[%u]", q->n_messages - 1);
    size_t n = 0;
    while (n < text.len && nib_chat_is_blank(text.ptr[n])) n++;
    if (n == text.len) return nib_chat_field_fail(r, "content", "is blank: there is nothing to continue");
    size_t end = end_of_message(&out->rendered, text);
    if (end == SIZE_MAX)
        return nib_chat_field_fail(r, "content", "cannot be continued: the template does not show it as it is");
    cut(&out->rendered, end);
    out->starts_thinking = nib_chat_format_leaves_thinking(chat->format, text);
    return NIB_OK;
}

/* Only what the template wrote opens thoughts. */
static bool starts_thinking(const nib_chat *chat, const nib_rendered *r) {
    if (!r->n_spans || !r->spans[r->n_spans - 1].is_trusted) return false;
    size_t len = r->spans[r->n_spans - 1].len;
    return nib_chat_format_starts_thinking(chat->format, (nib_str){r->text + r->len - len, len});
}

static nib_status render(const nib_chat *chat, nib_chat_reader *r, nib_str json, const nib_chat_render_config *config,
                         nib_chat_prompt *out) {
    nib_chat_request request;
    jinja_value vars;
    unsigned notes = 0, n = 0;
    NIB_TRY(nib_chat_request_read(r, json, &request));
    bool with_tools = request.tools.type != JINJA_NONE && chat->tool_use.parsed;
    const nib_chat_template *t = with_tools ? &chat->tool_use : &chat->main;
    NIB_TRY(nib_chat_request_write(r, &request, &t->caps, &notes, &vars));
    NIB_TRY(nib_chat_template_run(chat, t, r, &vars, config, &out->rendered));
    if (request.continue_final_message) NIB_TRY(open_message(r, &request, out, chat));
    else if (request.add_generation_prompt) out->starts_thinking = starts_thinking(chat, &out->rendered);
    bool no_thoughts = request.thinks.type == JINJA_BOOL && !request.thinks.as.b;
    if (out->starts_thinking && no_thoughts) notes |= 1u << NIB_CHAT_NOTE_THINKING;
    if (config->trust_all) trust_all(&out->rendered);
    for (unsigned i = 0; i < NIB_CHAT_N_NOTES; i++)
        if (notes >> i & 1) out->notes[n++] = g_notes[i];
    return NIB_OK;
}

nib_status nib_chat_render(const nib_chat *chat, const char *json, size_t len, const nib_chat_render_config *config,
                           nib_chat_prompt *out, nib_error *err) {
    static const nib_chat_render_config defaults = NIB_CHAT_RENDER_CONFIG_INIT;
    *out = (nib_chat_prompt){0};
    if (!config) config = &defaults;
    if (config->max_bytes < 4096) return nib_fail(err, NIB_E_ARG, "max_bytes is %zu, at least 4096", config->max_bytes);
    nib_arena arena = {.limit = config->max_bytes};
    nib_chat_reader r = {.arena = &arena, .err = err};
    nib_status status = render(chat, &r, (nib_str){json, len}, config, out);
    if (status != NIB_OK) nib_chat_prompt_free(out);
    nib_arena_free(&arena);
    return status;
}

void nib_chat_prompt_free(nib_chat_prompt *prompt) {
    if (!prompt) return;
    nib_rendered_free(&prompt->rendered);
    *prompt = (nib_chat_prompt){0};
}
