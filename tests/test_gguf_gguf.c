/* tests/test_gguf_gguf.c - the header parser: every refusal with its message, limits, truncation and mutation. */
#include "gguf/gguf.h"
#include "gguf/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const nib_gguf_limits limits = {1 << 20, 1000, 1000};

static nib_status parse(const void *bytes, size_t len, uint64_t file_bytes, nib_gguf_doc *doc, uint64_t *want,
                        nib_error *err) {
    nib_gguf_input input = {bytes, len, file_bytes, 0};
    return nib_gguf_parse(doc, &input, &limits, want, err);
}

/* The bytes must be refused with this code, at this offset, in a message that contains each of the texts. */
static void refused(const nib_buf *file, nib_status code, uint64_t offset, const char *text, const char *text2) {
    assert_false(file->failed);
    char *exact = malloc(file->len ? file->len : 1); /* so that a sanitizer sees any read beyond it */
    assert_non_null(exact);
    if (file->len) memcpy(exact, file->ptr, file->len);
    nib_gguf_doc doc;
    nib_error err = {0};
    uint64_t want = 1;
    nib_status status = parse(exact, file->len, file->len, &doc, &want, &err);
    free(exact);
    if (status != code || !strstr(err.message, text) || !strstr(err.message, text2))
        fail_msg("status %d, expected %d; message '%s', expected '%s' and '%s'", status, code, err.message, text,
                 text2);
    if (err.offset != offset) fail_msg("offset %lld in '%s'", (long long)err.offset, err.message);
    assert_int_equal(err.code, code);
    assert_int_equal(want, 0);
    assert_null(doc.keys);
    assert_null(doc.tensors);
}

static void refused_bytes(const char *bytes, size_t n, nib_status code, const char *text, const char *text2) {
    nib_buf file = {0};
    nib_buf_append(&file, bytes, n);
    refused(&file, code, memcmp(bytes, "GGUF", n < 4 ? n : 4) == 0 && n >= 24 ? 4 : 0, text, text2);
    nib_buf_free(&file);
}

static void magic(void **state) {
    (void)state;
    refused_bytes("", 0, NIB_E_FORMAT, "empty", "0 bytes");
    refused_bytes("GGU", 3, NIB_E_FORMAT, "3 bytes", "24");
    refused_bytes("GGJT\3\0\0\0", 8, NIB_E_FORMAT, "GGJT", "older");
    refused_bytes("tjgg\3\0\0\0", 8, NIB_E_FORMAT, "tjgg", "older");
    refused_bytes("lmgg", 4, NIB_E_FORMAT, "lmgg", "older");
    refused_bytes("GGML", 4, NIB_E_FORMAT, "GGML", "older");
    refused_bytes("GGLA", 4, NIB_E_FORMAT, "GGLA", "older");
    refused_bytes("FUGG\0\0\0\3", 8, NIB_E_UNSUPPORTED, "big-endian", "little-endian");
    refused_bytes("PK\3\4aaaa", 8, NIB_E_FORMAT, "50 4b 03 04", "zip");
    refused_bytes("<!DOCTYPE html>", 15, NIB_E_FORMAT, "<!DO", "web page");
    refused_bytes("version https://git-lfs.github.com/spec/v1\n", 43, NIB_E_FORMAT, "vers", "LFS");
    refused_bytes("\x10\0\0\0\0\0\0\0{\"a\":1}", 15, NIB_E_FORMAT, "10 00 00 00", "safetensors");
    refused_bytes("\x7f" "ELF\0\0\0\0", 8, NIB_E_FORMAT, "7f 45 4c 46", "unknown");
}

static void version(void **state) {
    (void)state;
#define HEADER(v) "GGUF" v "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    refused_bytes(HEADER("\1\0\0\0"), 24, NIB_E_UNSUPPORTED, "version 1", "2 and 3");
    refused_bytes(HEADER("\0\0\0\0"), 24, NIB_E_UNSUPPORTED, "version 0", "2 and 3");
    refused_bytes(HEADER("\x63\0\0\0"), 24, NIB_E_UNSUPPORTED, "version 99", "2 and 3");
    refused_bytes(HEADER("\0\0\0\3"), 24, NIB_E_UNSUPPORTED, "big-endian", "0x03000000");
#undef HEADER
    refused_bytes("GGUF\3\0\0\0", 8, NIB_E_FORMAT, "header needs 24 bytes", "ends at 8");
}

