/* engine/view.c - pictures of the engine for people: the state of every page, the requests, and what each turn ran.
 *
 * All that is shown belongs to the engine's thread, which draws a picture after a turn (or while it sleeps) when one was asked
 * for. A view has two pictures: one is its reader's, the other one is drawn; both and the notes of turns change hands under the
 * lock. Nothing is allocated after the view was made, and without views nothing is done. */
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"
#include "decode/pages.h"
#include "engine/engine.h"

#include <string.h>

enum { MAX_TURNS = 256, MAX_WAITING = 256 };

typedef struct notes { /* turns since the last picture */
    nib_turn_view *turns;
    nib_turn_part *parts; /* n_seq of each turn */
    uint32_t n;
    uint64_t n_missed;
} notes;

typedef struct drawing {
    nib_engine_picture picture; /* of the arrays below */
    nib_page_view *pages;
    nib_request_view *requests;
    notes notes;
} drawing;

struct nib_engine_view {
    nib_engine *engine;
    nib_engine_view *next;
    drawing drawings[2];
    int mine;    /* the reader's of the two */
    notes notes; /* of turns that are in no picture yet */
    bool is_asked, is_ready;
};

static bool notes_init(notes *n, uint32_t n_seq) {
    n->turns = nib_calloc(MAX_TURNS, sizeof *n->turns);
    n->parts = nib_calloc((size_t)MAX_TURNS * n_seq, sizeof *n->parts);
    return n->turns && n->parts;
}

static void notes_fini(notes *n) {
    nib_free(n->turns);
    nib_free(n->parts);
}

static bool drawing_init(drawing *d, const nib_engine *e) {
    d->pages = nib_calloc(e->pool->n_pages, sizeof *d->pages);
    d->requests = nib_calloc((size_t)e->n_seq + MAX_WAITING, sizeof *d->requests);
    return notes_init(&d->notes, e->n_seq) && d->pages && d->requests;
}

static void drawing_fini(drawing *d) {
    nib_free(d->pages);
    nib_free(d->requests);
    notes_fini(&d->notes);
}

static void view_delete(nib_engine_view *v) {
    drawing_fini(&v->drawings[0]);
    drawing_fini(&v->drawings[1]);
    notes_fini(&v->notes);
    nib_free(v);
}

nib_status nib_engine_view_new(nib_engine_view **out, nib_engine *e, nib_error *err) {
    *out = NULL;
    nib_engine_view *v = nib_calloc(1, sizeof *v);
    if (!v) return nib_fail_nomem(err, sizeof *v, "a view of the engine");
    v->engine = e;
    if (!drawing_init(&v->drawings[0], e) || !drawing_init(&v->drawings[1], e) || !notes_init(&v->notes, e->n_seq)) {
        view_delete(v);
        return nib_fail_nomem(err, 0, "a view of the engine");
    }
    pthread_mutex_lock(&e->lock);
    v->next = e->views;
    e->views = v;
    atomic_store(&e->is_viewed, true);
    pthread_mutex_unlock(&e->lock);
    *out = v;
    return NIB_OK;
}

void nib_engine_view_free(nib_engine_view *v) {
    if (!v) return;
    nib_engine *e = v->engine;
    pthread_mutex_lock(&e->lock);
    nib_engine_view **at = &e->views;
    while (*at != v) at = &(*at)->next;
    *at = v->next;
    atomic_store(&e->is_viewed, e->views != NULL);
    pthread_mutex_unlock(&e->lock);
    view_delete(v);
}

const nib_engine_picture *nib_engine_view_next(nib_engine_view *v) {
    nib_engine *e = v->engine;
    const nib_engine_picture *picture = NULL;
    pthread_mutex_lock(&e->lock);
    if (v->is_ready) {
        v->mine = !v->mine;
        v->is_ready = false;
        picture = &v->drawings[v->mine].picture;
    }
    if (!v->is_asked) pthread_cond_signal(&e->work); /* it may sleep */
    v->is_asked = true;
    pthread_mutex_unlock(&e->lock);
    return picture;
}

/* ---- the engine's thread, with the lock */

static void note_turn(const nib_engine *e, notes *n) {
    if (n->n == MAX_TURNS) {
        n->n_missed++;
        return;
    }
    nib_turn_part *parts = n->parts + (size_t)n->n * e->n_seq;
    nib_turn_view *turn = &n->turns[n->n++];
    *turn = (nib_turn_view){.number = e->figures.n_turns, .parts = parts};
    for (uint32_t i = 0; i < e->n_running; i++) {
        const nib_engine_choice *c = e->running[i];
        if (!c->n_now) continue;
        bool is_prompt = !c->stream->has_begun || c->n_ids - nib_seq_length(e->ctx, c->seq) > 1;
        parts[turn->n_parts++] = (nib_turn_part){c->item.arrival, c->n_now, is_prompt};
    }
}

