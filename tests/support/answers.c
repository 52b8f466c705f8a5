/* tests/support/answers.c - events of nib_chat_parser as JSON. */
#include "support/answers.h"

#include "base/buf.h"

#include <string.h>

typedef struct collector {
    json_t *events;
    const char *kind; /* of the text that is being joined; NULL: none */
    nib_buf text;
    json_t *call; /* of stream_calls: begun */
    nib_buf arguments;
    bool is_broken; /* a warning came in the middle of it */
} collector;

/* Any bytes as JSON text: those beyond ASCII become U+0080 to U+00FF when they are not UTF-8 as a whole. */
static json_t *text_of(nib_str text) {
    json_t *s = json_stringn(text.len ? text.ptr : "", text.len);
    if (s) return s;
    nib_buf wide = {0};
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        if (c >= 0x80) nib_buf_char(&wide, (char)(0xC0 | c >> 6));
        nib_buf_char(&wide, (char)(c < 0x80 ? c : 0x80 | (c & 0x3F)));
    }
    s = json_stringn(wide.ptr, wide.len);
    nib_buf_free(&wide);
    return s;
}

static void flush(collector *c) {
    if (!c->kind) return;
    json_t *event = json_array();
    json_array_append_new(event, json_string(c->kind));
    json_array_append_new(event, text_of((nib_str){c->text.ptr, c->text.len}));
    json_array_append_new(c->events, event);
    c->kind = NULL;
    c->text.len = 0;
}

static void put_head(json_t *event, const nib_chat_event *e) {
    json_array_append_new(event, json_integer(e->index));
    json_array_append_new(event, text_of(e->id));
    json_array_append_new(event, text_of(e->name));
}

/* The pieces of a call become one event when it ends; false: they do not fit together. */
static bool collect_streamed(collector *c, const nib_chat_event *e) {
    if ((e->kind == NIB_CHAT_CALL_BEGIN) == (c->call != NULL)) return false;
    if (e->kind == NIB_CHAT_CALL_BEGIN) {
        c->call = json_array();
        json_array_append_new(c->call, json_string("call"));
        put_head(c->call, e);
        c->arguments.len = 0;
        c->is_broken = false;
        return true;
    }
    if (e->index != json_integer_value(json_array_get(c->call, 1))) return false;
    if (e->kind == NIB_CHAT_CALL_ARGUMENTS) return e->text.len && nib_buf_append(&c->arguments, e->text.ptr, e->text.len);
    json_array_append_new(c->call, text_of((nib_str){c->arguments.ptr, c->arguments.len}));
    if (c->is_broken) json_array_set_new(c->call, 0, json_string("broken"));
    json_array_append_new(c->events, c->call);
    c->call = NULL;
    return true;
}

static bool collect(void *user, const nib_chat_event *e) {
    static const char *const kinds[] = {"content", "reasoning", "call", "warning"};
    collector *c = user;
    bool is_text = e->kind == NIB_CHAT_CONTENT || e->kind == NIB_CHAT_REASONING;
    if (is_text && (e->text.len == 0 || c->call)) return false;
    if (!is_text || !c->kind || strcmp(c->kind, kinds[e->kind]) != 0) flush(c);
    if (is_text) {
        c->kind = kinds[e->kind];
        return nib_buf_append(&c->text, e->text.ptr, e->text.len);
    }
    if (e->kind >= NIB_CHAT_CALL_BEGIN) return collect_streamed(c, e);
    c->is_broken = c->call != NULL;
    json_t *event = json_array();
    json_array_append_new(event, json_string(kinds[e->kind]));
    if (e->kind == NIB_CHAT_TOOL_CALL) put_head(event, e);
    json_array_append_new(event, text_of(e->text));
    json_array_append_new(c->events, event);
    return true;
}

json_t *answers_parse(const nib_chat_parser_config *config, nib_str answer, answers_cut cut, void *user) {
    collector c = {.events = json_array()};
    nib_chat_parser_config own = *config;
    nib_chat_parser *parser;
    own.event = collect;
    own.user = &c;
    nib_status status = nib_chat_parser_new(&parser, &own, NULL);
    for (size_t at = 0, n; status == NIB_OK && at < answer.len; at += n) {
        n = cut ? cut(user) : answer.len;
        if (n > answer.len - at) n = answer.len - at;
        status = nib_chat_parser_push(parser, (nib_str){answer.ptr + at, n}, NULL);
    }
    if (status == NIB_OK) status = nib_chat_parser_finish(parser, NULL);
    flush(&c);
    nib_chat_parser_free(parser);
    nib_buf_free(&c.text);
    nib_buf_free(&c.arguments);
    if (c.call) status = NIB_E_FORMAT; /* it has no end */
    json_decref(c.call);
    if (status == NIB_OK) return c.events;
    json_decref(c.events);
    return NULL;
}

char *answers_joined(json_t *events, const char *kind) {
    nib_buf text = {0};
    json_t *event;
    size_t i;
    json_array_foreach(events, i, event) {
        json_t *s = json_array_get(event, 1);
        if (strcmp(json_string_value(json_array_get(event, 0)), kind) == 0)
            nib_buf_append(&text, json_string_value(s), json_string_length(s));
    }
    return nib_buf_cstr(&text);
}
