/* kv/store.c - which pages are on disk: places by what comes before them and their tokens, in the order of their use. */
#include "kv/store.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOT NIB_KV_STORE_ROOT
#define NONE NIB_KV_STORE_NONE
#define MOST_PLACES (1u << 24)

typedef unsigned long long ull;

typedef enum place_state {
    WAITING = 0, /* to be written */
    ON_DISK = 1,
    LOST = 2, /* to be written when somebody has the page */
} place_state;

typedef struct place {
    uint64_t id, salt;
    uint32_t parent;       /* or ROOT */
    uint32_t next;         /* of the same bucket; of a free one: the next free one */
    uint32_t newer, older; /* by use */
    place_state state;
    nib_token tokens[NIB_KV_PAGE];
} place;

struct nib_kv_store {
    nib_kv_store_config config; /* folder is not kept */
    nib_kv_store_file file;
    place *places;
    size_t n_bytes;    /* of places */
    uint32_t *buckets; /* first place, or NONE; mask + 1 of them */
    uint32_t mask, capacity, n_used, n_places;
    uint32_t first_free, newest, oldest;
    uint64_t seed, next_id;
    nib_kv_store_figures figures;
};

static void tell(const nib_kv_store *s, const char *message) {
    if (s->config.log) s->config.log(s->config.user, message);
}

/* ---- by tokens */

static uint32_t *bucket_of(const nib_kv_store *s, uint32_t parent, uint64_t salt, const nib_token *tokens) {
    uint64_t h = nib_hash64((s->seed ^ salt) + (uint64_t)parent * UINT64_C(0x9E3779B97F4A7C15), tokens, sizeof s->places->tokens);
    return &s->buckets[(h ^ h >> 32) & s->mask];
}

uint32_t nib_kv_store_find(const nib_kv_store *s, uint32_t at, uint64_t salt, const nib_token *tokens) {
    uint32_t i = *bucket_of(s, at, salt, tokens);
    for (; i != NONE; i = s->places[i].next) {
        const place *p = &s->places[i];
        if (p->parent == at && p->salt == salt && memcmp(p->tokens, tokens, sizeof p->tokens) == 0) return i;
    }
    return NONE;
}

/* ---- by use */

static void take_out(nib_kv_store *s, uint32_t at) {
    const place *p = &s->places[at];
    *(p->newer == NONE ? &s->newest : &s->places[p->newer].older) = p->older;
    *(p->older == NONE ? &s->oldest : &s->places[p->older].newer) = p->newer;
}

static void put_first(nib_kv_store *s, uint32_t at) {
    place *p = &s->places[at];
    p->newer = NONE;
    p->older = s->newest;
    *(s->newest == NONE ? &s->oldest : &s->places[s->newest].newer) = at;
    s->newest = at;
}

void nib_kv_store_touch(nib_kv_store *s, uint32_t at) {
    for (; at < NONE; at = s->places[at].parent) {
        take_out(s, at);
        put_first(s, at);
    }
}

/* ---- in and out */

static uint64_t file_bytes(const nib_kv_store *s) {
    return s->config.page_bytes + sizeof(nib_kv_store_head);
}

static uint32_t enter(nib_kv_store *s, uint32_t parent, uint64_t id, uint64_t salt, const nib_token *tokens) {
    uint32_t at = s->first_free, *bucket = bucket_of(s, parent, salt, tokens);
    if (at == NONE) at = s->n_used++;
    else s->first_free = s->places[at].next;
    place *p = &s->places[at];
    *p = (place){.id = id, .salt = salt, .parent = parent, .next = *bucket};
    memcpy(p->tokens, tokens, sizeof p->tokens);
    *bucket = at;
    s->n_places++;
    put_first(s, at);
    nib_kv_store_touch(s, at); /* those before it are newer than it */
    return at;
}

/* The oldest place goes, which nothing stands behind. */
static void drop_oldest(nib_kv_store *s) {
    uint32_t at = s->oldest;
    place *p = &s->places[at];
    uint32_t *link = bucket_of(s, p->parent, p->salt, p->tokens);
    while (*link != at) link = &s->places[*link].next;
    *link = p->next;
    take_out(s, at);
    nib_kv_store_file_remove(&s->file, p->id); /* behind its write, if that waits */
    p->next = s->first_free;
    s->first_free = at;
    s->n_places--;
}

static nib_kv_store_head head_of(const nib_kv_store *s, uint32_t at) {
    const place *p = &s->places[at];
    nib_kv_store_head head = {.id = p->id, .parent = p->parent == ROOT ? 0 : s->places[p->parent].id, .salt = p->salt};
    memcpy(head.tokens, p->tokens, sizeof head.tokens);
    return head;
}

static void write_page(nib_kv_store *s, uint32_t at, const void *page) {
    nib_kv_store_head head = head_of(s, at);
    s->places[at].state = WAITING;
    nib_kv_store_file_write(&s->file, &head, page, at);
}

