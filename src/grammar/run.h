/* grammar/run.h - the deterministic automaton of a grammar, computed as texts come by: frames, configurations, steps.
 *
 * It grows up to a limit; then a new one is begun, and matchers carry over what they hold (nib_grammar_run_carry).
 * Everything here runs under the lock of the grammar. */
#ifndef NIB_GRAMMAR_RUN_H
#define NIB_GRAMMAR_RUN_H

#include "grammar/plain.h"

enum { NIB_GRAMMAR_UNKNOWN = 0, NIB_GRAMMAR_DEAD = 1 }; /* configurations; those of texts begin at 2 */

typedef struct nib_grammar_link {
    uint32_t ret, frame; /* ret NIB_GRAMMAR_NO: the end of the text */
} nib_grammar_link;

typedef struct nib_grammar_frame {
    uint32_t rule, count;
    uint32_t marks; /* index of a set of keys in marks; NIB_GRAMMAR_NO: none yet */
    uint32_t links, n_links;
    uint32_t next; /* of the same hash */
    uint32_t far;  /* the frame that stands for it in masks; NIB_GRAMMAR_NO: not found yet */
} nib_grammar_frame;

typedef struct nib_grammar_item {
    uint32_t state, frame;
} nib_grammar_item;

typedef struct nib_grammar_place {
    uint32_t items, n_items;
    uint32_t next; /* of the same hash */
    uint32_t mask; /* mask.h; 0: not computed */
    uint32_t far;  /* the configuration whose mask it has; 0: not found yet */
    bool may_end, has_tokens;
    bool knows_loops;     /* whether these are known: */
    uint8_t loops, never; /* groups of characters that lead back to it; that do not come */
    uint32_t group_next[NIB_GRAMMAR_N_GROUPS]; /* reach.h */
} nib_grammar_place;

typedef struct nib_grammar_call_at { /* a call at the current byte */
    uint32_t rule, rank;
    nib_grammar_link link;
} nib_grammar_call_at;

struct nib_grammar_mask_store;

typedef struct nib_grammar_run {
    const nib_grammar *g;
    uint32_t n_users; /* the grammar and matchers */
    nib_grammar_frame *frames;
    nib_grammar_link *links;
    nib_grammar_place *configs;
    nib_grammar_item *items;
    uint32_t *steps; /* n_classes for each configuration: the next one */
    uint64_t *marks; /* sets of keys: the number of words, then the words */
    size_t n_frames, n_links, n_configs, n_items, n_steps, n_marks;
    size_t frames_capacity, links_capacity, configs_capacity, items_capacity, steps_capacity, marks_capacity;
    uint32_t *frame_table, *config_table; /* heads of chains */
    size_t n_frame_table, n_config_table;
    uint32_t start; /* configuration of the empty text */
    /* of one step */
    nib_grammar_item *work;  /* seen so far */
    nib_grammar_item *found; /* those that read */
    nib_grammar_call_at *calls;
    nib_grammar_link *gathered;
    uint32_t *seen, *seen_stamp; /* hash set of work */
    size_t work_capacity, found_capacity, calls_capacity, gathered_capacity, n_seen, n_work, n_found, n_calls,
        n_gathered;
    uint32_t stamp;
    bool may_end;
    nib_status status; /* why the last step gave UNKNOWN */
    struct nib_grammar_mask_store *masks;
} nib_grammar_run;

nib_grammar_run *nib_grammar_run_new(const nib_grammar *g); /* NULL: memory was out */
void nib_grammar_run_free(nib_grammar_run *r);
void nib_grammar_run_release(nib_grammar_run *r); /* one user less; the last one frees it, masks included */
size_t nib_grammar_run_bytes(const nib_grammar_run *r);

/* The configuration after a byte / a token as such; UNKNOWN when memory or a limit is out (r->status). */
uint32_t nib_grammar_run_step(nib_grammar_run *r, uint32_t config, uint8_t byte);
uint32_t nib_grammar_run_token(nib_grammar_run *r, uint32_t config, nib_token id);
/* The configuration of all items of both. */
uint32_t nib_grammar_run_union(nib_grammar_run *r, uint32_t a, uint32_t b);
/* That of an item of a counted repetition, with all turns but the present one used up. */
uint32_t nib_grammar_run_last_turn(nib_grammar_run *r, nib_grammar_item item);
/* Replaces n configurations by the same ones in another run of the grammar. */
bool nib_grammar_run_carry(nib_grammar_run *to, const nib_grammar_run *from, uint32_t *configs, size_t n);
/* A configuration with the same mask for tokens of at most len bytes, and the same for all counts that so few bytes
 * cannot bring to a bound. */
uint32_t nib_grammar_run_far(nib_grammar_run *r, uint32_t config, uint32_t len);

#endif
