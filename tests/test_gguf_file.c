/* tests/test_gguf_file.c - one file on disk: what cannot be opened, headers in pieces, files that change while open. */
#include "nib.h"
#include "support/files.h"
#include "support/tiny.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char *folder, *path; /* path: a tiny model */
    nib_buf bytes;       /* of it */
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->folder = files_folder();
    f->path = files_path(f->folder, "tiny.gguf");
    tiny_model m = TINY_MODEL_INIT;
    if (tiny_bytes(&m, &f->bytes, NULL) != NIB_OK) return -1;
    files_write(f->path, f->bytes.ptr, f->bytes.len);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    free(f->path);
    files_remove(f->folder);
    nib_buf_free(&f->bytes);
    free(f);
    return 0;
}

static nib_gguf_config config_of(nib_load_mode mode) {
    nib_gguf_config c = NIB_GGUF_CONFIG_INIT;
    c.mode = mode;
    return c;
}

static void refused(const char *path, const nib_gguf_config *config, nib_status code, const char *text) {
    nib_error err = {0};
    nib_gguf *g = (nib_gguf *)(void *)&err; /* must become NULL */
    nib_status status = nib_gguf_open(&g, path, config, &err);
    assert_null(g);
    if (status != code || err.code != code || !strstr(err.message, text))
        fail_msg("status %d, expected %d; message '%s', expected '%s'", status, code, err.message, text);
    if (path && *path && code != NIB_E_ARG && strncmp(err.message, path, strlen(path)) != 0)
        fail_msg("'%s' does not begin with the path", err.message);
    assert_int_equal(nib_gguf_open(&g, path, config, NULL), code);
}

static void opens(void **state) {
    fixture *f = *state;
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        nib_gguf *g;
        nib_gguf_config c = config_of((nib_load_mode)mode);
        assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_OK);
        assert_string_equal(nib_gguf_path(g), f->path);
        assert_int_equal(nib_gguf_version(g), 3);
        assert_int_equal(nib_gguf_alignment(g), 32);
        assert_int_equal(nib_gguf_file_bytes(g), f->bytes.len);
        assert_int_equal(nib_gguf_n_files(g), 1);
        assert_int_equal(nib_gguf_n_tensors(g), 20);
        assert_int_equal(nib_gguf_find(g, "llama.block_count")->as.u64, 2);
        assert_null(nib_gguf_find(g, "llama.block_coun"));
        const nib_gguf_value *v;
        nib_str key = nib_gguf_key_at(g, 0, &v);
        assert_true(key.len == 20 && memcmp(key.ptr, "general.architecture", 20) == 0);
        assert_true(v->type == NIB_GGUF_STRING && v->as.str.len == 5);
        assert_non_null(nib_gguf_key_at(g, nib_gguf_n_keys(g) - 1, NULL).ptr);
        assert_null(nib_gguf_key_at(g, nib_gguf_n_keys(g), &v).ptr);
        assert_null(v);
        assert_null(nib_gguf_tensor_at(g, 20));
        assert_null(nib_gguf_find_tensor(g, "output.weight"));
        const nib_gguf_tensor *t = nib_gguf_find_tensor(g, "blk.1.ffn_down.weight");
        assert_ptr_equal(t, nib_gguf_tensor_at(g, 19));
        assert_true(t->dims[0] == 96 && t->dims[1] == 64 && t->n_bytes == 96 * 64 / 32 * 34);
        nib_gguf_close(g);
    }
    nib_gguf_close(NULL);
}

static void reads(void **state) {
    fixture *f = *state;
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        nib_gguf *g;
        nib_error err;
        nib_gguf_config c = config_of((nib_load_mode)mode);
        assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_OK);
        const nib_gguf_tensor *t = nib_gguf_find_tensor(g, "token_embd.weight");
        char *data = malloc(t->n_bytes);
        assert_non_null(data);
        assert_int_equal(nib_gguf_read(g, t, 0, t->n_bytes, data, &err), NIB_OK);
        assert_memory_equal(data, f->bytes.ptr + t->offset, t->n_bytes);
        assert_int_equal(nib_gguf_read(g, t, 34, 68, data, &err), NIB_OK);
        assert_memory_equal(data, f->bytes.ptr + t->offset + 34, 68);
        assert_int_equal(nib_gguf_read(g, t, t->n_bytes, 0, NULL, &err), NIB_OK);
        assert_int_equal(nib_gguf_read(g, t, 1, t->n_bytes, data, &err), NIB_E_ARG);
        assert_non_null(strstr(err.message, "token_embd.weight"));
        assert_int_equal(nib_gguf_read(g, t, t->n_bytes + 1, 0, data, &err), NIB_E_ARG);
        assert_int_equal(nib_gguf_read(g, t, UINT64_MAX, 2, data, NULL), NIB_E_ARG);
        free(data);
        nib_gguf_close(g);
    }
}

static void cannot_open(void **state) {
    fixture *f = *state;
    char *path = files_path(f->folder, "absent.gguf");
    refused(path, NULL, NIB_E_IO, "No such file");
    free(path);
    refused(f->folder, NULL, NIB_E_IO, "is a directory");
    path = files_path(f->folder, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(path, NULL, NIB_E_IO, "not a regular file"); /* and does not wait for a writer */
    free(path);
    refused(NULL, NULL, NIB_E_ARG, "no path");
    refused("", NULL, NIB_E_ARG, "no path");
    if (geteuid() != 0) { /* root may read everything */
        assert_int_equal(chmod(f->path, 0), 0);
        refused(f->path, NULL, NIB_E_IO, "Permission denied");
    }
}

static void malformed(void **state) {
    fixture *f = *state;
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        nib_gguf_config c = config_of((nib_load_mode)mode);
        files_write(f->path, "", 0);
        refused(f->path, &c, NIB_E_FORMAT, "empty");
        files_write(f->path, "GG", 2);
        refused(f->path, &c, NIB_E_FORMAT, "2 bytes");
        files_write(f->path, f->bytes.ptr, 2000);
        refused(f->path, &c, NIB_E_FORMAT, "tokenizer.ggml.tokens");
        files_write(f->path, f->bytes.ptr, f->bytes.len / 2);
        refused(f->path, &c, NIB_E_FORMAT, "too short");
    }
}

