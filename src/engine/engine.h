/* engine/engine.h - many requests, one batch: what nib_engine and nib_stream are made of. Private to engine/.
 *
 * One thread, the engine's, owns all that changes: context, tree of pages, queue, requests. Callers reach it by three things
 * under one lock: the inbox of new requests, a flag to cancel on each stream, and the bytes of events that a stream has not
 * been read of. The thread sleeps when nothing is to be done.
 *
 * A request has one answer or several to the same prompt: choices. A choice is a list of ids, prompt and answer alike, of which
 * the first `length` have keys and values in a sequence of the context. Nothing else tells a prompt from an answer: who has one
 * id left to compute is decoding and runs in every turn, who has more is in prefill. A choice that must make place gives its
 * sequence back, goes to the queue and later computes what is no longer in the tree: preemption is nothing but length = 0.
 *
 * The first choice computes the prompt. From the row of logits behind it all choices take their first token; then the others
 * get copies of its sequence, or, where there is no room, go to the queue like any other.
 *
 * A turn (turn.c):
 *   inbox     new requests go to the queue, cancelled ones end
 *   admit     while there is a sequence and there are pages: the next of the queue takes its prefix from the tree (pages.c)
 *   choose    all decodes, then the prompts in the order of the queue, as many tokens as the time of a turn allows (sched/cost);
 *             for pages, the tree is asked first, then the most junior request goes; without prompts, guesses of what answers
 *             will say next (draft.c)
 *   run       nib_decode; if that fails each request runs alone, so that the one which is to blame is found
 *   publish   pages that became full go to the tree, of prompts and answers; where the tree has the same tokens already its
 *             page takes the place of the request's own, since the bits are equal
 *   accept    each row: sample -> log-probabilities -> id -> text -> stop -> event (accept.c)
 *
 * Requests for embeddings are prompts without an answer. Their rows are hidden states, so they run as a batch of their own in
 * the same turn. Where all of these are wanted they neither use the tree nor fill it.
 *
 * Prompts that begin alike are computed once: before each part of a prompt the tree is asked again, and a request whose next
 * page is just being computed by another one waits for the next turn. Of the page behind those that are shared, which another text
 * has in part only, or left before it was full, that part is copied.
 *
 * Order of seniority (priority, then arrival) decides who keeps pages, and an owner never waits for all answers of another; the
 * most senior one can have all of them, which a request must fit in to be taken, so it always gets on. The queue's order
 * (priority, then owners in turn) decides who begins. */
#ifndef NIB_ENGINE_ENGINE_H
#define NIB_ENGINE_ENGINE_H

#include "base/buf.h"
#include "decode/embed.h"
#include "kv/prefix.h"
#include "kv/store.h"
#include "sched/cost.h"
#include "sched/queue.h"

#include <pthread.h>
#include <stdatomic.h>

/* One answer to a request. The engine's thread's alone, but for what the reader finds at its end. */
typedef struct nib_engine_choice {
    nib_sched_item item; /* first: the queue gives it back */
    nib_stream *stream;
    uint32_t number;

    nib_token *ids; /* n_max of the stream */
    uint32_t n_ids;
    uint32_t n_now, n_reserved;          /* tokens and pages of this turn */
    uint32_t first_row, n_rows, row_pos; /* its rows of logits of this turn, and the position of the first */
    uint32_t n_ahead;                    /* ids that were not drawn from a row, behind the first that is not computed */
    uint32_t n_forced;                   /* ids behind n_ids that the grammar leaves no choice about: each waits for its row */
    bool is_passed;                      /* looked at in this turn */
    nib_token guess;                     /* of the next id, to learn from; NIB_TOKEN_NONE: none */
    double guess_rate[2];                /* share of right guesses, behind short matches and long ones */
    bool guess_kind;
    bool is_running;
    uint32_t seq, pinned, n_shared; /* of a running one: sequence, deepest page of the tree, pages that the tree has */
    bool is_refused;                /* the tree does not take its pages */
    nib_sampler *sampler;
    nib_matcher *matcher; /* NULL without a grammar */
    uint32_t *mask;       /* of tokens; NULL when there is never one */
    nib_detok *detok;
    nib_stop *stop;      /* NULL without stop strings */
    int stop_found;      /* its string that ended the text; -1: none */
    nib_buf rest;        /* text of the END */
    nib_usage usage;

    /* Under the lock. */
    nib_stream_event end;
    nib_error error; /* of the END */
    bool has_ended, end_is_given;
} nib_engine_choice;

