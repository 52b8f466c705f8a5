/* chat/output/calls.c - the payloads of a match, by their kind: JSON as it stands, everything else turned into JSON. A
 * payload is taken as a whole: a list with one item that is no call is none. */
#include "chat/output/calls.h"

#include "chat/output/literal.h"

#include <string.h>

enum { MAX_CALLS = 4096 };

/* Turning one payload into calls; the first failure stays. */
typedef struct builder {
    nib_chat_calls *calls;
    const nib_chat_match *m;
    const nib_chat_window *w;
    const char *why;
    bool out_of_memory;
} builder;

static bool refuse(builder *b, const char *why) {
    if (!b->why) b->why = why;
    return false;
}

static bool fail_memory(builder *b) {
    b->out_of_memory = true;
    return false;
}

static bool push(builder *b, nib_str name, nib_str id, nib_str arguments) {
    nib_chat_calls *calls = b->calls;
    if (!name.len) return refuse(b, "a call without a name");
    if (calls->n == MAX_CALLS) return refuse(b, "too many calls in a list");
    if (!nib_grow(&calls->list, &calls->capacity, calls->n + 1, sizeof *calls->list)) return fail_memory(b);
    calls->list[calls->n++] = (nib_chat_call){name, id, arguments};
    return true;
}

/* Moves the bytes of a buffer to the arena, and frees it. */
static bool keep(builder *b, nib_buf *buf, nib_str *out) {
    char *copy = buf->failed ? NULL : nib_arena_copy(&b->calls->arena, buf->ptr ? buf->ptr : "", buf->len);
    *out = (nib_str){copy, buf->len};
    nib_buf_free(buf);
    return copy || fail_memory(b);
}

/* What a string stands for: as it lies in the answer, when it has no escapes. */
static bool decode(builder *b, nib_str string, nib_str *out) {
    nib_buf text = {0};
    *out = (nib_str){string.ptr + 1, string.len - 2};
    if (!memchr(out->ptr, '\\', out->len)) return true;
    nib_chat_json_decode(string, &text);
    return keep(b, &text, out);
}

/* ---- JSON */

static bool is_one_of(nib_str key, const char *const *names) {
    for (; *names; names++)
        if (key.len == strlen(*names) + 2 && memcmp(key.ptr + 1, *names, key.len - 2) == 0) return true;
    return false;
}

/* Arguments: an object, as it stands; the text of one, in a string; null: none. */
static bool arguments_of(builder *b, nib_str json, nib_str *out) {
    if (*json.ptr == '"' && !decode(b, json, &json)) return false;
    json = nib_chat_trim(json);
    bool is_none = json.len == 0 || (json.len == 4 && memcmp(json.ptr, "null", 4) == 0);
    if (is_none) json = (nib_str){"{}", 2};
    *out = json;
    return (*json.ptr == '{' && nib_chat_json_is_valid(json)) || refuse(b, "arguments that are no object");
}

typedef struct fields {
    nib_str name, id, arguments;
} fields;

static bool read_fields(builder *b, nib_str object, fields *f) {
    static const char *const names[] = {"name", "tool_name", NULL}, *const ids[] = {"id", "tool_call_id", NULL};
    static const char *const arguments[] = {"arguments", "parameters", NULL}, *const functions[] = {"function", NULL};
    nib_chat_json_iter iter = nib_chat_json_begin(object);
    nib_str key, value;
    bool ok = true;
    while (ok && nib_chat_json_next(&iter, &key, &value)) {
        bool is_string = *value.ptr == '"', is_function = is_one_of(key, functions);
        if (is_string && (is_function || is_one_of(key, names))) ok = decode(b, value, &f->name);
        else if (is_string && is_one_of(key, ids)) ok = decode(b, value, &f->id);
        else if (is_one_of(key, arguments)) ok = arguments_of(b, value, &f->arguments);
        else if (is_function && *value.ptr == '{' && !f->name.ptr)
            ok = read_fields(b, value, f); /* as OpenAI wraps it */
    }
    return ok;
}

