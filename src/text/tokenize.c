/* text/tokenize.c - nib_tokenize, nib_tokenize_spans and what can be asked of a tokenizer.
 *
 * Text in -> cut at special tokens (special.c) -> each plain part encoded by the tokenizer's kind (kind.c) -> ids out,
 * with the tokens that the model wants at the ends. */
#include "base/status.h"
#include "text/flags.h"
#include "text/list.h"
#include "text/tokenizer.h"

#include <string.h>

#define MAX_TEXT ((size_t)1 << 30) /* places are 32 bits wide, and a space may become three bytes */

static bool add_role(const nib_tokenizer *tok, nib_text_role role, nib_token_list *out) {
    return tok->role[role] == NIB_TOKEN_NONE || nib_text_list_add(out, tok->role[role]);
}

/* All that the walk gives. */
static nib_status encode(const nib_tokenizer *tok, nib_text_work *work, nib_text_special_walk *walk, nib_token_list *out,
                         nib_error *err) {
    nib_text_fragment fragment;
    bool ok = true;
    while (ok && nib_text_special_next(walk, &fragment)) {
        NIB_TRY(nib_text_list_check(out, 0, err));
        if (fragment.id != NIB_TOKEN_NONE) ok = nib_text_list_add(out, fragment.id);
        else NIB_TRY(tok->kind->encode(tok, work, fragment.text, out, err));
    }
    return ok ? NIB_OK : nib_fail_nomem(err, work->len, "tokenizing a text of that length");
}

static nib_status tokenize(const nib_tokenizer *tok, nib_text_work *work, nib_str text, unsigned flags,
                           nib_token_list *out, nib_error *err) {
    bool add = flags & NIB_ADD_SPECIAL, ok = true;
    nib_span all = {text.len, flags & NIB_PARSE_SPECIAL};
    if (add && (tok->flags & NIB_TEXT_ADD_BOS)) ok = add_role(tok, NIB_TEXT_BOS, out);
    nib_text_special_walk walk = nib_text_special_begin(&tok->special, &tok->vocab, text, &all, NIB_TEXT_GUARD_CONTROL);
    if (ok) NIB_TRY(encode(tok, work, &walk, out, err));
    nib_text_role last = tok->kind->ends_with_sep ? NIB_TEXT_SEP : NIB_TEXT_EOS;
    bool has_last = tok->flags & (last == NIB_TEXT_SEP ? NIB_TEXT_ADD_SEP : NIB_TEXT_ADD_EOS);
    if (ok && add && has_last) ok = add_role(tok, last, out);
    return ok ? nib_text_list_check(out, 0, err) : nib_fail_nomem(err, text.len, "tokenizing a text of that length");
}

static nib_status check_length(size_t len, nib_error *err) {
    if (len <= MAX_TEXT) return NIB_OK;
    return nib_fail(err, NIB_E_LIMIT, "a text of %zu bytes; at most %zu at once", len, MAX_TEXT);
}

nib_status nib_tokenize(const nib_tokenizer *tok, const char *text, size_t len, unsigned flags, nib_token_list *out,
                        nib_error *err) {
    NIB_TRY(check_length(len, err));
    nib_text_work work = {.len = len};
    size_t n = out->n;
    nib_status status = tokenize(tok, &work, (nib_str){len ? text : "", len}, flags, out, err);
    nib_text_work_free(&work);
    if (status != NIB_OK) out->n = n;
    return status;
}

static nib_status check_spans(const nib_rendered *r, nib_error *err) {
    size_t left = r->len, i = 0;
    while (i < r->n_spans && r->spans[i].len <= left) left -= r->spans[i++].len;
    if (i == r->n_spans && left == 0) return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "the spans do not cover %zu bytes of text, no more and no less", r->len);
}

nib_status nib_tokenize_spans(const nib_tokenizer *tok, const nib_rendered *text, unsigned flags, nib_token_list *out,
                              nib_error *err) {
    NIB_TRY(check_length(text->len, err));
    NIB_TRY(check_spans(text, err));
    static const nib_span nothing = {0, false};
    bool adds_bos = (flags & NIB_ADD_SPECIAL) && (tok->flags & NIB_TEXT_ADD_BOS);
    nib_text_work work = {.len = text->len};
    size_t n = out->n;
    nib_text_special_walk walk = nib_text_special_begin(&tok->special, &tok->vocab, (nib_str){text->len ? text->text : "", text->len},
                                                        text->n_spans ? text->spans : &nothing, NIB_TEXT_GUARD_ALL);
    nib_text_special_walk look = walk;
    nib_text_fragment first = {NIB_TOKEN_NONE, {NULL, 0}};
    if (adds_bos && nib_text_special_next(&look, &first) && first.id == tok->role[NIB_TEXT_BOS]) adds_bos = false;
    bool ok = !adds_bos || add_role(tok, NIB_TEXT_BOS, out);
    nib_status status = ok ? encode(tok, &work, &walk, out, err) : nib_fail_nomem(err, text->len, "tokenizing");
    if (status == NIB_OK) status = nib_text_list_check(out, 0, err);
    nib_text_work_free(&work);
    if (status != NIB_OK) out->n = n;
    return status;
}

nib_status nib_text_continue(const nib_tokenizer *tok, nib_str text, nib_token_list *out, nib_error *err) {
    nib_text_work work = {.len = text.len, .is_continuation = true};
    nib_status status = text.len ? tok->kind->encode(tok, &work, text, out, err) : NIB_OK;
    nib_text_work_free(&work);
    return status;
}

void nib_token_list_free(nib_token_list *list) {
    if (!list) return;
    nib_free(list->ids);
    *list = (nib_token_list){0};
}

const char *nib_tokenizer_warning(const nib_tokenizer *tok, size_t i) {
    return i < tok->n_warnings ? tok->warnings[i] : NULL;
}

const char *nib_tokenizer_kind(const nib_tokenizer *tok) {
    return tok->kind->name;
}

const char *nib_tokenizer_pre(const nib_tokenizer *tok) {
    return tok->pretok.row ? tok->pretok.row->name : "";
}

uint32_t nib_tokenizer_n_tokens(const nib_tokenizer *tok) {
    return tok->vocab.n;
}

static bool in_range(const nib_tokenizer *tok, nib_token id) {
    return id >= 0 && (uint32_t)id < tok->vocab.n;
}

nib_str nib_tokenizer_text(const nib_tokenizer *tok, nib_token id) {
    return in_range(tok, id) ? nib_text_vocab_text(&tok->vocab, id) : (nib_str){"", 0};
}

unsigned nib_tokenizer_attr(const nib_tokenizer *tok, nib_token id) {
    return in_range(tok, id) ? tok->vocab.attr[id] & NIB_TEXT_PUBLIC_ATTR : 0;
}

bool nib_tokenizer_is_eog(const nib_tokenizer *tok, nib_token id) {
    return nib_tokenizer_attr(tok, id) & NIB_TOKEN_EOG;
}

bool nib_tokenizer_add_bos(const nib_tokenizer *tok) {
    return tok->flags & NIB_TEXT_ADD_BOS;
}

bool nib_tokenizer_add_eos(const nib_tokenizer *tok) {
    return tok->flags & NIB_TEXT_ADD_EOS;
}

nib_token nib_tokenizer_special(const nib_tokenizer *tok, const char *name) {
    for (size_t i = 0; i < NIB_TEXT_N_ROLES; i++)
        if (strcmp(nib_text_role_name((nib_text_role)i), name) == 0) return tok->role[i];
    return NIB_TOKEN_NONE;
}
