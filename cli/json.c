/* cli/json.c - values of nib as JSON, and the loop over JSON lines of tokenize, detokenize and score. */
#include "json.h"

#include "base/hex.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/utf8.h"
#include "command.h"
#include "input.h"
#include "list.h"
#include "signals.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_DEPTH = 64 };

static void *alloc_or_exit(size_t n) {
    static const char text[] = "nib: error: out of memory for JSON\n";
    void *p = nib_alloc(n, 1);
    if (p) return p;
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(NIB_CLI_FAILED);
}

void nib_cli_json_init(void) {
    json_set_alloc_funcs(alloc_or_exit, nib_free);
}

/* ---- values */

bool nib_cli_json_is_utf8(nib_str text) {
    uint32_t cp;
    for (size_t i = 0, n; i < text.len; i += n)
        if (!(n = nib_utf8_char(text.ptr + i, text.len - i, &cp))) return false;
    return true;
}

json_t *nib_cli_json_str(nib_str text) {
    if (nib_cli_json_is_utf8(text)) return json_stringn_nocheck(text.ptr ? text.ptr : "", text.len);
    nib_buf clean = {0};
    nib_buf_utf8(&clean, text);
    json_t *value = clean.failed ? json_null() : json_stringn_nocheck(clean.ptr, clean.len);
    nib_buf_free(&clean);
    return value;
}

json_t *nib_cli_json_number(double x) {
    return isfinite(x) ? json_real(x) : json_null();
}

char *nib_cli_json_dump(const json_t *value) {
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    if (text) nib_json_shorten(text);
    return text;
}

json_t *nib_cli_json_hash(uint64_t hash) {
    char text[17];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return json_string(text);
}

json_t *nib_cli_json_ids(const nib_token *ids, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(list, json_integer(ids[i]));
    return list;
}

json_t *nib_cli_json_logprobs(const nib_logprob *items, size_t n) {
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *pair = json_array();
        json_array_append_new(pair, json_integer(items[i].id));
        json_array_append_new(pair, nib_cli_json_number((double)items[i].logprob));
        json_array_append_new(list, pair);
    }
    return list;
}

void nib_cli_json_set_int(json_t *object, const char *key, int64_t value) {
    json_object_set_new(object, key, json_integer(value));
}

void nib_cli_json_set_real(json_t *object, const char *key, double value) {
    json_object_set_new(object, key, nib_cli_json_number(value));
}

void nib_cli_json_set_str(json_t *object, const char *key, const char *value) {
    json_object_set_new(object, key, nib_cli_json_str((nib_str){value, strlen(value)}));
}

static int write_chunk(const char *text, size_t n, void *out) {
    nib_cli_out_write(out, (nib_str){text, n});
    return ((nib_cli_out *)out)->error ? -1 : 0;
}

static void dump(nib_cli_out *out, json_t *value, size_t flags) {
    json_dump_callback(value, write_chunk, out, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9) | flags);
    nib_cli_out_puts(out, "\n");
    json_decref(value);
}

void nib_cli_json_write(nib_cli_out *out, json_t *value) {
    dump(out, value, 0);
}

/* ---- requests */

nib_status nib_cli_json_bool(json_t *request, const char *key, bool fallback, bool *out, nib_error *err) {
    json_t *value = json_object_get(request, key);
    *out = value && !json_is_null(value) ? json_is_true(value) : fallback;
    if (value && !json_is_boolean(value) && !json_is_null(value))
        return nib_fail(err, NIB_E_FORMAT, "\"%s\" must be true or false", key);
    return NIB_OK;
}

nib_status nib_cli_json_get_ids(json_t *request, const char *key, nib_token_list *out, nib_error *err) {
    json_t *list = json_object_get(request, key), *item;
    size_t i;
    if (!json_is_array(list)) return nib_fail(err, NIB_E_FORMAT, "\"%s\" must be an array of token ids", key);
    json_array_foreach(list, i, item) {
        json_int_t id = json_integer_value(item);
        if (!json_is_integer(item) || id < 0 || id > INT32_MAX)
            return nib_fail(err, NIB_E_FORMAT, "\"%s\"[%zu] is not a token id", key, i);
        nib_token token = (nib_token)id;
        if (!nib_cli_append_ids(out, &token, 1)) return nib_fail_nomem(err, sizeof token, key);
    }
    return NIB_OK;
}

