/* text/detok.c - ids back to text: as a whole, and as a stream of whole characters. */
#include "base/status.h"
#include "text/flags.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <string.h>

static unsigned hex(char c) {
    return (unsigned)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
}

void nib_text_piece(const nib_tokenizer *tok, nib_token id, bool with_control, nib_buf *out) {
    unsigned attr = tok->vocab.attr[id];
    nib_str text = nib_text_vocab_text(&tok->vocab, id);
    bool is_control = attr & (NIB_TOKEN_UNKNOWN | NIB_TOKEN_CONTROL);
    if (is_control && !with_control) return;
    if (is_control || (attr & NIB_TOKEN_USER)) nib_buf_append(out, text.ptr, text.len);
    else if (attr & NIB_TOKEN_NORMAL) tok->kind->decode(tok, text, out);
    else if (attr & NIB_TOKEN_BYTE) nib_buf_char(out, (char)(hex(text.ptr[3]) << 4 | hex(text.ptr[4])));
}

static bool is_in(char c, const char *set) {
    return c && strchr(set, c);
}

/* " ." -> "." */
static size_t clean_punctuation(char *s, size_t n) {
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && s[i - 1] == ' ' && is_in(s[i], "?!.,")) to--;
        s[to++] = s[i];
    }
    return to;
}

/* " ' " -> "'" */
static size_t clean_quotes(char *s, size_t n) {
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        bool is_between = i > 0 && i + 1 < n && s[i] == '\'' && s[i - 1] == ' ' && s[i + 1] == ' ';
        if (is_between) to--;
        s[to++] = s[i];
        if (is_between) s[++i] = 0; /* the next character does not follow a space */
    }
    return to;
}

/* " 's" -> "'s", and 'm 're 've */
static size_t clean_contractions(char *s, size_t n) {
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && i + 1 < n && s[i] == '\'' && s[i - 1] == ' ') {
            bool is_pair = i + 2 < n && s[i + 2] == 'e' && is_in(s[i + 1], "rv");
            if (is_pair || is_in(s[i + 1], "sm")) to--;
        }
        s[to++] = s[i];
    }
    return to;
}

static nib_status check_id(const nib_tokenizer *tok, nib_token id, nib_error *err) {
    if (id >= 0 && (uint32_t)id < tok->vocab.n) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "token id %d, expected 0 to %u", id, tok->vocab.n - 1);
}

nib_status nib_detokenize(const nib_tokenizer *tok, const nib_token *ids, size_t n, unsigned flags, char **text,
                          size_t *len, nib_error *err) {
    bool drops_space = tok->flags & NIB_TEXT_SPACE_PREFIX;
    nib_buf out = {0};
    *text = NULL;
    *len = 0;
    for (size_t i = 0; i < n; i++) NIB_TRY(check_id(tok, ids[i], err));
    if (flags & NIB_REMOVE_SPECIAL) {
        if (n && (tok->flags & NIB_TEXT_ADD_BOS) && ids[0] == tok->role[NIB_TEXT_BOS]) ids++, n--, drops_space = false;
        if (n && (tok->flags & NIB_TEXT_ADD_EOS) && ids[n - 1] == tok->role[NIB_TEXT_EOS]) n--;
    }
    for (size_t i = 0; i < n; i++) {
        nib_text_piece(tok, ids[i], flags & NIB_UNPARSE_SPECIAL, &out);
        if (i == 0 && drops_space && out.len && out.ptr[0] == ' ') memmove(out.ptr, out.ptr + 1, --out.len);
    }
    if (!nib_buf_cstr(&out)) {
        nib_buf_free(&out);
        return nib_fail_nomem(err, n, "the text of so many tokens");
    }
    if ((tok->flags & NIB_TEXT_CLEAN) && !(flags & NIB_KEEP_SPACES)) {
        out.len = clean_punctuation(out.ptr, out.len);
        out.len = clean_quotes(out.ptr, out.len);
        out.len = clean_contractions(out.ptr, out.len);
        out.ptr[out.len] = 0;
    }
    *text = out.ptr;
    *len = out.len;
    return NIB_OK;
}

struct nib_detok {
    const nib_tokenizer *tok;
    unsigned flags;
    bool is_first;    /* no id yet */
    bool drops_space; /* of the first token */
    bool holds_eos;   /* an EOS that is left out if it is the last */
    nib_buf bytes;    /* of tokens, not yet given out: the start of a character */
    nib_buf piece;    /* given out last */
};