void nib_engine_view_begin(nib_engine *e) {
    if (!atomic_load(&e->is_viewed)) return;
    pthread_mutex_lock(&e->lock);
    for (nib_engine_view *v = e->views; v; v = v->next) note_turn(e, &v->notes);
    pthread_mutex_unlock(&e->lock);
}

static void draw_pages(const nib_engine *e, nib_page_view *pages) {
    for (uint32_t p = 0; p < e->pool->n_pages; p++) {
        const nib_kv_node *node = &e->tree.nodes[p];
        uint32_t refs = e->pool->refs[p];
        pages[p] = (nib_page_view){NIB_PAGE_FREE, 0, NIB_NO_PAGE};
        if (node->is_in_tree) /* which has a reference, too */
            pages[p] = (nib_page_view){node->n_held ? NIB_PAGE_PINNED : NIB_PAGE_CACHED, refs - 1, node->parent};
        else if (refs)
            pages[p] = (nib_page_view){NIB_PAGE_OWN, refs, NIB_NO_PAGE};
    }
}

static nib_request_view draw_request(const nib_engine *e, const nib_engine_choice *c, double now) {
    const nib_stream *s = c->stream;
    nib_request_view r = {.number = c->item.arrival, .owner = c->item.owner, .priority = c->item.priority,
                          .n_prompt = s->n_prompt, .n_cached = c->usage.n_cached, .n_generated = c->n_ids - s->n_prompt,
                          .n_max = s->n_max - s->n_prompt, .n_preempted = c->usage.n_preempted, .seq = NIB_NO_PAGE,
                          .page = NIB_NO_PAGE, .age_ms = 1e3 * (now - s->submitted), .ttft_ms = c->usage.ttft_ms};
    if (!c->is_running) return r;
    r.n_computed = nib_seq_length(e->ctx, c->seq);
    r.n_pages = nib_decode_pages_table(e->ctx, c->seq)->n_pages;
    r.seq = c->seq;
    r.page = c->pinned;
    r.phase = !s->has_begun || c->n_ids - r.n_computed > 1 ? NIB_PHASE_PREFILL : NIB_PHASE_DECODE;
    return r;
}

/* What a request has beside the tree. */
static void draw_own(const nib_engine *e, const nib_engine_choice *c, nib_page_view *pages) {
    const nib_kv_table *table = nib_decode_pages_table(e->ctx, c->seq);
    for (uint32_t i = c->n_shared; i < table->n_pages; i++) {
        nib_page_view *page = &pages[table->pages[i]];
        if (page->state == NIB_PAGE_OWN) page->link = c->seq;
    }
}

static void draw_requests(const nib_engine *e, drawing *d) {
    double now = nib_sys_now();
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n_running; i++) {
        d->requests[n++] = draw_request(e, e->running[i], now);
        draw_own(e, e->running[i], d->pages);
    }
    const nib_sched_item *end = &e->queue.waiting;
    for (const nib_sched_item *item = end->next; item != end && n < e->n_seq + MAX_WAITING; item = item->next)
        d->requests[n++] = draw_request(e, (const nib_engine_choice *)(const void *)item, now);
    d->picture.n_requests = n;
}

static void draw(const nib_engine *e, nib_engine_view *v) {
    drawing *d = &v->drawings[!v->mine];
    notes spare = d->notes;
    d->notes = v->notes;
    v->notes = spare;
    v->notes.n = 0;
    v->notes.n_missed = 0;
    draw_pages(e, d->pages);
    draw_requests(e, d);
    d->picture.n_pages = e->pool->n_pages;
    d->picture.pages = d->pages;
    d->picture.requests = d->requests;
    d->picture.n_turns = d->notes.n;
    d->picture.turns = d->notes.turns;
    d->picture.n_missed = d->notes.n_missed;
    v->is_asked = false;
    v->is_ready = true;
}

void nib_engine_view_serve(nib_engine *e) {
    for (nib_engine_view *v = e->views; v; v = v->next)
        if (v->is_asked && !v->is_ready) draw(e, v);
}

void nib_engine_view_end(nib_engine *e, double ms) {
    for (nib_engine_view *v = e->views; v; v = v->next) {
        notes *n = &v->notes;
        if (n->n && n->turns[n->n - 1].number + 1 == e->figures.n_turns) n->turns[n->n - 1].ms = ms;
    }
    nib_engine_view_serve(e);
}