static void bad_config(void **state) {
    fixture *f = *state;
    nib_gguf_config c = NIB_GGUF_CONFIG_INIT;
    c.max_metadata_bytes = 1000;
    refused(f->path, &c, NIB_E_LIMIT, "limit of 1000 bytes");
    c = (nib_gguf_config)NIB_GGUF_CONFIG_INIT;
    c.max_keys = 3;
    refused(f->path, &c, NIB_E_LIMIT, "limit is 3");
    c = (nib_gguf_config)NIB_GGUF_CONFIG_INIT;
    c.max_tensors = 19;
    refused(f->path, &c, NIB_E_LIMIT, "20 tensors");
    c = (nib_gguf_config)NIB_GGUF_CONFIG_INIT;
    c.mode = (nib_load_mode)2;
    refused(f->path, &c, NIB_E_ARG, "mode is 2");
    c = (nib_gguf_config){0};
    refused(f->path, &c, NIB_E_ARG, "size is 0");
    assert_int_equal(nib_gguf_open(NULL, f->path, NULL, NULL), NIB_E_ARG);
    nib_gguf *g; /* a caller built when the struct was shorter gets defaults for the rest */
    c = (nib_gguf_config){.size = offsetof(nib_gguf_config, max_metadata_bytes), .mode = NIB_LOAD_MMAP};
    assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_OK);
    nib_gguf_close(g);
}

/* A header of 5 MB is read in several pieces; what it holds is the same in both modes. */
static void long_header(void **state) {
    fixture *f = *state;
    tiny_model m = TINY_MODEL_INIT;
    m.n_vocab = 200000, m.n_embd = 32, m.n_head = 2, m.n_kv = 1;
    assert_int_equal(tiny_write(&m, f->path, NULL), NIB_OK);
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        nib_gguf *g;
        nib_error err = {0};
        nib_gguf_config c = config_of((nib_load_mode)mode);
        if (nib_gguf_open(&g, f->path, &c, &err) != NIB_OK) fail_msg("%s", err.message);
        const nib_gguf_value *tokens = nib_gguf_find(g, "tokenizer.ggml.tokens");
        assert_int_equal(tokens->n, 200000);
        nib_str left = tokens->as.raw, s = {0};
        size_t n = 0;
        while (nib_gguf_next_string(&left, &s)) n++;
        assert_true(n == 200000 && left.len == 0 && s.len == strlen("<|pad199710|>"));
        assert_memory_equal(s.ptr, "<|pad199", 8);
        nib_gguf_close(g);
        c.max_metadata_bytes = 3000000;
        refused(f->path, &c, NIB_E_LIMIT, "limit of 3000000 bytes");
    }
}

/* A file that was shortened after it was opened is an error value in both modes; one that was replaced or removed is
 * read as it was. */
static void file_changes(void **state) {
    fixture *f = *state;
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        files_write(f->path, f->bytes.ptr, f->bytes.len);
        nib_gguf *g;
        nib_error err = {0};
        nib_gguf_config c = config_of((nib_load_mode)mode);
        assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_OK);
        const nib_gguf_tensor *t = nib_gguf_find_tensor(g, "blk.1.ffn_down.weight");
        char *data = malloc(t->n_bytes);
        assert_non_null(data);
        char *other = files_path(f->folder, "other");
        files_write(other, "short", 5);
        assert_int_equal(rename(other, f->path), 0);
        assert_int_equal(nib_gguf_read(g, t, 0, t->n_bytes, data, &err), NIB_OK);
        assert_memory_equal(data, f->bytes.ptr + t->offset, t->n_bytes);
        nib_gguf_close(g);

        files_write(f->path, f->bytes.ptr, f->bytes.len);
        assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_OK);
        t = nib_gguf_find_tensor(g, "blk.1.ffn_down.weight");
        assert_int_equal(truncate(f->path, 40000), 0);
        assert_int_equal(nib_gguf_read(g, t, 0, t->n_bytes, data, &err), NIB_E_CHANGED);
        assert_non_null(strstr(err.message, "it has 40000 bytes"));
        assert_memory_equal(err.message, f->path, strlen(f->path));
        t = nib_gguf_find_tensor(g, "token_embd.weight");
        assert_int_equal(nib_gguf_read(g, t, 0, t->n_bytes < 1000 ? t->n_bytes : 1000, data, &err), NIB_OK);
        nib_gguf_close(g);
        free(data);
        free(other);
    }
}

static void many_handles(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 2000; i++) { /* no descriptor is leaked, on success or failure */
        nib_gguf *g;
        assert_int_equal(nib_gguf_open(&g, f->path, NULL, NULL), NIB_OK);
        nib_gguf_close(g);
        nib_gguf_config c = config_of(i % 2 ? NIB_LOAD_MMAP : NIB_LOAD_READ);
        c.max_keys = 1;
        assert_int_equal(nib_gguf_open(&g, f->path, &c, NULL), NIB_E_LIMIT);
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(opens),      T(reads),       T(cannot_open),  T(malformed),
        T(bad_config), T(long_header), T(file_changes), T(many_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
