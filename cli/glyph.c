/* cli/glyph.c - code points in -> columns and visible symbols out. Called by all that draw on a terminal. */
#include "glyph.h"

#include "base/utf8.h"

#include <utf8proc.h>

uint32_t nib_cli_glyph_decode(nib_str text, size_t *len) {
    uint32_t cp;
    *len = nib_utf8_char(text.ptr, text.len, &cp);
    if (*len) return cp;
    *len = 1;
    return NIB_CLI_REPLACEMENT;
}

void nib_cli_glyph_put(nib_buf *out, uint32_t cp) {
    utf8proc_uint8_t bytes[4];
    utf8proc_ssize_t n = utf8proc_encode_char((utf8proc_int32_t)cp, bytes);
    nib_buf_append(out, bytes, n > 0 ? (size_t)n : 0);
}

uint32_t nib_cli_glyph_visible(uint32_t cp) {
    if (cp < 0x20) return 0x2400 + cp; /* U+241B is the symbol for ESC, and so on */
    if (cp == 0x7F) return 0x2421;
    return nib_utf8_is_control(cp) ? NIB_CLI_REPLACEMENT : cp;
}

int nib_cli_glyph_columns(uint32_t cp) {
    return utf8proc_charwidth((utf8proc_int32_t)cp);
}

bool nib_cli_glyph_joins(uint32_t first, uint32_t second, int32_t *state) {
    return !utf8proc_grapheme_break_stateful((utf8proc_int32_t)first, (utf8proc_int32_t)second, state);
}

void nib_cli_glyph_show(nib_buf *out, nib_str text) {
    for (size_t len; text.len; text.ptr += len, text.len -= len) {
        uint32_t cp = nib_cli_glyph_decode(text, &len);
        nib_cli_glyph_put(out, cp == '\n' || cp == '\t' ? cp : nib_cli_glyph_visible(cp));
    }
}
