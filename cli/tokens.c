/* cli/tokens.c - token ids in -> readable lines out. Called by tokenize, trace and run --verbose-prompt. */
#include "tokens.h"

#include "base/utf8.h"

void nib_cli_escaped(nib_buf *out, nib_str text) {
    for (size_t i = 0, n; i < text.len; i += n) {
        const char *p = text.ptr + i;
        uint32_t cp;
        n = nib_utf8_char(p, text.len - i, &cp);
        if (*p == '\n')
            nib_buf_str(out, "\\n");
        else if (*p == '\\')
            nib_buf_str(out, "\\\\");
        else if (n && !nib_utf8_is_control(cp))
            nib_buf_append(out, p, n);
        else
            nib_buf_printf(out, "\\x%02x", (unsigned char)*p), n = 1;
    }
}

void nib_cli_token_quoted(nib_buf *out, const nib_tokenizer *tok, nib_token id) {
    nib_detok *detok; /* as in the middle of a text, where the space before a word is kept */
    nib_str piece = {0};
    nib_error err;
    if (nib_detok_new(&detok, tok, NIB_UNPARSE_SPECIAL, true, &err) != NIB_OK) return;
    nib_buf_char(out, '\'');
    if (nib_detok_push(detok, id, &piece, &err) == NIB_OK) nib_cli_escaped(out, piece);
    nib_cli_escaped(out, nib_detok_finish(detok));
    nib_buf_char(out, '\'');
    nib_detok_free(detok);
}

void nib_cli_token_line(nib_buf *line, const nib_tokenizer *tok, nib_token id) {
    nib_buf_printf(line, "%6d -> ", id);
    nib_cli_token_quoted(line, tok, id);
}