/* The bytes of what w holds; empties w. */
static nib_buf finish(nib_gguf_writer *w) {
    nib_buf file = {0};
    assert_int_equal(nib_gguf_write_bytes(w, &file, NULL), NIB_OK);
    nib_gguf_write_free(w);
    return file;
}

static void refused_key(const char *key, nib_gguf_type type, nib_str raw, nib_status code, const char *text,
                        const char *text2, uint64_t offset) {
    nib_gguf_writer w = {0};
    nib_gguf_write_raw(&w, (nib_str){key, strlen(key)}, type, raw);
    nib_buf file = finish(&w);
    refused(&file, code, offset, text, text2);
    nib_buf_free(&file);
}
#define RAW(s) (nib_str){s, sizeof(s) - 1}
#define VALUE_AT(key) (24 + 8 + sizeof(key) - 1 + 4) /* where the value of the first key begins */

static void counts(void **state) {
    (void)state;
    static const char huge[] = "\xff\xff\xff\xff\xff\xff\xff\xff", many[] = "\xe9\3\0\0\0\0\0\0"; /* 1001 */
    nib_gguf_writer w = {0};
    nib_gguf_write_str(&w, "a", "b");
    nib_buf file = finish(&w);
    memcpy(file.ptr + 16, huge, 8);
    refused(&file, NIB_E_FORMAT, 16, "18446744073709551615 metadata keys announced", "64 bytes");
    memcpy(file.ptr + 8, huge, 8);
    refused(&file, NIB_E_FORMAT, 8, "18446744073709551615 tensors announced", "64 bytes");
    nib_buf_reserve(&file, 40000);
    memset(file.ptr + file.len, 0, 40000);
    file.len += 40000;
    memcpy(file.ptr + 8, many, 8);
    refused(&file, NIB_E_LIMIT, 8, "1001 tensors", "limit is 1000");
    memset(file.ptr + 8, 0, 8);
    memcpy(file.ptr + 16, many, 8);
    refused(&file, NIB_E_LIMIT, 16, "1001 metadata keys", "limit is 1000");
    file.ptr[16] = 2, file.ptr[17] = 0; /* one more than there is: padding follows */
    refused(&file, NIB_E_FORMAT, 46, "key 2 of 2", "length 0");
    nib_buf_free(&file);
}

static void values(void **state) {
    (void)state;
    refused_key("x.odd", (nib_gguf_type)13, RAW("\0\0\0\0"), NIB_E_FORMAT, "key 'x.odd'", "value type 13", 24 + 8 + 5);
    refused_key("x.odd", (nib_gguf_type)-1, RAW(""), NIB_E_FORMAT, "key 'x.odd'", "value type 4294967295", 24 + 8 + 5);
    refused_key("b", NIB_GGUF_BOOL, RAW("\2"), NIB_E_FORMAT, "key 'b'", "bool of 2", VALUE_AT("b"));
    refused_key("bs", NIB_GGUF_ARRAY, RAW("\7\0\0\0\2\0\0\0\0\0\0\0\1\xff"), NIB_E_FORMAT, "key 'bs'", "bool of 255",
                VALUE_AT("bs") + 13);
    refused_key("s", NIB_GGUF_STRING, RAW("\0\0\0\0\0\1\0\0"), NIB_E_FORMAT, "key 's' needs 1099511627776 bytes",
                "ends at 64", VALUE_AT("s") + 8);
    refused_key("s", NIB_GGUF_STRING, RAW("\xff\xff\xff\xff\xff\xff\xff\xff"), NIB_E_FORMAT, "key 's'", "truncated",
                VALUE_AT("s") + 8);
    refused_key("", NIB_GGUF_U8, RAW("\0"), NIB_E_FORMAT, "key 1 of 1", "length 0", 24);
}

static void arrays(void **state) {
    (void)state;
    refused_key("x.ids", NIB_GGUF_ARRAY, RAW("\x0a\0\0\0\1\0\0\0\0\0\0\x20\7\0\0\0\0\0\0\0"), NIB_E_FORMAT,
                "key 'x.ids' is an array of 2305843009213693953 elements of type u64", "bytes follow",
                VALUE_AT("x.ids") + 4);
    refused_key("x", NIB_GGUF_ARRAY, RAW("\x0d\0\0\0\1\0\0\0\0\0\0\0"), NIB_E_FORMAT, "key 'x'", "array of type 13",
                VALUE_AT("x"));
    refused_key("x", NIB_GGUF_ARRAY, RAW("\x08\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0a\xff\0\0\0\0\0\0\0"), NIB_E_FORMAT,
                "key 'x' needs 255 bytes", "truncated", VALUE_AT("x") + 12 + 9 + 8);
}

