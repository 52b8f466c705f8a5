/* chat/message.c - one message: what OpenAI's API lets a client send -> what a template can show. The first half checks and
 * knows no template, the second half writes and cannot fail but for memory. */
#include "chat/message.h"

#include "base/status.h"
#include "chat/build.h"
#include "jinja/json.h"
#include "jinja/template.h"

static const struct {
    const char *text;
} g_roles[] = {
#define ROLE(id, name) {name},
#include "chat/roles.def"
};

/* Fields that clients and templates use for thoughts. */
static const char *const g_reasoning[] = {"reasoning_content", "reasoning", "thinking"};
enum { N_REASONING = sizeof g_reasoning / sizeof *g_reasoning };

jinja_value nib_chat_role_name(nib_chat_role role) {
    return nib_chat_str(g_roles[role].text);
}

static bool is_str(const jinja_value *v, const char *text) {
    return jinja_str_is(v, text, strlen(text));
}

static bool is_one_of(const jinja_value *v, const char *const *words, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (is_str(v, words[i])) return true;
    return false;
}

/* ---- reading */

static nib_status read_role(nib_chat_reader *r, nib_chat_message *m) {
    NIB_TRY(nib_chat_field_name(r, m->fields, "role", &m->role_name));
    m->role = 0;
    while (m->role < NIB_CHAT_N_ROLES && !is_str(&m->role_name, g_roles[m->role].text)) m->role++;
    if (m->role < NIB_CHAT_N_ROLES) m->role_name = nib_chat_role_name(m->role);
    return NIB_OK;
}

static nib_status read_part(nib_chat_reader *r, const jinja_value *part) {
    static const char *const media[] = {"image",     "image_url", "input_image", "input_audio", "audio",
                                        "audio_url", "video",     "video_url",   "file",        "input_file"};
    jinja_value type;
    const jinja_value *text;
    if (part->type != JINJA_DICT) return nib_chat_field_wrong(r, "", part, "an object {\"type\": \"text\", \"text\": …}");
    NIB_TRY(nib_chat_field_name(r, part->as.dict, "type", &type));
    if (is_one_of(&type, media, sizeof media / sizeof *media))
        return nib_fail(r->err, NIB_E_UNSUPPORTED, "%s.type: is \"%.*s\"; nib reads text only", r->path, (int)type.len,
                        type.as.ptr);
    if (!is_str(&type, "text")) return nib_chat_field_unknown(r, "type", &type, "\"text\"");
    NIB_TRY(nib_chat_field_get(r, part->as.dict, "text", JINJA_STR, &text));
    return text ? NIB_OK : nib_chat_field_wrong(r, "text", nib_jinja_dict_get(part->as.dict, "text"), "a string");
}

static nib_status read_parts(nib_chat_reader *r, const jinja_list *parts) {
    if (!parts->n) return nib_chat_field_fail(r, "content", "is an empty list, expected a string or a list of parts");
    for (uint32_t i = 0; i < parts->n; i++) {
        size_t mark = nib_chat_field_enter(r, ".content[%u]", i);
        NIB_TRY(read_part(r, &parts->items[i]));
        nib_chat_field_leave(r, mark);
    }
    return NIB_OK;
}

/* An answer may have calls or thoughts instead. */
static nib_status read_content(nib_chat_reader *r, nib_chat_message *m) {
    const jinja_value *content = nib_jinja_dict_get(m->fields, "content");
    const char *expected = "a string or a list of parts";
    bool is_optional = m->role == NIB_CHAT_ASSISTANT && (m->n_calls || m->reasoning.type == JINJA_STR);
    m->content = jinja_none();
    if (!content || content->type == JINJA_NONE) {
        if (is_optional) return NIB_OK;
        if (m->role == NIB_CHAT_ASSISTANT) expected = "a string or a list of parts, or else tool_calls";
        return nib_chat_field_wrong(r, "content", content, expected);
    }
    if (content->type == JINJA_LIST) NIB_TRY(read_parts(r, content->as.list));
    else if (content->type != JINJA_STR) return nib_chat_field_wrong(r, "content", content, expected);
    m->content = *content;
    return NIB_OK;
}

