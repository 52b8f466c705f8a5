/* tests/test_gguf_write.c - what the writer writes, the parser reads; to memory and to a stream alike. */
#include "gguf/gguf.h"
#include "gguf/write.h"
#include "support/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const nib_gguf_limits limits = {1 << 20, 1000, 1000};

static nib_gguf_doc parse(const nib_buf *file) {
    nib_gguf_doc doc;
    nib_error err = {0};
    uint64_t want;
    nib_gguf_input input = {file->ptr, file->len, file->len, 0};
    if (nib_gguf_parse(&doc, &input, &limits, &want, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_int_equal(want, 0);
    return doc;
}

static void add_keys(nib_gguf_writer *w) {
    nib_gguf_write_uint(w, "u8", NIB_GGUF_U8, 255);
    nib_gguf_write_uint(w, "i8", NIB_GGUF_I8, (uint64_t)-128);
    nib_gguf_write_uint(w, "u16", NIB_GGUF_U16, 65535);
    nib_gguf_write_uint(w, "i16", NIB_GGUF_I16, (uint64_t)-2);
    nib_gguf_write_uint(w, "u32", NIB_GGUF_U32, UINT32_MAX);
    nib_gguf_write_uint(w, "i32", NIB_GGUF_I32, (uint64_t)-3);
    nib_gguf_write_uint(w, "u64", NIB_GGUF_U64, UINT64_MAX);
    nib_gguf_write_uint(w, "i64", NIB_GGUF_I64, (uint64_t)INT64_MIN);
    nib_gguf_write_float(w, "f32", NIB_GGUF_F32, 1.5);
    nib_gguf_write_float(w, "f64", NIB_GGUF_F64, -1e300);
    nib_gguf_write_uint(w, "bool", NIB_GGUF_BOOL, 1);
    nib_gguf_write_str(w, "string", "wörld");
    nib_gguf_write_array(w, "u16s", NIB_GGUF_U16, 2, (nib_str){"\1\0\2\1", 4});
    nib_str strings[] = {{"a", 1}, {NULL, 0}, {"b\0c", 3}};
    nib_gguf_write_strings(w, "strings", strings, 3);
    nib_gguf_write_strings(w, "none", NULL, 0);
    nib_gguf_write_raw(w, (nib_str){"raw", 3}, NIB_GGUF_BOOL, (nib_str){"\0", 1});
}

static void check_keys(const nib_gguf_doc *doc, size_t first) {
    const nib_gguf_key *k = doc->keys + first;
    assert_int_equal(doc->n_keys, first + 16);
    assert_true(k[0].value.as.u64 == 255 && k[1].value.as.i64 == -128 && k[2].value.as.u64 == 65535);
    assert_true(k[3].value.as.i64 == -2 && k[4].value.as.u64 == UINT32_MAX && k[5].value.as.i64 == -3);
    assert_true(k[6].value.as.u64 == UINT64_MAX && k[7].value.as.i64 == INT64_MIN);
    assert_true(k[8].value.as.f64 == 1.5 && k[9].value.as.f64 == -1e300 && k[10].value.as.b);
    assert_memory_equal(k[11].value.as.str.ptr, "wörld", 6);
    for (size_t i = 0; i < 11; i++) { /* these are called as their type is */
        assert_int_equal(k[i].name.len, strlen(nib_gguf_type_name(k[i].value.type)));
        assert_memory_equal(k[i].name.ptr, nib_gguf_type_name(k[i].value.type), k[i].name.len);
    }
    assert_true(k[12].value.elem == NIB_GGUF_U16 && k[12].value.n == 2 && nib_gguf_number_at(&k[12].value, 1) == 258);
    nib_str left = k[13].value.as.raw, s;
    assert_true(k[13].value.elem == NIB_GGUF_STRING && k[13].value.n == 3);
    assert_true(nib_gguf_next_string(&left, &s) && s.len == 1 && s.ptr[0] == 'a');
    assert_true(nib_gguf_next_string(&left, &s) && s.len == 0);
    assert_true(nib_gguf_next_string(&left, &s) && s.len == 3 && memcmp(s.ptr, "b\0c", 3) == 0);
    assert_false(nib_gguf_next_string(&left, &s));
    assert_true(k[14].value.n == 0 && k[14].value.as.raw.len == 0);
    assert_true(k[15].value.type == NIB_GGUF_BOOL && !k[15].value.as.b);
    assert_ptr_equal(nib_gguf_doc_find(doc, "strings"), &k[13].value);
    assert_null(nib_gguf_doc_find(doc, "string "));
}

static const float a_data[5] = {1, 2, 3, 4, 5};
static const uint8_t b_data[68] = {9, 8, 7};

static void add_tensors(nib_gguf_writer *w) {
    nib_gguf_tensor a = {.name = {"a", 1}, .type = 0, .n_dims = 1, .dims = {5}, .n_bytes = sizeof a_data};
    nib_gguf_tensor b = {.name = {"b", 1}, .type = 8, .n_dims = 4, .dims = {32, 1, 2, 1}, .n_bytes = sizeof b_data};
    nib_gguf_tensor c = {.name = {"c", 1}, .type = 25, .n_dims = 2, .dims = {3, 5000}, .n_bytes = 30000};
    nib_gguf_write_tensor(w, &a, a_data);
    nib_gguf_write_tensor(w, &b, b_data);
    nib_gguf_write_tensor(w, &c, NULL); /* zeros */
}

static void check_tensors(const nib_gguf_doc *doc, const nib_buf *file) {
    assert_int_equal(doc->n_tensors, 3);
    const nib_gguf_tensor *t = doc->tensors;
    assert_true(t[0].n_dims == 1 && t[0].dims[0] == 5 && t[0].dims[1] == 1 && t[0].dims[3] == 1);
    assert_true(t[0].n_elements == 5 && t[0].n_bytes == 20 && t[0].is_supported);
    assert_string_equal(t[0].type_name, "F32");
    assert_memory_equal(file->ptr + t[0].offset, a_data, sizeof a_data);
    assert_true(t[1].n_dims == 4 && t[1].dims[2] == 2 && t[1].n_elements == 64 && t[1].n_bytes == 68);
    assert_string_equal(t[1].type_name, "Q8_0");
    assert_memory_equal(file->ptr + t[1].offset, b_data, sizeof b_data);
    assert_true(t[2].n_elements == 15000 && !t[2].is_supported);
    assert_string_equal(t[2].type_name, "I16");
    for (uint64_t i = 0; i < t[2].n_bytes; i++) assert_int_equal(file->ptr[t[2].offset + i], 0);
    for (int i = 0; i < 3; i++) assert_int_equal(t[i].offset % doc->alignment, 0);
}

static void round_trip(void **state) {
    (void)state;
    static const uint32_t alignments[] = {0, 1, 8, 64, 4096};
    for (size_t i = 0; i < 5; i++) {
        nib_gguf_writer w = {.alignment = alignments[i], .version = i == 1 ? 2 : 0};
        add_keys(&w);
        add_tensors(&w);
        nib_buf file = {0};
        assert_int_equal(nib_gguf_write_bytes(&w, &file, NULL), NIB_OK);
        nib_gguf_doc doc = parse(&file);
        assert_int_equal(doc.version, i == 1 ? 2 : 3);
        assert_int_equal(doc.alignment, alignments[i] ? alignments[i] : 32);
        check_keys(&doc, alignments[i] ? 1 : 0);
        check_tensors(&doc, &file);
        nib_gguf_doc_free(&doc);
        nib_buf_free(&file);
        nib_gguf_write_free(&w);
    }
}

static void empty_file(void **state) {
    (void)state;
    nib_gguf_writer w = {0};
    nib_buf file = {0};
    assert_int_equal(nib_gguf_write_bytes(&w, &file, NULL), NIB_OK);
    nib_gguf_doc doc = parse(&file);
    assert_true(doc.n_keys == 0 && doc.n_tensors == 0 && doc.header_bytes == 24 && file.len == 32);
    nib_gguf_doc_free(&doc);
    nib_buf_free(&file);
    nib_gguf_write_free(&w);
}

static void stream_equals_memory(void **state) {
    (void)state;
    char *folder = files_folder(), *path = files_path(folder, "a.gguf");
    nib_gguf_writer w = {.alignment = 256};
    add_keys(&w);
    add_tensors(&w);
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(nib_gguf_write_file(&w, stream, NULL), NIB_OK);
    fclose(stream);
    nib_buf file = {0};
    assert_int_equal(nib_gguf_write_bytes(&w, &file, NULL), NIB_OK);
    size_t n;
    char *written = files_read(path, &n);
    assert_int_equal(n, file.len);
    assert_memory_equal(written, file.ptr, n);

    nib_error err;
    stream = fopen("/dev/full", "wb");
    if (stream) { /* where the system has it */
        assert_int_equal(nib_gguf_write_file(&w, stream, &err), NIB_E_IO);
        assert_non_null(strstr(err.message, "No space left"));
        fclose(stream);
    }
    free(written);
    free(path);
    nib_buf_free(&file);
    nib_gguf_write_free(&w);
    files_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(empty_file),
        cmocka_unit_test(stream_equals_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
