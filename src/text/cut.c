/* text/cut.c - cuts text before spaces, unless some token holds a space behind the same byte (Gemma has one). */
#include "text/cut.h"

#include "text/utf8.h"

#include <string.h>

#define SPACE_LEN (sizeof NIB_TEXT_SPACE - 1)

static bool is_space_at(nib_str s, size_t at) {
    return s.len - at >= SPACE_LEN && memcmp(s.ptr + at, NIB_TEXT_SPACE, SPACE_LEN) == 0;
}

void nib_text_cut_init(nib_text_cut *cut, const nib_text_vocab *vocab) {
    *cut = (nib_text_cut){0};
    nib_str all = {vocab->text, vocab->at[vocab->n]};
    uint32_t id = 0;
    for (size_t at = 0; at < all.len; at++) { /* all texts in one go; id is the token that `at` is in */
        const char *found = memchr(all.ptr + at, NIB_TEXT_SPACE[0], all.len - at);
        if (!found) break;
        at = (size_t)(found - all.ptr);
        while (vocab->at[id + 1] <= at) id++;
        if (at > vocab->at[id] && is_space_at(all, at)) cut->joins[(unsigned char)all.ptr[at - 1]] = true;
    }
}

bool nib_text_cut_next(const nib_text_cut *cut, nib_str *left, nib_str *part) {
    if (!left->len) return false;
    size_t end = 0;
    do end += nib_text_utf8_len(left->ptr[end]); /* from character to character, as the encoders go */
    while (end < left->len && (cut->joins[(unsigned char)left->ptr[end - 1]] || !is_space_at(*left, end)));
    if (end > left->len) end = left->len;
    *part = (nib_str){left->ptr, end};
    *left = (nib_str){left->ptr + end, left->len - end};
    return true;
}
