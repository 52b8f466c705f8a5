/* cli/history.c - entries in -> a file with mode 0600, and back. Called by edit.c. */
#include "history.h"

#include "base/status.h"
#include "replace.h"
#include "xdg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 22 /* bytes that are read, from the end */, CUT_AT = 2 * NIB_CLI_HISTORY_ENTRIES };

const char *nib_cli_history_at(const nib_cli_history *h, size_t i) {
    return h->text.ptr + ((const size_t *)h->entries.items)[i];
}

void nib_cli_history_free(nib_cli_history *h) {
    nib_buf_free(&h->text);
    nib_cli_list_free(&h->entries);
}

static bool keep(nib_cli_history *h, nib_str entry) {
    size_t start = h->text.len;
    return nib_buf_append(&h->text, entry.ptr, entry.len) && nib_buf_char(&h->text, 0) &&
           nib_cli_list_append(&h->entries, &start, 1, sizeof start);
}

static void escape(nib_buf *out, const char *entry) {
    for (; *entry; entry++) {
        if (*entry == '\\' || *entry == '\n') nib_buf_char(out, '\\');
        nib_buf_char(out, *entry == '\n' ? 'n' : *entry);
    }
    nib_buf_char(out, '\n');
}

/* A line of the file to an entry, in place. */
static nib_str unescape(char *line, size_t len) {
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        bool pair = line[i] == '\\' && i + 1 < len;
        if (pair) i++;
        line[n++] = pair && line[i] == 'n' ? '\n' : line[i] ? line[i] : '?';
    }
    return (nib_str){line, n};
}

/* The path with a permission that keeps others out, open to read and append. */
static int open_file(const char *path) {
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    struct stat st;
    if (fd < 0) return -1;
    int error = fstat(fd, &st) != 0 ? errno : !S_ISREG(st.st_mode) ? EINVAL : 0;
    if (!error && (st.st_mode & 077) && fchmod(fd, 0600) != 0) error = errno;
    if (!error) return fd;
    close(fd);
    errno = error;
    return -1;
}

static nib_status write_all(int fd, const char *path, const nib_buf *text, nib_error *err) {
    if (text->failed) return nib_fail_nomem(err, text->len, "the history");
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->ptr + done, text->len - done);
        if (n < 0 && errno != EINTR) return nib_fail_errno(err, errno, "cannot write %s", path);
        if (n > 0) done += (size_t)n;
    }
    return NIB_OK;
}

/* Puts the newest entries in the place of the whole file. */
static nib_status cut_file(const nib_cli_history *h, nib_error *err) {
    nib_buf text = {0};
    for (size_t i = 0; i < h->entries.n; i++) escape(&text, nib_cli_history_at(h, i));
    nib_status status = text.failed ? nib_fail_nomem(err, text.len, "the history")
                                    : nib_cli_replace_text(h->path, nib_cli_bytes(&text), err);
    nib_buf_free(&text);
    return status;
}

/* The last lines of the file, NIB_CLI_HISTORY_ENTRIES at most; *n_lines is the number of all that were read. */
static nib_status read_lines(nib_cli_history *h, int fd, size_t *n_lines, nib_error *err) {
    off_t size = lseek(fd, 0, SEEK_END), from = size > MAX_FILE ? size - MAX_FILE : 0;
    nib_buf file = {0};
    nib_status status = NIB_OK;
    if (size < 0 || lseek(fd, from, SEEK_SET) < 0) return nib_fail_errno(err, errno, "cannot read %s", h->path);
    if (!nib_buf_reserve(&file, MAX_FILE)) return nib_fail_nomem(err, MAX_FILE, "the history");
    for (ssize_t n = -1; n != 0 && file.len < MAX_FILE && status == NIB_OK;) {
        n = read(fd, file.ptr + file.len, MAX_FILE - file.len);
        if (n > 0) file.len += (size_t)n;
        if (n < 0 && errno != EINTR) status = nib_fail_errno(err, errno, "cannot read %s", h->path);
    }
    for (size_t i = 0; i < file.len; i++) *n_lines += file.ptr[i] == '\n';
    size_t skip = *n_lines > NIB_CLI_HISTORY_ENTRIES ? *n_lines - NIB_CLI_HISTORY_ENTRIES : from > 0;
    for (size_t at = 0, line = 0; at < file.len && status == NIB_OK; line++) {
        const char *newline = memchr(file.ptr + at, '\n', file.len - at);
        size_t len = newline ? (size_t)(newline - file.ptr) - at : file.len - at;
        if (line >= skip && len && !keep(h, unescape(file.ptr + at, len)))
            status = nib_fail_nomem(err, len, "the history");
        at += len + 1;
    }
    nib_buf_free(&file);
    return status;
}

nib_status nib_cli_history_open_path(nib_cli_history *h, const char *path, nib_error *err) {
    size_t n_lines = 0;
    if (strlen(path) >= sizeof h->path) return nib_fail(err, NIB_E_ARG, "the path of the history is too long");
    strcpy(h->path, path);
    int fd = open_file(path);
    nib_status status = fd < 0 ? nib_fail_errno(err, errno, "cannot open %s", path) : read_lines(h, fd, &n_lines, err);
    if (fd >= 0) close(fd);
    if (status == NIB_OK && n_lines > CUT_AT) status = cut_file(h, err);
    if (status != NIB_OK) h->path[0] = 0;
    return status;
}

nib_status nib_cli_history_open(nib_cli_history *h, nib_error *err) {
    char folder[sizeof h->path - 16], path[sizeof h->path];
    if (!nib_cli_xdg_folder("STATE", folder, sizeof folder))
        return nib_fail(err, NIB_E_IO, "no place for a history: set HOME or XDG_STATE_HOME");
    if (!nib_cli_xdg_make(folder)) return nib_fail_errno(err, errno, "cannot make the folder %s", folder);
    snprintf(path, sizeof path, "%s/history", folder);
    return nib_cli_history_open_path(h, path, err);
}

static nib_status append(const nib_cli_history *h, const char *entry, nib_error *err) {
    nib_buf line = {0};
    int fd = open_file(h->path);
    if (fd < 0) return nib_fail_errno(err, errno, "cannot open %s", h->path);
    escape(&line, entry);
    nib_status status = write_all(fd, h->path, &line, err); /* in one write, so that lines of two sessions do not mix */
    if (close(fd) != 0 && status == NIB_OK) status = nib_fail_errno(err, errno, "cannot write %s", h->path);
    nib_buf_free(&line);
    return status;
}

nib_status nib_cli_history_add(nib_cli_history *h, nib_str entry, nib_error *err) {
    size_t n = h->entries.n;
    if (!entry.len || entry.len > NIB_CLI_HISTORY_BYTES || memchr(entry.ptr, 0, entry.len)) return NIB_OK;
    const char *newest = n ? nib_cli_history_at(h, n - 1) : "";
    if (strlen(newest) == entry.len && !memcmp(newest, entry.ptr, entry.len)) return NIB_OK;
    if (!keep(h, entry)) return nib_fail_nomem(err, entry.len, "the history");
    nib_status status = h->path[0] ? append(h, nib_cli_history_at(h, n), err) : NIB_OK;
    if (status != NIB_OK) h->path[0] = 0;
    return status;
}
