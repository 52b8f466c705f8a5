/* tests/support/gguf_corpus_main.c - gguf_corpus_main FOLDER: writes the seed files of fuzz/fuzz_gguf.c.
 *
 * Each is one byte for the fuzzer (where it parts the file) and a small GGUF file that uses a corner of the format. */
#include "gguf/write.h"

#include <stdio.h>
#include <string.h>

#define RAW(s) (nib_str){s, sizeof(s) - 1}

/* Writes what w holds and empties it. */
static bool save(const char *folder, const char *name, uint8_t first, nib_gguf_writer *w, nib_str more) {
    char path[512];
    nib_buf file = {0};
    nib_buf_append(&file, &first, 1);
    if (w) nib_gguf_write_bytes(w, &file, NULL);
    nib_buf_append(&file, more.ptr, more.len);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *stream = fopen(path, "wb");
    bool ok = stream && fwrite(file.ptr, 1, file.len, stream) == file.len;
    if (stream && fclose(stream) != 0) ok = false;
    if (!ok) perror(path);
    nib_buf_free(&file);
    if (w) nib_gguf_write_free(w);
    return ok;
}

static void scalars(nib_gguf_writer *w) {
    static const char *const names[] = {"u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool"};
    w->alignment = 8;
    for (int i = 0; i < 8; i++) nib_gguf_write_uint(w, names[i], (nib_gguf_type)i, 1);
    nib_gguf_write_uint(w, "u64", NIB_GGUF_U64, 1);
    nib_gguf_write_uint(w, "i64", NIB_GGUF_I64, (uint64_t)-1);
    nib_gguf_write_float(w, "f64", NIB_GGUF_F64, 0.5);
    nib_gguf_write_str(w, "general.architecture", "llama");
}

static void arrays(nib_gguf_writer *w) {
    nib_str strings[] = {{"a", 1}, {"", 0}, {"bcd", 3}};
    nib_gguf_write_strings(w, "tokens", strings, 3);
    nib_gguf_write_array(w, "u16s", NIB_GGUF_U16, 2, RAW("\1\0\2\0"));
    nib_gguf_write_array(w, "bools", NIB_GGUF_BOOL, 2, RAW("\1\0"));
    nib_gguf_write_array(w, "none", NIB_GGUF_F32, 0, RAW(""));
    nib_gguf_write_raw(w, RAW("nested"), NIB_GGUF_ARRAY, /* [[7], ["x"]] */
                       RAW("\x09\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\7"
                           "\x08\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0x"));
}

static void tensors(nib_gguf_writer *w) {
    static const struct {
        const char *name;
        uint32_t type;
        size_t n_bytes; /* of 256 elements */
    } rows[] = {{"a", 0, 1024}, {"b", 1, 512},  {"c", 2, 144},  {"d", 8, 272}, {"e", 16, 66},
                {"f", 24, 256}, {"g", 30, 512}, {"h", 39, 136}, {"i", 200, 8}};
    w->alignment = 1;
    w->version = 2;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        nib_gguf_tensor t = {.name = {rows[i].name, 1}, .type = rows[i].type, .n_dims = i % 4 + 1,
                             .dims = {256, 1, 1, 1}, .n_bytes = rows[i].n_bytes};
        nib_gguf_write_tensor(w, &t, NULL);
    }
}

static void split(nib_gguf_writer *w) {
    nib_gguf_tensor t = {.name = {"x", 1}, .n_dims = 1, .dims = {3}, .n_bytes = 12};
    nib_gguf_write_uint(w, "split.no", NIB_GGUF_U16, 0);
    nib_gguf_write_uint(w, "split.count", NIB_GGUF_U16, 2);
    nib_gguf_write_uint(w, "split.tensors.count", NIB_GGUF_I32, 1);
    nib_gguf_write_tensor(w, &t, NULL);
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: gguf_corpus_main FOLDER\n");
        return 2;
    }
    nib_gguf_writer w = {0};
    bool ok = save(argv[1], "empty", 0, &w, RAW(""));
    scalars(&w);
    ok &= save(argv[1], "scalars", 100, &w, RAW(""));
    arrays(&w);
    ok &= save(argv[1], "arrays", 200, &w, RAW(""));
    tensors(&w);
    ok &= save(argv[1], "tensors", 50, &w, RAW(""));
    split(&w);
    ok &= save(argv[1], "split", 255, &w, RAW(""));
    ok &= save(argv[1], "big-endian", 0, NULL, RAW("GGUF\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
    ok &= save(argv[1], "ggjt", 0, NULL, RAW("tjgg\3\0\0\0"));
    ok &= save(argv[1], "lfs", 0, NULL, RAW("version https://git-lfs.github.com/spec/v1\n"));
    return ok ? 0 : 1;
}
