/* tests/test_kv_prefix.c - the tree of cached pages: random use against a naive model that looks at everything every time;
 * the order of eviction, salts, parts of pages, equal hashes, what a full bucket does. */
#include "kv/prefix.h"

#include "base/mem.h"
#include "kv/table.h"
#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_PAGES = 24, N_SEQ = 5, DEPTH = 8, N_LETTERS = 3, ROOM = 80 };
#define ROOT NIB_KV_PREFIX_ROOT

/* A page of tokens by its letter: pages of different letters differ in one place only. */
static const nib_token *page_of(uint32_t letter) {
    static nib_token pages[ROOM][NIB_KV_PAGE];
    memset(pages[letter], 0, sizeof pages[letter]);
    pages[letter][(letter * 13) % NIB_KV_PAGE] = (nib_token)letter + 1;
    return pages[letter];
}

typedef struct model_node { /* by page */
    bool is_in_tree;
    uint32_t parent, letter, n_tokens;
    uint64_t salt, used, last; /* last: entered or let go of, for itself */
    int pins;
} model_node;

typedef struct user { /* a sequence: its letters, its pages, and the page it pins */
    uint32_t letters[DEPTH];
    uint64_t salt;
    uint32_t pinned;
    bool is_open;
    nib_kv_table table;
} user;

typedef struct world {
    nib_kv_pool pool;
    nib_kv_prefix tree;
    model_node model[N_PAGES];
    user users[N_SEQ];
    uint64_t rng, clock;
    uint32_t n_hits, n_evicted, n_replaced, n_parts, n_covered;
} world;

static uint32_t draw(world *w, uint32_t n) {
    return (uint32_t)(blocks_random(&w->rng) % n);
}

/* ---- the model */

static uint32_t model_find(const world *w, uint32_t parent, uint64_t salt, uint32_t letter) {
    for (uint32_t i = 0; i < N_PAGES; i++) {
        const model_node *m = &w->model[i];
        if (m->is_in_tree && m->n_tokens == NIB_KV_PAGE && m->parent == parent && m->salt == salt && m->letter == letter) return i;
    }
    return ROOT;
}

static bool model_is_above(const world *w, uint32_t above, uint32_t page) {
    while (page != ROOT && page != above) page = w->model[page].parent;
    return page == above;
}

static bool model_is_held(const world *w, uint32_t page) {
    for (uint32_t i = 0; i < N_PAGES; i++)
        if (w->model[i].is_in_tree && w->model[i].pins && model_is_above(w, page, i)) return true;
    return false;
}

static bool model_is_leaf(const world *w, uint32_t page) {
    for (uint32_t i = 0; i < N_PAGES; i++)
        if (w->model[i].is_in_tree && w->model[i].parent == page) return false;
    return true;
}

static void model_use(world *w, uint32_t page) {
    w->clock++;
    for (; page != ROOT; page = w->model[page].parent) w->model[page].used = w->clock;
}

static uint32_t model_n_idle(const world *w) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_PAGES; i++) n += w->model[i].is_in_tree && !model_is_held(w, i);
    return n;
}

/* The leaf that goes next; ROOT: none. */
static uint32_t model_evict(world *w) {
    uint32_t oldest = ROOT;
    for (uint32_t i = 0; i < N_PAGES; i++) {
        const model_node *m = &w->model[i];
        if (!m->is_in_tree || !model_is_leaf(w, i) || model_is_held(w, i)) continue;
        if (oldest == ROOT || m->used < w->model[oldest].used) oldest = i;
    }
    if (oldest != ROOT) w->model[oldest].is_in_tree = false;
    return oldest;
}

static uint32_t n_common(uint32_t a, uint32_t b, uint32_t n) {
    uint32_t i = 0;
    while (i < n && page_of(a)[i] == page_of(b)[i]) i++;
    return i;
}

/* Of the children with most of the first n tokens of a letter, the one last used; how many. */
static uint32_t model_find_part(const world *w, uint32_t parent, uint64_t salt, uint32_t letter, uint32_t n, uint32_t *page) {
    uint32_t best = 0;
    for (uint32_t i = 0; i < N_PAGES; i++) {
        const model_node *m = &w->model[i];
        if (!m->is_in_tree || m->parent != parent || m->salt != salt) continue;
        uint32_t common = n_common(m->letter, letter, n < m->n_tokens ? n : m->n_tokens);
        if (common < best || common == 0 || (common == best && m->last < w->model[*page].last)) continue;
        best = common;
        *page = i;
    }
    return best;
}