static nib_status read_reasoning(const nib_chat_reader *r, nib_chat_message *m) {
    const jinja_value *v = NULL;
    m->reasoning = jinja_none();
    for (size_t i = 0; m->role == NIB_CHAT_ASSISTANT && i < N_REASONING && !v; i++) {
        NIB_TRY(nib_chat_field_get(r, m->fields, g_reasoning[i], JINJA_STR, &v));
        if (v && v->len) m->reasoning = *v;
        else v = NULL;
    }
    return NIB_OK;
}

/* Arguments are JSON in a string; those who have the object may give it as it is. */
static nib_status read_arguments(const nib_chat_reader *r, nib_chat_call *call) {
    const jinja_value *v = nib_jinja_dict_get(call->function, "arguments");
    call->text = jinja_none();
    if (!v || v->type == JINJA_NONE || (v->type == JINJA_STR && !v->len))
        return nib_chat_dict(r->arena, &call->arguments) ? NIB_OK : nib_chat_field_nomem(r);
    call->arguments = *v;
    if (v->type == JINJA_STR) {
        nib_error why;
        call->text = *v;
        nib_status status =
            nib_jinja_json_read((nib_str){v->as.ptr, v->len}, NIB_JINJA_MAX_NESTING, r->arena, &call->arguments, &why);
        if (status == NIB_E_ARG) return nib_chat_field_fail(r, "function.arguments", "%s", why.message);
        if (status != NIB_OK) return nib_chat_field_nomem(r);
    }
    if (call->arguments.type == JINJA_DICT) return NIB_OK;
    return nib_chat_field_wrong(r, "function.arguments", &call->arguments, "an object, or one written as JSON in a string");
}

static nib_status read_call(nib_chat_reader *r, const jinja_value *v, nib_chat_call *call) {
    const jinja_value *type, *id, *function;
    if (v->type != JINJA_DICT) return nib_chat_field_wrong(r, "", v, "an object");
    call->fields = v->as.dict;
    NIB_TRY(nib_chat_field_get(r, call->fields, "type", JINJA_STR, &type));
    if (type && !is_str(type, "function")) return nib_chat_field_unknown(r, "type", type, "\"function\"");
    NIB_TRY(nib_chat_field_get(r, call->fields, "id", JINJA_STR, &id));
    call->id = id ? *id : jinja_none();
    NIB_TRY(nib_chat_field_get(r, call->fields, "function", JINJA_DICT, &function));
    if (!function) return nib_chat_field_wrong(r, "function", nib_jinja_dict_get(call->fields, "function"), "an object");
    call->function = function->as.dict;
    size_t mark = nib_chat_field_enter(r, ".function");
    NIB_TRY(nib_chat_field_name(r, call->function, "name", &call->name));
    nib_chat_field_leave(r, mark);
    return read_arguments(r, call);
}

static nib_status read_calls(nib_chat_reader *r, nib_chat_message *m) {
    const jinja_value *list;
    m->n_calls = 0;
    NIB_TRY(nib_chat_field_get(r, m->fields, "tool_calls", JINJA_LIST, &list));
    if (!list || !list->as.list->n) return NIB_OK;
    if (m->role != NIB_CHAT_ASSISTANT) return nib_chat_field_fail(r, "tool_calls", "only the role assistant calls tools");
    m->calls = nib_arena_alloc(r->arena, list->as.list->n * sizeof *m->calls);
    if (!m->calls) return nib_chat_field_nomem(r);
    for (; m->n_calls < list->as.list->n; m->n_calls++) {
        size_t mark = nib_chat_field_enter(r, ".tool_calls[%u]", m->n_calls);
        NIB_TRY(read_call(r, &list->as.list->items[m->n_calls], &m->calls[m->n_calls]));
        nib_chat_field_leave(r, mark);
    }
    return NIB_OK;
}

