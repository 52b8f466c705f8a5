/* engine/draft.c - guesses: what an answer repeats of its own text is computed together with its next token, when that pays.
 *
 * The last tokens of a choice are looked for in what came before; what followed there stands behind its ids as a guess. A batch
 * gives a row of logits for the next token and for each guess. accept.c draws from these rows one by one, as it would without
 * guesses, and goes on to the next row while what was drawn is what was guessed: ids and bits are the same with and without.
 *
 * Whether guesses pay is told by t(n) and by how often those of this choice were right. Where they do not pay they are made
 * all the same, of one token and without computing anything, so that a change is noticed. */
#include "engine/engine.h"

enum {
    LEAST_MATCH = 2,
    LONG_MATCH = 4,  /* guesses behind so many equal tokens have a rate of their own */
    MOST_MATCH = 16, /* no longer ones are told apart */
};

#define LEARNING 0.1   /* weight of a guess in the rate of right ones */
#define LEAST_GAIN 1.03 /* tokens a second against those without: what is foretold is not exact */

/* Tokens before `at` that equal the last ones. */
static uint32_t match_at(const nib_token *ids, uint32_t n_ids, uint32_t at) {
    uint32_t n = 0;
    while (n < MOST_MATCH && n < at && ids[at - 1 - n] == ids[n_ids - 1 - n]) n++;
    return n;
}

/* Where the text goes on as it may go on now: behind the longest match, of equal ones the last. 0: nowhere. */
static uint32_t find_match(const nib_token *ids, uint32_t n_ids, uint32_t *length) {
    uint32_t best = 0;
    *length = LEAST_MATCH - 1;
    if (n_ids <= LEAST_MATCH) return 0;
    for (uint32_t at = n_ids - 1; at >= LEAST_MATCH && *length < MOST_MATCH; at--) {
        if (ids[at - 1] != ids[n_ids - 1] || ids[at - 2] != ids[n_ids - 2]) continue;
        uint32_t n = match_at(ids, n_ids, at);
        if (n > *length) *length = n, best = at;
    }
    return best;
}

/* As many of n guesses as the grammar allows. */
static uint32_t allowed(nib_engine_choice *c, uint32_t n) {
    uint32_t n_taken = 0;
    if (!c->matcher) return n;
    while (n_taken < n && nib_matcher_accept(c->matcher, c->ids[c->n_ids + n_taken], NULL) == NIB_OK) n_taken++;
    return nib_matcher_rollback(c->matcher, n_taken, NULL) == NIB_OK ? n_taken : 0;
}

/* Writes up to `most` guesses behind the ids of a choice; how many. */
static uint32_t guess(nib_engine_choice *c, uint32_t most) {
    uint32_t length, at = find_match(c->ids, c->n_ids, &length), room = c->stream->n_max - c->n_ids - 1;
    if (!at) return 0;
    if (most > room) most = room;
    for (uint32_t i = 0; i < most; i++) c->ids[c->n_ids + i] = c->ids[at + i]; /* may repeat what it has just guessed */
    c->guess_kind = length >= LONG_MATCH;
    return allowed(c, most);
}

/* How many of n guesses raise the tokens a second most; 0: none does. *tokens, *work: what the turn has, and will have. */
static uint32_t worth(const nib_engine *e, const nib_engine_choice *c, uint32_t n, double *tokens, double *work) {
    double rate = c->guess_rate[c->guess_kind], right = 1, expected = *tokens, most_work = *work;
    double best = LEAST_GAIN * *tokens / nib_sched_cost_ms(&e->cost, *work);
    uint32_t length = nib_seq_length(e->ctx, c->seq), n_best = 0;
    for (uint32_t i = 1; i <= n; i++) {
        most_work += nib_sched_cost_work(&e->cost, length + i, 1, 1);
        expected += right *= rate;
        double ms = nib_sched_cost_ms(&e->cost, most_work);
        if (!(expected / ms > best) || ms > e->config.turn_ms) continue;
        best = expected / ms;
        n_best = i;
        *tokens = expected;
        *work = most_work;
    }
    return n_best;
}

void nib_engine_draft_choose(nib_engine *e, uint32_t n_tok, double work) {
    uint32_t room = e->config.context.n_ubatch - n_tok, left = e->n_rows_left < room ? e->n_rows_left : room;
    double tokens = e->n_running;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_engine_choice *c = e->running[i];
        if (c->n_now != 1 || c->n_ahead || c->n_forced || !c->stream->has_begun) continue; /* one left: of a prompt, too */
        uint32_t n = guess(c, left < e->config.max_draft ? left : e->config.max_draft);
        c->guess = n ? c->ids[c->n_ids] : NIB_TOKEN_NONE;
        n = worth(e, c, n, &tokens, &work);
        if (n && nib_engine_pages_more(e, c, n)) left -= n;
    }
}

static void learn(nib_engine_choice *c, bool is_right) {
    double *rate = &c->guess_rate[c->guess_kind];
    *rate += LEARNING * (is_right - *rate);
}

void nib_engine_draft_learn(nib_engine *e, nib_engine_choice *c, uint32_t n_guessed, uint32_t n_right) {
    if (!n_guessed && c->guess != NIB_TOKEN_NONE) learn(c, c->guess == c->ids[c->n_ids - 1 - c->n_ahead]);
    c->guess = NIB_TOKEN_NONE;
    for (uint32_t i = 0; i < n_guessed && i <= n_right; i++) learn(c, i < n_right);
    c->usage.n_drafted += n_guessed;
    c->usage.n_accepted += n_right;
    e->figures.n_drafted += n_guessed;
    e->figures.n_accepted += n_right;
}
