/* tests/support/files.c - a temporary folder of a test and files in it. */
#include "support/files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

char *files_path(const char *folder, const char *name) {
    size_t n = strlen(folder) + strlen(name) + 2;
    char *path = malloc(n);
    assert_non_null(path);
    snprintf(path, n, "%s/%s", folder, name);
    return path;
}

char *files_folder(void) {
    const char *tmp = getenv("TMPDIR");
    char *folder = files_path(tmp && *tmp ? tmp : "/tmp", "nib-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

void files_remove(char *folder) {
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        char *path = files_path(folder, e->d_name);
        remove(path);
        free(path);
    }
    closedir(dir);
    rmdir(folder);
    free(folder);
}

void files_write(const char *path, const void *data, size_t n) {
    FILE *stream = fopen(path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, n, stream), n);
    assert_int_equal(fclose(stream), 0);
}

char *files_read(const char *path, size_t *n) {
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    long size = ftell(stream);
    assert_true(size >= 0);
    rewind(stream);
    char *data = malloc((size_t)size + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)size, stream), (size_t)size);
    fclose(stream);
    data[size] = 0;
    *n = (size_t)size;
    return data;
}
