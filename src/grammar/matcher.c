/* grammar/matcher.c - one sequence that follows a grammar: the configuration now, and those of the last steps. */
#include "base/mem.h"
#include "base/status.h"
#include "grammar/explain.h"
#include "grammar/mask.h"

#include <string.h>

enum { HISTORY = NIB_MATCHER_HISTORY, RING = HISTORY + 2, MAX_FORCED = 4096 };

struct nib_matcher {
    nib_grammar *g;
    nib_grammar_run *run;
    uint32_t at[RING];    /* a ring; DEAD: a token ended the text */
    uint32_t now, n_past; /* index of the current one; how many before it are known */
    nib_buf text;         /* of forced and expected */
};

static uint32_t current(const nib_matcher *m) {
    return m->at[m->now];
}

static void advance(nib_matcher *m, uint32_t config) {
    m->now = (m->now + 1) % RING;
    m->at[m->now] = config;
    if (m->n_past < HISTORY) m->n_past++;
}

void nib_grammar_run_release(nib_grammar_run *run) {
    if (!run || --run->n_users) return;
    nib_grammar_mask_store_free(run);
    nib_grammar_run_free(run);
}

/* Moves the matcher to the grammar's run, which is a new one when the old one has grown beyond the limit. Memory that
 * is out is no error here: the old run still serves. */
static void settle(nib_matcher *m) {
    nib_grammar *g = m->g;
    if (nib_grammar_run_bytes(g->run) + nib_grammar_mask_bytes(g->run) > g->max_run_bytes) {
        nib_grammar_run *fresh = nib_grammar_run_new(g);
        if (!fresh) return;
        nib_grammar_run_release(g->run);
        g->run = fresh;
    }
    if (m->run == g->run) return;
    uint32_t configs[RING], n = 0;
    for (uint32_t i = 0; i <= m->n_past; i++) configs[n++] = m->at[(m->now + RING - i) % RING];
    if (!nib_grammar_run_carry(g->run, m->run, configs, n)) return;
    for (uint32_t i = 0; i < n; i++) m->at[(m->now + RING - i) % RING] = configs[i];
    nib_grammar_run_release(m->run);
    m->run = g->run;
    m->run->n_users++;
}

static nib_status fail_run(const nib_matcher *m, nib_error *err) {
    if (m->run->status != NIB_E_LIMIT)
        return nib_fail_nomem(err, nib_grammar_run_bytes(m->run), "the states of a grammar");
    return nib_fail(err, NIB_E_LIMIT,
                    "the grammar is so ambiguous that more than %zu ways to read the text are open (max_items)",
                    m->g->max_items);
}

nib_status nib_matcher_new(nib_matcher **out, nib_grammar *g, nib_error *err) {
    nib_matcher *m = *out = nib_calloc(1, sizeof *m);
    if (!m) return nib_fail_nomem(err, sizeof *m, "a matcher");
    m->g = nib_grammar_share(g);
    pthread_mutex_lock(&g->lock);
    m->run = g->run;
    m->run->n_users++;
    m->at[0] = m->run->start;
    pthread_mutex_unlock(&g->lock);
    return NIB_OK;
}

nib_status nib_matcher_fork(nib_matcher **out, const nib_matcher *from, nib_error *err) {
    nib_matcher *m = *out = nib_alloc(1, sizeof *m);
    if (!m) return nib_fail_nomem(err, sizeof *m, "a matcher");
    *m = *from;
    m->text = (nib_buf){0};
    nib_grammar_share(m->g);
    pthread_mutex_lock(&m->g->lock);
    m->run->n_users++;
    pthread_mutex_unlock(&m->g->lock);
    return NIB_OK;
}

void nib_matcher_free(nib_matcher *m) {
    if (!m) return;
    pthread_mutex_lock(&m->g->lock);
    nib_grammar_run_release(m->run);
    pthread_mutex_unlock(&m->g->lock);
    nib_grammar_free(m->g);
    nib_buf_free(&m->text);
    nib_free(m);
}

void nib_matcher_reset(nib_matcher *m) {
    m->now = m->n_past = 0;
    m->at[0] = m->run->start;
}

nib_status nib_matcher_mask(nib_matcher *m, uint32_t *mask, uint32_t n_vocab, nib_error *err) {
    size_t n_words = ((size_t)n_vocab + 31) / 32;
    if (!m->g->vocab) return nib_fail(err, NIB_E_ARG, "the grammar was made without a vocabulary");
    if (current(m) == NIB_GRAMMAR_DEAD) {
        memset(mask, 0, n_words * sizeof *mask);
        return NIB_OK;
    }
    pthread_mutex_lock(&m->g->lock);
    settle(m);
    bool ok = nib_grammar_mask_write(m->run, current(m), mask, n_words);
    nib_status status = ok ? NIB_OK : fail_run(m, err);
    pthread_mutex_unlock(&m->g->lock);
    return status;
}