nib_status nib_cli_json_get_text(json_t *request, nib_buf *bytes, nib_str *text, nib_error *err) {
    json_t *plain = json_object_get(request, "text"), *hex = json_object_get(request, "hex");
    if (json_is_string(plain)) {
        *text = (nib_str){json_string_value(plain), json_string_length(plain)};
        return NIB_OK;
    }
    if (!json_is_string(hex)) return nib_fail(err, NIB_E_FORMAT, "expected \"text\" or \"hex\", a string");
    const char *digits = json_string_value(hex);
    size_t n = json_string_length(hex);
    bytes->len = 0;
    for (size_t i = 0; i < n; i += 2) {
        int high = nib_hex_digit(digits[i]), low = i + 1 < n ? nib_hex_digit(digits[i + 1]) : -1;
        if (high < 0 || low < 0) return nib_fail(err, NIB_E_FORMAT, "\"hex\" must be pairs of hexadecimal digits");
        nib_buf_char(bytes, (char)(high << 4 | low));
    }
    if (bytes->failed) return nib_fail_nomem(err, n / 2, "\"hex\"");
    *text = (nib_str){bytes->ptr, bytes->len};
    return NIB_OK;
}

/* ---- reading */

nib_status nib_cli_json_parse(nib_str text, json_t **out, nib_error *err) {
    json_error_t why;
    *out = NULL;
    if (nib_json_is_deeper(text, MAX_DEPTH)) return nib_fail(err, NIB_E_FORMAT, "nested deeper than %d", MAX_DEPTH);
    *out = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
    if (*out) return NIB_OK;
    if (why.line > 1) return nib_fail(err, NIB_E_FORMAT, "not JSON: %s (line %d, column %d)", why.text, why.line, why.column);
    return nib_fail(err, NIB_E_FORMAT, "not JSON: %s (column %d)", why.text, why.column);
}

nib_status nib_cli_json_option(const char *option, const char *given, json_t **out, nib_error *err) {
    *out = NULL;
    if (!given) return NIB_OK;
    nib_status status = nib_cli_json_parse((nib_str){given, strlen(given)}, out, err);
    if (status == NIB_OK && json_is_object(*out)) return NIB_OK;
    if (status == NIB_OK) nib_fail(err, NIB_E_ARG, "expected a JSON object");
    json_decref(*out);
    *out = NULL;
    nib_error_prefix(err, "%s", option);
    return err->code = NIB_E_ARG;
}

nib_status nib_cli_json_file(const char *path, json_t **out, nib_error *err) {
    nib_buf text = {0};
    *out = NULL;
    nib_status status = nib_cli_input_file(path, &text, err);
    if (status == NIB_OK) {
        status = nib_cli_json_parse(nib_cli_bytes(&text), out, err);
        if (status != NIB_OK) nib_error_prefix(err, "%s", path);
    }
    nib_buf_free(&text);
    return status;
}

/* ---- lines */

static nib_status answer_line(nib_str line, json_t *reply, nib_cli_jsonl_fn answer, void *user, nib_error *err) {
    json_t *request;
    NIB_TRY(nib_cli_json_parse(line, &request, err));
    nib_status status = json_is_object(request) ? answer(user, request, reply, err)
                                                : nib_fail(err, NIB_E_FORMAT, "expected an object");
    json_decref(request);
    return status;
}

int nib_cli_jsonl(nib_cli_out *out, const nib_cli_term *term, nib_cli_jsonl_fn answer, void *user) {
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n = 0;
    int status = NIB_CLI_DONE;
    while (!out->error && !nib_cli_interrupted() && (n = getline(&line, &capacity, stdin)) >= 0) {
        nib_error err;
        if (strspn(line, " \t\r\n") == (size_t)n) continue;
        json_t *reply = json_object();
        if (answer_line((nib_str){line, (size_t)n}, reply, answer, user, &err) != NIB_OK) {
            if (err.code == NIB_E_CANCELLED) {
                json_decref(reply);
                break;
            }
            json_object_clear(reply);
            nib_cli_json_set_str(reply, "error", err.message);
            status = NIB_CLI_FAILED;
        }
        dump(out, reply, JSON_ENSURE_ASCII); /* readers that split at U+2028 shall not split an answer */
        if (out->is_live) nib_cli_out_flush(out);
    }
    free(line);
    if (n < 0 && ferror(stdin) && !nib_cli_interrupted()) {
        nib_cli_error(term, "cannot read standard input: %s", strerror(errno));
        status = NIB_CLI_FAILED;
    }
    return nib_cli_interrupted() ? 128 + nib_cli_interrupted() : status;
}