static bool read_call(builder *b, nib_str object) {
    fields f = {{NULL, 0}, {"", 0}, {NULL, 0}};
    if (*object.ptr != '{') return refuse(b, "JSON that is no call");
    if (!read_fields(b, object, &f)) return false;
    bool is_bare = b->m->got.payload_kind == NIB_CHAT_BARE;
    if (is_bare && (!f.arguments.ptr || (b->calls->tools->list && !nib_chat_tools_has(b->calls->tools, f.name))))
        return refuse(b, "JSON that is no call of a tool");
    return push(b, f.name, f.id, f.arguments.ptr ? f.arguments : (nib_str){"{}", 2});
}

static bool read_pairs(builder *b, nib_str object) {
    nib_str key, value, name, arguments;
    if (*object.ptr != '{') return refuse(b, "JSON that is no call");
    for (nib_chat_json_iter iter = nib_chat_json_begin(object); nib_chat_json_next(&iter, &key, &value);)
        if (!decode(b, key, &name) || !arguments_of(b, value, &arguments) ||
            !push(b, name, (nib_str){"", 0}, arguments))
            return false;
    return true;
}

static bool read_json(builder *b, nib_str json) {
    bool (*read)(builder *, nib_str) = b->m->got.payload_kind == NIB_CHAT_PAIRS ? read_pairs : read_call;
    nib_str key, item;
    if (*json.ptr != '[') return read(b, json);
    for (nib_chat_json_iter iter = nib_chat_json_begin(json); nib_chat_json_next(&iter, &key, &item);)
        if (!read(b, item)) return false;
    return true;
}

/* ---- parameters */

static bool put_param(const builder *b, const nib_chat_param *param, const nib_chat_schema *schema, nib_buf *out) {
    nib_str key = nib_chat_trim(nib_chat_text_of(b->w, param->key)), value = nib_chat_text_of(b->w, param->value);
    nib_chat_json_put(out, key);
    nib_buf_char(out, ':');
    if (param->kind == NIB_CHAT_IS_TEXT) return nib_chat_json_put(out, value);
    return nib_chat_param_put(value, param->kind == NIB_CHAT_IS_JSON ? NULL : nib_chat_schema_property(schema, key),
                              out);
}

static bool read_params(builder *b, nib_str name, nib_str id) {
    const nib_chat_schema *schema = nib_chat_tools_find(b->calls->tools, name);
    nib_buf out = {0};
    nib_str arguments;
    nib_buf_char(&out, '{');
    for (size_t i = 0; i < b->m->got.n_params; i++) {
        if (i) nib_buf_char(&out, ',');
        put_param(b, &b->m->params[i], schema, &out);
    }
    nib_buf_char(&out, '}');
    return keep(b, &out, &arguments) && push(b, name, id, arguments);
}

static bool read_tree(builder *b, nib_str name, nib_str text) {
    nib_buf out = {0};
    nib_str arguments;
    bool ok = nib_chat_tree_object(text, nib_chat_tools_find(b->calls->tools, name), &out) || out.failed;
    return keep(b, &out, &arguments) &&
           (ok ? push(b, name, (nib_str){"", 0}, arguments) : refuse(b, "tags that do not fit"));
}

static bool read_gemma(builder *b, nib_str name, nib_str text) {
    nib_buf out = {0};
    nib_str arguments;
    bool ok = nib_chat_gemma_object(text, &out) || out.failed;
    return keep(b, &out, &arguments) &&
           (ok ? push(b, name, (nib_str){"", 0}, arguments) : refuse(b, "malformed arguments"));
}

/* ---- Python */

static bool push_python(builder *b, nib_chat_python *python) {
    nib_buf out = {0};
    nib_str name, arguments;
    bool ok = nib_chat_python_call(python, &name, &out) || out.failed;
    return keep(b, &out, &arguments) &&
           (ok ? push(b, name, (nib_str){"", 0}, arguments) : refuse(b, "a malformed call"));
}

