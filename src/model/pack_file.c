/* model/pack_file.c - the file that keeps packed weights: opened, read, written beside its place and moved there. */
#define _FILE_OFFSET_BITS 64
#include "model/pack_file.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef unsigned long long ull;

nib_status nib_model_pack_file_init(nib_model_pack_file *file, const char *folder, uint64_t name, nib_error *err) {
    nib_buf path = {0}, part = {0};
    nib_buf_printf(&path, "%s/%016llx.nibpack", folder, (ull)name);
    file->path = nib_buf_cstr(&path);
    nib_buf_printf(&part, "%s/%016llx.nibpack.part", folder, (ull)name);
    file->part = nib_buf_cstr(&part);
    file->fd = -1;
    file->is_writing = false;
    return file->path && file->part ? NIB_OK : nib_fail_nomem(err, 0, "a path");
}

static void close_file(nib_model_pack_file *file) {
    if (file->fd < 0) return;
    if (file->is_writing) unlink(file->part); /* while it is still locked */
    close(file->fd);
    file->fd = -1;
    file->is_writing = false;
}

void nib_model_pack_file_fini(nib_model_pack_file *file) {
    if (!file->path) return;
    close_file(file);
    nib_free(file->path);
    nib_free(file->part);
    *file = (nib_model_pack_file){.fd = -1};
}

nib_status nib_model_pack_file_open(nib_model_pack_file *file, uint64_t *n_bytes, nib_error *err) {
    struct stat st;
    close_file(file);
    /* Opening a FIFO would wait for a writer, were it not for O_NONBLOCK. */
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? NIB_OK : nib_fail_errno(err, errno, "cannot be opened");
    if (fstat(file->fd, &st) != 0) return nib_fail_errno(err, errno, "cannot be read");
    if (!S_ISREG(st.st_mode)) return nib_fail(err, NIB_E_FORMAT, "is not a regular file");
    *n_bytes = (uint64_t)st.st_size;
    return NIB_OK;
}

nib_status nib_model_pack_file_read(const nib_model_pack_file *file, uint64_t at, void *dst, size_t n, nib_error *err) {
    unsigned char *p = dst;
    while (n) {
        ssize_t got = pread(file->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return nib_fail_errno(err, errno, "cannot be read at %llu", (ull)at);
        if (got == 0) return nib_fail(err, NIB_E_FORMAT, "ends at byte %llu", (ull)at);
        p += got, n -= (size_t)got, at += (uint64_t)got;
    }
    return NIB_OK;
}

/* Between opening the file and locking it, another process may have finished it or given it up. */
static bool is_in_place(const nib_model_pack_file *file) {
    struct stat own, there;
    return fstat(file->fd, &own) == 0 && lstat(file->part, &there) == 0 && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino && S_ISREG(own.st_mode);
}

static nib_status make_folder(const char *path, nib_error *err) {
    nib_buf folder = {0};
    nib_status status = NIB_OK;
    nib_buf_append(&folder, path, (size_t)(strrchr(path, '/') - path));
    const char *text = nib_buf_cstr(&folder);
    if (!text) status = nib_fail_nomem(err, 0, "a path");
    else if (mkdir(text, 0700) != 0 && errno != EEXIST) status = nib_fail_errno(err, errno, "cannot make the folder");
    nib_buf_free(&folder);
    return status;
}

nib_status nib_model_pack_file_create(nib_model_pack_file *file, uint64_t n_bytes, nib_error *err) {
    struct rlimit most; /* beyond it a write raises SIGXFSZ */
    close_file(file);
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && n_bytes > most.rlim_cur)
        return nib_fail_errno(err, EFBIG, "%llu bytes, the limit is %llu", (ull)n_bytes, (ull)most.rlim_cur);
    NIB_TRY(make_folder(file->path, err));
    file->fd = open(file->part, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW, 0600);
    if (file->fd < 0) return nib_fail_errno(err, errno, "cannot create a file there");
    bool is_locked = flock(file->fd, LOCK_EX | LOCK_NB) == 0;
    if (!is_locked && errno != EWOULDBLOCK) return nib_fail_errno(err, errno, "cannot lock the file");
    if (!is_locked || !is_in_place(file)) return nib_fail(err, NIB_E_CHANGED, "another process is writing it");
    file->is_writing = true;
    if (ftruncate(file->fd, 0) != 0) return nib_fail_errno(err, errno, "cannot empty the file");
    return NIB_OK;
}

nib_status nib_model_pack_file_write(const nib_model_pack_file *file, uint64_t at, const void *src, size_t n,
                                     nib_error *err) {
    const unsigned char *p = src;
    while (n) {
        ssize_t put = pwrite(file->fd, p, n, (off_t)at);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return nib_fail_errno(err, errno, "at byte %llu", (ull)at);
        p += put, n -= (size_t)put, at += (uint64_t)put;
    }
    return NIB_OK;
}

nib_status nib_model_pack_file_finish(nib_model_pack_file *file, nib_error *err) {
    if (rename(file->part, file->path) != 0) return nib_fail_errno(err, errno, "cannot rename the file");
    file->is_writing = false;
    close_file(file);
    return NIB_OK;
}