nib_status nib_matcher_accept(nib_matcher *m, nib_token id, nib_error *err) {
    const nib_grammar_vocab *v = m->g->vocab;
    if (!v) return nib_fail(err, NIB_E_ARG, "the grammar was made without a vocabulary");
    if (id < 0 || (uint32_t)id >= v->n_tokens)
        return nib_fail(err, NIB_E_ARG, "token %d, expected 0 to %u", id, v->n_tokens - 1);
    bool is_eog = !(v->all[(uint32_t)id / 32] >> (uint32_t)id % 32 & 1);
    nib_status status = NIB_OK;
    pthread_mutex_lock(&m->g->lock);
    settle(m);
    uint32_t next =
        current(m) == NIB_GRAMMAR_DEAD || is_eog ? NIB_GRAMMAR_DEAD : nib_grammar_mask_accept(m->run, current(m), id);
    bool ends = is_eog && current(m) != NIB_GRAMMAR_DEAD && m->run->configs[current(m)].may_end;
    if (next == NIB_GRAMMAR_UNKNOWN)
        status = fail_run(m, err);
    else if (next == NIB_GRAMMAR_DEAD && !ends)
        status = nib_fail(err, NIB_E_ARG, "the grammar does not allow token %d here", id);
    else
        advance(m, next);
    pthread_mutex_unlock(&m->g->lock);
    return status;
}

nib_status nib_matcher_feed(nib_matcher *m, nib_str bytes, size_t *n_taken, nib_error *err) {
    nib_status status = NIB_OK;
    pthread_mutex_lock(&m->g->lock);
    settle(m);
    uint32_t n_past = m->n_past, at = current(m);
    size_t i = 0;
    m->now = (m->now + 1) % RING; /* the place of the new step, which settle takes along */
    m->at[m->now] = at;
    m->n_past++;
    for (; i < bytes.len && at > NIB_GRAMMAR_DEAD; i++) {
        at = nib_grammar_run_step(m->run, at, (uint8_t)bytes.ptr[i]);
        if (at <= NIB_GRAMMAR_DEAD) break;
        m->at[m->now] = at;
        if (nib_grammar_run_bytes(m->run) > m->g->max_run_bytes) settle(m);
        at = m->at[m->now];
    }
    if (n_taken) *n_taken = i;
    if (at == NIB_GRAMMAR_UNKNOWN)
        status = fail_run(m, err);
    else if (i < bytes.len)
        status = nib_fail_at(err, NIB_E_ARG, i, "the grammar does not allow byte %zu", i);
    if (status != NIB_OK) {
        m->now = (m->now + RING - 1) % RING;
        m->n_past = n_past;
    } else if (m->n_past > HISTORY) {
        m->n_past = HISTORY;
    }
    pthread_mutex_unlock(&m->g->lock);
    return status;
}

/* The only byte that may follow; -1: there are several, or other ways on. */
static int only_byte(const nib_matcher *m, uint32_t config) {
    const nib_grammar_run *r = m->run;
    const nib_grammar *g = m->g;
    const nib_grammar_place *c = &r->configs[config];
    int class = -1, byte = -1;
    if (c->may_end || c->has_tokens) return -1;
    for (uint32_t i = 0; i < c->n_items; i++) {
        const nib_grammar_state *s = &g->states[r->items[c->items + i].state];
        for (uint32_t e = s->edges; e < s->edges + s->n_edges && g->edges[e].kind == NIB_GRAMMAR_BYTES; e++) {
            if (g->edges[e].lo != g->edges[e].hi || (class >= 0 && class != g->edges[e].lo)) return -1;
            class = g->edges[e].lo;
        }
    }
    for (int b = 0; b < 256 && class >= 0; b++) {
        if (g->class_of[b] != class) continue;
        if (byte >= 0) return -1;
        byte = b;
    }
    return byte;
}

nib_str nib_matcher_forced(nib_matcher *m) {
    m->text.len = 0;
    pthread_mutex_lock(&m->g->lock);
    settle(m);
    uint32_t at = current(m);
    while (at > NIB_GRAMMAR_DEAD && m->text.len < MAX_FORCED) {
        int byte = only_byte(m, at);
        if (byte < 0 || !nib_buf_char(&m->text, (char)byte)) break;
        at = nib_grammar_run_step(m->run, at, (uint8_t)byte);
    }
    pthread_mutex_unlock(&m->g->lock);
    return (nib_str){m->text.ptr ? m->text.ptr : "", m->text.failed ? 0 : m->text.len};
}

nib_str nib_matcher_expected(nib_matcher *m) {
    m->text.len = 0;
    pthread_mutex_lock(&m->g->lock);
    nib_grammar_explain_config(m->run, current(m), &m->text);
    pthread_mutex_unlock(&m->g->lock);
    return (nib_str){m->text.ptr ? m->text.ptr : "", m->text.failed ? 0 : m->text.len};
}

/* Configurations move when another thread makes the run grow. */
static nib_grammar_place look(const nib_matcher *m) {
    nib_grammar_place c = {.may_end = true};
    if (current(m) == NIB_GRAMMAR_DEAD) return c;
    pthread_mutex_lock(&m->g->lock);
    c = m->run->configs[current(m)];
    pthread_mutex_unlock(&m->g->lock);
    return c;
}

bool nib_matcher_may_end(const nib_matcher *m) {
    return look(m).may_end;
}

bool nib_matcher_must_end(const nib_matcher *m) {
    return look(m).n_items == 0;
}

nib_status nib_matcher_rollback(nib_matcher *m, uint32_t n, nib_error *err) {
    if (n > m->n_past) return nib_fail(err, NIB_E_ARG, "%u steps to take back, and %u are kept", n, m->n_past);
    m->n_past -= n;
    m->now = (m->now + RING - n) % RING;
    return NIB_OK;
}
