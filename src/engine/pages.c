/* engine/pages.c - which pages a choice has: from the tree or another choice when it begins, of its own while it runs, back to
 * the tree as they become full, the last one when it ends; and who makes place when they run out.
 *
 * A running choice pins the deepest page that it has from the tree. Pages that a turn will take are reserved while it is
 * chosen, so that the batch never lacks one. */
#include "decode/pages.h"
#include "engine/engine.h"

#include <string.h>

static nib_kv_table *table_of(const nib_engine *e, const nib_engine_choice *c) {
    return nib_decode_pages_table(e->ctx, c->seq);
}

static uint32_t pages_of(uint32_t n) {
    return (n + NIB_KV_PAGE - 1) / NIB_KV_PAGE;
}

uint32_t nib_engine_pages_left(const nib_engine *e) {
    return e->pool->n_free + nib_kv_prefix_n_idle(&e->tree) - e->n_reserved;
}

void nib_engine_pages_make_free(nib_engine *e, uint32_t n) {
    if (n > e->pool->n_free) e->figures.n_evicted += nib_kv_prefix_evict(&e->tree, n - e->pool->n_free);
}

bool nib_engine_pages_may_share(const nib_engine *e, const nib_engine_choice *c) {
    return !e->config.no_prefix_cache && nib_seq_length(e->ctx, c->seq) == c->n_shared * NIB_KV_PAGE;
}

static void move_pin(nib_engine *e, nib_engine_choice *c, uint32_t page) {
    nib_kv_prefix_pin(&e->tree, page);
    nib_kv_prefix_unpin(&e->tree, c->pinned);
    c->pinned = page;
}

/* Pages that running choices will take for the ids that they have. */
static uint32_t pages_promised(const nib_engine *e) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++)
        n += pages_of(e->running[i]->n_ids) - table_of(e, e->running[i])->n_pages + 1; /* and one to go on */
    return n;
}

static void insert_running(nib_engine *e, nib_engine_choice *c) {
    uint32_t at = e->n_running++;
    for (; at > 0 && nib_sched_queue_is_senior(&c->item, &e->running[at - 1]->item); at--) e->running[at] = e->running[at - 1];
    e->running[at] = c;
}

/* Tokens of the prompt that need not be computed; what is taken again, or by further choices, was no gain. */
static void count_cached(nib_engine_choice *c, uint32_t n_tok) {
    if (!c->usage.n_preempted && !c->stream->has_begun) c->usage.n_cached += n_tok;
}

uint32_t nib_engine_pages_usable(const nib_engine_choice *c) {
    const nib_stream *s = c->stream;
    if (nib_engine_embeds(c) && s->embed.pooling != NIB_POOLING_LAST) return 0;
    return (s->n_told < s->n_prompt ? s->n_told : c->n_ids) - 1;
}

bool nib_engine_pages_start(nib_engine *e, nib_engine_choice *c) {
    uint32_t n = 0;
    if (!e->config.no_prefix_cache) n = nib_kv_prefix_match(&e->tree, c->stream->salt, c->ids, nib_engine_pages_usable(c), e->pages);
    c->pinned = n ? e->pages[n - 1] : NIB_KV_PREFIX_ROOT;
    uint64_t need = (uint64_t)pages_of(c->n_ids) - n + pages_promised(e);
    if (e->n_running && need > nib_engine_pages_left(e)) {
        nib_kv_prefix_unpin(&e->tree, c->pinned);
        return false;
    }
    c->seq = e->free_seqs[--e->n_free_seqs];
    c->n_shared = n;
    c->is_running = true;
    c->is_refused = nib_engine_pages_usable(c) == 0 && nib_engine_embeds(c);
    if (nib_engine_embeds(c)) nib_decode_embed_reset(&c->stream->embed);
    nib_kv_table_adopt(table_of(e, c), e->pool, e->pages, n);
    insert_running(e, c);
    count_cached(c, n * NIB_KV_PAGE);
    return true;
}

bool nib_engine_pages_fork(nib_engine *e, const nib_engine_choice *from, nib_engine_choice *c) {
    if (!e->n_free_seqs || pages_promised(e) + 2 > nib_engine_pages_left(e)) return false;
    nib_engine_pages_make_free(e, pages_promised(e) + 1); /* what else runs in this turn finds its pages free */
    uint32_t seq = e->free_seqs[e->n_free_seqs - 1];
    if (nib_seq_fork(e->ctx, from->seq, seq, NULL) != NIB_OK) return false;
    e->n_free_seqs--;
    c->seq = seq;
    c->pinned = from->pinned;
    c->n_shared = from->n_shared;
    c->is_refused = from->is_refused;
    c->is_running = true;
    nib_kv_prefix_pin(&e->tree, c->pinned);
    insert_running(e, c);
    return true;
}

bool nib_engine_pages_extend(nib_engine *e, nib_engine_choice *c) {
    nib_kv_table *table = table_of(e, c);
    while (nib_engine_pages_may_share(e, c) && nib_engine_pages_usable(c) >= table->length + NIB_KV_PAGE) {
        uint32_t page = nib_kv_prefix_find(&e->tree, c->pinned, c->stream->salt, c->ids + table->length);
        if (page == NIB_KV_PREFIX_ROOT && !nib_engine_disk_fetch(e, c, &page)) return false;
        if (page == NIB_KV_PREFIX_ROOT) return true;
        if (nib_kv_prefix_is_idle(&e->tree, page) && !nib_engine_pages_left(e)) return true; /* it was to be evicted for others */
        nib_kv_table_adopt(table, e->pool, &page, 1);
        move_pin(e, c, page);
        c->n_shared++;
        count_cached(c, NIB_KV_PAGE);
    }
    return true;
}