static void nested_arrays(void **state) {
    (void)state;
    static const char level[] = "\x09\0\0\0\1\0\0\0\0\0\0\0", leaf[] = "\0\0\0\0\2\0\0\0\0\0\0\0\7\x08";
    for (int depth = 1; depth <= 10000; depth = depth < 8 ? depth + 1 : depth * 10) {
        nib_buf raw = {0};
        for (int i = 1; i < depth; i++) nib_buf_append(&raw, level, 12);
        nib_buf_append(&raw, leaf, 14);
        nib_gguf_writer w = {0};
        nib_gguf_write_raw(&w, RAW("x.deep"), NIB_GGUF_ARRAY, (nib_str){raw.ptr, raw.len});
        nib_gguf_write_uint(&w, "after", NIB_GGUF_U8, 5);
        nib_buf file = finish(&w);
        if (depth > NIB_GGUF_MAX_DEPTH) {
            refused(&file, NIB_E_UNSUPPORTED, VALUE_AT("x.deep") + 12 * NIB_GGUF_MAX_DEPTH, "key 'x.deep'",
                    "nested more than 4 deep");
        } else {
            nib_gguf_doc doc;
            uint64_t want;
            assert_int_equal(parse(file.ptr, file.len, file.len, &doc, &want, NULL), NIB_OK);
            const nib_gguf_value *v = &doc.keys[0].value;
            assert_int_equal(v->elem, depth == 1 ? NIB_GGUF_U8 : NIB_GGUF_ARRAY);
            assert_int_equal(v->as.raw.len, raw.len - 12);
            assert_int_equal(doc.keys[1].value.as.u64, 5);
            nib_gguf_doc_free(&doc);
        }
        nib_buf_free(&raw);
        nib_buf_free(&file);
    }
}

/* [[[1, 2], []], [], [[3]]]: arrays of different lengths, some empty, are walked to the right end. */
static void ragged_arrays(void **state) {
    (void)state;
#define ARR(n) "\x09\0\0\0" n "\0\0\0\0\0\0\0"
#define U8S(n) "\0\0\0\0" n "\0\0\0\0\0\0\0"
    nib_gguf_writer w = {0};
    nib_gguf_write_raw(&w, RAW("x"), NIB_GGUF_ARRAY,
                       RAW(ARR("\3") ARR("\2") U8S("\2") "\1\2" U8S("\0") ARR("\0") ARR("\1") U8S("\1") "\3"));
    nib_gguf_write_raw(&w, RAW("empty"), NIB_GGUF_ARRAY, RAW(ARR("\0")));
    nib_gguf_write_uint(&w, "after", NIB_GGUF_U8, 5);
    nib_buf file = finish(&w);
    nib_gguf_doc doc;
    nib_error err = {0};
    uint64_t want;
    if (parse(file.ptr, file.len, file.len, &doc, &want, &err) != NIB_OK) fail_msg("%s", err.message);
    assert_true(doc.keys[0].value.n == 3 && doc.keys[1].value.n == 0 && doc.keys[2].value.as.u64 == 5);
    assert_int_equal(doc.keys[1].value.as.raw.len, 0);
    nib_gguf_doc_free(&doc);
    nib_buf_free(&file);
#undef ARR
#undef U8S
}

static void alignment(void **state) {
    (void)state;
    static const char *const bad[] = {"\0\0\0\0", "\3\0\0\0", "\x30\0\0\0", "\0\0\x20\0", "\xff\xff\xff\xff"};
    static const char *const text[] = {" 0,", " 3,", " 48,", " 2097152,", " 4294967295,"};
    for (int i = 0; i < 5; i++)
        refused_key("general.alignment", NIB_GGUF_U32, (nib_str){bad[i], 4}, NIB_E_FORMAT, "'general.alignment' is",
                    text[i], NIB_NO_OFFSET);
    refused_key("general.alignment", NIB_GGUF_STRING, RAW("\2\0\0\0\0\0\0\0" "32"), NIB_E_FORMAT, "'general.alignment'",
                "type string, expected u32", NIB_NO_OFFSET);
    refused_key("general.alignment", NIB_GGUF_U64, RAW("\x20\0\0\0\0\0\0\0"), NIB_E_FORMAT, "'general.alignment'",
                "type u64, expected u32", NIB_NO_OFFSET);
}