static void model_enter(world *w, uint32_t page, uint32_t parent, uint64_t salt, uint32_t letter, uint32_t n) {
    for (uint32_t i = 0; i < N_PAGES; i++) { /* what the new one has, too */
        model_node *m = &w->model[i];
        bool is_part = m->is_in_tree && m->n_tokens < NIB_KV_PAGE && m->parent == parent && m->salt == salt;
        if (!is_part || m->n_tokens > n || n_common(m->letter, letter, m->n_tokens) < m->n_tokens) continue;
        m->is_in_tree = false;
        w->n_covered++;
    }
    w->model[page] = (model_node){.is_in_tree = true, .parent = parent, .letter = letter, .n_tokens = n, .salt = salt, .last = ++w->clock};
    model_use(w, page);
}

/* ---- both */

static void check(const world *w) {
    uint32_t refs[N_PAGES] = {0}, n_used = 0, n_nodes = 0;
    for (int i = 0; i < N_SEQ; i++)
        for (uint32_t j = 0; j < w->users[i].table.n_pages; j++) refs[w->users[i].table.pages[j]]++;
    for (uint32_t i = 0; i < N_PAGES; i++) {
        assert_int_equal(w->tree.nodes[i].is_in_tree, w->model[i].is_in_tree);
        assert_int_equal(w->pool.refs[i], refs[i] + w->model[i].is_in_tree);
        n_used += w->pool.refs[i] > 0;
        n_nodes += w->model[i].is_in_tree;
    }
    assert_int_equal(w->pool.n_free, N_PAGES - n_used);
    assert_int_equal(w->tree.n_nodes, n_nodes);
    assert_int_equal(nib_kv_prefix_n_idle(&w->tree), model_n_idle(w));
}

static void evict(world *w, uint32_t n) {
    uint32_t n_done = 0, gone = 0;
    for (uint32_t i = 0; i < n; i++) n_done += model_evict(w) != ROOT;
    gone = nib_kv_prefix_evict(&w->tree, n);
    assert_int_equal(gone, n_done);
    w->n_evicted += gone;
}

static void move_pin(world *w, user *u, uint32_t page) {
    nib_kv_prefix_pin(&w->tree, page);
    if (page != ROOT) w->model[page].pins++;
    nib_kv_prefix_unpin(&w->tree, u->pinned);
    if (u->pinned != ROOT) {
        w->model[u->pinned].pins--;
        model_use(w, u->pinned);
        w->model[u->pinned].last = w->clock;
    }
    u->pinned = page;
}

/* Computes the next page and gives it to the tree. */
static bool extend(world *w, user *u) {
    uint32_t i = u->table.n_pages, parent = u->pinned;
    if (i == DEPTH) return false;
    if (!w->pool.n_free) evict(w, 1 + draw(w, 3));
    if (!w->pool.n_free) return false;
    nib_kv_table_append(&u->table, &w->pool, NIB_KV_PAGE);
    uint32_t own = u->table.pages[i], want = model_find(w, parent, u->salt, u->letters[i]);
    uint32_t got = nib_kv_prefix_insert(&w->tree, parent, u->salt, page_of(u->letters[i]), own);
    assert_int_equal(got, want == ROOT ? own : want);
    if (want == ROOT) {
        model_enter(w, own, parent, u->salt, u->letters[i], NIB_KV_PAGE);
    } else {
        nib_kv_table_replace(&u->table, &w->pool, i, got);
        w->n_replaced++;
    }
    move_pin(w, u, got);
    return true;
}

