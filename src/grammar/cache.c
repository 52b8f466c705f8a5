/* grammar/cache.c - nib_grammar_cache: the request of a grammar -> a shared one. The least recently used go first; who still
 * uses one keeps it. */
#include "grammar/cache.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"
#include "grammar/mask.h"

#include <string.h>

typedef struct entry {
    nib_buf key;
    uint64_t hash, used; /* used: a clock that counts requests */
    nib_grammar *grammar; /* NULL while it is being made */
    uint32_t n_waiting;
    bool is_done; /* made, or failed: then it is out of the list, and the last who waited frees it */
    nib_status status;
    nib_error err;
} entry;

struct nib_grammar_cache {
    uint32_t max_grammars;
    size_t max_bytes;
    pthread_mutex_t lock; /* of all below; never held while a grammar is made */
    pthread_cond_t done;
    entry **entries;
    size_t n, capacity;
    uint64_t clock;
    nib_grammar_cache_figures figures;
};

nib_status nib_grammar_cache_new(nib_grammar_cache **out, uint32_t max_grammars, size_t max_bytes, nib_error *err) {
    nib_grammar_cache *c = *out = nib_calloc(1, sizeof *c);
    if (!c) return nib_fail_nomem(err, sizeof *c, "a cache of grammars");
    c->max_grammars = max_grammars ? max_grammars : 1;
    c->max_bytes = max_bytes;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->done, NULL);
    return NIB_OK;
}

static void free_entry(entry *e) {
    nib_buf_free(&e->key);
    nib_grammar_free(e->grammar);
    nib_free(e);
}

void nib_grammar_cache_free(nib_grammar_cache *c) {
    if (!c) return;
    for (size_t i = 0; i < c->n; i++) free_entry(c->entries[i]);
    nib_free(c->entries);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    nib_free(c);
}

/* ---- with the lock */

static entry *find(const nib_grammar_cache *c, const nib_buf *key, uint64_t hash) {
    for (size_t i = 0; i < c->n; i++) {
        entry *e = c->entries[i];
        if (e->hash == hash && e->key.len == key->len && memcmp(e->key.ptr, key->ptr, key->len) == 0) return e;
    }
    return NULL;
}

static void unlink_entry(nib_grammar_cache *c, const entry *e) {
    for (size_t i = 0; i < c->n; i++)
        if (c->entries[i] == e) c->entries[i--] = c->entries[--c->n];
}

/* What is in use: room that was only reserved is not touched. */
static size_t run_bytes(const nib_grammar_run *r) {
    return r->n_frames * sizeof *r->frames + r->n_links * sizeof *r->links + r->n_configs * sizeof *r->configs +
           r->n_items * sizeof *r->items + r->n_steps * sizeof *r->steps + nib_grammar_mask_bytes(r);
}

static size_t bytes_of(const entry *e) {
    nib_grammar *g = e->grammar;
    size_t n = sizeof *e + e->key.capacity;
    if (!g) return n;
    n += g->n_states * sizeof *g->states + g->n_edges * sizeof *g->edges + g->n_rules * sizeof *g->rules + g->names.capacity;
    pthread_mutex_lock(&g->lock);
    n += run_bytes(g->run);
    pthread_mutex_unlock(&g->lock);
    return n;
}

/* The oldest go until the rest is within the bounds; the newest stays in any case. */
static void shrink(nib_grammar_cache *c) {
    for (;;) {
        entry *oldest = NULL;
        size_t bytes = 0, n_done = 0;
        for (size_t i = 0; i < c->n; i++) {
            entry *e = c->entries[i];
            bytes += bytes_of(e);
            if (!e->is_done || e->n_waiting) continue;
            n_done++;
            if (!oldest || e->used < oldest->used) oldest = e;
        }
        c->figures.n_grammars = (uint32_t)c->n;
        c->figures.n_bytes = bytes;
        if (n_done < 2 || (c->n <= c->max_grammars && bytes <= c->max_bytes)) return;
        unlink_entry(c, oldest);
        free_entry(oldest);
        c->figures.n_evicted++;
    }
}

/* What the entry has to say when it is done. */
static nib_status take(nib_grammar_cache *c, entry *e, nib_grammar **out, nib_error *err) {
    e->n_waiting++;
    while (!e->is_done) pthread_cond_wait(&c->done, &c->lock);
    e->n_waiting--;
    nib_status status = e->status;
    if (status == NIB_OK) *out = nib_grammar_share(e->grammar);
    else if (err) *err = e->err;
    if (status != NIB_OK && !e->n_waiting) free_entry(e);
    return status;
}

