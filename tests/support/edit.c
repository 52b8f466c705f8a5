/* tests/support/edit.c - a tiny model with a few keys and tensors changed, as an open file. */
#include "support/edit.h"

#include "base/mem.h"
#include "gguf/write.h"
#include "quant/type.h"
#include "support/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_EDITS 32

struct edit {
    nib_gguf *source;
    nib_gguf_writer w;
    nib_arena arena;                 /* names and data */
    const char *replaced[MAX_EDITS]; /* names that are not copied any more */
    size_t n_replaced;
    struct {
        const char *tensor;
        const void *bytes;
        size_t at, n;
    } patch[MAX_EDITS];
    size_t n_patches;
};

static nib_gguf *open_bytes(const nib_buf *bytes) {
    nib_error err;
    nib_gguf *file;
    char *folder = files_folder(), *path = files_path(folder, "edit.gguf");
    files_write(path, bytes->ptr, bytes->len);
    nib_status status = nib_gguf_open(&file, path, NULL, &err);
    if (status != NIB_OK) fail_msg("%s", err.message);
    free(path);
    files_remove(folder); /* the open file lives on */
    return file;
}

edit *edit_new(const tiny_model *m) {
    nib_error err;
    nib_buf bytes = {0};
    edit *e = calloc(1, sizeof *e);
    assert_non_null(e);
    if (tiny_bytes(m, &bytes, &err) != NIB_OK) fail_msg("%s", err.message);
    e->source = open_bytes(&bytes);
    nib_buf_free(&bytes);
    return e;
}

static void *keep(edit *e, const void *data, size_t n) {
    void *copy = nib_arena_copy(&e->arena, data, n);
    assert_non_null(copy);
    return copy;
}

void edit_drop(edit *e, const char *name) {
    assert_true(e->n_replaced < MAX_EDITS);
    e->replaced[e->n_replaced++] = keep(e, name, strlen(name));
}

static bool is_replaced(const edit *e, nib_str name) {
    for (size_t i = 0; i < e->n_replaced; i++)
        if (strlen(e->replaced[i]) == name.len && memcmp(e->replaced[i], name.ptr, name.len) == 0) return true;
    return false;
}

void edit_number(edit *e, const char *key, nib_gguf_type type, double value) {
    edit_drop(e, key);
    if (type == NIB_GGUF_F32 || type == NIB_GGUF_F64) nib_gguf_write_float(&e->w, key, type, value);
    else nib_gguf_write_uint(&e->w, key, type, value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value);
}

void edit_text(edit *e, const char *key, const char *text) {
    edit_drop(e, key);
    nib_gguf_write_str(&e->w, key, text);
}

void edit_array(edit *e, const char *key, nib_gguf_type elem, const uint32_t *values, size_t n) {
    size_t size = elem == NIB_GGUF_BOOL || elem == NIB_GGUF_U8 ? 1 : 4;
    unsigned char raw[4 * 64];
    assert_true(n <= 64);
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < size; b++) raw[i * size + b] = (unsigned char)(values[i] >> 8 * b);
    edit_drop(e, key);
    nib_gguf_write_array(&e->w, key, elem, n, (nib_str){(const char *)raw, n * size});
}

void edit_strings(edit *e, const char *key, size_t n) {
    nib_str *strings = nib_arena_alloc(&e->arena, n * sizeof *strings);
    for (size_t i = 0; i < n; i++) strings[i] = (nib_str){"x", 1};
    edit_drop(e, key);
    nib_gguf_write_strings(&e->w, key, strings, n);
}

void edit_tensor(edit *e, const char *name, uint32_t type, uint64_t d0, uint64_t d1) {
    uint32_t block = 1, bytes = 1;
    assert_non_null(nib_quant_gguf_name(type, &block, &bytes));
    edit_drop(e, name);
    nib_gguf_tensor t = {.name = {name, strlen(name)}, .type = type, .n_dims = d1 ? 2 : 1, .dims = {d0, d1},
                         .n_bytes = d0 / block * bytes * (d1 ? d1 : 1)};
    void *zeros = nib_arena_alloc(&e->arena, t.n_bytes);
    assert_non_null(zeros);
    memset(zeros, 0, t.n_bytes);
    nib_gguf_write_tensor(&e->w, &t, zeros);
}

void edit_data(edit *e, const char *tensor, size_t at, const void *bytes, size_t n) {
    assert_true(e->n_patches < MAX_EDITS);
    e->patch[e->n_patches].tensor = keep(e, tensor, strlen(tensor));
    e->patch[e->n_patches].bytes = keep(e, bytes, n);
    e->patch[e->n_patches].at = at;
    e->patch[e->n_patches++].n = n;
}

static void copy_key(edit *e, nib_str name, const nib_gguf_value *v) {
    const char *key = keep(e, name.ptr, name.len);
    if (v->type == NIB_GGUF_STRING) nib_gguf_write_str(&e->w, key, keep(e, v->as.str.ptr, v->as.str.len));
    else if (v->type == NIB_GGUF_ARRAY) nib_gguf_write_array(&e->w, key, v->elem, v->n, v->as.raw);
    else if (v->type == NIB_GGUF_F32 || v->type == NIB_GGUF_F64) nib_gguf_write_float(&e->w, key, v->type, v->as.f64);
    else nib_gguf_write_uint(&e->w, key, v->type, v->type == NIB_GGUF_BOOL ? v->as.b : v->as.u64);
}

static void copy_tensor(edit *e, const nib_gguf_tensor *t) {
    char *data = nib_arena_alloc(&e->arena, t->n_bytes);
    assert_non_null(data);
    assert_int_equal(nib_gguf_read(e->source, t, 0, t->n_bytes, data, NULL), NIB_OK);
    for (size_t i = 0; i < e->n_patches; i++) {
        const char *name = e->patch[i].tensor;
        if (strlen(name) != t->name.len || memcmp(name, t->name.ptr, t->name.len) != 0) continue;
        assert_true(e->patch[i].at + e->patch[i].n <= t->n_bytes);
        memcpy(data + e->patch[i].at, e->patch[i].bytes, e->patch[i].n);
    }
    nib_gguf_write_tensor(&e->w, t, data);
}

nib_gguf *edit_open(edit *e) {
    for (size_t i = 0; i < nib_gguf_n_keys(e->source); i++) {
        const nib_gguf_value *v;
        nib_str name = nib_gguf_key_at(e->source, i, &v);
        if (!is_replaced(e, name)) copy_key(e, name, v);
    }
    for (size_t i = 0; i < nib_gguf_n_tensors(e->source); i++) {
        const nib_gguf_tensor *t = nib_gguf_tensor_at(e->source, i);
        if (!is_replaced(e, t->name)) copy_tensor(e, t);
    }
    nib_buf bytes = {0};
    assert_int_equal(nib_gguf_write_bytes(&e->w, &bytes, NULL), NIB_OK);
    nib_gguf *file = open_bytes(&bytes);
    nib_buf_free(&bytes);
    nib_gguf_write_free(&e->w);
    nib_arena_free(&e->arena);
    nib_gguf_close(e->source);
    free(e);
    return file;
}