static void start(world *w, user *u) {
    nib_token ids[DEPTH * NIB_KV_PAGE];
    uint32_t pages[DEPTH], n_more = draw(w, NIB_KV_PAGE), want = 0;
    u->salt = draw(w, 8) == 0;
    for (uint32_t i = 0; i < DEPTH; i++) {
        u->letters[i] = draw(w, 4) ? 0 : draw(w, N_LETTERS);
        memcpy(ids + i * NIB_KV_PAGE, page_of(u->letters[i]), sizeof(nib_token) * NIB_KV_PAGE);
    }
    uint32_t n = 1 + draw(w, DEPTH - 1);
    uint32_t got = nib_kv_prefix_match(&w->tree, u->salt, ids, n * NIB_KV_PAGE + n_more, pages);
    u->pinned = ROOT;
    for (uint32_t page; want < n && (page = model_find(w, u->pinned, u->salt, u->letters[want])) != ROOT; want++) {
        assert_int_equal(pages[want], page);
        u->pinned = page;
    }
    assert_int_equal(got, want);
    if (u->pinned != ROOT) w->model[u->pinned].pins++;
    nib_kv_table_adopt(&u->table, &w->pool, pages, got);
    uint32_t page = ROOT, want_page = ROOT, n_next = 1 + draw(w, NIB_KV_PAGE), letter = u->letters[got];
    uint32_t n_part = nib_kv_prefix_find_part(&w->tree, u->pinned, u->salt, page_of(letter), n_next, &page);
    assert_int_equal(n_part, model_find_part(w, u->pinned, u->salt, letter, n_next, &want_page));
    assert_int_equal(page, want_page);
    w->n_parts += n_part > 0;
    u->is_open = true;
    w->n_hits += got;
}

/* Computes n tokens of the next page, and no more. */
static void leave_part(world *w, user *u, uint32_t n) {
    uint32_t i = u->table.n_pages, letter = u->letters[i], found = ROOT;
    nib_kv_table_append(&u->table, &w->pool, n);
    uint32_t own = u->table.pages[i], n_found = model_find_part(w, u->pinned, u->salt, letter, n, &found);
    nib_kv_prefix_insert_part(&w->tree, u->pinned, u->salt, page_of(letter), n, own);
    if (n_found == n) {
        model_use(w, found);
        w->model[found].last = w->clock;
    } else {
        model_enter(w, own, u->pinned, u->salt, letter, n);
    }
}

static void finish(world *w, user *u) {
    if (u->is_open && u->table.n_pages < DEPTH && w->pool.n_free && draw(w, 4)) leave_part(w, u, 1 + draw(w, NIB_KV_PAGE - 1));
    nib_kv_table_clear(&u->table, &w->pool);
    move_pin(w, u, ROOT);
    u->is_open = false;
}

static void open_world(world *w, uint64_t seed) {
    memset(w->model, 0, sizeof w->model);
    memset(w->users, 0, sizeof w->users);
    w->rng = seed;
    assert_int_equal(nib_kv_pool_init(&w->pool, N_PAGES, NULL), NIB_OK);
    assert_int_equal(nib_kv_prefix_init(&w->tree, &w->pool, NULL), NIB_OK);
    for (int i = 0; i < N_SEQ; i++) {
        w->users[i].pinned = ROOT;
        assert_int_equal(nib_kv_table_init(&w->users[i].table, &w->pool, NULL), NIB_OK);
    }
}

static void close_world(world *w) {
    for (int i = 0; i < N_SEQ; i++) finish(w, &w->users[i]);
    assert_int_equal(w->tree.n_held, 0);
    assert_int_equal(nib_kv_prefix_n_idle(&w->tree), w->tree.n_nodes);
    for (int i = 0; i < N_SEQ; i++) nib_kv_table_fini(&w->users[i].table);
    nib_kv_prefix_fini(&w->tree);
    assert_int_equal(w->pool.n_free, N_PAGES);
    nib_kv_pool_fini(&w->pool);
}

static void test_random(void **state) {
    (void)state;
    static world w;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        open_world(&w, seed);
        if (seed % 2) w.tree.mask = 0; /* all in one bucket: every hit depends on the comparison */
        uint64_t before = nib_alloc_count();
        for (int step = 0; step < 600; step++) {
            user *u = &w.users[draw(&w, N_SEQ)];
            if (!u->is_open) start(&w, u);
            else if (draw(&w, 6) == 0) finish(&w, u);
            else if (draw(&w, 30) == 0) evict(&w, draw(&w, 6));
            else extend(&w, u);
            check(&w);
        }
        assert_true(nib_alloc_count() == before);
        close_world(&w);
    }
    print_message("%u hits, %u evicted, %u replaced, %u parts found, %u covered\n", w.n_hits, w.n_evicted, w.n_replaced, w.n_parts,
                  w.n_covered);
    assert_true(w.n_hits > 1000 && w.n_evicted > 1000 && w.n_replaced > 100 && w.n_parts > 1000 && w.n_covered > 100);
}

