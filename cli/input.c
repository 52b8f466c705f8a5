/* cli/input.c - options and standard input in -> the text to work on out. Files and pipes are taken as they are. */
#include "input.h"

#include "base/hex.h"
#include "base/status.h"
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, MAX_BYTES = 1 << 30 /* a device without end would take all memory */ };

static nib_status read_all(int fd, const char *name, nib_buf *text, nib_error *err) {
    for (;;) {
        if (text->len > MAX_BYTES) return nib_fail(err, NIB_E_LIMIT, "%s goes on beyond 1 GiB: give a shorter text", name);
        if (!nib_buf_reserve(text, READ_BYTES)) return nib_fail_nomem(err, text->len + READ_BYTES, name);
        ssize_t n = read(fd, text->ptr + text->len, READ_BYTES);
        if (n == 0) return NIB_OK;
        if (n > 0)
            text->len += (size_t)n;
        else if (errno == EINTR && nib_cli_interrupted())
            return nib_fail(err, NIB_E_CANCELLED, "interrupted");
        else if (errno != EINTR)
            return nib_fail(err, NIB_E_IO, "cannot read %s: %s", name, strerror(errno));
    }
}

nib_status nib_cli_input_file(const char *path, nib_buf *text, nib_error *err) {
    if (!strcmp(path, "-")) return read_all(STDIN_FILENO, "standard input", text, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nib_fail(err, NIB_E_IO, "cannot open %s: %s", path, strerror(errno));
    nib_status status = read_all(fd, path, text, err);
    close(fd);
    return status;
}

void nib_cli_unescape(nib_str text, nib_buf *out) {
    static const char letters[] = "nrt'\"\\", meanings[] = "\n\r\t'\"\\";
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i], next = i + 1 < text.len ? text.ptr[i + 1] : 0;
        const char *letter = c == '\\' && next ? strchr(letters, next) : NULL;
        int high = c == '\\' && next == 'x' && i + 3 < text.len ? nib_hex_digit(text.ptr[i + 2]) : -1;
        int low = high >= 0 ? nib_hex_digit(text.ptr[i + 3]) : -1;
        if (letter)
            nib_buf_char(out, meanings[letter - letters]), i++;
        else if (low >= 0)
            nib_buf_char(out, (char)(high << 4 | low)), i += 3;
        else
            nib_buf_char(out, c);
    }
}

nib_status nib_cli_input_read(const nib_cli_options *opt, nib_buf *text, nib_error *err) {
    const char *file = opt->operands.n ? "-" : opt->file;
    if (opt->prompt && file)
        return nib_fail(err, NIB_E_ARG, "the input is given twice: leave out either -p or %s", opt->file ? "-f" : "-");
    if (file) return nib_cli_input_file(file, text, err);
    if (opt->prompt) {
        nib_str given = {opt->prompt, strlen(opt->prompt)};
        if (opt->escape)
            nib_cli_unescape(given, text);
        else
            nib_buf_append(text, given.ptr, given.len);
        return text->failed ? nib_fail_nomem(err, given.len, "the prompt") : NIB_OK;
    }
    if (isatty(STDIN_FILENO)) return nib_fail(err, NIB_E_ARG, "no input: give -p TEXT or -f FILE, or pipe a text in");
    return nib_cli_input_file("-", text, err);
}

nib_status nib_cli_input_none(const nib_cli_options *opt, nib_error *err) {
    const char *given = opt->prompt ? "-p" : opt->file ? "-f" : opt->operands.n ? "the arguments" : NULL;
    return given ? nib_fail(err, NIB_E_ARG, "--jsonl reads standard input: leave out %s", given) : NIB_OK;
}
