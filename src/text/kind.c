/* text/kind.c - the rows of kinds.def: for each kind of tokenizer how it is built, how it encodes plain text, and what
 * a token of it stands for. */
#include "base/status.h"
#include "text/flags.h"
#include "text/list.h"
#include "text/normalize.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#include <string.h>

static nib_status nomem(nib_str text, nib_error *err) {
    return nib_fail_nomem(err, text.len, "tokenizing a text of that length");
}

/* Text in which U+2581 stands for spaces. */
static void decode_spaces(const nib_tokenizer *tok, nib_str text, nib_buf *out) {
    (void)tok;
    size_t space = sizeof NIB_TEXT_SPACE - 1;
    for (size_t i = 0; i < text.len;) {
        bool is_space = text.len - i >= space && memcmp(text.ptr + i, NIB_TEXT_SPACE, space) == 0;
        nib_buf_char(out, is_space ? ' ' : text.ptr[i]);
        i += is_space ? space : 1;
    }
}

/* No token stands for more bytes than the longest one, and those that have a token are not lost. */
static size_t fewest_tokens(const nib_tokenizer *tok, nib_str word) {
    size_t n = 0;
    for (size_t i = 0; i < word.len; i++) n += tok->bytes[(unsigned char)word.ptr[i]] != NIB_TOKEN_NONE;
    return n / (tok->vocab.max_len ? tok->vocab.max_len : 1);
}

/* Before a word is encoded: a long one is known to be too long by its length. */
static nib_status check_word(const nib_tokenizer *tok, nib_str word, const nib_token_list *out, nib_error *err) {
    return nib_text_list_check(out, out->most && tok->bytes ? fewest_tokens(tok, word) : 0, err);
}

/* Encodes a word, or repeats what the same word became before. */
static bool encode_word(const nib_tokenizer *tok, nib_text_work *work, nib_str word,
                        bool (*encode)(const nib_tokenizer *, nib_text_work *, nib_str, nib_token_list *),
                        nib_token_list *out) {
    struct nib_text_words_slot *slot = nib_text_words_find(&work->words, word);
    if (slot && slot->len) return nib_text_list_repeat(out, slot->first, slot->n);
    size_t first = out->n;
    if (!encode(tok, work, word, out)) return false;
    if (slot) nib_text_words_keep(slot, word, first, out);
    return true;
}

static nib_status bpe_build(nib_tokenizer *tok, const nib_text_source *source, nib_error *err) {
    NIB_TRY(nib_text_pretok_init(&tok->pretok, source->pre, err));
    NIB_TRY(nib_text_bpe_init(&tok->as.bpe, &tok->vocab, source->merges, source->n_merges, tok->flags, err));
    tok->bytes = tok->as.bpe.byte;
    return NIB_OK;
}

static void bpe_release(nib_tokenizer *tok) {
    nib_text_pretok_free(&tok->pretok);
    nib_text_bpe_free(&tok->as.bpe);
}

static bool bpe_word(const nib_tokenizer *tok, nib_text_work *work, nib_str word, nib_token_list *out) {
    return nib_text_bpe_word(&tok->as.bpe, &work->bpe, word, out);
}

static nib_status bpe_encode(const nib_tokenizer *tok, nib_text_work *work, nib_str text, nib_token_list *out,
                             nib_error *err) {
    text = nib_text_well_formed(text, &work->well_formed);
    if (tok->flags & NIB_TEXT_NFC) text = nib_text_nfc(text, &work->normal);
    if (tok->flags & NIB_TEXT_ESCAPE) text = nib_text_escape(text, false, &work->escaped);
    if (work->well_formed.failed || work->normal.failed || work->escaped.failed) return nomem(text, err);
    if (!nib_text_words_begin(&work->words, work->len)) return nomem(text, err);
    NIB_TRY(nib_text_pretok_begin(&work->walk, &tok->pretok, text, err));
    nib_str word;
    while (nib_text_pretok_next(&work->walk, &word, err)) {
        NIB_TRY(check_word(tok, word, out, err));
        if (!encode_word(tok, work, word, bpe_word, out)) return nomem(text, err);
    }
    return work->walk.status;
}

/* A character outside the alphabet of bytes is marked as llama.cpp marks it. */
static void bpe_decode(const nib_tokenizer *tok, nib_str text, nib_buf *out) {
    if (tok->flags & NIB_TEXT_ESCAPE) {
        decode_spaces(tok, text, out);
        return;
    }
    for (size_t i = 0, len; i < text.len; i += len) {
        uint32_t cp;
        len = nib_text_utf8_get(text.ptr + i, text.len - i, &cp);
        int byte = len ? nib_text_bpe_byte_of(cp) : -1;
        if (!len) len = 1;
        if (byte >= 0) {
            nib_buf_char(out, (char)byte);
            continue;
        }
        nib_buf_str(out, "[UNK_BYTE_0x");
        for (size_t k = 0; k < len; k++) nib_buf_printf(out, "%02x", (unsigned char)text.ptr[i + k]);
        nib_buf_append(out, text.ptr, text.len);
        nib_buf_char(out, ']');
    }
}