static uint32_t add(world *w, uint32_t parent, uint32_t letter) {
    uint32_t page = nib_kv_pool_take(&w->pool);
    assert_int_equal(nib_kv_prefix_insert(&w->tree, parent, 0, page_of(letter), page), page);
    nib_kv_pool_unref(&w->pool, page);
    return page;
}

/* Two texts with a common beginning, the older one used again: the other goes first, from its tail on, and what is pinned
 * stays. */
static void test_order_of_eviction(void **state) {
    (void)state;
    static world w;
    open_world(&w, 1);
    uint32_t a = add(&w, ROOT, 0), b = add(&w, a, 1), c = add(&w, b, 2), d = add(&w, a, 3), e = add(&w, d, 4);
    nib_kv_prefix_pin(&w.tree, c);
    nib_kv_prefix_unpin(&w.tree, c);
    const uint32_t order[] = {e, d, c, b, a};
    for (int i = 0; i < 5; i++) {
        if (i == 3) {
            nib_kv_prefix_pin(&w.tree, b);
            assert_int_equal(nib_kv_prefix_evict(&w.tree, 9), 0);
            nib_kv_prefix_unpin(&w.tree, b);
        }
        assert_true(w.tree.nodes[order[i]].is_in_tree);
        assert_int_equal(nib_kv_prefix_evict(&w.tree, 1), 1);
        assert_false(w.tree.nodes[order[i]].is_in_tree);
    }
    close_world(&w);
}