struct nib_stream {
    nib_engine *engine;
    nib_stream *next; /* in the inbox */

    /* Of the request, unchanged after submit. */
    uint32_t n_prompt, n_max; /* n_max: ids that an answer and its prompt may have in the end */
    uint32_t n_top, min_tokens;
    bool logprobs, prompt_logprobs, hash_logits, special, ignore_eos, jump_ahead;
    nib_token *ends, *stop_ids; /* ids that end an answer, known only when they may be forbidden; those of the caller */
    uint32_t n_ends, n_stop_ids;
    uint32_t *allowed; /* a mask of ids; NULL: all */
    uint64_t salt;
    const nib_chat *chat;
    void (*ready)(void *user, bool is_awaited);
    void *user;
    double submitted, queue_until, until;

    /* The engine's thread. */
    nib_engine_choice *choices; /* until it has begun, the first one stands for all */
    uint32_t n_choices;
    bool has_begun;   /* the prompt is computed */
    uint32_t n_told;  /* tokens of the prompt that were told of, or never will be */
    nib_logprob *top; /* of one event */
    nib_token_list jumped; /* of one jump */
    double told;           /* when the reader was last told that there is something */
    bool holds;            /* it was not told of the last */
    nib_decode_embed embed; /* pooling NONE: answers are wanted */
    float *embedding;       /* n_embd; NULL for answers */

    /* Under the lock. */
    pthread_cond_t arrived;
    nib_buf unread; /* events, from `read` on */
    size_t read;
    uint32_t n_ended;
    bool is_abandoned; /* freed by its reader */
    atomic_bool is_cancelled;

    /* The reader's thread. */
    nib_buf event; /* what the last one points to */
};

struct nib_engine {
    nib_engine_config config;
    const nib_model *model;
    const nib_tokenizer *tok;
    uint32_t n_seq, max_context;

    /* The engine's thread, once it runs. */
    nib_context *ctx;
    nib_batch *batch;
    nib_kv_pool *pool;
    nib_kv_prefix tree;
    nib_kv_store *store; /* of pages on disk; NULL: none */
    double disk_s;       /* spent reading from it in this turn */
    nib_sched_queue queue;
    nib_sched_cost cost;
    nib_engine_choice **running, **with_rows; /* running: the most senior first; with_rows: those that have rows of logits */
    uint32_t n_running, n_with_rows;
    uint32_t *free_seqs, n_free_seqs;
    uint32_t *pages; /* of a match */
    uint32_t n_reserved; /* pages that this turn will take */
    uint32_t n_rows_left; /* of logits, beside one for each running choice */
    bool is_cut;         /* a prompt, for want of time */
    double overhead_ms;  /* of a turn, beside nib_decode */
    double surprise;     /* by how much of what was expected a turn took longer; fades */
    nib_engine_figures figures; /* of these, the reader's copy is shown */

    pthread_t thread;
    bool has_thread;
    atomic_bool is_killed; /* stops a running nib_decode */

    pthread_mutex_t lock; /* the only one */
    pthread_cond_t work, idle;
    nib_stream *inbox, **inbox_end;
    bool is_closing, is_quitting;
    uint32_t n_live;      /* choices that have not ended */
    uint64_t next_arrival, n_refused, queued_tokens;
    nib_engine_figures shown;
    nib_engine_view *views;
    atomic_bool is_viewed; /* views is not NULL: to be looked at without the lock */
};

/* Whether something is told of every token that a row of logits tells. */
static inline bool nib_engine_tells(const nib_stream *s) {
    return s->logprobs || s->hash_logits;
}

static inline bool nib_engine_embeds(const nib_engine_choice *c) {
    return c->stream->embed.pooling != NIB_POOLING_NONE;
}

/* measure.c. Before the engine's thread runs. */
nib_status nib_engine_measure(nib_engine *e, nib_error *err);

/* turn.c */
void nib_engine_turn(nib_engine *e);