nib_status nib_chat_message_read(nib_chat_reader *r, const jinja_value *message, nib_chat_message *out) {
    const jinja_value *name, *id;
    if (message->type != JINJA_DICT) return nib_chat_field_wrong(r, "", message, "an object with role and content");
    *out = (nib_chat_message){.fields = message->as.dict};
    NIB_TRY(read_role(r, out));
    NIB_TRY(nib_chat_field_get(r, out->fields, "name", JINJA_STR, &name));
    NIB_TRY(nib_chat_field_get(r, out->fields, "tool_call_id", JINJA_STR, &id));
    out->name = name ? *name : jinja_none();
    NIB_TRY(read_calls(r, out));
    NIB_TRY(read_reasoning(r, out));
    return read_content(r, out);
}

nib_status nib_chat_message_text(const nib_chat_reader *r, const jinja_value *content, jinja_value *out) {
    *out = content->type == JINJA_STR ? *content : jinja_str("", 0);
    if (content->type != JINJA_LIST) return NIB_OK;
    const jinja_list *parts = content->as.list;
    size_t len = parts->n - 1, n = 0;
    for (uint32_t i = 0; i < parts->n; i++) len += nib_jinja_dict_get(parts->items[i].as.dict, "text")->len;
    char *text = len <= UINT32_MAX ? nib_arena_alloc(r->arena, len + 1) : NULL;
    if (!text) return nib_chat_field_nomem(r);
    for (uint32_t i = 0; i < parts->n; i++) {
        const jinja_value *part = nib_jinja_dict_get(parts->items[i].as.dict, "text");
        if (i) text[n++] = '\n';
        memcpy(text + n, part->as.ptr, part->len);
        n += part->len;
    }
    *out = jinja_str(text, n);
    out->is_trusted = false;
    return NIB_OK;
}

/* ---- writing */

static bool add_part(nib_arena *arena, const char *type, const jinja_value *text, jinja_value *out) {
    jinja_value name = nib_chat_str(type);
    return nib_chat_dict(arena, out) && nib_chat_set(arena, out, "type", &name) && nib_chat_set(arena, out, type, text);
}

/* Thoughts, if they go there, and the content as parts. */
static bool make_parts(nib_arena *arena, const jinja_value *reasoning, const jinja_value *content, jinja_value *out) {
    uint32_t n_text = content->type == JINJA_LIST ? content->as.list->n : content->type == JINJA_STR, n = reasoning != NULL;
    if (!nib_chat_list(arena, n + n_text, out)) return false;
    if (reasoning && !add_part(arena, "thinking", reasoning, &out->as.list->items[0])) return false;
    if (content->type == JINJA_STR) return add_part(arena, "text", content, &out->as.list->items[n]);
    if (n_text) memcpy(out->as.list->items + n, content->as.list->items, n_text * sizeof *out->as.list->items);
    return true;
}

static nib_status write_content(const nib_chat_reader *r, const nib_chat_message *m, const nib_chat_caps *caps,
                                jinja_value *out) {
    unsigned bit = NIB_CHAT_BIT(m->role < NIB_CHAT_OTHER ? m->role : NIB_CHAT_USER);
    bool has_thinking_part = m->reasoning.type == JINJA_STR && caps->reasoning && !caps->reasoning[0], ok = true;
    jinja_value content = m->content;
    if (content.type == JINJA_NONE && caps->empty_for_null) content = jinja_str("", 0);
    *out = content;
    if (has_thinking_part) ok = make_parts(r->arena, &m->reasoning, &content, out);
    else if (content.type == JINJA_STR && !(caps->text_roles & bit) && (caps->part_roles & bit))
        ok = make_parts(r->arena, NULL, &content, out);
    else if (content.type == JINJA_LIST && !(caps->part_roles & bit)) return nib_chat_message_text(r, &content, out);
    return ok ? NIB_OK : nib_chat_field_nomem(r);
}

/* A copy with one value changed, without fields that are null. */
static bool copy_with(nib_arena *arena, const jinja_dict *from, const char *name, const jinja_value *value,
                      jinja_value *out) {
    if (!nib_chat_dict(arena, out)) return false;
    for (uint32_t i = 0; i < from->n; i++) {
        const jinja_pair *pair = &from->pairs[i];
        const jinja_value *v = is_str(&pair->key, name) ? value : &pair->value;
        if (v->type != JINJA_NONE && !nib_jinja_dict_set(arena, out->as.dict, &pair->key, v)) return false;
    }
    return nib_chat_set(arena, out, name, value);
}

