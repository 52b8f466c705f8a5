/* text/wordpiece.c - WordPiece: cleans and lower-cases text as BERT does, cuts it into words, and takes each word apart
 * by the longest token at every place. */
#include "text/wordpiece.h"

#include "base/mem.h"
#include "text/flags.h"
#include "text/list.h"
#include "text/utf8.h"

#include <utf8proc.h>

nib_status nib_text_wordpiece_init(nib_text_wordpiece *wordpiece, const nib_text_vocab *vocab, unsigned flags,
                                   nib_token unknown, nib_error *err) {
    *wordpiece = (nib_text_wordpiece){.flags = flags, .unknown = unknown};
    for (uint32_t id = 0; id < vocab->n; id++) {
        nib_status status =
            nib_text_trie_add(&wordpiece->trie, nib_text_vocab_text(vocab, (nib_token)id), (nib_token)id, err);
        if (status == NIB_OK) continue;
        nib_text_wordpiece_free(wordpiece);
        return status;
    }
    return NIB_OK;
}

void nib_text_wordpiece_free(nib_text_wordpiece *wordpiece) {
    nib_text_trie_free(&wordpiece->trie);
    *wordpiece = (nib_text_wordpiece){0};
}

/* The blocks of Chinese characters that BERT makes words of their own; 0x2B920 is as the original has it. */
static bool is_chinese(uint32_t c) {
    static const uint32_t blocks[][2] = {
        {0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
        {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F},
    };
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
    return false;
}

typedef enum char_kind { IN_WORD, OWN_WORD, BETWEEN_WORDS, DROPPED } char_kind;

static char_kind kind_of(uint32_t c, unsigned flags) {
    utf8proc_category_t cat = utf8proc_category((utf8proc_int32_t)c);
    if ((c >= '\t' && c <= '\r') || c == 0x85 || (cat >= UTF8PROC_CATEGORY_ZS && cat <= UTF8PROC_CATEGORY_ZP))
        return BETWEEN_WORDS;
    if (c == 0 || c == 0xFFFD || (cat >= UTF8PROC_CATEGORY_CC && cat <= UTF8PROC_CATEGORY_CO)) return DROPPED;
    bool is_mark = cat >= UTF8PROC_CATEGORY_MN && cat <= UTF8PROC_CATEGORY_ME;
    if (is_mark && (flags & NIB_TEXT_STRIP_ACCENTS)) return DROPPED;
    bool is_punctuation = cat >= UTF8PROC_CATEGORY_PC && cat <= UTF8PROC_CATEGORY_PO;
    bool is_symbol = c < 0x7F && cat >= UTF8PROC_CATEGORY_SM && cat <= UTF8PROC_CATEGORY_SO;
    return is_punctuation || is_symbol || is_chinese(c) ? OWN_WORD : IN_WORD;
}

static bool end_word(const nib_text_wordpiece *wordpiece, nib_buf *word, nib_token_list *out) {
    if (!word->len) return !word->failed;
    size_t start = out->n;
    for (size_t at = 0, end = 0; at < word->len; at = end) {
        nib_token id = NIB_TOKEN_NONE;
        uint32_t node = 0;
        for (size_t i = at; i < word->len; i++) {
            node = nib_text_trie_step(&wordpiece->trie, node, (unsigned char)word->ptr[i]);
            if (!node) break;
            if (wordpiece->trie.value[node] == NIB_TOKEN_NONE) continue;
            id = wordpiece->trie.value[node];
            end = i + 1;
        }
        if (id == NIB_TOKEN_NONE) { /* a part that is unknown makes the word unknown */
            out->n = start;
            break;
        }
        if (!nib_text_list_add(out, id)) return false;
    }
    word->len = 0;
    bool is_unknown = out->n == start && wordpiece->unknown != NIB_TOKEN_NONE;
    return !word->failed && (!is_unknown || nib_text_list_add(out, wordpiece->unknown));
}

static bool add_char(const nib_text_wordpiece *wordpiece, uint32_t c, nib_buf *word, nib_token_list *out) {
    char_kind kind = kind_of(c, wordpiece->flags);
    if (kind == DROPPED) return true;
    if (kind != IN_WORD && !end_word(wordpiece, word, out)) return false;
    if (kind == BETWEEN_WORDS) return true;
    if (wordpiece->flags & NIB_TEXT_LOWERCASE) c = (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
    char bytes[4];
    if (!word->len) nib_buf_str(word, NIB_TEXT_SPACE);
    nib_buf_append(word, bytes, nib_text_utf8_put(c, bytes));
    return kind == OWN_WORD ? end_word(wordpiece, word, out) : true;
}

/* The first character of the canonical decomposition: the letter without its accents. What follows it are marks, which
 * are dropped, or, in Korean, the other letters of a syllable, which llama.cpp drops too. */
static uint32_t without_accents(uint32_t c) {
    int32_t parts[4];
    int boundary = 0;
    utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, parts, 4, options, &boundary);
    return n > 0 ? (uint32_t)parts[0] : c;
}

bool nib_text_wordpiece_encode(const nib_text_wordpiece *wordpiece, nib_buf *word, nib_str text, nib_token_list *out) {
    word->len = 0;
    for (size_t at = 0, len; at < text.len; at += len) {
        uint32_t c;
        len = nib_text_utf8_get(text.ptr + at, text.len - at, &c);
        if (!len) len = 1, c = 0xFFFD;
        if (wordpiece->flags & NIB_TEXT_STRIP_ACCENTS) c = without_accents(c);
        if (!add_char(wordpiece, c, word, out)) return false;
    }
    return end_word(wordpiece, word, out);
}
