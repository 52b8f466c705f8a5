/* text/spm.c - SentencePiece's byte-pair kind.
 *
 * In principle the whole text is one row of characters to merge; text/cut takes it apart where that changes nothing. */
#include "text/spm.h"

#include "base/half.h"
#include "base/mem.h"
#include "text/list.h"
#include "text/special.h"
#include "text/utf8.h"

#include <stdio.h>
#include <string.h>

void nib_text_spm_init(nib_text_spm *spm, const nib_text_vocab *vocab, nib_token unknown) {
    *spm = (nib_text_spm){.vocab = vocab};
    for (unsigned c = 0; c < 256; c++) {
        char text[8], byte = (char)c;
        int len = snprintf(text, sizeof text, "<0x%02X>", c);
        nib_token id = nib_text_vocab_find(vocab, text, (size_t)len);
        if (id == NIB_TOKEN_NONE) id = nib_text_vocab_find(vocab, &byte, 1);
        spm->byte[c] = id == NIB_TOKEN_NONE ? unknown : id;
    }
}

void nib_text_spm_work_free(nib_text_spm_work *work) {
    nib_text_merge_free(&work->merge);
}

/* Numbers that fall as scores rise, so that the lowest is merged first. Scores are finite. */
static uint32_t rank_of_score(float score) {
    uint32_t bits = nib_f32_bits(score + 0.0f); /* -0 is 0 */
    return bits & 0x80000000u ? bits : ~(bits | 0x80000000u);
}

static uint32_t rank_of_pair(const nib_text_merge *merge, uint32_t left, uint32_t *joined) {
    const nib_text_spm_work *work = merge->user;
    const nib_text_symbol *s = &merge->symbols[left];
    uint32_t len = nib_text_merge_end_of(merge, &merge->symbols[s->next]) - s->at;
    nib_token id = nib_text_vocab_find(work->spm->vocab, work->word.ptr + s->at, len);
    bool is_plain = id != NIB_TOKEN_NONE && !(work->spm->vocab->attr[id] & NIB_TEXT_GUARD_ALL);
    if (!is_plain) return NIB_TEXT_NO_RANK; /* text never becomes a control token by merging */
    *joined = (uint32_t)id;
    return rank_of_score(work->spm->vocab->score[id]);
}

bool nib_text_spm_word(const nib_text_spm *spm, nib_text_spm_work *work, nib_str word, nib_token_list *out) {
    nib_text_merge *merge = &work->merge;
    work->spm = spm;
    work->word = word;
    if (!nib_text_merge_begin(merge, word.len)) return false;
    for (uint32_t at = 0; at < word.len;) {
        size_t len = nib_text_utf8_len(word.ptr[at]);
        if (len > word.len - at) len = word.len - at;
        nib_text_merge_push(merge, (uint32_t)nib_text_vocab_find(spm->vocab, word.ptr + at, len), at);
        at += (uint32_t)len;
    }
    merge->end = (uint32_t)word.len;
    merge->rank_of = rank_of_pair;
    merge->user = work;
    if (!nib_text_merge_run(merge)) return false;
    for (uint32_t i = 0; i != NIB_TEXT_NO_SYMBOL; i = merge->symbols[i].next) {
        const nib_text_symbol *s = &merge->symbols[i];
        if (s->id != (uint32_t)NIB_TOKEN_NONE) {
            if (!nib_text_list_add(out, (nib_token)s->id)) return false;
            continue;
        }
        for (uint32_t at = s->at, end = nib_text_merge_end_of(merge, s); at < end; at++) {
            nib_token id = spm->byte[(unsigned char)word.ptr[at]];
            if (id != NIB_TOKEN_NONE && !nib_text_list_add(out, id)) return false;
        }
    }
    return true;
}
