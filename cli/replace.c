/* cli/replace.c - a file that is written beside its place and moved there when it is whole. Called by cache, chat and
 * history. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "replace.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

nib_status nib_cli_replace_open(nib_cli_replace *file, const char *path, nib_error *err) {
    struct stat st;
    nib_buf place = {0}, fresh = {0};
    char *target = realpath(path, NULL); /* a link is followed, not replaced */
    *file = (nib_cli_replace){.fd = -1};
    nib_buf_str(&place, target ? target : path);
    free(target);
    file->path = nib_buf_cstr(&place);
    nib_buf_printf(&fresh, "%s.XXXXXX", file->path ? file->path : "");
    file->fresh = nib_buf_cstr(&fresh);
    nib_status status = NIB_OK;
    if (!file->path || !file->fresh)
        status = nib_fail_nomem(err, 0, "a path");
    else if (stat(file->path, &st) == 0 && !S_ISREG(st.st_mode))
        status = nib_fail(err, NIB_E_IO, "cannot replace %s: it is not a regular file", path);
    else if ((file->fd = mkstemp(file->fresh)) < 0)
        status = nib_fail_errno(err, errno, "cannot write %s", path);
    if (status != NIB_OK) nib_cli_replace_abandon(file);
    return status;
}

nib_status nib_cli_replace_write(void *user, const void *data, size_t n, nib_error *err) {
    const nib_cli_replace *file = user;
    const char *p = data;
    while (n) {
        ssize_t put = write(file->fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return nib_fail_errno(err, errno, "cannot write %s", file->path);
        p += put, n -= (size_t)put;
    }
    return NIB_OK;
}

void nib_cli_replace_abandon(nib_cli_replace *file) {
    if (file->fd >= 0) {
        close(file->fd);
        unlink(file->fresh);
    }
    nib_free(file->path);
    nib_free(file->fresh);
    *file = (nib_cli_replace){.fd = -1};
}

nib_status nib_cli_replace_finish(nib_cli_replace *file, nib_error *err) {
    nib_status status = NIB_OK;
    if (fsync(file->fd) != 0 && errno != EINVAL && errno != ENOSYS) status = nib_fail_errno(err, errno, "cannot write %s", file->path);
    if (status == NIB_OK && rename(file->fresh, file->path) != 0)
        status = nib_fail_errno(err, errno, "cannot replace %s", file->path);
    if (status == NIB_OK) {
        close(file->fd);
        file->fd = -1;
    }
    nib_cli_replace_abandon(file);
    return status;
}

nib_status nib_cli_replace_text(const char *path, nib_str text, nib_error *err) {
    nib_cli_replace file;
    NIB_TRY(nib_cli_replace_open(&file, path, err));
    nib_status status = nib_cli_replace_write(&file, text.ptr, text.len, err);
    if (status == NIB_OK) return nib_cli_replace_finish(&file, err);
    nib_cli_replace_abandon(&file);
    return status;
}