static nib_status spm_build(nib_tokenizer *tok, const nib_text_source *source, nib_error *err) {
    (void)source;
    (void)err;
    nib_text_cut_init(&tok->cut, &tok->vocab);
    nib_text_spm_init(&tok->as.spm, &tok->vocab, tok->role[NIB_TEXT_UNK]);
    tok->bytes = tok->as.spm.byte;
    return NIB_OK;
}

static void spm_release(nib_tokenizer *tok) {
    (void)tok;
}

static bool spm_word(const nib_tokenizer *tok, nib_text_work *work, nib_str word, nib_token_list *out) {
    return nib_text_spm_word(&tok->as.spm, &work->spm, word, out);
}

static nib_status spm_encode(const nib_tokenizer *tok, nib_text_work *work, nib_str text, nib_token_list *out,
                             nib_error *err) {
    bool has_prefix = (tok->flags & NIB_TEXT_SPACE_PREFIX) && !work->is_continuation;
    nib_str left = nib_text_escape(text, has_prefix, &work->escaped), word;
    if (work->escaped.failed || !nib_text_words_begin(&work->words, work->len)) return nomem(text, err);
    while (nib_text_cut_next(&tok->cut, &left, &word)) {
        NIB_TRY(check_word(tok, word, out, err));
        if (!encode_word(tok, work, word, spm_word, out)) return nomem(text, err);
    }
    return NIB_OK;
}

static nib_status unigram_build(nib_tokenizer *tok, const nib_text_source *source, nib_error *err) {
    nib_text_cut_init(&tok->cut, &tok->vocab);
    return nib_text_unigram_init(&tok->as.unigram, &tok->vocab, source->charsmap, tok->flags, tok->role[NIB_TEXT_UNK],
                                 err);
}

static void unigram_release(nib_tokenizer *tok) {
    nib_text_unigram_free(&tok->as.unigram);
}

static nib_status unigram_encode(const nib_tokenizer *tok, nib_text_work *work, nib_str text, nib_token_list *out,
                                 nib_error *err) {
    const nib_text_unigram *unigram = &tok->as.unigram;
    nib_str left = nib_text_unigram_normalize(unigram, text, &work->normal), word;
    size_t first = out->n;
    if (work->normal.failed) return nomem(text, err);
    while (nib_text_cut_next(&tok->cut, &left, &word)) {
        NIB_TRY(check_word(tok, word, out, err));
        if (!nib_text_unigram_word(unigram, &work->unigram, word, first, out)) return nomem(text, err);
    }
    return NIB_OK;
}

static nib_status wordpiece_build(nib_tokenizer *tok, const nib_text_source *source, nib_error *err) {
    (void)source;
    return nib_text_wordpiece_init(&tok->as.wordpiece, &tok->vocab, tok->flags, tok->role[NIB_TEXT_UNK], err);
}

static void wordpiece_release(nib_tokenizer *tok) {
    nib_text_wordpiece_free(&tok->as.wordpiece);
}

static nib_status wordpiece_encode(const nib_tokenizer *tok, nib_text_work *work, nib_str text,
                                   nib_token_list *out, nib_error *err) {
    return nib_text_wordpiece_encode(&tok->as.wordpiece, &work->word, text, out) ? NIB_OK : nomem(text, err);
}

enum {
    ADD_BOS = NIB_TEXT_ADD_BOS,
    ADD_EOS = NIB_TEXT_ADD_EOS,
    ADD_SEP = NIB_TEXT_ADD_SEP,
    SPACE_PREFIX = NIB_TEXT_SPACE_PREFIX,
    CLEAN = NIB_TEXT_CLEAN,
    LOWERCASE = NIB_TEXT_LOWERCASE,
    STRIP_ACCENTS = NIB_TEXT_STRIP_ACCENTS,
};

#define CODE_bpe false, bpe_build, bpe_release, bpe_encode, bpe_decode
#define CODE_spm false, spm_build, spm_release, spm_encode, decode_spaces
#define CODE_unigram false, unigram_build, unigram_release, unigram_encode, decode_spaces
#define CODE_wordpiece true, wordpiece_build, wordpiece_release, wordpiece_encode, decode_spaces
#define KIND(model, name, code, pre, bos, eos, unk, sep, pad, mask, flags)                                             \
    {model, name, pre, bos, eos, unk, sep, pad, mask, flags, CODE_##code},
static const nib_text_kind kinds[] = {
#include "text/kinds.def"
};

const nib_text_kind *nib_text_kind_at(size_t i) {
    return i < sizeof kinds / sizeof kinds[0] ? &kinds[i] : NULL;
}

const nib_text_kind *nib_text_kind_find(nib_str model) {
    const nib_text_kind *kind;
    for (size_t i = 0; (kind = nib_text_kind_at(i)) != NULL; i++)
        if (strlen(kind->model) == model.len && memcmp(kind->model, model.ptr, model.len) == 0) return kind;
    return NULL;
}

void nib_text_work_free(nib_text_work *work) {
    nib_text_words_free(&work->words);
    nib_text_bpe_work_free(&work->bpe);
    nib_text_pretok_end(&work->walk);
    nib_text_spm_work_free(&work->spm);
    nib_text_unigram_work_free(&work->unigram);
    nib_buf_free(&work->well_formed);
    nib_buf_free(&work->normal);
    nib_buf_free(&work->escaped);
    nib_buf_free(&work->word);
}
