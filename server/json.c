/* server/json.c - jansson's values and our texts (json.h). */
#include "json.h"

#include "base/json.h"
#include "base/status.h"

#include <math.h>

enum { MAX_DEPTH = 64 };

static json_t *load(nib_str text, size_t flags, json_error_t *why) {
    nib_buf fitting = {0};
    json_t *value = json_loadb(text.ptr ? text.ptr : "", text.len, flags | JSON_ALLOW_NUL, why);
    if (value || json_error_code(why) != json_error_numeric_overflow) return value;
    nib_json_fit(text, &fitting);
    if (!fitting.failed) value = json_loadb(fitting.ptr, fitting.len, flags | JSON_ALLOW_NUL, why);
    nib_buf_free(&fitting);
    return value;
}

nib_status nib_server_json_parse(nib_str text, json_t **out, nib_error *err) {
    json_error_t why;
    *out = NULL;
    if (nib_json_is_deeper(text, MAX_DEPTH)) return nib_fail(err, NIB_E_FORMAT, "the body nests deeper than %d", MAX_DEPTH);
    *out = load(text, JSON_REJECT_DUPLICATES, &why);
    if (*out) return NIB_OK;
    return nib_fail(err, NIB_E_FORMAT, "the body is not JSON: %s (line %d, column %d)", why.text, why.line, why.column);
}

json_t *nib_server_json_arguments(const nib_buf *text) {
    json_error_t why;
    json_t *value = load((nib_str){text->ptr, text->len}, 0, &why);
    return value ? value : json_object();
}

json_t *nib_server_json_str(nib_str text) {
    json_t *value = json_stringn(text.ptr ? text.ptr : "", text.len);
    if (value) return value;
    nib_buf clean = {0};
    nib_buf_utf8(&clean, text);
    value = clean.failed ? json_null() : json_stringn_nocheck(clean.ptr, clean.len);
    nib_buf_free(&clean);
    return value;
}

json_t *nib_server_json_number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

static int put_chunk(const char *text, size_t n, void *out) {
    nib_buf_append(out, text, n);
    return 0;
}

void nib_server_json_put(json_t *value, nib_buf *out) {
    json_dump_callback(value, put_chunk, out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    json_decref(value);
}

char *nib_server_json_dump(const json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text) nib_json_shorten(text);
    return text;
}
