/* chat/output/match.h - one rule of a format against the bytes that come: what it captures, and whether it holds.
 *
 * The result depends on the bytes only, not on how many are there at a time: MORE means that they do not decide yet.
 * Offsets count from the beginning of the answer. */
#ifndef NIB_CHAT_OUTPUT_MATCH_H
#define NIB_CHAT_OUTPUT_MATCH_H

#include "chat/output/track.h"
#include "chat/pattern.h"

/* Bytes from offset `from` to `to`. */
typedef struct nib_chat_window {
    const char *ptr;
    size_t from, to;
} nib_chat_window;

static inline nib_str nib_chat_text_of(const nib_chat_window *w, nib_chat_range range) {
    if (range.from == range.to) return (nib_str){"", 0};
    return (nib_str){w->ptr + (range.from - w->from), range.to - range.from};
}

typedef struct nib_chat_param {
    nib_chat_range key, value;
    uint8_t kind; /* NIB_CHAT_IS_TEXT, NIB_CHAT_IS_JSON; 0: not said */
} nib_chat_param;

typedef enum nib_chat_match_result {
    NIB_CHAT_MATCH_MORE,
    NIB_CHAT_MATCH_CALL,  /* a call stands in the captures: nib_chat_match_accept or _refuse, then run again */
    NIB_CHAT_MATCH_ARGS,  /* with `streams`: arguments begin at arguments.from; run again, after nib_chat_match_commit or
                             _decline */
    NIB_CHAT_MATCH_ONE,   /* with `streams`: a JSON call is complete (track.call), perhaps one of a list; run again, after _commit
                             or _refuse */
    NIB_CHAT_MATCH_END,   /* the rule holds up to pos */
    NIB_CHAT_MATCH_FAIL,  /* it does not; what stands up to `furthest` cannot be another marker */
    NIB_CHAT_MATCH_LIMIT, /* the same, for its length */
    NIB_CHAT_MATCH_NOMEM,
} nib_chat_match_result;

/* What was read since the last call. */
typedef struct nib_chat_captures {
    nib_chat_range name, id, payload;
    uint8_t payload_kind; /* the element that read it; 0: the parameters */
    size_t n_params;
} nib_chat_captures;

typedef struct nib_chat_choice {
    const char *ip; /* of the element */
    size_t pos;
    nib_chat_captures got;
} nib_chat_choice;

enum { NIB_CHAT_MAX_CHOICES = 4 };

typedef struct nib_chat_match {
    const char *ip;       /* next element */
    size_t pos;           /* next byte */
    size_t start, opened; /* the opening, and what stands behind it */
    size_t accepted, furthest;
    size_t element_pos; /* where the element began */
    size_t scan;        /* no end of the value before this */
    nib_chat_json json;
    uint32_t depth; /* of brackets; the place in GEMMA and PYTHON */
    char quote;           /* of the string that the text is in; 0: none */
    bool is_escaped;      /* a backslash stood before */
    bool is_inside; /* of the element */
    uint8_t kind;   /* of the next parameter */
    uint8_t effect; /* NIB_CHAT_THINK, NIB_CHAT_TEXT; 0: none */
    nib_chat_choice choices[NIB_CHAT_MAX_CHOICES];
    uint32_t n_choices;
    size_t limit; /* most bytes of one call, its opening aside */
    bool streams;      /* arguments are told of before the call is complete */
    bool is_committed; /* since the last call that was accepted something was given away: there is no way back before … */
    size_t committed;  /* … this */
    bool ran_out;      /* since then the answer ended inside an element */
    nib_chat_track track;
    nib_chat_range arguments; /* of the last ARGS; to: 0 before their end */

    nib_chat_captures got;
    nib_chat_param *params;
    size_t params_capacity;
} nib_chat_match;

/* Begins with the element at ip and the byte at pos, the opening literal having begun at start. Keeps the memory of
 * the match before. */
void nib_chat_match_begin(nib_chat_match *m, const char *ip, size_t start, size_t pos);
/* is_end: no bytes come behind the window. */
nib_chat_match_result nib_chat_match_run(nib_chat_match *m, const nib_chat_window *w, bool is_end);
void nib_chat_match_accept(nib_chat_match *m);
void nib_chat_match_commit(nib_chat_match *m);
void nib_chat_match_decline(nib_chat_match *m); /* the arguments are not to be told of: the call comes as a whole */
void nib_chat_match_refuse(nib_chat_match *m);
void nib_chat_match_free(nib_chat_match *m);

#endif
