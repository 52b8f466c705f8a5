/* cli/clipboard.c - a text in -> the clipboard. Called by chat_commands.c. */
#include "clipboard.h"

#include "base/status.h"
#include "process.h"
#include "term.h"

#include <stdlib.h>

enum { MAX_SEQUENCE = 74000 /* bytes that terminals take, of the text in base64 */ };

static void base64(nib_str text, nib_buf *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)text.ptr;
    for (size_t i = 0; i < text.len; i += 3) {
        size_t n = text.len - i < 3 ? text.len - i : 3;
        unsigned bits = (unsigned)p[i] << 16 | (n > 1 ? (unsigned)p[i + 1] << 8 : 0) | (n > 2 ? p[i + 2] : 0);
        for (size_t d = 0; d < 4; d++) nib_buf_char(out, d <= n ? digits[bits >> (18 - 6 * d) & 63] : '=');
    }
}

static bool by_terminal(nib_str text) {
    nib_cli_out out = {0};
    if (text.len > MAX_SEQUENCE / 4 * 3) return false;
    nib_cli_out_puts(&out, "\033]52;c;");
    base64(text, &out.buf);
    nib_cli_out_puts(&out, "\a");
    nib_cli_out_flush(&out);
    nib_buf_free(&out.buf);
    return !out.error;
}

static const char *by_program(nib_str text) {
    static const struct {
        const char *needs; /* a variable of the desktop, or NULL */
        const char *argv[4];
    } programs[] = {
        {"WAYLAND_DISPLAY", {"wl-copy"}},
        {"DISPLAY", {"xclip", "-selection", "clipboard"}},
        {NULL, {"pbcopy"}},
    };
    nib_error err;
    int status = 0;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        const char *variable = programs[i].needs ? getenv(programs[i].needs) : "";
        if (!variable || (programs[i].needs && !*variable)) continue;
        if (nib_cli_process_run(programs[i].argv, text, &status, &err) == NIB_OK && status == 0) return programs[i].argv[0];
    }
    return NULL;
}

nib_status nib_cli_clipboard_copy(nib_str text, const char **how, nib_error *err) {
    const char *program = by_program(text);
    bool sent = by_terminal(text);
    *how = program ? program : "the terminal";
    if (program || sent) return NIB_OK;
    return nib_fail(err, NIB_E_LIMIT, "%zu bytes are too many for the terminal, and there is no wl-copy, xclip or pbcopy", text.len);
}
