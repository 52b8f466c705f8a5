/* gguf/value.c - metadata values: sizes of their types, bytes to numbers; walks over arrays. */
#include "gguf/value.h"

#include "base/half.h"

#include <string.h>

static const struct {
    const char *name;
    uint8_t size;
} types[] = {
#define X(name, number, text, size) [NIB_GGUF_##name] = {text, size},
#include "gguf/values.def"
#undef X
};
_Static_assert(sizeof types / sizeof types[0] == NIB_GGUF_N_TYPES, "one row for every type");
#define X(name, number, text, size) _Static_assert(NIB_GGUF_##name == (number), "nib.h and values.def differ");
#include "gguf/values.def"
#undef X

const char *nib_gguf_type_name(nib_gguf_type type) {
    return (unsigned)type < NIB_GGUF_N_TYPES ? types[type].name : "unknown";
}

size_t nib_gguf_value_size(uint32_t type) {
    return type < NIB_GGUF_N_TYPES ? types[type].size : 0;
}

static uint64_t little_endian(const uint8_t *p, size_t n) {
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

void nib_gguf_value_load(nib_gguf_value *value, nib_gguf_type type, const void *p) {
    size_t size = nib_gguf_value_size(type);
    uint64_t u = little_endian(p, size);
    *value = (nib_gguf_value){.type = type};
    switch (type) {
    case NIB_GGUF_I8:
    case NIB_GGUF_I16:
    case NIB_GGUF_I32:
    case NIB_GGUF_I64: {
        uint64_t sign = UINT64_C(1) << (8 * size - 1);
        value->as.i64 = (int64_t)((u ^ sign) - sign);
        break;
    }
    case NIB_GGUF_F32: value->as.f64 = (double)nib_f32_from_bits((uint32_t)u); break;
    case NIB_GGUF_F64: memcpy(&value->as.f64, &u, sizeof u); break;
    case NIB_GGUF_BOOL: value->as.b = u != 0; break;
    default: value->as.u64 = u; break;
    }
}

static bool is_signed(nib_gguf_type type) {
    return type == NIB_GGUF_I8 || type == NIB_GGUF_I16 || type == NIB_GGUF_I32 || type == NIB_GGUF_I64;
}

static bool is_unsigned(nib_gguf_type type) {
    return type == NIB_GGUF_U8 || type == NIB_GGUF_U16 || type == NIB_GGUF_U32 || type == NIB_GGUF_U64;
}

bool nib_gguf_value_u64(const nib_gguf_value *value, uint64_t *out) {
    if (is_signed(value->type) && value->as.i64 >= 0) *out = (uint64_t)value->as.i64;
    else if (is_unsigned(value->type)) *out = value->as.u64;
    else return false;
    return true;
}

bool nib_gguf_next_string(nib_str *left, nib_str *out) {
    if (left->len < 8) return false;
    uint64_t n = nib_gguf_value_le64(left->ptr);
    if (n > left->len - 8) return false; /* only in an array that nib_gguf did not check */
    *out = (nib_str){left->ptr + 8, (size_t)n};
    left->ptr += 8 + n;
    left->len -= 8 + (size_t)n;
    return true;
}

double nib_gguf_number_at(const nib_gguf_value *array, uint64_t i) {
    size_t size = array->type == NIB_GGUF_ARRAY ? nib_gguf_value_size(array->elem) : 0;
    if (size == 0 || i >= array->as.raw.len / size) return 0;
    nib_gguf_value v;
    nib_gguf_value_load(&v, array->elem, array->as.raw.ptr + i * size);
    if (v.type == NIB_GGUF_F32 || v.type == NIB_GGUF_F64) return v.as.f64;
    if (v.type == NIB_GGUF_BOOL) return v.as.b;
    return is_signed(v.type) ? (double)v.as.i64 : (double)v.as.u64;
}
