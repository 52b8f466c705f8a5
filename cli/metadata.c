/* cli/metadata.c - GGUF values in -> what people and programs can read out. Called by inspect, and by sampling for the
 * file's recommendations. */
#include "metadata.h"

#include "tokens.h"

#include <math.h>

enum { CUT_BYTES = 120, CUT_ELEMENTS = 6 };

typedef enum family { UNSIGNED, SIGNED, REAL, BOOL, STRING, ARRAY } family;

static const family families[] = {
    [NIB_GGUF_U8] = UNSIGNED,  [NIB_GGUF_U16] = UNSIGNED, [NIB_GGUF_U32] = UNSIGNED,  [NIB_GGUF_U64] = UNSIGNED,
    [NIB_GGUF_I8] = SIGNED,    [NIB_GGUF_I16] = SIGNED,   [NIB_GGUF_I32] = SIGNED,    [NIB_GGUF_I64] = SIGNED,
    [NIB_GGUF_F32] = REAL,     [NIB_GGUF_F64] = REAL,     [NIB_GGUF_BOOL] = BOOL,     [NIB_GGUF_STRING] = STRING,
    [NIB_GGUF_ARRAY] = ARRAY,
};

bool nib_cli_metadata_number(const nib_gguf_value *value, double *x) {
    switch (families[value->type]) {
    case UNSIGNED: *x = (double)value->as.u64; return true;
    case SIGNED: *x = (double)value->as.i64; return true;
    case REAL: *x = value->as.f64; return isfinite(*x);
    default: return false;
    }
}

/* ---- text */

static void string_text(nib_buf *out, nib_str text) {
    nib_str shown = {text.ptr, text.len < CUT_BYTES ? text.len : CUT_BYTES};
    while (shown.len < text.len && shown.len && ((unsigned char)text.ptr[shown.len] & 0xc0) == 0x80) shown.len--;
    nib_buf_char(out, '"');
    nib_cli_escaped(out, shown);
    nib_buf_char(out, '"');
    if (shown.len < text.len) nib_buf_printf(out, "... (%zu bytes)", text.len);
}

static void array_text(nib_buf *out, const nib_gguf_value *value) {
    nib_str left = value->as.raw, item;
    uint64_t shown = value->n < CUT_ELEMENTS ? value->n : CUT_ELEMENTS;
    nib_buf_printf(out, "%llu x %s: [", (unsigned long long)value->n, nib_gguf_type_name(value->elem));
    for (uint64_t i = 0; i < shown; i++) {
        if (i) nib_buf_str(out, ", ");
        if (families[value->elem] == STRING) {
            if (nib_gguf_next_string(&left, &item)) string_text(out, item);
        } else if (families[value->elem] == ARRAY) {
            nib_buf_str(out, "[...]");
        } else {
            nib_buf_printf(out, "%.9g", nib_gguf_number_at(value, i));
        }
    }
    nib_buf_str(out, shown < value->n ? ", ...]" : "]");
}

void nib_cli_metadata_text(nib_buf *out, const nib_gguf_value *value) {
    switch (families[value->type]) {
    case UNSIGNED: nib_buf_printf(out, "%llu", (unsigned long long)value->as.u64); break;
    case SIGNED: nib_buf_printf(out, "%lld", (long long)value->as.i64); break;
    case REAL: nib_buf_printf(out, "%.9g", value->as.f64); break;
    case BOOL: nib_buf_str(out, value->as.b ? "true" : "false"); break;
    case STRING: string_text(out, value->as.str); break;
    case ARRAY: array_text(out, value); break;
    }
}

/* ---- JSON */

static json_t *array_json(const nib_gguf_value *value) {
    json_t *list = json_array();
    nib_str left = value->as.raw, item;
    for (uint64_t i = 0; i < value->n; i++) {
        switch (families[value->elem]) {
        case STRING:
            if (nib_gguf_next_string(&left, &item)) json_array_append_new(list, nib_cli_json_str(item));
            break;
        case BOOL: json_array_append_new(list, json_boolean(nib_gguf_number_at(value, i) != 0)); break;
        case REAL: json_array_append_new(list, nib_cli_json_number(nib_gguf_number_at(value, i))); break;
        case ARRAY: json_array_append_new(list, json_null()); break;
        default: json_array_append_new(list, json_integer((json_int_t)nib_gguf_number_at(value, i)));
        }
    }
    return list;
}

json_t *nib_cli_metadata_json(const nib_gguf_value *value) {
    switch (families[value->type]) {
    case UNSIGNED:
        return value->as.u64 <= INT64_MAX ? json_integer((json_int_t)value->as.u64) : json_real((double)value->as.u64);
    case SIGNED: return json_integer(value->as.i64);
    case REAL: return nib_cli_json_number(value->as.f64);
    case BOOL: return json_boolean(value->as.b);
    case STRING: return nib_cli_json_str(value->as.str);
    case ARRAY: return array_json(value);
    }
    return json_null();
}
