/* engine/grammar_vocab.c - the tokens of a tokenizer in -> the vocabulary that grammars make masks with. A token
 * without text (control tokens, those that end a text) satisfies no byte. */
#include "base/status.h"
#include "chat/format.h"
#include "grammar/vocab.h"
#include "text/tokenizer.h"

/* chat: whose turns end a text; NULL: as the file says. */
static nib_status make(nib_grammar_vocab **out, const nib_tokenizer *tok, const nib_chat *chat, nib_error *err) {
    uint32_t n = nib_tokenizer_n_tokens(tok);
    nib_buf piece = {0};
    NIB_TRY(nib_grammar_vocab_begin(out, n, err));
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++) {
        nib_token id = (nib_token)i;
        bool ends = chat ? nib_chat_ends_turn(chat, id) : nib_tokenizer_is_eog(tok, id);
        piece.len = 0;
        nib_text_piece(tok, id, false, &piece);
        nib_str bytes = {piece.ptr ? piece.ptr : "", piece.len};
        ok = !piece.failed && nib_grammar_vocab_add(*out, bytes, nib_tokenizer_text(tok, id), ends);
    }
    nib_buf_free(&piece);
    nib_status status = ok ? nib_grammar_vocab_finish(*out, err) : nib_fail_nomem(err, 0, "the bytes of a vocabulary");
    if (status == NIB_OK) return NIB_OK;
    nib_grammar_vocab_free(*out);
    *out = NULL;
    return status;
}

nib_status nib_grammar_vocab_new(nib_grammar_vocab **out, const nib_tokenizer *tok, nib_error *err) {
    return make(out, tok, NULL, err);
}

nib_status nib_chat_vocab_new(nib_grammar_vocab **out, const nib_chat *chat, nib_error *err) {
    return make(out, nib_chat_tokenizer(chat), chat, err);
}