static bool read_python(builder *b, nib_str text) {
    nib_chat_python python = {text.ptr + 1, text.ptr + text.len, 0};
    do
        if (!push_python(b, &python)) return false;
    while (nib_chat_python_char(&python, ','));
    return nib_chat_python_char(&python, ']') ? true : refuse(b, "a malformed list of calls");
}

/* The tool that runs code, of those that were given; without any, python. */
static nib_str code_tool(const builder *b) {
    static const nib_str names[] = {{"python", 6}, {"ipython", 7}, {"code_interpreter", 16}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!b->calls->tools->list || nib_chat_tools_has(b->calls->tools, names[i])) return names[i];
    return (nib_str){NULL, 0};
}

/* name.call(key=value), a built-in tool of Llama. */
static bool is_builtin(builder *b, nib_str text) {
    static const char suffix[] = ".call";
    enum { LEN = sizeof suffix - 1 };
    nib_chat_python python = {text.ptr, text.ptr + text.len, 0};
    nib_buf out = {0};
    nib_str name, arguments;
    bool ok = nib_chat_python_call(&python, &name, &out) &&
              nib_chat_trim((nib_str){python.p, (size_t)(python.end - python.p)}).len == 0 && name.len > LEN &&
              memcmp(name.ptr + name.len - LEN, suffix, LEN) == 0;
    if (!ok) {
        nib_buf_free(&out);
        return false;
    }
    name.len -= LEN;
    return keep(b, &out, &arguments) && push(b, name, (nib_str){"", 0}, arguments);
}

static bool read_code(builder *b, nib_str text) {
    text = nib_chat_trim(text);
    if (!text.len || is_builtin(b, text)) return text.len || refuse(b, "no code");
    nib_str tool = code_tool(b), arguments;
    nib_buf out = {0};
    if (!tool.ptr) return refuse(b, "code, but no tool that runs it");
    bool is_json = nib_chat_json_is_valid(text);
    if (is_json && *text.ptr == '{') return push(b, tool, (nib_str){"", 0}, text);
    nib_buf_str(&out, "{\"code\":");
    if (is_json && *text.ptr == '"') nib_buf_append(&out, text.ptr, text.len);
    else nib_chat_json_put(&out, text);
    nib_buf_char(&out, '}');
    return keep(b, &out, &arguments) && push(b, tool, (nib_str){"", 0}, arguments);
}

/* ---- */

static bool read_payload(builder *b) {
    const nib_chat_captures *got = &b->m->got;
    nib_str name = nib_chat_text_of(b->w, got->name), id = nib_chat_text_of(b->w, got->id);
    nib_str text = nib_chat_text_of(b->w, got->payload);
    switch (got->payload_kind) {
    case NIB_CHAT_ARGS: return push(b, name, id, text);
    case NIB_CHAT_CALLS:
    case NIB_CHAT_PAIRS:
    case NIB_CHAT_BARE: return read_json(b, text);
    case NIB_CHAT_TREE: return read_tree(b, name, text);
    case NIB_CHAT_GEMMA: return read_gemma(b, name, text);
    case NIB_CHAT_PYTHON: return read_python(b, text);
    case NIB_CHAT_CODE: return read_code(b, text);
    default: return read_params(b, name, id);
    }
}

nib_status nib_chat_calls_read(nib_chat_calls *calls, const nib_chat_match *m, const nib_chat_window *w,
                               const char **why) {
    builder b = {.calls = calls, .m = m, .w = w};
    bool ok = read_payload(&b) && (calls->n || refuse(&b, "an empty list of calls"));
    *why = b.why ? b.why : "";
    if (!ok) nib_chat_calls_clear(calls);
    return ok ? NIB_OK : b.out_of_memory ? NIB_E_NOMEM : NIB_E_FORMAT;
}

void nib_chat_calls_clear(nib_chat_calls *calls) {
    calls->n = 0;
    nib_arena_free(&calls->arena);
}

void nib_chat_calls_free(nib_chat_calls *calls) {
    nib_chat_calls_clear(calls);
    nib_free(calls->list);
}