static void duplicates(void **state) {
    (void)state;
    nib_gguf_writer w = {0};
    nib_gguf_write_uint(&w, "a", NIB_GGUF_U8, 1);
    nib_gguf_write_uint(&w, "llama.block_count", NIB_GGUF_U8, 2);
    nib_gguf_write_uint(&w, "llama.block_count", NIB_GGUF_U8, 3);
    nib_buf file = finish(&w);
    refused(&file, NIB_E_FORMAT, 24 + 14 + 30, "duplicate key 'llama.block_count'", "2 and 3 of 3");
    nib_buf_free(&file);
    nib_gguf_tensor t = {.name = {"blk.0.attn_k.weight", 19}, .n_dims = 1, .dims = {1}, .n_bytes = 4};
    nib_gguf_write_tensor(&w, &t, NULL);
    nib_gguf_write_tensor(&w, &t, NULL);
    file = finish(&w);
    refused(&file, NIB_E_FORMAT, 24 + 51, "duplicate tensor 'blk.0.attn_k.weight'", "1 and 2 of 2");
    nib_buf_free(&file);
}

/* A file with one tensor of the given shape and type; its record begins at byte 24. */
static nib_buf one_tensor(uint32_t n_dims, const uint64_t dims[4], uint32_t type, uint64_t n_bytes) {
    nib_gguf_writer w = {0};
    nib_gguf_tensor t = {.name = {"blk.1.attn_q.weight", 19}, .type = type, .n_dims = n_dims, .n_bytes = n_bytes};
    memcpy(t.dims, dims, sizeof t.dims);
    nib_gguf_write_tensor(&w, &t, NULL);
    return finish(&w);
}

static void refused_tensor(uint32_t n_dims, const uint64_t dims[4], uint32_t type, uint64_t offset, const char *text) {
    nib_buf file = one_tensor(n_dims, dims, type, 64);
    refused(&file, NIB_E_FORMAT, offset, "tensor 'blk.1.attn_q.weight'", text);
    nib_buf_free(&file);
}

#define DIMS_AT (24 + 8 + 19 + 4)
#define DIMS(...) (const uint64_t[4]){__VA_ARGS__}

static void shapes(void **state) {
    (void)state;
    refused_tensor(0, DIMS(1), 0, DIMS_AT - 4, "0 dimensions");
    refused_tensor(5, DIMS(1, 1, 1, 1), 0, DIMS_AT - 4, "5 dimensions");
    refused_tensor(UINT32_MAX, DIMS(1, 1, 1, 1), 0, DIMS_AT - 4, "4294967295 dimensions");
    refused_tensor(2, DIMS(64, 0), 0, DIMS_AT + 8, "0 elements in dimension 1");
    refused_tensor(1, DIMS(0), 8, DIMS_AT, "0 elements in dimension 0");
    refused_tensor(2, DIMS(UINT64_C(1) << 33, UINT64_C(1) << 33), 0, DIMS_AT + 8, "overflows");
    refused_tensor(1, DIMS(UINT64_C(1) << 63), 0, DIMS_AT, "overflows");
    refused_tensor(4, DIMS(1 << 16, 1 << 16, 1 << 16, 1 << 15), 0, DIMS_AT + 24, "overflows");
    refused_tensor(1, DIMS(INT64_MAX), 0, DIMS_AT + 8, "size in bytes overflows");
    refused_tensor(2, DIMS(63, 64), 8, DIMS_AT + 16, "rows of 63 elements, expected a multiple of 32");
    refused_tensor(1, DIMS(128), 12, DIMS_AT + 8, "multiple of 256, the block of Q4_K");
}

