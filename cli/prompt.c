/* cli/prompt.c - text in -> ids of a prompt out. */
#include "prompt.h"

#include "base/status.h"
#include "tokens.h"

static nib_status start_token(const nib_cli_session *s, nib_token_list *ids, nib_error *err) {
    nib_token start = nib_tokenizer_special(s->tok, "bos");
    if (start == NIB_TOKEN_NONE) start = nib_tokenizer_special(s->tok, "eos");
    if (start == NIB_TOKEN_NONE)
        return nib_fail(err, NIB_E_ARG, "the prompt is empty and the model has no token to start from: give -p TEXT");
    nib_cli_note(s->term, "the prompt is empty: starting from token %d, %.*s", start,
                 NIB_STR_ARG(nib_tokenizer_text(s->tok, start)));
    return nib_cli_append_ids(ids, &start, 1) ? NIB_OK : nib_fail_nomem(err, sizeof start, "the prompt");
}

nib_status nib_cli_prompt_ids(const nib_cli_session *s, nib_str text, nib_token_list *ids, nib_error *err) {
    NIB_TRY(nib_tokenize(s->tok, text.ptr, text.len, NIB_ADD_SPECIAL | NIB_PARSE_SPECIAL, ids, err));
    if (!ids->n) NIB_TRY(start_token(s, ids, err));
    for (size_t i = 0; i < ids->n && s->opt->verbose_prompt; i++) {
        nib_buf line = {0};
        nib_cli_token_line(&line, s->tok, ids->ids[i]);
        nib_cli_line(s->term, "%s", nib_buf_cstr(&line));
        nib_buf_free(&line);
    }
    return NIB_OK;
}