uint32_t nib_kv_store_add(nib_kv_store *s, uint32_t at, uint64_t salt, const nib_token *tokens, const void *page) {
    uint32_t found = nib_kv_store_find(s, at, salt, tokens);
    bool can_write = !s->figures.is_full && nib_kv_store_file_room(&s->file) >= 2; /* one to go, one to come */
    if (found != NONE) {
        if (s->places[found].state == LOST && can_write) write_page(s, found, page);
        return found;
    }
    if (!can_write) return NONE;
    if (s->n_places == s->capacity) {
        nib_kv_store_touch(s, at);
        if (s->oldest == at) return NONE; /* there is nothing but this text */
        drop_oldest(s);
    }
    found = enter(s, at, s->next_id++, salt, tokens);
    write_page(s, found, page);
    return found;
}

bool nib_kv_store_read(nib_kv_store *s, uint32_t at, void *page) {
    nib_error err;
    char text[sizeof err.message + 80];
    place *p = &s->places[at];
    if (p->state != ON_DISK) return false;
    nib_kv_store_head head = head_of(s, at);
    if (nib_kv_store_file_read(&s->file, &head, page, &err) == NIB_OK) {
        s->figures.n_read++;
        return true;
    }
    p->state = LOST;
    s->figures.n_bad++;
    snprintf(text, sizeof text, "a cached page is not used: its file %s", err.message);
    tell(s, text);
    return false;
}

void nib_kv_store_settle(nib_kv_store *s) {
    const nib_kv_store_job *job;
    while ((job = nib_kv_store_file_outcome(&s->file))) {
        place *p = &s->places[job->tag];
        if (p->id == job->id) p->state = job->error ? LOST : ON_DISK; /* else another page took the place */
        s->figures.n_written += !job->error;
        if (!job->error || s->figures.is_full) continue;
        nib_error err;
        s->figures.is_full = true;
        nib_fail_errno(&err, job->error, "pages are not written to disk any more");
        tell(s, err.message);
    }
}

bool nib_kv_store_is_settled(nib_kv_store *s) {
    nib_kv_store_settle(s);
    return nib_kv_store_file_room(&s->file) == s->file.n_jobs;
}

nib_kv_store_figures nib_kv_store_stats(const nib_kv_store *s) {
    nib_kv_store_figures f = s->figures;
    f.n_pages = s->n_places;
    f.n_bytes = s->n_places * file_bytes(s);
    return f;
}

/* ---- what was there */

typedef struct found {
    nib_kv_store_head head;
    double written;
    uint32_t above, at; /* in the list the page before it, ROOT or NONE; its place, NONE: none yet */
} found;

typedef struct scan {
    nib_kv_store *store;
    found *list; /* by id, after the scan */
    size_t n, capacity;
    bool failed;
    uint32_t *order, *way; /* list places by age, the newest first; one and all before it that have no place */
} scan;

static void take_found(void *user, const nib_kv_store_head *head, double written, const nib_error *fault) {
    scan *c = user;
    if (fault) {
        char text[sizeof fault->message + 80];
        snprintf(text, sizeof text, "a cached page is not used: %s", fault->message);
        c->store->figures.n_bad++;
        tell(c->store, text);
    } else if (c->failed || c->n == MOST_PLACES || !nib_grow(&c->list, &c->capacity, c->n + 1, sizeof *c->list)) {
        c->failed = true;
    } else {
        c->list[c->n++] = (found){.head = *head, .written = written, .at = NONE};
    }
}

static int by_id(const void *a, const void *b) {
    uint64_t x = ((const found *)a)->head.id, y = ((const found *)b)->head.id;
    return (x > y) - (x < y);
}

static int by_age(const void *a, const void *b) {
    double x = ((const found *)a)->written, y = ((const found *)b)->written;
    return (x < y) - (x > y);
}

/* The list in order of age gives `order`, then it is put in that of ids. */
static nib_status arrange(scan *c, nib_error *err) {
    c->order = nib_alloc(c->n, sizeof *c->order);
    c->way = nib_alloc(c->n, sizeof *c->way);
    uint64_t *ids = nib_alloc(c->n, sizeof *ids);
    bool ok = c->order && c->way && ids;
    if (ok && c->n) {
        qsort(c->list, c->n, sizeof *c->list, by_age);
        for (size_t i = 0; i < c->n; i++) ids[i] = c->list[i].head.id;
        qsort(c->list, c->n, sizeof *c->list, by_id);
        for (size_t i = 0; i < c->n; i++) {
            const found key = {.head = {.id = ids[i]}}, parent = {.head = {.id = c->list[i].head.parent}};
            const found *self = bsearch(&key, c->list, c->n, sizeof *c->list, by_id);
            const found *above = parent.head.id ? bsearch(&parent, c->list, c->n, sizeof *c->list, by_id) : NULL;
            c->order[i] = (uint32_t)(self - c->list);
            c->list[i].above = !parent.head.id ? ROOT : above ? (uint32_t)(above - c->list) : NONE;
        }
    }
    nib_free(ids);
    return ok ? NIB_OK : nib_fail_nomem(err, c->n * sizeof *c->list, "the list of cached pages");
}