static void offsets(void **state) {
    (void)state;
    nib_buf file = one_tensor(1, DIMS(16), 0, 64); /* data begins at 96: 24 + 8 + 19 + 4 + 8 + 4 + 8 = 75, padded */
    static const uint64_t at = DIMS_AT + 8 + 4;
    assert_int_equal(file.len, 96 + 64);
    file.len--;
    refused(&file, NIB_E_FORMAT, 24, "tensor 'blk.1.attn_q.weight' has 64 bytes", "1 bytes too short");
    file.len = 96;
    refused(&file, NIB_E_FORMAT, 24, "tensor 'blk.1.attn_q.weight'", "64 bytes too short");
    file.len = 80; /* ends before the data would begin */
    refused(&file, NIB_E_FORMAT, 24, "tensor 'blk.1.attn_q.weight'", "64 bytes too short");
    file.len = 96 + 64;
    file.ptr[at] = 32;
    refused(&file, NIB_E_FORMAT, 24, "tensor 'blk.1.attn_q.weight'", "32 bytes too short");
    file.ptr[at] = 64;
    refused(&file, NIB_E_FORMAT, 24, "from offset 160 on", "64 bytes too short");
    file.ptr[at] = 96;
    refused(&file, NIB_E_FORMAT, 24, "offset 96", "has 64 bytes of data");
    file.ptr[at] = 16;
    refused(&file, NIB_E_FORMAT, at, "offset 16, expected a multiple of 32", "blk.1.attn_q.weight");
    memset(file.ptr + at, 0xff, 8);
    file.ptr[at] = (char)0xe0; /* 2^64 - 32: start + offset wraps */
    refused(&file, NIB_E_FORMAT, 24, "offset 18446744073709551584", "has 64 bytes of data");
    nib_buf_free(&file);
}

