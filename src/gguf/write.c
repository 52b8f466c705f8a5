/* gguf/write.c - builds GGUF files: keys and tensors in, bytes out. */
#include "gguf/write.h"

#include "base/half.h"
#include "base/mem.h"
#include "base/status.h"
#include "gguf/gguf.h"
#include "gguf/value.h"

#include <errno.h>
#include <string.h>

static void put(nib_buf *buf, uint64_t value, size_t n_bytes) {
    uint8_t bytes[8];
    for (size_t i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
    nib_buf_append(buf, bytes, n_bytes);
}

static void put_str(nib_buf *buf, nib_str s) {
    put(buf, s.len, 8);
    nib_buf_append(buf, s.ptr, s.len);
}

static nib_str str(const char *s) {
    return (nib_str){s, strlen(s)};
}

static size_t padding(const nib_gguf_writer *w, size_t n) {
    size_t a = w->alignment ? w->alignment : NIB_GGUF_DEFAULT_ALIGNMENT;
    return (a - n % a) % a;
}

static void put_key(nib_gguf_writer *w, nib_str key, nib_gguf_type type) {
    put_str(&w->keys, key);
    put(&w->keys, (uint64_t)type, 4);
    w->n_keys++;
}

void nib_gguf_write_free(nib_gguf_writer *w) {
    nib_buf_free(&w->keys);
    nib_buf_free(&w->tensors);
    nib_free(w->data);
    *w = (nib_gguf_writer){0};
}

void nib_gguf_write_uint(nib_gguf_writer *w, const char *key, nib_gguf_type type, uint64_t value) {
    put_key(w, str(key), type);
    put(&w->keys, value, nib_gguf_value_size(type));
}

void nib_gguf_write_float(nib_gguf_writer *w, const char *key, nib_gguf_type type, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type == NIB_GGUF_F32) bits = nib_f32_bits((float)value);
    nib_gguf_write_uint(w, key, type, bits);
}

void nib_gguf_write_str(nib_gguf_writer *w, const char *key, const char *value) {
    put_key(w, str(key), NIB_GGUF_STRING);
    put_str(&w->keys, str(value));
}

void nib_gguf_write_array(nib_gguf_writer *w, const char *key, nib_gguf_type elem, uint64_t n, nib_str raw) {
    put_key(w, str(key), NIB_GGUF_ARRAY);
    put(&w->keys, (uint64_t)elem, 4);
    put(&w->keys, n, 8);
    nib_buf_append(&w->keys, raw.ptr, raw.len);
}

void nib_gguf_write_strings(nib_gguf_writer *w, const char *key, const nib_str *strings, size_t n) {
    nib_gguf_write_array(w, key, NIB_GGUF_STRING, n, (nib_str){0});
    for (size_t i = 0; i < n; i++) put_str(&w->keys, strings[i]);
}

void nib_gguf_write_raw(nib_gguf_writer *w, nib_str key, nib_gguf_type type, nib_str raw) {
    put_key(w, key, type);
    nib_buf_append(&w->keys, raw.ptr, raw.len);
}

void nib_gguf_write_tensor(nib_gguf_writer *w, const nib_gguf_tensor *tensor, const void *data) {
    put_str(&w->tensors, tensor->name);
    put(&w->tensors, tensor->n_dims, 4);
    for (uint32_t i = 0; i < tensor->n_dims && i < 4; i++) put(&w->tensors, tensor->dims[i], 8);
    put(&w->tensors, tensor->type, 4);
    put(&w->tensors, w->data_bytes, 8);
    w->data_bytes += tensor->n_bytes + padding(w, tensor->n_bytes);
    if (!nib_grow(&w->data, &w->capacity, w->n_tensors + 1, sizeof *w->data)) w->failed = true;
    else w->data[w->n_tensors++] = (struct nib_gguf_write_data){data, tensor->n_bytes};
}

static nib_status give(const nib_buf *out, nib_error *err) {
    return out->failed ? nib_fail_nomem(err, out->len, "a GGUF file") : NIB_OK;
}

static void put_zeros(nib_buf *out, size_t n) {
    if (!nib_buf_reserve(out, n)) return;
    memset(out->ptr + out->len, 0, n);
    out->len += n;
}

nib_status nib_gguf_write_header(const nib_gguf_writer *w, nib_buf *out, nib_error *err) {
    if (w->keys.failed || w->tensors.failed || w->failed) out->failed = true;
    size_t begin = out->len;
    nib_buf_append(out, "GGUF", 4);
    put(out, w->version ? w->version : 3, 4);
    put(out, w->n_tensors, 8);
    put(out, w->n_keys + (w->alignment != 0), 8);
    if (w->alignment) {
        put_str(out, str("general.alignment"));
        put(out, NIB_GGUF_U32, 4);
        put(out, w->alignment, 4);
    }
    nib_buf_append(out, w->keys.ptr, w->keys.len);
    nib_buf_append(out, w->tensors.ptr, w->tensors.len);
    put_zeros(out, padding(w, out->len - begin));
    return give(out, err);
}

nib_status nib_gguf_write_bytes(const nib_gguf_writer *w, nib_buf *out, nib_error *err) {
    NIB_TRY(nib_gguf_write_header(w, out, err));
    for (size_t i = 0; i < w->n_tensors; i++) {
        struct nib_gguf_write_data d = w->data[i];
        if (d.bytes) nib_buf_append(out, d.bytes, d.n_bytes);
        else put_zeros(out, d.n_bytes);
        put_zeros(out, padding(w, d.n_bytes));
    }
    return give(out, err);
}

nib_status nib_gguf_write_file(const nib_gguf_writer *w, FILE *stream, nib_error *err) {
    static const char zeros[4096];
    nib_buf header = {0};
    nib_status status = nib_gguf_write_header(w, &header, err);
    bool ok = status == NIB_OK && fwrite(header.ptr, 1, header.len, stream) == header.len;
    nib_buf_free(&header);
    if (status != NIB_OK) return status;
    for (size_t i = 0; ok && i < w->n_tensors; i++) {
        struct nib_gguf_write_data d = w->data[i];
        size_t n_zeros = padding(w, d.n_bytes);
        if (d.bytes) ok = fwrite(d.bytes, 1, d.n_bytes, stream) == d.n_bytes;
        else n_zeros += d.n_bytes;
        for (; ok && n_zeros; n_zeros -= n_zeros < sizeof zeros ? n_zeros : sizeof zeros) {
            size_t n = n_zeros < sizeof zeros ? n_zeros : sizeof zeros;
            ok = fwrite(zeros, 1, n, stream) == n;
        }
    }
    if (ok && fflush(stream) == 0) return NIB_OK;
    return nib_fail_errno(err, errno, "cannot write the GGUF file");
}