nib_status nib_detok_new(nib_detok **out, const nib_tokenizer *tok, unsigned flags, bool is_continuation,
                         nib_error *err) {
    nib_detok *detok = *out = nib_calloc(1, sizeof *detok);
    if (!detok) return nib_fail_nomem(err, sizeof *detok, "a detokenizer");
    detok->tok = tok;
    detok->flags = flags;
    detok->is_first = true;
    detok->drops_space = !is_continuation && (tok->flags & NIB_TEXT_SPACE_PREFIX);
    return NIB_OK;
}

void nib_detok_free(nib_detok *detok) {
    if (!detok) return;
    nib_buf_free(&detok->bytes);
    nib_buf_free(&detok->piece);
    nib_free(detok);
}

/* The length of the character at p if it is well-formed; else the bytes there that U+FFFD stands for, as Unicode
 * recommends it, and *is_bad; 0 when the n bytes at hand may be the start of a character. */
static size_t next_char(const char *p, size_t n, bool *is_bad) {
    unsigned char c = (unsigned char)p[0];
    size_t len = nib_text_utf8_len(p[0]);
    unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80, high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    *is_bad = (c >= 0x80 && c < 0xC2) || c > 0xF4;
    if (*is_bad) return 1;
    for (size_t i = 1; i < len; i++, low = 0x80, high = 0xBF) {
        if (i == n) return 0;
        *is_bad = (unsigned char)p[i] < low || (unsigned char)p[i] > high;
        if (*is_bad) return i;
    }
    return len;
}

/* Moves what is complete from the bytes to the piece. */
static void give_chars(nib_detok *detok) {
    size_t at = 0, len;
    bool is_bad;
    while (at < detok->bytes.len && (len = next_char(detok->bytes.ptr + at, detok->bytes.len - at, &is_bad)) > 0) {
        if (is_bad) nib_buf_str(&detok->piece, NIB_TEXT_REPLACEMENT);
        else nib_buf_append(&detok->piece, detok->bytes.ptr + at, len);
        at += len;
    }
    if (at) memmove(detok->bytes.ptr, detok->bytes.ptr + at, detok->bytes.len -= at);
}

static void give_token(nib_detok *detok, nib_token id) {
    size_t at = detok->bytes.len;
    nib_text_piece(detok->tok, id, detok->flags & NIB_UNPARSE_SPECIAL, &detok->bytes);
    if (detok->drops_space && detok->bytes.len > at && detok->bytes.ptr[at] == ' ')
        memmove(detok->bytes.ptr + at, detok->bytes.ptr + at + 1, --detok->bytes.len - at);
    detok->drops_space = false;
}

nib_status nib_detok_push(nib_detok *detok, nib_token id, nib_str *piece, nib_error *err) {
    const nib_tokenizer *tok = detok->tok;
    *piece = (nib_str){"", 0};
    NIB_TRY(check_id(tok, id, err));
    bool removes = detok->flags & NIB_REMOVE_SPECIAL;
    bool is_bos = removes && detok->is_first && (tok->flags & NIB_TEXT_ADD_BOS) && id == tok->role[NIB_TEXT_BOS];
    detok->piece.len = 0;
    detok->is_first = false;
    if (detok->holds_eos) give_token(detok, tok->role[NIB_TEXT_EOS]);
    detok->holds_eos = !is_bos && removes && (tok->flags & NIB_TEXT_ADD_EOS) && id == tok->role[NIB_TEXT_EOS];
    if (is_bos) detok->drops_space = false;
    else if (!detok->holds_eos) give_token(detok, id);
    give_chars(detok);
    if (detok->bytes.failed || detok->piece.failed) return nib_fail_nomem(err, detok->bytes.len, "the text of a token");
    if (detok->piece.len) *piece = (nib_str){detok->piece.ptr, detok->piece.len};
    return NIB_OK;
}

nib_str nib_detok_finish(nib_detok *detok) {
    bool is_cut = detok->bytes.len > 0; /* the start of one character: one U+FFFD */
    detok->bytes.len = 0;
    detok->holds_eos = false;
    return is_cut ? (nib_str){NIB_TEXT_REPLACEMENT, sizeof NIB_TEXT_REPLACEMENT - 1} : (nib_str){"", 0};
}
