/* server/fields.c - JSON fields by tables (fields.h). */
#include "fields.h"

#include "base/status.h"
#include "internal.h"

#include <math.h>
#include <string.h>

const char *nib_server_fields_kind_of(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_TRUE: return "true";
    case JSON_FALSE: return "false";
    case JSON_NULL: return "null";
    default: return "a number";
    }
}

static nib_status wrong(const json_t *value, const char *path, const char *expected, nib_server_fault *fault) {
    return nib_server_refuse(fault, path, "%s is %s, expected %s", path, nib_server_fields_kind_of(value), expected);
}

nib_status nib_server_fields_bool(const json_t *value, const char *path, bool *out, nib_server_fault *fault) {
    if (!json_is_boolean(value)) return wrong(value, path, "true or false", fault);
    *out = json_is_true(value);
    return NIB_OK;
}

nib_status nib_server_fields_number(const json_t *value, const char *path, double low, double high, double *out,
                                    nib_server_fault *fault) {
    if (!json_is_number(value)) return wrong(value, path, "a number", fault);
    *out = json_number_value(value);
    if (*out >= low && *out <= high) return NIB_OK;
    return nib_server_refuse(fault, path, "%s is %.9g, expected %.9g to %.9g", path, *out, low, high);
}

nib_status nib_server_fields_integer(const json_t *value, const char *path, double low, double high, int64_t *out,
                                     nib_server_fault *fault) {
    double number = 0;
    NIB_TRY(nib_server_fields_number(value, path, low, high, &number, fault));
    bool is_whole = number == floor(number) && (json_is_integer(value) || fabs(number) < 9223372036854775808.0);
    if (!is_whole) return nib_server_refuse(fault, path, "%s is %.9g, expected a whole number, %.9g to %.9g", path, number, low, high);
    *out = json_is_integer(value) ? (int64_t)json_integer_value(value) : (int64_t)number;
    return NIB_OK;
}

nib_status nib_server_fields_string(const json_t *value, const char *path, const char **out, nib_server_fault *fault) {
    if (!json_is_string(value)) return wrong(value, path, "a string", fault);
    *out = json_string_value(value);
    if (strlen(*out) != json_string_length(value)) return nib_server_refuse(fault, path, "%s has a NUL character", path);
    return NIB_OK;
}

nib_status nib_server_fields_text(const json_t *value, const char *path, const char *between, nib_buf *text, nib_server_fault *fault) {
    nib_str whole = nib_server_json_text(value);
    if (json_is_string(value)) nib_buf_append(text, whole.ptr, whole.len);
    else if (!json_is_array(value))
        return nib_server_refuse(fault, path, "%s is %s, expected a string or a list of texts", path,
                                 value ? nib_server_fields_kind_of(value) : "missing");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *part = json_array_get(value, i);
        nib_str piece = nib_server_json_text(json_object_get(part, "text"));
        if (!piece.ptr)
            return nib_server_refuse(fault, path, "%s[%zu] is of the type \"%.40s\": nib reads text only", path, i,
                                     nib_server_json_word(part, "type"));
        if (text->len) nib_buf_str(text, between);
        nib_buf_append(text, piece.ptr, piece.len);
    }
    return NIB_OK;
}

/* Nothing that could change an answer. */
static bool is_nothing(const json_t *value) {
    return json_is_null(value) || json_is_false(value) || (json_is_number(value) && json_number_value(value) == 0) ||
           (json_is_string(value) && !json_string_length(value)) || (json_is_array(value) && !json_array_size(value)) ||
           (json_is_object(value) && !json_object_size(value));
}

static nib_status read_field(nib_server_ask *ask, const nib_server_field *f, const json_t *value, nib_server_fault *fault) {
    void *to = (char *)ask + f->offset;
    int64_t whole = 0;
    double number = 0;
    switch (f->kind) {
    case NIB_SERVER_BOOL: return nib_server_fields_bool(value, f->name, to, fault);
    case NIB_SERVER_NOT:
        NIB_TRY(nib_server_fields_bool(value, f->name, to, fault));
        *(bool *)to = !*(bool *)to;
        return NIB_OK;
    case NIB_SERVER_STRING: return nib_server_fields_string(value, f->name, to, fault);
    case NIB_SERVER_INT:
        NIB_TRY(nib_server_fields_integer(value, f->name, f->low, f->high, &whole, fault));
        *(int32_t *)to = (int32_t)whole;
        return NIB_OK;
    case NIB_SERVER_UINT:
        NIB_TRY(nib_server_fields_integer(value, f->name, f->low, f->high, &whole, fault));
        *(uint32_t *)to = (uint32_t)whole;
        return NIB_OK;
    case NIB_SERVER_FLOAT:
        NIB_TRY(nib_server_fields_number(value, f->name, f->low, f->high, &number, fault));
        *(float *)to = (float)number;
        return NIB_OK;
    case NIB_SERVER_CUSTOM: return f->read(ask, f->name, value, fault);
    case NIB_SERVER_UNUSED: return NIB_OK;
    default:
        return is_nothing(value) ? NIB_OK : nib_server_refuse(fault, f->name, "%s is not supported: %s", f->name, f->why);
    }
}

/* In the tables up to `end`, NULL: all. */
static bool is_known(const nib_server_field *const *tables, const nib_server_field *const *end, const char *name) {
    for (; tables != end && *tables; tables++)
        for (const nib_server_field *f = *tables; f->name; f++)
            if (strcmp(f->name, name) == 0) return true;
    return false;
}

nib_status nib_server_fields_read(nib_server_ask *ask, const nib_server_field *const *tables, nib_server_fault *fault) {
    const char *name;
    json_t *value;
    for (const nib_server_field *const *table = tables; *table; table++)
        for (const nib_server_field *f = *table; f->name; f++) {
            value = is_known(tables, table, f->name) ? NULL : json_object_get(ask->body, f->name);
            if (value && !json_is_null(value)) NIB_TRY(read_field(ask, f, value, fault));
        }
    if (!ask->server->config.strict_fields) return NIB_OK;
    json_object_foreach(ask->body, name, value)
        if (!is_known(tables, NULL, name)) return nib_server_refuse(fault, name, "%s is no field of this request", name);
    return NIB_OK;
}