static void test_match(void **state) {
    (void)state;
    static world w;
    nib_token ids[3 * NIB_KV_PAGE];
    uint32_t pages[3];
    open_world(&w, 1);
    uint32_t a = add(&w, ROOT, 0), b = add(&w, a, 1);
    for (int i = 0; i < 3; i++) memcpy(ids + i * NIB_KV_PAGE, page_of((uint32_t)i), sizeof(nib_token) * NIB_KV_PAGE);
    static const struct {
        uint32_t n, want;
    } cases[] = {{0, 0}, {31, 0}, {32, 1}, {63, 1}, {64, 2}, {96, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(nib_kv_prefix_match(&w.tree, 0, ids, cases[i].n, pages), cases[i].want);
        if (cases[i].want == 2) assert_int_equal(pages[1], b);
        nib_kv_prefix_unpin(&w.tree, cases[i].want == 2 ? b : cases[i].want ? a : ROOT);
    }
    assert_int_equal(nib_kv_prefix_match(&w.tree, 1, ids, 96, pages), 0); /* another salt */
    for (int i = 0; i < 64; i += 7) { /* any other token */
        ids[i]++;
        assert_int_equal(nib_kv_prefix_match(&w.tree, 0, ids, 96, pages), i / NIB_KV_PAGE);
        nib_kv_prefix_unpin(&w.tree, i < NIB_KV_PAGE ? ROOT : a);
        ids[i]--;
    }
    assert_int_equal(w.tree.n_held, 0);
    close_world(&w);
}

/* A text that ended within a page, one that goes on from there, one that leaves the page before, and another salt. */
static void test_parts(void **state) {
    (void)state;
    static world w;
    nib_token ids[NIB_KV_PAGE];
    open_world(&w, 1);
    for (uint32_t i = 0; i < NIB_KV_PAGE; i++) ids[i] = (nib_token)i;
    uint32_t a = add(&w, ROOT, 0), part = nib_kv_pool_take(&w.pool), page = ROOT;
    nib_kv_prefix_insert_part(&w.tree, a, 0, ids, 10, part);
    nib_kv_pool_unref(&w.pool, part);
    static const struct {
        uint32_t n, want;
    } cases[] = {{0, 0}, {1, 1}, {9, 9}, {10, 10}, {11, 10}, {32, 10}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(nib_kv_prefix_find_part(&w.tree, a, 0, ids, cases[i].n, &page), cases[i].want);
        if (cases[i].want) assert_int_equal(page, part);
    }
    assert_int_equal(nib_kv_prefix_find_part(&w.tree, a, 1, ids, 32, &page), 0);
    assert_int_equal(nib_kv_prefix_find_part(&w.tree, ROOT, 0, ids, 32, &page), 0);
    assert_int_equal(nib_kv_prefix_find(&w.tree, a, 0, ids), ROOT);
    uint32_t shorter = nib_kv_pool_take(&w.pool); /* nothing new: it stays its owner's */
    nib_kv_prefix_insert_part(&w.tree, a, 0, ids, 9, shorter);
    assert_false(w.tree.nodes[shorter].is_in_tree);
    assert_int_equal(nib_kv_prefix_insert(&w.tree, a, 0, ids, shorter), shorter); /* now full: it has all of the part */
    nib_kv_pool_unref(&w.pool, shorter);
    assert_false(w.tree.nodes[part].is_in_tree);
    assert_int_equal(w.pool.refs[part], 0);
    assert_int_equal(nib_kv_prefix_find_part(&w.tree, a, 0, ids, 20, &page), 20);
    assert_int_equal(page, shorter);
    ids[5] = 99;
    assert_int_equal(nib_kv_prefix_find_part(&w.tree, a, 0, ids, 20, &page), 5);
    assert_int_equal(nib_kv_prefix_evict(&w.tree, 9), 2);
    close_world(&w);
}

/* However many children a page has, only those last used are looked at. */
static void test_many_children(void **state) {
    (void)state;
    nib_kv_pool pool;
    nib_kv_prefix tree;
    uint32_t page = ROOT;
    assert_int_equal(nib_kv_pool_init(&pool, ROOM, NULL), NIB_OK);
    assert_int_equal(nib_kv_prefix_init(&tree, &pool, NULL), NIB_OK);
    for (nib_token i = 0; i < ROOM; i++) {
        uint32_t own = nib_kv_pool_take(&pool);
        nib_kv_prefix_insert_part(&tree, ROOT, 0, &i, 1, own);
        nib_kv_pool_unref(&pool, own);
    }
    assert_int_equal(tree.n_nodes, ROOM);
    for (nib_token i = 0; i < ROOM; i++)
        assert_int_equal(nib_kv_prefix_find_part(&tree, ROOT, 0, &i, 1, &page), i >= ROOM - NIB_KV_PREFIX_LOOK);
    uint32_t old = 0; /* of the token 0, out of sight: whoever uses it brings it back */
    nib_kv_prefix_pin(&tree, old);
    nib_kv_prefix_unpin(&tree, old);
    assert_int_equal(nib_kv_prefix_find_part(&tree, ROOT, 0, &tree.nodes[old].tokens[0], 1, &page), 1);
    assert_int_equal(page, old);
    assert_int_equal(nib_kv_prefix_evict(&tree, ROOM), ROOM);
    assert_int_equal(tree.nodes[ROOM].child, ROOT);
    nib_kv_prefix_fini(&tree);
    nib_kv_pool_fini(&pool);
}

/* Tokens that all hash alike fill a bucket; the tree refuses more of them and stays whole. */
static void test_full_bucket(void **state) {
    (void)state;
    nib_kv_pool pool;
    nib_kv_prefix tree;
    assert_int_equal(nib_kv_pool_init(&pool, ROOM, NULL), NIB_OK);
    assert_int_equal(nib_kv_prefix_init(&tree, &pool, NULL), NIB_OK);
    tree.mask = 0;
    for (uint32_t i = 0; i < ROOM; i++) {
        uint32_t page = nib_kv_pool_take(&pool);
        assert_int_equal(nib_kv_prefix_insert(&tree, ROOT, i, page_of(0), page), i < NIB_KV_PREFIX_CHAIN ? page : ROOT);
        nib_kv_pool_unref(&pool, page);
    }
    assert_int_equal(tree.n_nodes, NIB_KV_PREFIX_CHAIN);
    for (uint32_t i = 0; i < ROOM; i++)
        assert_int_equal(nib_kv_prefix_find(&tree, ROOT, i, page_of(0)) != ROOT, i < NIB_KV_PREFIX_CHAIN);
    assert_int_equal(nib_kv_prefix_evict(&tree, ROOM), NIB_KV_PREFIX_CHAIN);
    assert_int_equal(pool.n_free, ROOM);
    nib_kv_prefix_fini(&tree);
    nib_kv_pool_fini(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_order_of_eviction),
        cmocka_unit_test(test_match),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_many_children),
        cmocka_unit_test(test_full_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
