/* tests/support/files.h - a temporary folder of a test and files in it. Failures end the running test. */
#ifndef NIB_TESTS_SUPPORT_FILES_H
#define NIB_TESTS_SUPPORT_FILES_H

#include <stddef.h>

/* A fresh folder below $TMPDIR or /tmp; free it with files_remove. */
char *files_folder(void);
/* Removes a folder of files_folder and the files in it. */
void files_remove(char *folder);

/* "folder/name"; free(). */
char *files_path(const char *folder, const char *name);
void files_write(const char *path, const void *data, size_t n);
/* The whole file, a NUL behind it, and its size; free(). */
char *files_read(const char *path, size_t *n);

#endif
