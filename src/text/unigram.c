/* text/unigram.c - SentencePiece's unigram kind: the best path through a word by dynamic programming, one step a
 * character. Sums are doubles, as in the original, so that ties fall the same way. */
#include "text/unigram.h"

#include "base/mem.h"
#include "text/flags.h"
#include "text/list.h"
#include "text/utf8.h"

#include <float.h>

#define UNKNOWN_PENALTY 10.0f

nib_status nib_text_unigram_init(nib_text_unigram *unigram, const nib_text_vocab *vocab, nib_str charsmap,
                                 unsigned flags, nib_token unknown, nib_error *err) {
    *unigram = (nib_text_unigram){.vocab = vocab, .flags = flags, .unknown = unknown};
    float lowest = FLT_MAX;
    nib_status status = nib_text_charsmap_init(&unigram->map, charsmap, err);
    for (uint32_t id = 0; id < vocab->n && status == NIB_OK; id++) {
        if ((vocab->attr[id] & NIB_TOKEN_NORMAL) && vocab->score[id] < lowest) lowest = vocab->score[id];
        if (vocab->attr[id] & (NIB_TOKEN_NORMAL | NIB_TOKEN_USER | NIB_TOKEN_UNUSED))
            status = nib_text_trie_add(&unigram->trie, nib_text_vocab_text(vocab, (nib_token)id), (nib_token)id, err);
    }
    unigram->unknown_score = lowest - UNKNOWN_PENALTY;
    if (status != NIB_OK) nib_text_unigram_free(unigram);
    return status;
}

void nib_text_unigram_free(nib_text_unigram *unigram) {
    nib_text_trie_free(&unigram->trie);
    nib_text_charsmap_free(&unigram->map);
    *unigram = (nib_text_unigram){0};
}

void nib_text_unigram_work_free(nib_text_unigram_work *work) {
    nib_free(work->best);
    *work = (nib_text_unigram_work){0};
}

nib_str nib_text_unigram_normalize(const nib_text_unigram *unigram, nib_str text, nib_buf *out) {
    bool merge = unigram->flags & NIB_TEXT_MERGE_SPACES, wants_prefix = unigram->flags & NIB_TEXT_SPACE_PREFIX;
    bool in_word = false;
    out->len = 0;
    while (text.len) {
        size_t from;
        nib_str to;
        nib_text_charsmap_next(&unigram->map, text, &from, &to);
        for (size_t i = 0; i < to.len; i++) {
            bool is_space = to.ptr[i] == ' ';
            if (is_space ? !merge : !in_word && (merge || wants_prefix)) {
                nib_buf_str(out, NIB_TEXT_SPACE);
                if (!is_space) wants_prefix = false;
            }
            if (!is_space) nib_buf_char(out, to.ptr[i]);
            in_word = !is_space;
        }
        text = (nib_str){text.ptr + from, text.len - from};
    }
    return out->failed ? (nib_str){"", 0} : (nib_str){out->ptr, out->len};
}

static void improve(struct nib_text_unigram_best *best, double score, size_t from, nib_token id) {
    if (score > best->score) *best = (struct nib_text_unigram_best){score, (uint32_t)from, id};
}

static void find_best(const nib_text_unigram *unigram, nib_str word, struct nib_text_unigram_best *best) {
    const nib_text_vocab *vocab = unigram->vocab;
    best[0] = (struct nib_text_unigram_best){0, 0, NIB_TOKEN_NONE};
    for (size_t i = 1; i <= word.len; i++) best[i].score = -DBL_MAX;
    for (size_t at = 0, len; at < word.len; at += len) {
        len = nib_text_utf8_len(word.ptr[at]);
        if (len > word.len - at) len = word.len - at;
        bool has_character = false;
        uint32_t node = 0;
        for (size_t end = at; end < word.len;) {
            node = nib_text_trie_step(&unigram->trie, node, (unsigned char)word.ptr[end++]);
            if (!node) break;
            nib_token id = unigram->trie.value[node];
            if (id == NIB_TOKEN_NONE) continue;
            if (end - at == len) has_character = true;
            double score = vocab->attr[id] & NIB_TOKEN_USER ? 0 : vocab->score[id];
            improve(&best[end], best[at].score + score, at, id);
        }
        if (!has_character) improve(&best[at + len], best[at].score + unigram->unknown_score, at, unigram->unknown);
    }
}

bool nib_text_unigram_word(const nib_text_unigram *unigram, nib_text_unigram_work *work, nib_str word, size_t first,
                           nib_token_list *out) {
    if (!nib_grow(&work->best, &work->capacity, word.len + 1, sizeof *work->best)) return false;
    const struct nib_text_unigram_best *best = work->best;
    find_best(unigram, word, work->best);
    size_t start = out->n, n = start;
    for (size_t at = word.len; at > 0; at = best[at].from) /* the path is known backwards */
        if (!nib_text_list_add(out, best[at].id)) return false;
    for (size_t i = start, j = out->n; i + 1 < j; i++) {
        nib_token id = out->ids[--j];
        out->ids[j] = out->ids[i];
        out->ids[i] = id;
    }
    for (size_t i = start; i < out->n; i++) {
        nib_token id = out->ids[i];
        bool is_repeated = id == unigram->unknown && n > first && out->ids[n - 1] == id;
        if (!is_repeated && id != NIB_TOKEN_NONE) out->ids[n++] = id;
    }
    out->n = n;
    return true;
}
