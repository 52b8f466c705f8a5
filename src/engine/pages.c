/* engine/pages.c - which pages a request has: from the tree when it begins, of its own while it runs, back to the tree as
 * they become full; and who makes place when they run out.
 *
 * A running request pins the deepest page that it has from the tree. Pages that a turn will take are reserved while it is
 * chosen, so that the batch never lacks one. */
#include "decode/pages.h"
#include "engine/engine.h"

#include <string.h>

static nib_kv_table *table_of(const nib_engine *e, const nib_stream *s) {
    return nib_decode_pages_table(e->ctx, s->seq);
}

static uint32_t pages_of(uint32_t n) {
    return (n + NIB_KV_PAGE - 1) / NIB_KV_PAGE;
}

uint32_t nib_engine_pages_left(const nib_engine *e) {
    return e->pool->n_free + nib_kv_prefix_n_idle(&e->tree) - e->n_reserved;
}

static void move_pin(nib_engine *e, nib_stream *s, uint32_t page) {
    nib_kv_prefix_pin(&e->tree, page);
    nib_kv_prefix_unpin(&e->tree, s->pinned);
    s->pinned = page;
}

/* Pages that running requests will take for the ids that they have. */
static uint32_t pages_promised(const nib_engine *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        n += pages_of(e->running[i]->n_ids) - table_of(e, e->running[i])->n_pages + 1; /* and one to go on */
    return n;
}

static void insert_running(nib_engine *e, nib_stream *s) {
    uint32_t at = e->n_running++;
    for (; at > 0 && nib_sched_queue_is_senior(&s->item, &e->running[at - 1]->item); at--) e->running[at] = e->running[at - 1];
    e->running[at] = s;
}

/* Tokens of the prompt that need not be computed; what is taken again after a preemption was no gain. */
static void count_cached(nib_stream *s, uint32_t n_pages) {
    if (!s->usage.n_preempted) s->usage.n_cached += n_pages * NIB_KV_PAGE;
}

bool nib_engine_pages_start(nib_engine *e, nib_stream *s) {
    uint32_t n = 0; /* of the last id the logits are wanted: it is computed in any case */
    if (!e->config.no_prefix_cache) n = nib_kv_prefix_match(&e->tree, s->salt, s->ids, s->n_ids - 1, e->pages);
    s->pinned = n ? e->pages[n - 1] : NIB_KV_PREFIX_ROOT;
    uint64_t need = (uint64_t)pages_of(s->n_ids) - n + pages_promised(e);
    if (e->n_running && need > nib_engine_pages_left(e)) {
        nib_kv_prefix_unpin(&e->tree, s->pinned);
        return false;
    }
    s->seq = e->free_seqs[--e->n_free_seqs];
    s->n_shared = n;
    s->is_running = true;
    s->is_refused = false;
    nib_kv_table_adopt(table_of(e, s), e->pool, e->pages, n);
    insert_running(e, s);
    count_cached(s, n);
    return true;
}

void nib_engine_pages_extend(nib_engine *e, nib_stream *s) {
    nib_kv_table *table = table_of(e, s);
    while (!e->config.no_prefix_cache && table->length == s->n_shared * NIB_KV_PAGE && s->n_ids - table->length > NIB_KV_PAGE) {
        uint32_t page = nib_kv_prefix_find(&e->tree, s->pinned, s->salt, s->ids + table->length);
        if (page == NIB_KV_PREFIX_ROOT) return;
        if (nib_kv_prefix_is_idle(&e->tree, page) && !nib_engine_pages_left(e)) return; /* it was to be evicted for others */
        nib_kv_table_adopt(table, e->pool, &page, 1);
        move_pin(e, s, page);
        s->n_shared++;
        count_cached(s, 1);
    }
}

static void preempt(nib_engine *e, nib_stream *s) {
    nib_engine_pages_stop(e, s);
    nib_sched_queue_push(&e->queue, &s->item);
    s->usage.n_preempted++;
    e->figures.n_preempted++;
}

bool nib_engine_pages_reserve(nib_engine *e, nib_stream *s, uint32_t n) {
    uint32_t need = nib_kv_table_pages_for(table_of(e, s), n);
    while (need > nib_engine_pages_left(e)) {
        nib_stream *junior = e->running[e->n_running - 1];
        if (junior == s) return false;
        preempt(e, junior);
    }
    s->n_now = n;
    s->n_reserved = need;
    e->n_reserved += need;
    return true;
}

void nib_engine_pages_provide(nib_engine *e) {
    if (e->n_reserved > e->pool->n_free)
        e->figures.n_evicted += nib_kv_prefix_evict(&e->tree, e->n_reserved - e->pool->n_free);
    e->n_reserved = 0;
    for (uint32_t i = 0; i < e->n_running; i++) e->running[i]->n_reserved = 0;
}

void nib_engine_pages_publish(nib_engine *e, nib_stream *s) {
    nib_kv_table *table = table_of(e, s);
    while (!e->config.no_prefix_cache && !s->is_refused && table->length - s->n_shared * NIB_KV_PAGE >= NIB_KV_PAGE) {
        uint32_t i = s->n_shared, own = table->pages[i];
        uint32_t page = nib_kv_prefix_insert(&e->tree, s->pinned, s->salt, s->ids + i * NIB_KV_PAGE, own);
        s->is_refused = page == NIB_KV_PREFIX_ROOT;
        if (s->is_refused) return;
        if (page != own) nib_kv_table_replace(table, e->pool, i, page);
        move_pin(e, s, page);
        s->n_shared++;
    }
}

void nib_engine_pages_stop(nib_engine *e, nib_stream *s) {
    uint32_t at = 0;
    while (e->running[at] != s) at++;
    memmove(&e->running[at], &e->running[at + 1], (--e->n_running - at) * sizeof *e->running);
    e->n_reserved -= s->n_reserved;
    s->n_now = s->n_reserved = 0;
    s->is_running = false;
    nib_seq_free(e->ctx, s->seq);
    nib_kv_prefix_unpin(&e->tree, s->pinned);
    e->free_seqs[e->n_free_seqs++] = s->seq;
}