void nib_engine_pages_extend_part(nib_engine *e, nib_engine_choice *c) {
    nib_kv_table *table = table_of(e, c);
    uint32_t at = table->length, usable = nib_engine_pages_usable(c), from;
    if (!nib_engine_pages_may_share(e, c) || usable <= at || !nib_engine_pages_left(e)) return;
    uint32_t n = nib_kv_prefix_find_part(&e->tree, c->pinned, c->stream->salt, c->ids + at, usable - at, &from);
    if (!n) return;
    nib_kv_prefix_pin(&e->tree, from);
    nib_engine_pages_make_free(e, 1);
    if (e->pool->n_free) {
        nib_kv_table_append(table, e->pool, n);
        nib_decode_pages_copy(e->ctx, from, table->pages[c->n_shared]);
        count_cached(c, n);
    }
    nib_kv_prefix_unpin(&e->tree, from);
}

static void preempt(nib_engine *e, nib_engine_choice *c) {
    nib_stream_tell(c->stream);
    nib_engine_pages_stop(e, c);
    nib_sched_queue_push(&e->queue, &c->item);
    c->usage.n_preempted++;
    e->figures.n_preempted++;
}

bool nib_engine_pages_make_place(nib_engine *e, const nib_engine_choice *c) {
    nib_engine_choice *last = NULL; /* the most junior of an owner that has several */
    if ((uint64_t)pages_of(c->n_ids) + pages_promised(e) > nib_engine_pages_left(e)) return false;
    for (uint32_t i = 0; i < e->n_running; i++) {
        nib_engine_choice *r = e->running[i];
        if (r->item.account == c->item.account) return false;
        bool has_more = false;
        for (uint32_t j = 0; j < i; j++) has_more |= e->running[j]->item.account == r->item.account;
        if (has_more && r->item.priority >= c->item.priority && !nib_engine_embeds(r)) last = r;
    }
    if (last) preempt(e, last);
    return last;
}

bool nib_engine_pages_reserve(nib_engine *e, nib_engine_choice *c, uint32_t n) {
    uint32_t need = nib_kv_table_pages_for(table_of(e, c), n);
    while (need > nib_engine_pages_left(e)) {
        nib_engine_choice *junior = e->running[e->n_running - 1];
        if (junior == c) return false;
        preempt(e, junior);
    }
    c->n_now = n;
    c->n_reserved = need;
    e->n_reserved += need;
    return true;
}

bool nib_engine_pages_more(nib_engine *e, nib_engine_choice *c, uint32_t n) {
    uint32_t need = nib_kv_table_pages_for(table_of(e, c), c->n_now + n) - c->n_reserved;
    if (need > nib_engine_pages_left(e)) return false;
    c->n_now += n;
    c->n_reserved += need;
    e->n_reserved += need;
    return true;
}

void nib_engine_pages_provide(nib_engine *e) {
    nib_engine_pages_make_free(e, e->n_reserved);
    e->n_reserved = 0;
    for (uint32_t i = 0; i < e->n_running; i++) e->running[i]->n_reserved = 0;
}

void nib_engine_pages_publish(nib_engine *e, nib_engine_choice *c) {
    nib_kv_table *table = table_of(e, c);
    uint32_t length = table->length < c->n_ids ? table->length : c->n_ids; /* no guesses */
    bool is_new = false;
    while (!e->config.no_prefix_cache && !c->is_refused && length - c->n_shared * NIB_KV_PAGE >= NIB_KV_PAGE) {
        uint32_t i = c->n_shared, own = table->pages[i];
        uint32_t page = nib_kv_prefix_insert(&e->tree, c->pinned, c->stream->salt, c->ids + i * NIB_KV_PAGE, own);
        c->is_refused = page == NIB_KV_PREFIX_ROOT;
        if (c->is_refused) break;
        if (page != own) nib_kv_table_replace(table, e->pool, i, page);
        move_pin(e, c, page);
        c->n_shared++;
        is_new = true;
    }
    if (is_new) nib_engine_disk_publish(e, c);
}

/* What the last page has when it will not become full. */
static void publish_part(nib_engine *e, nib_engine_choice *c) {
    const nib_kv_table *table = table_of(e, c);
    uint32_t at = c->n_shared * NIB_KV_PAGE, length = table->length < c->n_ids ? table->length : c->n_ids;
    if (e->config.no_prefix_cache || c->is_refused || length == at) return;
    nib_kv_prefix_insert_part(&e->tree, c->pinned, c->stream->salt, c->ids + at, length - at, table->pages[c->n_shared]);
}

void nib_engine_pages_stop(nib_engine *e, nib_engine_choice *c) {
    uint32_t at = 0;
    publish_part(e, c);
    while (e->running[at] != c) at++;
    memmove(&e->running[at], &e->running[at + 1], (--e->n_running - at) * sizeof *e->running);
    e->n_reserved -= c->n_reserved;
    c->n_now = c->n_reserved = c->n_ahead = 0;
    c->is_running = false;
    nib_seq_free(e->ctx, c->seq);
    nib_kv_prefix_unpin(&e->tree, c->pinned);
    e->free_seqs[e->n_free_seqs++] = c->seq;
}