/* pages.c. Pages that could be had now, beside those that this turn will take. */
uint32_t nib_engine_pages_left(const nib_engine *e);
/* Evicts until n pages are free, or nothing is idle. */
void nib_engine_pages_make_free(nib_engine *e, uint32_t n);
/* Is all that a running choice has computed shared pages, so that it can have the next one from the tree? */
bool nib_engine_pages_may_share(const nib_engine *e, const nib_engine_choice *c);
/* Tokens that need not be computed if the tree has them: not those whose logits are wanted. */
uint32_t nib_engine_pages_usable(const nib_engine_choice *c);
/* Gives a choice a sequence that begins with what the tree has. False: too few pages for it now. */
bool nib_engine_pages_start(nib_engine *e, nib_engine_choice *c);
/* Where other owners have all sequences, one of them several, and the owner of this one none, for which there are pages: a sequence
 * becomes free. */
bool nib_engine_pages_make_place(nib_engine *e, const nib_engine_choice *c);
/* Gives a choice a copy of the sequence of another. False: no sequence is free, or too few pages. */
bool nib_engine_pages_fork(nib_engine *e, const nib_engine_choice *from, nib_engine_choice *c);
/* Takes more pages from the tree where a prompt goes on with what others computed meanwhile, and from the disk. False: there is
 * more on disk, but no time left in this turn. */
bool nib_engine_pages_extend(nib_engine *e, nib_engine_choice *c);
/* A copy of what the tree has of the next page. Who waits for another one to compute that page (has_twin) must not ask. */
void nib_engine_pages_extend_part(nib_engine *e, nib_engine_choice *c);
/* Reserves the pages of n more tokens; the most junior ones make place. False: this one has to. */
bool nib_engine_pages_reserve(nib_engine *e, nib_engine_choice *c, uint32_t n);
/* Pages and turn of n guesses behind the next token. False: there are too few pages, and nobody makes place for guesses. */
bool nib_engine_pages_more(nib_engine *e, nib_engine_choice *c, uint32_t n);
/* Frees what was reserved. */
void nib_engine_pages_provide(nib_engine *e);
void nib_engine_pages_publish(nib_engine *e, nib_engine_choice *c);
/* Leaves the context; its pages stay in the tree. */
void nib_engine_pages_stop(nib_engine *e, nib_engine_choice *c);

/* disk.c. Without a store they do nothing. Opening: what is in the way is logged, and there is no store. */
void nib_engine_disk_open(nib_engine *e);
void nib_engine_disk_publish(nib_engine *e, const nib_engine_choice *c);
/* The next page of a choice that has full pages only comes into the tree; *page: ROOT when it does not. False: later. */
bool nib_engine_disk_fetch(nib_engine *e, const nib_engine_choice *c, uint32_t *page);
void nib_engine_disk_note(nib_engine *e);

/* draft.c. Adds guesses to a turn of n_tok tokens of answers and nothing else, where they pay. */
void nib_engine_draft_choose(nib_engine *e, uint32_t n_tok, double work);
/* What became of them; the id behind them is drawn, and others may be jumped over behind it. */
void nib_engine_draft_learn(nib_engine *e, nib_engine_choice *c, uint32_t n_guessed, uint32_t n_right);

/* accept.c. What the rows of logits of a turn mean for a choice. It may be freed by this. */
void nib_engine_accept(nib_engine *e, nib_engine_choice *c);
/* Ends an answer, running or waiting, and all of a request that has not begun; error: NULL unless finish is ERROR. The stream may
 * be freed by this. */
void nib_engine_end(nib_engine *e, nib_engine_choice *c, nib_finish finish, const nib_error *error);

/* view.c. What the turn will run, for those who look; what it took, with the lock, as those below; pictures that were asked for. */
void nib_engine_view_begin(nib_engine *e);
void nib_engine_view_end(nib_engine *e, double ms);
void nib_engine_view_serve(nib_engine *e);

/* stream.c. Puts an event where the reader finds it. False: too much is unread already. */
bool nib_stream_put(nib_stream *s, const nib_stream_event *event);
/* Tells its reader of what it was not told of yet; all readers, when one of them would otherwise hear of it too late, with the next chance
 * ms from now: one thread may read for all, and so wakes once. */
void nib_stream_tell(nib_stream *s);
void nib_stream_tell_due(nib_engine *e, double ms);
/* The last event of a choice, which always finds a place. The stream may be freed by it. */
void nib_stream_put_end(nib_engine_choice *c, const nib_stream_event *event);

/* request.c */
nib_status nib_stream_new(nib_stream **out, nib_engine *e, const nib_request *request, nib_error *err);
void nib_stream_delete(nib_stream *s);

#endif
