/* cli/cache.c - JSON in and out of the user's cache folder. */
#include "cache.h"

#include "xdg.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_PATH = 1024, MAX_BYTES = 1 << 20 };

static bool file_path(const char *name, const char *ending, char *out, size_t size) {
    char dir[MAX_PATH];
    if (!nib_cli_xdg_folder("CACHE", dir, sizeof dir)) return false;
    int n = snprintf(out, size, "%s/%s%s", dir, name, ending);
    return n > 0 && (size_t)n < size;
}

json_t *nib_cli_cache_load(const char *name) {
    char path[MAX_PATH];
    if (!file_path(name, "", path, sizeof path)) return NULL;
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

bool nib_cli_cache_save(const char *name, json_t *value) {
    char dir[MAX_PATH], path[MAX_PATH], fresh[MAX_PATH];
    if (!file_path(name, "", path, sizeof path) || !file_path(name, ".XXXXXX", fresh, sizeof fresh)) return false;
    if (!nib_cli_xdg_folder("CACHE", dir, sizeof dir) || !nib_cli_xdg_make(dir)) return false;
    int fd = mkstemp(fresh);
    if (fd < 0) return false;
    bool ok = json_dumpfd(value, fd, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0;
    if (close(fd) != 0) ok = false;
    ok = ok && rename(fresh, path) == 0;
    if (!ok) unlink(fresh);
    return ok;
}