static entry *add(nib_grammar_cache *c, nib_buf *key, uint64_t hash) {
    entry *e = nib_calloc(1, sizeof *e);
    if (!e || !nib_grow(&c->entries, &c->capacity, c->n + 1, sizeof *c->entries)) {
        nib_free(e);
        return NULL;
    }
    e->key = *key;
    *key = (nib_buf){0};
    e->hash = hash;
    e->n_waiting = 1; /* its maker */
    c->entries[c->n++] = e;
    return e;
}

/* ---- */

/* Without the lock, for all who wait. */
static nib_status make_entry(nib_grammar_cache *c, entry *e, nib_grammar_make_fn make, const void *user, nib_grammar **out,
                             nib_error *err) {
    nib_grammar *g = NULL;
    nib_error local;
    nib_status status = make(&g, user, &local);
    pthread_mutex_lock(&c->lock);
    e->grammar = g;
    e->status = status;
    e->err = local;
    e->is_done = true;
    if (status != NIB_OK) unlink_entry(c, e);
    pthread_cond_broadcast(&c->done);
    e->n_waiting--;
    status = take(c, e, out, err);
    shrink(c);
    pthread_mutex_unlock(&c->lock);
    return status;
}

nib_status nib_grammar_cache_take(nib_grammar_cache *c, nib_buf *key, nib_grammar_make_fn make, const void *user,
                                  nib_grammar **out, nib_error *err) {
    *out = NULL;
    if (key->failed) {
        nib_buf_free(key);
        return nib_fail_nomem(err, 0, "a grammar");
    }
    uint64_t hash = nib_hash64(0, key->ptr, key->len);
    pthread_mutex_lock(&c->lock);
    entry *e = find(c, key, hash), *own = NULL;
    if (e) c->figures.n_hits++;
    else c->figures.n_misses++;
    if (!e) own = e = add(c, key, hash);
    if (e) e->used = ++c->clock;
    nib_status status = e && !own ? take(c, e, out, err) : NIB_OK;
    pthread_mutex_unlock(&c->lock);
    nib_buf_free(key);
    if (!e) return nib_fail_nomem(err, sizeof *e, "a cache of grammars");
    return own ? make_entry(c, own, make, user, out, err) : status;
}

void nib_grammar_cache_stats(nib_grammar_cache *c, nib_grammar_cache_figures *out) {
    pthread_mutex_lock(&c->lock);
    *out = c->figures;
    pthread_mutex_unlock(&c->lock);
}

/* ---- keys */

void nib_grammar_key_text(nib_buf *key, const char *text, size_t len) {
    uint64_t n = text ? len : UINT64_MAX;
    nib_buf_append(key, &n, sizeof n);
    if (text) nib_buf_append(key, text, len);
}

void nib_grammar_key_config(nib_buf *key, const nib_grammar_config *c, const nib_grammar_vocab *vocab) {
    uint64_t parts[] = {(uint64_t)(uintptr_t)vocab, (uint64_t)c->syntax, (uint64_t)c->space, c->key_order, c->keep_rules,
                        c->max_text_bytes, c->max_states, c->max_edges, c->max_depth, c->max_ms, c->max_items,
                        c->max_cache_bytes};
    nib_buf_append(key, parts, sizeof parts);
}

typedef struct request {
    const char *text;
    size_t len;
    const nib_grammar_vocab *vocab;
    const nib_grammar_config *config;
} request;

static nib_status make(nib_grammar **out, const void *user, nib_error *err) {
    const request *r = user;
    return nib_grammar_new(out, r->text, r->len, r->vocab, r->config, err);
}

nib_status nib_grammar_cache_get(nib_grammar_cache *c, nib_grammar **out, const char *text, size_t len,
                                 const nib_grammar_vocab *vocab, const nib_grammar_config *config, nib_error *err) {
    nib_grammar_config defaults = NIB_GRAMMAR_CONFIG_INIT;
    request r = {text ? text : "", len, vocab, config ? config : &defaults};
    nib_buf key = {0};
    nib_grammar_key_config(&key, r.config, vocab);
    nib_grammar_key_text(&key, r.text, len);
    return nib_grammar_cache_take(c, &key, make, &r, out, err);
}
