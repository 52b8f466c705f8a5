/* cli/term.c - messages, the progress bar and standard output. */
#include "term.h"

#include "base/status.h"
#include "command.h"
#include "options.h"
#include "signals.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

nib_cli_term nib_cli_term_new(int color) {
    const char *kind = getenv("TERM"), *none = getenv("NO_COLOR");
    bool refused = (none && *none) || (kind && !strcmp(kind, "dumb"));
    bool wanted = color == NIB_CLI_ON || (color == NIB_CLI_AUTO && !refused);
    nib_cli_term term = {.out_is_terminal = isatty(STDOUT_FILENO), .err_is_terminal = isatty(STDERR_FILENO)};
    term.out_color = wanted && (color == NIB_CLI_ON || term.out_is_terminal);
    term.err_color = wanted && (color == NIB_CLI_ON || term.err_is_terminal);
    return term;
}

double nib_cli_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- messages */

/* In one write, so that lines of two processes do not mix. */
static void say(const nib_cli_term *term, const char *label, const char *color, const char *format, va_list args) {
    char line[4096];
    int n = 0;
    if (label)
        n = snprintf(line, sizeof line, "nib: %s%s:%s ", term->err_color ? color : "", label,
                     term->err_color ? "\033[0m" : "");
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, args);
    if (label) nib_clean_line(line + n); /* what the user typed may be quoted in it */
    n += m < 0 ? 0 : m;
    if (n > (int)sizeof line - 2) n = (int)sizeof line - 2;
    line[n++] = '\n';
    for (int done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, line + done, (size_t)(n - done));
        if (w < 0 && errno != EINTR) return;
        if (w > 0) done += (int)w;
    }
}

#define SAY(label, color)                                                                                              \
    va_list args;                                                                                                      \
    va_start(args, format);                                                                                            \
    say(term, label, color, format, args);                                                                             \
    va_end(args)

void nib_cli_error(const nib_cli_term *term, const char *format, ...) {
    SAY("error", "\033[1;31m");
}

void nib_cli_warning(const nib_cli_term *term, const char *format, ...) {
    SAY("warning", "\033[1;33m");
}

void nib_cli_note(const nib_cli_term *term, const char *format, ...) {
    SAY("note", "\033[36m");
}

void nib_cli_line(const nib_cli_term *term, const char *format, ...) {
    SAY(NULL, NULL);
}

int nib_cli_fail(const nib_cli_term *term, const nib_error *err) {
    if (err->code == NIB_E_CANCELLED && nib_cli_interrupted()) return 128 + nib_cli_interrupted();
    if (err->offset == NIB_NO_OFFSET)
        nib_cli_error(term, "%s", err->message);
    else
        nib_cli_error(term, "%s (at byte %llu)", err->message, (unsigned long long)err->offset);
    return err->code == NIB_E_ARG ? NIB_CLI_USAGE : NIB_CLI_FAILED;
}

/* ---- progress */

enum { BAR_WIDTH = 40, BAR_EVERY_MS = 50, BAR_AFTER_MS = 200 };

void nib_cli_bar_draw(nib_cli_bar *bar, uint64_t done, uint64_t total) {
    double now = nib_cli_now_ms();
    if (!bar->term->err_is_terminal || !total) return;
    if (!bar->last_ms) bar->last_ms = now + BAR_AFTER_MS - BAR_EVERY_MS; /* what is quickly done needs no bar */
    if (now - bar->last_ms < BAR_EVERY_MS) return;
    int filled = (int)((double)done / (double)total * BAR_WIDTH);
    char cells[BAR_WIDTH + 1];
    for (int i = 0; i < BAR_WIDTH; i++) cells[i] = i < filled ? '#' : '.';
    cells[BAR_WIDTH] = 0;
    fprintf(stderr, "\r%s [%s] %3d%%", bar->label, cells, (int)((double)done / (double)total * 100));
    fflush(stderr);
    bar->last_ms = now;
    bar->shown = true;
}

void nib_cli_bar_clear(nib_cli_bar *bar) {
    if (bar->shown) fprintf(stderr, "\r\033[K");
    fflush(stderr);
    bar->shown = false;
}

/* ---- standard output */

enum { OUT_FLUSH_AT = 1 << 16 };

void nib_cli_out_open(nib_cli_out *out) {
    struct stat st;
    *out = (nib_cli_out){0};
    out->is_live = fstat(STDOUT_FILENO, &st) == 0 && !S_ISREG(st.st_mode);
}

void nib_cli_out_flush(nib_cli_out *out) {
    for (size_t done = 0; done < out->buf.len && !out->error;) {
        ssize_t n = write(STDOUT_FILENO, out->buf.ptr + done, out->buf.len - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN || errno == EWOULDBLOCK)
            poll(&(struct pollfd){STDOUT_FILENO, POLLOUT, 0}, 1, -1); /* somebody made the terminal non-blocking */
        else if (errno != EINTR || nib_cli_interrupted())
            out->error = errno;
    }
    out->buf.len = 0;
}

static void written(nib_cli_out *out) {
    if (out->buf.failed) out->error = ENOMEM;
    if (out->error) out->buf.len = 0;
    if (out->buf.len >= OUT_FLUSH_AT) nib_cli_out_flush(out);
}

void nib_cli_out_write(nib_cli_out *out, nib_str text) {
    nib_buf_append(&out->buf, text.ptr, text.len);
    written(out);
}

void nib_cli_out_puts(nib_cli_out *out, const char *text) {
    nib_cli_out_write(out, (nib_str){text, strlen(text)});
}

void nib_cli_out_printf(nib_cli_out *out, const char *format, ...) {
    va_list args;
    va_start(args, format);
    nib_buf_vprintf(&out->buf, format, args);
    va_end(args);
    written(out);
}

int nib_cli_out_close(nib_cli_out *out, const nib_cli_term *term, int status) {
    nib_cli_out_flush(out);
    nib_buf_free(&out->buf);
    if (!out->error && close(STDOUT_FILENO) && errno != EBADF && errno != EINTR) out->error = errno;
    if (!out->error || out->error == EPIPE || nib_cli_interrupted()) return status;
    nib_cli_error(term, "cannot write to standard output: %s", strerror(out->error));
    return NIB_CLI_FAILED;
}
