/* engine/disk.c - pages of the tree to the disk, and from there back where the tree has them no more (kv/store).
 *
 * Pages that choices publish are written by the store's thread. Before a part of a prompt is computed, pages that the store has
 * are read in its place, for a share of the turn. What the disk brings has the same bits, or is not used. */
#include "base/status.h"
#include "base/sys.h"
#include "decode/pages.h"
#include "engine/engine.h"

#include <stdio.h>

#define READ_SHARE 0.25 /* of a turn's time */

static void log_line(void *user, const char *message) {
    const nib_engine *e = user;
    if (e->config.log) e->config.log(e->config.user, message);
}

void nib_engine_disk_open(nib_engine *e) {
    nib_kv_store_config c = {.folder = e->config.kv_dir, .max_bytes = e->config.kv_disk, .log = log_line, .user = e};
    nib_error err;
    if (!c.folder) return;
    (void)nib_decode_pages_bytes(e->ctx, 0, &c.page_bytes);
    nib_status status = nib_decode_pages_identity(e->ctx, &c.identity, &err);
    if (status == NIB_OK) status = nib_kv_store_open(&e->store, &c, &err);
    if (status == NIB_OK) return;
    nib_error_prefix(&err, "nothing is cached on disk: %s", c.folder);
    log_line(e, err.message);
}

void nib_engine_disk_publish(nib_engine *e, const nib_engine_choice *c) {
    const nib_kv_table *table = nib_decode_pages_table(e->ctx, c->seq);
    uint32_t at = NIB_KV_STORE_ROOT;
    if (!e->store) return;
    nib_kv_store_settle(e->store);
    for (uint32_t i = 0; i < c->n_shared; i++) {
        size_t n;
        uint32_t next = nib_kv_store_add(e->store, at, c->stream->salt, c->ids + i * NIB_KV_PAGE,
                                         nib_decode_pages_bytes(e->ctx, table->pages[i], &n));
        if (next == NIB_KV_STORE_NONE) break;
        at = next;
    }
    nib_kv_store_touch(e->store, at);
}

/* The place behind the pages that a choice has, and that of the next page; NONE: the store knows it not. */
static uint32_t next_place(const nib_engine *e, const nib_engine_choice *c) {
    uint32_t at = NIB_KV_STORE_ROOT;
    for (uint32_t i = 0; i <= c->n_shared && at != NIB_KV_STORE_NONE; i++)
        at = nib_kv_store_find(e->store, at, c->stream->salt, c->ids + i * NIB_KV_PAGE);
    return at;
}

bool nib_engine_disk_fetch(nib_engine *e, const nib_engine_choice *c, uint32_t *page) {
    size_t n;
    *page = NIB_KV_PREFIX_ROOT;
    if (!e->store || !nib_engine_pages_left(e)) return true;
    uint32_t at = next_place(e, c);
    if (at == NIB_KV_STORE_NONE) return true;
    if (e->disk_s >= 1e-3 * READ_SHARE * e->config.turn_ms) return false;
    nib_engine_pages_make_free(e, 1);
    double start = nib_sys_now();
    uint32_t own = nib_kv_pool_take(e->pool);
    if (nib_kv_store_read(e->store, at, nib_decode_pages_bytes(e->ctx, own, &n)))
        *page = nib_kv_prefix_insert(&e->tree, c->pinned, c->stream->salt, c->ids + c->n_shared * NIB_KV_PAGE, own);
    nib_kv_pool_unref(e->pool, own); /* the tree's, or nobody's */
    nib_kv_store_touch(e->store, at);
    e->disk_s += nib_sys_now() - start;
    return true;
}

void nib_engine_disk_note(nib_engine *e) {
    if (!e->store) return;
    nib_kv_store_settle(e->store);
    nib_kv_store_figures f = nib_kv_store_stats(e->store);
    e->figures.n_disk_pages = f.n_pages;
    e->figures.disk_bytes = f.n_bytes;
    e->figures.n_disk_read = f.n_read;
    e->figures.n_disk_written = f.n_written;
    e->figures.n_disk_bad = f.n_bad;
    e->figures.disk_is_full = f.is_full;
}