static void types(void **state) {
    (void)state;
    static const struct {
        uint32_t type;
        const char *name;
        uint64_t n_bytes;
        bool is_supported;
    } rows[] = {{12, "Q4_K", 144, true}, {16, "IQ2_XXS", 66, false}, {24, "I8", 256, false}, {26, "I32", 1024, false},
                {200, "type 200", 0, false}, {43, "type 43", 0, false}, {UINT32_MAX, "type 4294967295", 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nib_buf file = one_tensor(1, DIMS(256), rows[i].type, 1024);
        nib_gguf_doc doc;
        uint64_t want;
        assert_int_equal(parse(file.ptr, file.len, file.len, &doc, &want, NULL), NIB_OK);
        assert_string_equal(doc.tensors[0].type_name, rows[i].name);
        assert_int_equal(doc.tensors[0].n_bytes, rows[i].n_bytes);
        assert_int_equal(doc.tensors[0].is_supported, rows[i].is_supported);
        assert_int_equal(doc.tensors[0].type, rows[i].type);
        nib_gguf_doc_free(&doc);
        nib_buf_free(&file);
    }
    nib_buf file = one_tensor(1, DIMS(63), 200, 32); /* unknown block: any row will do, but its start is checked */
    file.ptr[DIMS_AT + 8 + 4 + 1] = 1;
    refused(&file, NIB_E_FORMAT, 24, "blk.1.attn_q.weight", "offset 256");
    nib_buf_free(&file);
}

/* A small file with something of everything. */
static nib_buf sample(void) {
    nib_gguf_writer w = {.alignment = 8};
    nib_gguf_write_str(&w, "general.architecture", "llama");
    nib_gguf_write_uint(&w, "a", NIB_GGUF_I8, 1);
    nib_gguf_write_float(&w, "b", NIB_GGUF_F64, 1);
    nib_gguf_write_uint(&w, "c", NIB_GGUF_BOOL, 1);
    nib_str strings[] = {{"a", 1}, {"", 0}, {"bcd", 3}};
    nib_gguf_write_strings(&w, "d", strings, 3);
    nib_gguf_write_array(&w, "e", NIB_GGUF_U16, 2, RAW("\1\0\2\0"));
    nib_gguf_write_array(&w, "f", NIB_GGUF_BOOL, 2, RAW("\1\0"));
    nib_gguf_write_raw(&w, RAW("g"), NIB_GGUF_ARRAY, RAW("\x09\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7"));
    nib_gguf_tensor t = {.name = {"x", 1}, .type = 0, .n_dims = 1, .dims = {3}, .n_bytes = 12};
    nib_gguf_write_tensor(&w, &t, NULL);
    t = (nib_gguf_tensor){.name = {"y", 1}, .type = 8, .n_dims = 2, .dims = {32, 2}, .n_bytes = 68};
    nib_gguf_write_tensor(&w, &t, NULL);
    t = (nib_gguf_tensor){.name = {"z", 1}, .type = 200, .n_dims = 3, .dims = {32, 2, 1}, .n_bytes = 8};
    nib_gguf_write_tensor(&w, &t, NULL);
    return finish(&w);
}

/* A file cut anywhere in the header is refused; so is one whose last tensor with known size is cut. */
static void truncated_files(void **state) {
    (void)state;
    nib_buf file = sample();
    nib_gguf_doc doc;
    nib_error err;
    uint64_t want;
    assert_int_equal(parse(file.ptr, file.len, file.len, &doc, &want, &err), NIB_OK);
    size_t whole = (size_t)(doc.tensors[1].offset + doc.tensors[1].n_bytes);
    size_t start_of_z = (size_t)doc.tensors[2].offset;
    nib_gguf_doc_free(&doc);
    for (size_t n = 0; n < file.len; n++) {
        char *cut = malloc(n ? n : 1);
        assert_non_null(cut);
        memcpy(cut, file.ptr, n);
        nib_status status = parse(cut, n, n, &doc, &want, &err);
        assert_int_equal(want, 0);
        if (n >= start_of_z) assert_int_equal(status, NIB_OK); /* z is of unknown size */
        else assert_int_equal(status, NIB_E_FORMAT);
        nib_gguf_doc_free(&doc);
        free(cut);
    }
    assert_true(whole <= start_of_z);
    nib_buf_free(&file);
}

/* Given in pieces, the parser asks for more and never for too much, and comes to the same end. */
static void pieces(void **state) {
    (void)state;
    nib_buf file = sample();
    nib_gguf_doc whole, doc;
    nib_error err;
    uint64_t want;
    assert_int_equal(parse(file.ptr, file.len, file.len, &whole, &want, &err), NIB_OK);
    for (size_t n = 0; n < file.len; n++) {
        char *part = malloc(n ? n : 1);
        assert_non_null(part);
        memcpy(part, file.ptr, n);
        assert_int_equal(parse(part, n, file.len, &doc, &want, &err), NIB_OK);
        if (n < whole.header_bytes) {
            assert_true(want > n && want <= whole.header_bytes);
            assert_true(doc.keys == NULL && doc.n_tensors == 0);
        } else {
            assert_int_equal(want, 0);
            assert_int_equal(doc.n_keys, whole.n_keys);
            assert_memory_equal(&doc.tensors[1].dims, &whole.tensors[1].dims, sizeof doc.tensors[1].dims);
            assert_int_equal(doc.tensors[1].offset, whole.tensors[1].offset);
        }
        nib_gguf_doc_free(&doc);
        free(part);
    }
    nib_gguf_doc_free(&whole);
    nib_buf_free(&file);
}

static void metadata_limit(void **state) {
    (void)state;
    nib_buf file = sample();
    nib_gguf_doc doc;
    nib_error err;
    uint64_t want, header_bytes;
    assert_int_equal(parse(file.ptr, file.len, file.len, &doc, &want, &err), NIB_OK);
    header_bytes = doc.header_bytes;
    nib_gguf_doc_free(&doc);
    for (uint64_t max = 0; max <= header_bytes; max++) {
        nib_gguf_limits l = {max, 1000, 1000};
        nib_gguf_input input = {file.ptr, file.len, file.len, 0};
        nib_status status = nib_gguf_parse(&doc, &input, &l, &want, &err);
        assert_int_equal(status, max < header_bytes ? NIB_E_LIMIT : NIB_OK);
        if (status != NIB_OK) assert_non_null(strstr(err.message, "limit"));
        nib_gguf_doc_free(&doc);
    }
    nib_buf_free(&file);
}

/* Whatever one byte becomes, the parser gives a value or an error that has a message. */
static void mutations(void **state) {
    (void)state;
    static const uint8_t values_of[] = {0, 1, 2, 8, 9, 0x7f, 0x80, 0xff};
    nib_buf file = sample();
    for (size_t i = 0; i < file.len; i++) {
        char was = file.ptr[i];
        for (size_t k = 0; k < sizeof values_of; k++) {
            nib_gguf_doc doc;
            nib_error err = {0};
            uint64_t want;
            file.ptr[i] = (char)values_of[k];
            nib_status status = parse(file.ptr, file.len, file.len, &doc, &want, &err);
            assert_int_equal(want, 0);
            assert_true(status == NIB_OK || (err.code == status && err.message[0]));
            nib_gguf_doc_free(&doc);
        }
        file.ptr[i] = was;
    }
    nib_buf_free(&file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(magic),         cmocka_unit_test(version),         cmocka_unit_test(counts),
        cmocka_unit_test(values),        cmocka_unit_test(arrays),          cmocka_unit_test(nested_arrays),
        cmocka_unit_test(ragged_arrays), cmocka_unit_test(alignment),       cmocka_unit_test(duplicates),
        cmocka_unit_test(shapes),        cmocka_unit_test(offsets),         cmocka_unit_test(types),
        cmocka_unit_test(pieces),        cmocka_unit_test(truncated_files), cmocka_unit_test(metadata_limit),
        cmocka_unit_test(mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
