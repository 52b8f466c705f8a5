/* grammar/grammar.h - a compiled grammar: one automaton over bytes and tokens for GBNF, JSON Schema, regular
 * expressions and lists of choices.
 *
 * Design. A front end (gbnf.c, regex.c, schema.c) draws rules as small nondeterministic automata (build.h). finish.c
 * turns them into the arrays below: no empty edges, common prefixes and suffixes merged, every state able to reach an
 * end.
 *
 * A rule may call rules, which makes it a pushdown automaton, and may count: edges that read nothing but change its
 * frame INC    one more turn of a repetition, refused beyond max; the rule may end from min turns on. So {2,5000} and
 * maxLength cost one state, not thousands; MARK   key k of an object is written now: refused when it was already, when
 * a required key would be left out (where keys have an order), or when no room is left for required ones. So any order
 * of keys costs one state per key. All refusals happen before the bytes they concern: there are no dead ends.
 *
 * A configuration (run.h) is the set of all (state, frame) that the text so far allows. A frame is one call in
 * progress: its rule, count, marks and the set of (return state, frame) that it goes back to. All calls of a rule at
 * one byte share a frame, as in a graph-structured stack, so that ambiguity costs polynomial time; frames, sets of
 * links and configurations are interned, so that equal ones are one number. A call whose return state can do nothing
 * but end is replaced by the links of its caller, so right recursion needs no depth. Left recursion is refused by name;
 * what may be empty is skipped at the call, so a callee always reads at least one byte and loops end.
 *
 * Configurations are the states of a deterministic automaton that is computed as texts come by: a byte costs one
 * look-up in a table, per class of bytes that no edge tells apart. Token masks (mask.h) hang on configurations. A
 * matcher is a number; going back or forking copies numbers.
 *
 * Bytes of UTF-8 are split into byte ranges (charset.h), so a token may end inside a character. */
#ifndef NIB_GRAMMAR_GRAMMAR_H
#define NIB_GRAMMAR_GRAMMAR_H

#include "base/buf.h"
#include "nib.h"

#include <pthread.h>
#include <stdatomic.h>

#define NIB_GRAMMAR_NO UINT32_MAX /* no rule, state, limit … */

typedef enum nib_grammar_edge_kind {
    NIB_GRAMMAR_EMPTY, /* while drawing only */
    NIB_GRAMMAR_BYTES, /* lo … hi */
    NIB_GRAMMAR_TOKEN, /* arg: id of a token; lo != 0: any other token */
    NIB_GRAMMAR_CALL,  /* arg: rule; to: where to go on. While drawing, lo != 0: not to be skipped when it may be empty
                        */
    NIB_GRAMMAR_INC,
    NIB_GRAMMAR_MARK,  /* arg: key; NIB_GRAMMAR_NO: a key without a number */
    NIB_GRAMMAR_CHECK, /* only where the turns and keys so far are enough to end */
} nib_grammar_edge_kind;

typedef struct nib_grammar_edge {
    uint32_t to, arg;
    uint8_t kind, lo, hi;
} nib_grammar_edge;

typedef struct nib_grammar_rule {
    uint32_t name, name_len; /* in names */
    uint32_t start;          /* state */
    uint32_t min, max;       /* turns; max NIB_GRAMMAR_NO: no end */
    uint32_t n_keys;         /* marks; 0: none */
    uint32_t required;       /* of marks: n_keys bits in words, here the index of the first word */
    bool in_order;           /* keys come in order of their numbers, those without a number last */
    uint32_t rank;           /* greater than that of every rule that may call it as its first act */
} nib_grammar_rule;

enum { /* what a state can do */
    NIB_GRAMMAR_ENDS = 1, /* its rule may end here */
    NIB_GRAMMAR_HAS_BYTES = 2,
    NIB_GRAMMAR_HAS_TOKENS = 4,
    NIB_GRAMMAR_HAS_MOVES = 8, /* CALL, INC, MARK, CHECK */
};

typedef struct nib_grammar_state {
    uint32_t edges, n_edges;
    uint8_t flags;
    /* Groups of characters (plain.h): */
    uint8_t reads;         /* those of which some edge takes a first byte, */
    uint8_t loops;         /* those of which any text may follow without end, */
    uint8_t loops_counted; /* and those of which every character leads back by way of INC */
    /* So many characters may follow, whatever they are: of all groups but SPACE; of all. */
    uint8_t free_chars[2];
} nib_grammar_state;

struct nib_grammar_run;

struct nib_grammar {
    atomic_uint n_users; /* whoever made it, who shares it, and matchers */
    nib_grammar_rule *rules;
    size_t n_rules;
    uint32_t root;
    nib_grammar_state *states;
    size_t n_states;
    nib_grammar_edge *edges; /* of a state: BYTES first */
    size_t n_edges;
    uint64_t *words; /* bit sets of required keys */
    size_t n_words;
    nib_buf names;
    nib_buf text;          /* the rules, to show; empty unless asked for */
    uint8_t class_of[256]; /* classes of bytes are numbered from 0 in order of bytes */
    uint32_t n_classes;
    uint8_t leads[256]; /* first bytes of plain characters (plain.h): one for each class, group and length */
    uint32_t n_leads;
    const nib_grammar_vocab *vocab; /* NULL: bytes only */
    size_t max_run_bytes, max_items;
    pthread_mutex_t lock; /* guards run, and every run of this grammar */
    struct nib_grammar_run *run;
};

void nib_grammar_destroy(nib_grammar *g); /* what finish.c made; accepts half-built ones */

#endif
