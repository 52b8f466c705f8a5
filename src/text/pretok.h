/* text/pretok.h - pre-tokenizers: text in, the words that byte-pair merging works on out. The words are the text, cut.
 *
 * Text is UTF-8 that text/normalize has gone over. Time is linear in its length for every pre-tokenizer. */
#ifndef NIB_TEXT_PRETOK_H
#define NIB_TEXT_PRETOK_H

#include "base/buf.h"
#include "nib.h"

#define NIB_TEXT_MAX_PASSES 8

/* Finds the first piece at or behind `from`: [*start, *end), not empty. `from` is 0 or the end of the last piece. */
typedef bool (*nib_text_find_fn)(nib_str text, size_t from, size_t *start, size_t *end);

/* One of the two; both NULL: end of the list. */
typedef struct nib_text_pass {
    const char *pattern;
    nib_text_find_fn find;
} nib_text_pass;

typedef struct nib_text_pre { /* a row of pretok.def */
    const char *name;
    const nib_text_pass *passes;
    unsigned flags; /* text/flags.h */
} nib_text_pre;

/* NULL when there is none of that name / past the last. */
const nib_text_pre *nib_text_pre_find(nib_str name);
const nib_text_pre *nib_text_pre_at(size_t i);
/* Appends the names that are first in their group, with spaces between: all that exists, few enough for a message. */
void nib_text_pre_list(nib_buf *out);

typedef struct nib_text_pretok { /* compiled; used by many threads at once */
    const nib_text_pre *row;
    size_t n_passes;
    void *code[NIB_TEXT_MAX_PASSES]; /* pcre2_code; NULL where find is used */
} nib_text_pretok;

/* On error there is nothing to free. */
nib_status nib_text_pretok_init(nib_text_pretok *pretok, const nib_text_pre *row, nib_error *err);
void nib_text_pretok_free(nib_text_pretok *pretok);

/* The walk of one thread. Zero-initialise, then begin for each text, next until it returns false, end once. */
typedef struct nib_text_pretok_walk {
    const nib_text_pretok *pretok;
    struct nib_text_pretok_level {
        nib_str piece; /* what this pass cuts */
        size_t at, start, end; /* done up to `at`; [start, end) is what was found last, perhaps behind a gap */
    } level[NIB_TEXT_MAX_PASSES];
    size_t depth;
    void *match_data, *match_context;
    nib_status status;
} nib_text_pretok_walk;

nib_status nib_text_pretok_begin(nib_text_pretok_walk *walk, const nib_text_pretok *pretok, nib_str text,
                                 nib_error *err);
/* False at the end, and when the matcher failed: then walk->status is not NIB_OK and err is filled. */
bool nib_text_pretok_next(nib_text_pretok_walk *walk, nib_str *word, nib_error *err);
void nib_text_pretok_end(nib_text_pretok_walk *walk);

/* The rules that are not patterns; text/pretok_digits.c. */
bool nib_text_find_thousands(nib_str text, size_t from, size_t *start, size_t *end);
bool nib_text_find_thousands_of_word(nib_str text, size_t from, size_t *start, size_t *end);
bool nib_text_find_before_thousands(nib_str text, size_t from, size_t *start, size_t *end);
bool nib_text_find_trailing_space(nib_str text, size_t from, size_t *start, size_t *end);

#endif
