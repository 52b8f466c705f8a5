/* chat/field.c - fields of JSON objects, checked, with the path for errors. */
#include "chat/field.h"

#include "base/status.h"
#include "jinja/dict.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t nib_chat_field_enter(nib_chat_reader *r, const char *format, ...) {
    size_t mark = strlen(r->path);
    va_list args;
    va_start(args, format);
    vsnprintf(r->path + mark, sizeof r->path - mark, format, args);
    va_end(args);
    return mark;
}

void nib_chat_field_leave(nib_chat_reader *r, size_t mark) {
    r->path[mark] = 0;
}

nib_status nib_chat_field_fail(const nib_chat_reader *r, const char *name, const char *format, ...) {
    char text[300];
    const char *dot = r->path[0] && name[0] ? "." : "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return nib_fail(r->err, NIB_E_ARG, "%s%s%s: %s", r->path, dot, name, text);
}

static const char *kind_of(const jinja_value *v) {
    switch (v->type) {
    case JINJA_NONE: return "null";
    case JINJA_BOOL: return v->as.b ? "true" : "false";
    case JINJA_INT:
    case JINJA_FLOAT: return "a number";
    case JINJA_STR: return "a string";
    case JINJA_LIST: return "a list";
    default: return "an object";
    }
}

nib_status nib_chat_field_wrong(const nib_chat_reader *r, const char *name, const jinja_value *found, const char *expected) {
    if (!found) return nib_chat_field_fail(r, name, "missing, expected %s", expected);
    return nib_chat_field_fail(r, name, "is %s, expected %s", kind_of(found), expected);
}

nib_status nib_chat_field_unknown(const nib_chat_reader *r, const char *name, const jinja_value *found, const char *expected) {
    int len = found->len > 80 ? 80 : (int)found->len;
    return nib_chat_field_fail(r, name, "is \"%.*s\", expected %s", len, found->as.ptr, expected);
}

nib_status nib_chat_field_nomem(const nib_chat_reader *r) {
    size_t limit = r->arena->limit;
    if (!limit) return nib_fail_nomem(r->err, 0, "messages");
    return nib_fail(r->err, NIB_E_LIMIT, "the messages need more than %zu bytes of memory", limit);
}

static const char *name_of(int type) {
    switch (type) {
    case JINJA_BOOL: return "true or false";
    case JINJA_STR: return "a string";
    case JINJA_LIST: return "a list";
    default: return "an object";
    }
}

nib_status nib_chat_field_get(const nib_chat_reader *r, const jinja_dict *object, const char *name, int type,
                              const jinja_value **out) {
    const jinja_value *v = nib_jinja_dict_get(object, name);
    *out = v && v->type != JINJA_NONE ? v : NULL;
    return !*out || v->type == type ? NIB_OK : nib_chat_field_wrong(r, name, v, name_of(type));
}

nib_status nib_chat_field_bool(const nib_chat_reader *r, const jinja_dict *object, const char *name, bool *out) {
    const jinja_value *v;
    NIB_TRY(nib_chat_field_get(r, object, name, JINJA_BOOL, &v));
    if (v) *out = v->as.b;
    return NIB_OK;
}

nib_status nib_chat_field_name(const nib_chat_reader *r, const jinja_dict *object, const char *name, jinja_value *out) {
    const jinja_value *v = nib_jinja_dict_get(object, name);
    if (!v || v->type != JINJA_STR) return nib_chat_field_wrong(r, name, v, "a string");
    if (!v->len) return nib_chat_field_fail(r, name, "is empty, expected a name");
    *out = *v;
    return NIB_OK;
}
