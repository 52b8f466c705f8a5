/* cli/xdg.c - the environment in -> paths of nib's folders out. Called by cache.c and history.c. */
#include "xdg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_PATH = 1024 };

bool nib_cli_xdg_folder(const char *kind, char *out, size_t size) {
    char variable[32];
    snprintf(variable, sizeof variable, "XDG_%s_HOME", kind);
    const char *base = getenv(variable), *home = getenv("HOME");
    int n = -1;
    if (base && *base == '/') /* a relative path there is to be ignored */
        n = snprintf(out, size, "%s/nib", base);
    else if (home && *home == '/')
        n = snprintf(out, size, "%s/%s/nib", home, !strcmp(kind, "STATE") ? ".local/state" : ".cache");
    return n > 0 && (size_t)n < size;
}

bool nib_cli_xdg_make(const char *folder) {
    char path[MAX_PATH];
    size_t n = strlen(folder);
    if (n >= sizeof path) return false;
    memcpy(path, folder, n + 1);
    for (char *p = path + 1; *p; p++)
        if (*p == '/') {
            *p = 0;
            if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
            *p = '/';
        }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}
