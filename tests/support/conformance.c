/* tests/support/conformance.c - the folder walk of conformance programs. */
#include "support/conformance.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int conformance_each(int argc, char **argv, const char *sub, const char *suffix,
                     void (*run)(const char *folder, const char *name)) {
    char folder[2048];
    const char *data = getenv("NIB_CONFORMANCE_DATA");
    if (argc < 2 && !data) {
        printf("skipped: NIB_CONFORMANCE_DATA is not set\n");
        return -1;
    }
    snprintf(folder, sizeof folder, "%s%s%s", argc < 2 ? data : argv[1], argc < 2 ? "/" : "", argc < 2 ? sub : "");
    struct dirent **names;
    int n = scandir(folder, &names, NULL, alphasort), n_run = 0;
    for (int i = 0; i < n; i++) {
        size_t len = strlen(names[i]->d_name), end = strlen(suffix);
        if (len > end && strcmp(names[i]->d_name + len - end, suffix) == 0) {
            run(folder, names[i]->d_name);
            n_run++;
        }
        free(names[i]);
    }
    if (n >= 0) free(names);
    return n_run;
}
