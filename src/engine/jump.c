/* engine/jump.c - nib_matcher_jump: text that a grammar leaves no choice about -> its tokens, without asking a model. */
#include "base/buf.h"
#include "base/status.h"
#include "nib.h"
#include "text/list.h"

#include <string.h>

/* The tokens that text has behind a line end, without those of the line end: some tokenizers put a blank before every
 * text. None when they do not stand apart. */
static nib_status tokenize_inside(const nib_tokenizer *tok, nib_str text, nib_token_list *list, nib_error *err) {
    nib_token_list end = {0};
    nib_buf line = {0};
    nib_status status;
    list->n = 0;
    NIB_TRY_OUT(nib_tokenize(tok, "\n", 1, 0, &end, err));
    if (!nib_buf_char(&line, '\n') || !nib_buf_append(&line, text.ptr, text.len)) {
        status = nib_fail_nomem(err, text.len, "forced text");
        goto out;
    }
    NIB_TRY_OUT(nib_tokenize(tok, line.ptr, line.len, 0, list, err));
    bool is_apart = list->n > end.n && memcmp(list->ids, end.ids, end.n * sizeof *end.ids) == 0;
    if (is_apart) memmove(list->ids, list->ids + end.n, (list->n - end.n) * sizeof *list->ids);
    list->n = is_apart ? list->n - end.n : 0;
out:
    nib_buf_free(&line);
    nib_token_list_free(&end);
    return status;
}

static nib_status tokenize_forced(nib_matcher *matcher, const nib_tokenizer *tok, nib_token_list *list, nib_error *err) {
    nib_str forced = nib_matcher_forced(matcher);
    if (forced.len < 2) return NIB_OK;
    NIB_TRY(nib_tokenize(tok, forced.ptr, forced.len, 0, list, err));
    if (list->n && nib_matcher_accept(matcher, list->ids[0], NULL) == NIB_OK) return nib_matcher_rollback(matcher, 1, err);
    return tokenize_inside(tok, nib_matcher_forced(matcher), list, err);
}

nib_status nib_matcher_jump(nib_matcher *matcher, const nib_tokenizer *tok, size_t most, nib_token_list *out, nib_error *err) {
    nib_token_list list = {0};
    nib_status status = tokenize_forced(matcher, tok, &list, err);
    if (status == NIB_OK && !nib_text_list_reserve(out, list.n)) status = nib_fail_nomem(err, list.n * sizeof *out->ids, "tokens");
    for (size_t i = 0; status == NIB_OK && i < list.n && i < most; i++) {
        if (nib_matcher_accept(matcher, list.ids[i], NULL) != NIB_OK) break; /* other bytes than the text's */
        bool is_open = i + 1 == list.n && !nib_matcher_must_end(matcher);
        if (is_open) status = nib_matcher_rollback(matcher, 1, err);
        else out->ids[out->n++] = list.ids[i];
    }
    nib_token_list_free(&list);
    return status;
}