static nib_status write_call(const nib_chat_reader *r, const nib_chat_call *call, const nib_chat_caps *caps,
                             jinja_value *out) {
    jinja_value arguments = call->arguments, function, type = nib_chat_str("function");
    if (caps->arguments_as_text && call->text.type == JINJA_STR) arguments = call->text;
    else if (caps->arguments_as_text) NIB_TRY(nib_jinja_template_json(r->arena, &call->arguments, &arguments, r->err));
    bool ok = copy_with(r->arena, call->function, "arguments", &arguments, &function) &&
              copy_with(r->arena, call->fields, "function", &function, out) && nib_chat_set(r->arena, out, "type", &type);
    return ok ? NIB_OK : nib_chat_field_nomem(r);
}

static nib_status write_calls(const nib_chat_reader *r, const nib_chat_message *m, const nib_chat_caps *caps,
                              jinja_value *out) {
    jinja_value calls;
    if (!m->n_calls) return NIB_OK;
    if (!nib_chat_list(r->arena, m->n_calls, &calls)) return nib_chat_field_nomem(r);
    for (uint32_t i = 0; i < m->n_calls; i++) NIB_TRY(write_call(r, &m->calls[i], caps, &calls.as.list->items[i]));
    return nib_chat_set(r->arena, out, "tool_calls", &calls) ? NIB_OK : nib_chat_field_nomem(r);
}

/* Thoughts and content of a message that calls tools, for templates that take only one of them. */
static nib_status merge(const nib_chat_reader *r, nib_chat_message *m) {
    jinja_value text;
    NIB_TRY(nib_chat_message_text(r, &m->content, &text));
    size_t len = (size_t)m->reasoning.len + 2 + text.len;
    char *joined = len <= UINT32_MAX ? nib_arena_alloc(r->arena, len) : NULL;
    if (!joined) return nib_chat_field_nomem(r);
    memcpy(joined, m->reasoning.as.ptr, m->reasoning.len);
    memcpy(joined + m->reasoning.len, "\n\n", 2);
    memcpy(joined + m->reasoning.len + 2, text.as.ptr, text.len);
    m->reasoning = jinja_str(joined, len);
    m->reasoning.is_trusted = false;
    m->content = jinja_none();
    return NIB_OK;
}

/* Fields that are written anew, or not at all. */
static bool is_written(const jinja_pair *field) {
    static const char *const names[] = {"role", "content", "tool_calls", "name"};
    return field->value.type == JINJA_NONE || is_one_of(&field->key, names, sizeof names / sizeof *names) ||
           is_one_of(&field->key, g_reasoning, N_REASONING);
}

nib_status nib_chat_message_write(const nib_chat_reader *r, const nib_chat_message *message, const nib_chat_caps *caps,
                                  unsigned *notes, jinja_value *out) {
    nib_chat_message m = *message;
    jinja_value content;
    bool has_text = m.content.type == JINJA_LIST || m.content.len > 0;
    if (caps->thinks_or_talks && m.n_calls && m.reasoning.type == JINJA_STR && has_text) {
        NIB_TRY(merge(r, &m));
        *notes |= 1u << NIB_CHAT_NOTE_MERGED;
    }
    NIB_TRY(write_content(r, &m, caps, &content));
    bool ok = nib_chat_dict(r->arena, out) && nib_chat_set(r->arena, out, "role", &m.role_name) &&
              nib_chat_set(r->arena, out, "content", &content);
    for (uint32_t i = 0; ok && m.fields && i < m.fields->n; i++) {
        const jinja_pair *field = &m.fields->pairs[i];
        if (!is_written(field)) ok = nib_jinja_dict_set(r->arena, out->as.dict, &field->key, &field->value);
    }
    if (ok && m.name.type == JINJA_STR) ok = nib_chat_set(r->arena, out, "name", &m.name);
    if (ok && m.reasoning.type == JINJA_STR && (!caps->reasoning || caps->reasoning[0]))
        ok = nib_chat_set(r->arena, out, caps->reasoning ? caps->reasoning : g_reasoning[0], &m.reasoning);
    return ok ? write_calls(r, &m, caps, out) : nib_chat_field_nomem(r);
}
