/* tests/test_gguf_open.c - split models: parts that are found, missing, swapped, or do not agree. */
#include "gguf/write.h"
#include "nib.h"
#include "support/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define N_PARTS 3

/* What part i of the model says and holds. Each part has two tensors t<2i> and t<2i+1> of eight floats 2i, 2i+1. */
typedef struct part {
    int64_t no, count, n_tensors; /* < 0: no such key */
    nib_gguf_type type;           /* of the keys */
    int first_tensor;             /* -1: the part is not written */
} part;

typedef struct fixture {
    char *folder, *paths[N_PARTS];
    part parts[N_PARTS];
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->folder = files_folder();
    for (int i = 0; i < N_PARTS; i++) {
        char name[64];
        snprintf(name, sizeof name, "model-%05d-of-%05d.gguf", i + 1, N_PARTS);
        f->paths[i] = files_path(f->folder, name);
        f->parts[i] = (part){i, N_PARTS, i ? -1 : 2 * N_PARTS, NIB_GGUF_U16, 2 * i};
    }
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    for (int i = 0; i < N_PARTS; i++) free(f->paths[i]);
    files_remove(f->folder);
    free(f);
    return 0;
}

static void write_part(const fixture *f, int i) {
    const part *p = &f->parts[i];
    unlink(f->paths[i]);
    if (p->first_tensor < 0) return;
    nib_gguf_writer w = {.alignment = i == 1 ? 64 : 0}; /* parts may be aligned differently */
    char key[16], names[2][16];
    float data[2][8];
    snprintf(key, sizeof key, "part%d", i);
    nib_gguf_write_uint(&w, key, NIB_GGUF_U8, (uint64_t)i);
    if (p->no >= 0) nib_gguf_write_uint(&w, "split.no", p->type, (uint64_t)p->no);
    if (p->count >= 0) nib_gguf_write_uint(&w, "split.count", p->type, (uint64_t)p->count);
    if (p->n_tensors >= 0) nib_gguf_write_uint(&w, "split.tensors.count", NIB_GGUF_I32, (uint64_t)p->n_tensors);
    for (int k = 0; k < 2; k++) {
        int n = snprintf(names[k], sizeof names[k], "t%d", p->first_tensor + k);
        for (int j = 0; j < 8; j++) data[k][j] = (float)(p->first_tensor + k);
        nib_gguf_tensor t = {.name = {names[k], (size_t)n}, .n_dims = 1, .dims = {8}, .n_bytes = sizeof data[k]};
        nib_gguf_write_tensor(&w, &t, data[k]);
    }
    nib_buf file = {0};
    assert_int_equal(nib_gguf_write_bytes(&w, &file, NULL), NIB_OK);
    files_write(f->paths[i], file.ptr, file.len);
    nib_buf_free(&file);
    nib_gguf_write_free(&w);
}

static void refused(const fixture *f, int opened, nib_status code, const char *text, const char *text2) {
    for (int i = 0; i < N_PARTS; i++) write_part(f, i);
    nib_gguf *g;
    nib_error err = {0};
    nib_status status = nib_gguf_open(&g, f->paths[opened], NULL, &err);
    assert_null(g);
    if (status != code || !strstr(err.message, text) || !strstr(err.message, text2))
        fail_msg("status %d, expected %d; message '%s', expected '%s' and '%s'", status, code, err.message, text,
                 text2);
    assert_memory_equal(err.message, f->folder, strlen(f->folder));
}

static void opens_all_parts(void **state) {
    const fixture *f = *state;
    for (int i = 0; i < N_PARTS; i++) write_part(f, i);
    for (int mode = NIB_LOAD_READ; mode <= NIB_LOAD_MMAP; mode++) {
        nib_gguf *g;
        nib_error err = {0};
        nib_gguf_config c = NIB_GGUF_CONFIG_INIT;
        c.mode = (nib_load_mode)mode;
        if (nib_gguf_open(&g, f->paths[0], &c, &err) != NIB_OK) fail_msg("%s", err.message);
        assert_int_equal(nib_gguf_n_files(g), N_PARTS);
        assert_int_equal(nib_gguf_n_tensors(g), 2 * N_PARTS);
        assert_string_equal(nib_gguf_path(g), f->paths[0]);
        assert_non_null(nib_gguf_find(g, "part0"));
        assert_null(nib_gguf_find(g, "part1")); /* the metadata is the first part's */
        for (int i = 0; i < 2 * N_PARTS; i++) {
            char name[16];
            float data[8];
            snprintf(name, sizeof name, "t%d", i);
            const nib_gguf_tensor *t = nib_gguf_find_tensor(g, name);
            assert_ptr_equal(t, nib_gguf_tensor_at(g, (size_t)i));
            assert_int_equal(t->file, i / 2);
            assert_int_equal(nib_gguf_read(g, t, 0, sizeof data, data, &err), NIB_OK);
            assert_true(data[0] == (float)i && data[7] == (float)i);
        }
        assert_null(nib_gguf_find_tensor(g, "t6"));
        size_t n, total = 0;
        for (int i = 0; i < N_PARTS; i++) {
            free(files_read(f->paths[i], &n));
            total += n;
        }
        assert_int_equal(nib_gguf_file_bytes(g), total);
        nib_gguf_close(g);
    }
}

