/* engine/jump.c - nib_matcher_jump: text that a grammar leaves no choice about -> its tokens, without asking a model. */
#include "base/status.h"
#include "nib.h"
#include "text/list.h"

nib_status nib_matcher_jump(nib_matcher *matcher, const nib_tokenizer *tok, size_t most, nib_token_list *out, nib_error *err) {
    nib_str forced = nib_matcher_forced(matcher);
    nib_token_list list = {0};
    nib_status status = forced.len > 1 ? nib_tokenize(tok, forced.ptr, forced.len, 0, &list, err) : NIB_OK;
    if (status == NIB_OK && !nib_text_list_reserve(out, list.n)) status = nib_fail_nomem(err, list.n * sizeof *out->ids, "tokens");
    for (size_t i = 0; status == NIB_OK && i < list.n && i < most; i++) {
        if (nib_matcher_accept(matcher, list.ids[i], NULL) != NIB_OK) break; /* other bytes: a blank in front */
        bool is_open = i + 1 == list.n && !nib_matcher_must_end(matcher);
        if (is_open) status = nib_matcher_rollback(matcher, 1, err);
        else out->ids[out->n++] = list.ids[i];
    }
    nib_token_list_free(&list);
    return status;
}
