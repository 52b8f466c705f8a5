/* cli/cache.c - JSON in and out of the user's cache folder. */
#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH = 1024, MAX_BYTES = 1 << 20 };

/* The XDG base directory specification: a relative path there is to be ignored. */
static bool folder(char *out, size_t size) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache && *cache == '/')
        n = snprintf(out, size, "%s/nib", cache);
    else if (home && *home == '/')
        n = snprintf(out, size, "%s/.cache/nib", home);
    return n > 0 && (size_t)n < size;
}

static bool file_path(const char *name, const char *ending, char *out, size_t size) {
    char dir[MAX_PATH];
    if (!folder(dir, sizeof dir)) return false;
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

/* The folder and what it stands in. */
static bool make_folder(void) {
    char dir[MAX_PATH];
    if (!folder(dir, sizeof dir)) return false;
    for (char *p = dir + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(dir, 0700) != 0 && errno != EEXIST) return false;
            *p = '/';
        }
    return mkdir(dir, 0700) == 0 || errno == EEXIST;
}

bool nib_cli_cache_save(const char *name, json_t *value) {
    char path[MAX_PATH], fresh[MAX_PATH];
    if (!file_path(name, "", path, sizeof path) || !file_path(name, ".XXXXXX", fresh, sizeof fresh)) return false;
    if (!make_folder()) return false;
    int fd = mkstemp(fresh);
    if (fd < 0) return false;
    bool ok = json_dumpfd(value, fd, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) == 0;
    if (close(fd) != 0) ok = false;
    ok = ok && rename(fresh, path) == 0;
    if (!ok) unlink(fresh);
    return ok;
}