/* Gives a page its place, after all before it; not when one of these is missing, or there is no room. */
static void place_found(scan *c, uint32_t i) {
    nib_kv_store *s = c->store;
    size_t n = 0;
    for (; i < NONE && c->list[i].at == NONE && n < c->n; i = c->list[i].above) c->way[n++] = i;
    if (i == NONE || (i != ROOT && c->list[i].at == NONE)) return;
    uint32_t at = i == ROOT ? ROOT : c->list[i].at;
    while (n-- > 0 && s->n_places < s->capacity) {
        found *f = &c->list[c->way[n]];
        if (nib_kv_store_find(s, at, f->head.salt, f->head.tokens) != NONE) return; /* written twice */
        f->at = at = enter(s, at, f->head.id, f->head.salt, f->head.tokens);
        s->places[at].state = ON_DISK;
    }
}

/* What the files hold comes into the order of its age, the newest first until there is no room. */
static nib_status take_over(nib_kv_store *s, nib_error *err) {
    scan c = {.store = s};
    nib_status status = nib_kv_store_file_scan(&s->file, take_found, &c, err);
    if (status == NIB_OK && c.failed) status = nib_fail_nomem(err, c.n * sizeof *c.list, "the list of cached pages");
    if (status == NIB_OK) status = arrange(&c, err);
    for (size_t i = 0; status == NIB_OK && i < c.n; i++) place_found(&c, c.order[i]);
    for (size_t i = c.n; status == NIB_OK && i-- > 0;) nib_kv_store_touch(s, c.list[c.order[i]].at);
    for (size_t i = 0; status == NIB_OK && i < c.n; i++)
        if (c.list[i].at == NONE) nib_kv_store_file_unlink(&s->file, c.list[i].head.id);
    nib_free(c.order);
    nib_free(c.way);
    nib_free(c.list);
    return status;
}

/* ---- open and close */

static nib_status make_tables(nib_kv_store *s, nib_error *err) {
    uint64_t n = s->config.max_bytes / file_bytes(s);
    uint32_t n_buckets = 1;
    if (n < 1)
        return nib_fail(err, NIB_E_ARG, "%llu bytes for pages on disk: one takes %llu", (ull)s->config.max_bytes, (ull)file_bytes(s));
    s->capacity = n < MOST_PLACES ? (uint32_t)n : MOST_PLACES;
    while (n_buckets < s->capacity) n_buckets *= 2;
    s->mask = n_buckets - 1;
    s->n_bytes = s->capacity * sizeof *s->places;
    s->places = nib_pages_new(s->n_bytes);
    s->buckets = nib_alloc(n_buckets, sizeof *s->buckets);
    if (!s->places || !s->buckets) return nib_fail_nomem(err, s->n_bytes, "the list of pages on disk");
    for (uint32_t i = 0; i < n_buckets; i++) s->buckets[i] = NONE;
    return NIB_OK;
}

static nib_status make_ids(nib_kv_store *s, nib_error *err) {
    uint32_t r[4];
    for (int i = 0; i < 4; i++)
        if (!nib_rng_system(&r[i])) return nib_fail(err, NIB_E_IO, "the system gave no random number for names of pages");
    s->seed = (uint64_t)r[0] << 32 | r[1];
    s->next_id = ((uint64_t)r[2] << 32 | r[3]) | 1; /* those of another process lie elsewhere */
    return NIB_OK;
}

nib_status nib_kv_store_open(nib_kv_store **out, const nib_kv_store_config *config, nib_error *err) {
    nib_status status;
    *out = NULL;
    nib_kv_store *s = nib_calloc(1, sizeof *s);
    if (!s) return nib_fail_nomem(err, sizeof *s, "a store of pages");
    s->config = *config;
    s->config.folder = NULL;
    s->file.folder = s->file.lock_file = -1;
    s->first_free = s->newest = s->oldest = NONE;
    NIB_TRY_OUT(make_tables(s, err));
    NIB_TRY_OUT(make_ids(s, err));
    NIB_TRY_OUT(nib_kv_store_file_open(&s->file, config->folder, config->identity, config->page_bytes, err));
    NIB_TRY_OUT(take_over(s, err));
    *out = s;
    return NIB_OK;
out:
    nib_kv_store_close(s);
    return status;
}

void nib_kv_store_close(nib_kv_store *s) {
    if (!s) return;
    nib_kv_store_file_close(&s->file);
    if (s->places) nib_pages_free(s->places, s->n_bytes);
    nib_free(s->buckets);
    nib_free(s);
}
