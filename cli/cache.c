/* cli/cache.c - JSON in and out of the user's cache folder. */
#include "cache.h"

#include "replace.h"
#include "xdg.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_PATH = 1024, MAX_BYTES = 1 << 20 };

static bool file_path(const char *name, char *out, size_t size) {
    char dir[MAX_PATH];
    if (!nib_cli_xdg_folder("CACHE", dir, sizeof dir)) return false;
    int n = snprintf(out, size, "%s/%s", dir, name);
    return n > 0 && (size_t)n < size;
}

json_t *nib_cli_cache_load(const char *name) {
    char path[MAX_PATH];
    if (!file_path(name, path, sizeof path)) return NULL;
    FILE *f = fopen(path, "rb");
    char *text = f ? malloc(MAX_BYTES) : NULL;
    size_t n = text ? fread(text, 1, MAX_BYTES, f) : 0;
    if (f) fclose(f);
    json_t *value = n && n < MAX_BYTES ? json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    if (value && json_is_object(value)) return value;
    json_decref(value);
    return NULL;
}

static int put(const char *text, size_t n, void *file) {
    nib_error err;
    return nib_cli_replace_write(file, text, n, &err) == NIB_OK ? 0 : -1;
}

bool nib_cli_cache_save(const char *name, json_t *value) {
    char dir[MAX_PATH], path[MAX_PATH];
    nib_cli_replace file;
    nib_error err;
    if (!file_path(name, path, sizeof path)) return false;
    if (!nib_cli_xdg_folder("CACHE", dir, sizeof dir) || !nib_cli_xdg_make(dir)) return false;
    if (nib_cli_replace_open(&file, path, &err) != NIB_OK) return false;
    if (json_dump_callback(value, put, &file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0)
        return nib_cli_replace_finish(&file, &err) == NIB_OK;
    nib_cli_replace_abandon(&file);
    return false;
}
