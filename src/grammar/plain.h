/* grammar/plain.h - plain characters: those that nearly all text consists of.
 *
 * All but quote, backslash and control characters other than tabs and line ends. States that come back to themselves
 * with any character of some group need not look at tokens of such characters one by one: they are all in the mask. */
#ifndef NIB_GRAMMAR_PLAIN_H
#define NIB_GRAMMAR_PLAIN_H

#include "grammar/grammar.h"

static inline bool nib_grammar_is_plain(uint8_t c) {
    return c >= 0x20 ? c != '"' && c != '\\' && c != 0x7F : c == '\t' || c == '\n' || c == '\r';
}

/* Groups of characters, which grammars mostly treat alike. Bytes of WIDE begin a character of several. */
enum {
    NIB_GRAMMAR_LOWER,
    NIB_GRAMMAR_UPPER,
    NIB_GRAMMAR_DIGITS,
    NIB_GRAMMAR_SIGNS,
    NIB_GRAMMAR_BLANK,
    NIB_GRAMMAR_SPACE, /* tabs and line ends */
    NIB_GRAMMAR_WIDE,
    NIB_GRAMMAR_N_GROUPS,
    NIB_GRAMMAR_OTHER = NIB_GRAMMAR_N_GROUPS, /* not plain, or no UTF-8 */
    NIB_GRAMMAR_N_SETS = 1 << NIB_GRAMMAR_N_GROUPS,
    NIB_GRAMMAR_ALL_GROUPS = NIB_GRAMMAR_N_SETS - 1,
};
static inline unsigned nib_grammar_group(uint8_t c) {
    if (!nib_grammar_is_plain(c)) return NIB_GRAMMAR_OTHER;
    if (c >= 'a' && c <= 'z') return NIB_GRAMMAR_LOWER;
    if (c >= 'A' && c <= 'Z') return NIB_GRAMMAR_UPPER;
    if (c >= '0' && c <= '9') return NIB_GRAMMAR_DIGITS;
    if (c >= 0x80) return NIB_GRAMMAR_WIDE;
    if (c < 0x20) return NIB_GRAMMAR_SPACE;
    return c == ' ' ? NIB_GRAMMAR_BLANK : NIB_GRAMMAR_SIGNS;
}

/* U+2028 and U+2029, which "any character" of a regular expression leaves out, count as OTHER. */
static inline bool nib_grammar_is_line_end(uint32_t code) {
    return code == 0x2028 || code == 0x2029;
}

/* What a first byte of UTF-8 wants: so many more, the first of them from lo to hi, the others from 80 to BF. */
typedef struct nib_grammar_lead {
    uint8_t n, lo, hi;
} nib_grammar_lead;
static inline bool nib_grammar_is_lead(uint8_t c) {
    return c < 0x80 || (c >= 0xC2 && c <= 0xF4);
}
static inline nib_grammar_lead nib_grammar_lead_of(uint8_t c) {
    return (nib_grammar_lead){c < 0xC0   ? 0
                              : c < 0xE0 ? 1
                              : c < 0xF0 ? 2
                                         : 3,
                              c == 0xE0   ? 0xA0
                              : c == 0xF0 ? 0x90
                                          : 0x80,
                              c == 0xED   ? 0x9F
                              : c == 0xF4 ? 0x8F
                                          : 0xBF};
}

/* Sets reads, loops, loops_counted and free_chars of all states. */
void nib_grammar_find_loops(nib_grammar *g);

#endif