static void not_the_first(void **state) {
    const fixture *f = *state;
    refused(f, 1, NIB_E_ARG, "part 2 of 3 of a split model; open its first part", "model-00001-of-00003.gguf");
    assert_int_equal(rename(f->paths[1], f->paths[0]), 0);
    nib_gguf *g;
    nib_error err = {0};
    assert_int_equal(nib_gguf_open(&g, f->paths[0], NULL, &err), NIB_E_ARG);
    assert_non_null(strstr(err.message, "part 2 of 3 of a split model; open its first part"));
}

static void part_missing(void **state) {
    fixture *f = *state;
    f->parts[2].first_tensor = -1;
    refused(f, 0, NIB_E_IO, "model-00003-of-00003.gguf: cannot open", "part 3 of 3");
}

static void part_malformed(void **state) {
    fixture *f = *state;
    for (int i = 0; i < N_PARTS; i++) write_part(f, i);
    files_write(f->paths[1], "GGUF", 4);
    nib_gguf *g;
    nib_error err = {0};
    assert_int_equal(nib_gguf_open(&g, f->paths[0], NULL, &err), NIB_E_FORMAT);
    assert_non_null(strstr(err.message, "model-00002-of-00003.gguf: the header needs 24 bytes"));
}

static void name_without_number(void **state) {
    fixture *f = *state;
    for (int i = 0; i < N_PARTS; i++) write_part(f, i);
    char *path = files_path(f->folder, "model.gguf");
    assert_int_equal(rename(f->paths[0], path), 0);
    nib_gguf *g;
    nib_error err = {0};
    assert_int_equal(nib_gguf_open(&g, path, NULL, &err), NIB_E_FORMAT);
    assert_non_null(strstr(err.message, "does not end in -00001-of-00003.gguf"));
    free(path);
}

static void parts_disagree(void **state) {
    fixture *f = *state;
    f->parts[2].no = 1;
    refused(f, 0, NIB_E_FORMAT, "model-00003-of-00003.gguf: split.no is 1", "expected 2 and 3");
    f->parts[2].no = 2;
    f->parts[1].count = 4;
    refused(f, 0, NIB_E_FORMAT, "split.count 4", "expected 1 and 3");
    f->parts[1].count = f->parts[1].no = -1;
    refused(f, 0, NIB_E_FORMAT, "model-00002-of-00003.gguf: split.no is missing", "expected part 2 of 3");
    f->parts[1].count = 3, f->parts[1].no = 1;
    f->parts[0].n_tensors = 7;
    refused(f, 0, NIB_E_FORMAT, "split.tensors.count is 7", "hold 6 tensors");
    f->parts[0].n_tensors = -1; /* may be absent */
    f->parts[2].first_tensor = 1;
    refused(f, 0, NIB_E_FORMAT, "model-00003-of-00003.gguf: duplicate tensor 't1'", "in part 1");
    f->parts[2].first_tensor = 4;
    f->parts[0].no = 3;
    refused(f, 0, NIB_E_FORMAT, "split.no is 3", "split.count 3");
    f->parts[0].no = 0;
    f->parts[0].type = NIB_GGUF_F32;
    refused(f, 0, NIB_E_FORMAT, "key 'split.count' is of type f32", "whole number");
}

static void limits(void **state) {
    const fixture *f = *state;
    for (int i = 0; i < N_PARTS; i++) write_part(f, i);
    nib_gguf *g;
    nib_error err = {0};
    nib_gguf_config c = NIB_GGUF_CONFIG_INIT;
    c.max_tensors = 5; /* each part has fewer */
    assert_int_equal(nib_gguf_open(&g, f->paths[0], &c, &err), NIB_E_LIMIT);
    assert_non_null(strstr(err.message, "6 tensors in all parts, the limit is 5"));
}

static void count_of_one(void **state) {
    fixture *f = *state;
    f->parts[0].count = f->parts[0].no = -1; /* the name alone does not make it a split model */
    for (int i = 0; i < 2; i++) {
        write_part(f, 0);
        nib_gguf *g;
        assert_int_equal(nib_gguf_open(&g, f->paths[0], NULL, NULL), NIB_OK);
        assert_int_equal(nib_gguf_n_files(g), 1);
        assert_int_equal(nib_gguf_n_tensors(g), 2);
        nib_gguf_close(g);
        f->parts[0].no = 0, f->parts[0].count = 1;
    }
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(opens_all_parts),     T(not_the_first),  T(part_missing), T(part_malformed),
        T(name_without_number), T(parts_disagree), T(limits),       T(count_of_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
