/* grammar/charset.c - sets of characters: ranges in, edges over bytes out. */
#include "grammar/charset.h"

#include "base/mem.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum { LAST = 0x10FFFF, SURROGATES = 0xD800, AFTER_SURROGATES = 0xE000 };

void nib_grammar_charset_free(nib_grammar_charset *set) {
    nib_free(set->ranges);
    *set = (nib_grammar_charset){0};
}

static void add(nib_grammar_charset *set, uint32_t lo, uint32_t hi) {
    if (lo > hi || set->failed) return;
    if (!nib_grow(&set->ranges, &set->capacity, set->n + 1, sizeof *set->ranges))
        set->failed = true;
    else
        set->ranges[set->n++] = (nib_grammar_range){lo, hi};
}

void nib_grammar_charset_add(nib_grammar_charset *set, uint32_t lo, uint32_t hi) {
    if (hi > LAST) hi = LAST;
    if (hi < SURROGATES || lo >= AFTER_SURROGATES) {
        add(set, lo, hi);
        return;
    }
    if (lo < SURROGATES) add(set, lo, SURROGATES - 1);
    if (hi >= AFTER_SURROGATES) add(set, AFTER_SURROGATES, hi);
}

void nib_grammar_charset_add_set(nib_grammar_charset *set, const nib_grammar_charset *other) {
    for (size_t i = 0; i < other->n; i++) add(set, other->ranges[i].lo, other->ranges[i].hi);
    set->failed |= other->failed;
}

static int by_lo(const void *a, const void *b) {
    const nib_grammar_range *x = a, *y = b;
    return x->lo < y->lo ? -1 : x->lo > y->lo;
}

void nib_grammar_charset_sort(nib_grammar_charset *set) {
    size_t n = 0;
    if (!set->n) return;
    qsort(set->ranges, set->n, sizeof *set->ranges, by_lo);
    for (size_t i = 1; i < set->n; i++) {
        nib_grammar_range *last = &set->ranges[n], r = set->ranges[i];
        if (r.lo <= last->hi + 1)
            last->hi = r.hi > last->hi ? r.hi : last->hi;
        else
            set->ranges[++n] = r;
    }
    set->n = n + 1;
}

void nib_grammar_charset_negate(nib_grammar_charset *set) {
    nib_grammar_charset out = {.failed = set->failed};
    uint32_t next = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (set->ranges[i].lo > next) nib_grammar_charset_add(&out, next, set->ranges[i].lo - 1);
        next = set->ranges[i].hi + 1;
    }
    if (next <= LAST) nib_grammar_charset_add(&out, next, LAST);
    nib_grammar_charset_free(set);
    *set = out;
}

bool nib_grammar_charset_has(const nib_grammar_charset *set, uint32_t c) {
    size_t lo = 0, hi = set->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (set->ranges[mid].hi < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < set->n && set->ranges[lo].lo <= c;
}

void nib_grammar_charset_meet(const nib_grammar_charset *a, const nib_grammar_charset *b, nib_grammar_charset *out) {
    out->failed |= a->failed || b->failed;
    for (size_t i = 0, j = 0; i < a->n && j < b->n;) {
        nib_grammar_range x = a->ranges[i], y = b->ranges[j];
        add(out, x.lo > y.lo ? x.lo : y.lo, x.hi < y.hi ? x.hi : y.hi);
        if (x.hi < y.hi)
            i++;
        else
            j++;
    }
}

/* ---- UTF-8 */

/* A chain of n byte ranges. */
static void draw_chain(nib_grammar_build *b, uint32_t from, uint32_t to, const char *lo, const char *hi, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t next = i + 1 == n ? to : nib_grammar_node(b);
        nib_grammar_bytes(b, from, next, (uint8_t)lo[i], (uint8_t)hi[i]);
        from = next;
    }
}

/* A range of one length of UTF-8 as chains: it is cut where continuation bytes do not run from 80 to BF, at most five
 * cuts. */
static void draw_range(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi) {
    char a[4], z[4];
    while (lo <= hi && b->status == NIB_OK) {
        uint32_t end = hi;
        for (unsigned shift = 18; shift > 0; shift -= 6) {
            uint32_t below = (1u << shift) - 1;        /* bits of the last continuation bytes */
            if (lo >> shift == end >> shift) continue; /* the bytes before them are equal */
            if (lo & below)
                end = lo | below; /* cut after the first incomplete block */
            else if ((end & below) != below)
                end = (end & ~below) - 1; /* … before the last one */
        }
        size_t n = nib_utf8_put(lo, a);
        nib_utf8_put(end, z);
        draw_chain(b, from, to, a, z, n);
        lo = end + 1;
    }
}

static void draw_ranges(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_range *ranges, size_t n) {
    static const uint32_t last_of_length[] = {0x7F, 0x7FF, 0xFFFF, LAST};
    for (size_t i = 0; i < n && b->status == NIB_OK; i++) {
        uint32_t lo = ranges[i].lo;
        for (size_t k = 0; k < 4; k++) {
            uint32_t hi = ranges[i].hi < last_of_length[k] ? ranges[i].hi : last_of_length[k];
            if (lo > hi) continue;
            draw_range(b, from, to, lo, hi);
            lo = hi + 1;
        }
    }
}

static void check_memory(nib_grammar_build *b, const nib_grammar_charset *set) {
    if (set->failed) nib_grammar_build_fail(b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a set of %zu ranges", set->n);
}

void nib_grammar_charset_draw(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set) {
    check_memory(b, set);
    draw_ranges(b, from, to, set->ranges, set->n);
}

/* ---- JSON strings */

/* Digits lo … hi (0 to 15) in both cases. */
static void draw_digits(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi) {
    if (lo < 10) nib_grammar_bytes(b, from, to, (uint8_t)('0' + lo), (uint8_t)('0' + (hi < 10 ? hi : 9)));
    if (hi < 10) return;
    uint32_t first = lo < 10 ? 10 : lo;
    nib_grammar_bytes(b, from, to, (uint8_t)('a' + first - 10), (uint8_t)('a' + hi - 10));
    nib_grammar_bytes(b, from, to, (uint8_t)('A' + first - 10), (uint8_t)('A' + hi - 10));
}

/* n hexadecimal digits of the values lo … hi: cut like the bytes of UTF-8. */
static void draw_hex(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi) {
    while (lo <= hi && b->status == NIB_OK) {
        uint32_t end = hi, at = from;
        for (unsigned shift = 12; shift > 0; shift -= 4) {
            uint32_t below = (1u << shift) - 1;
            if (lo >> shift == end >> shift) continue;
            if (lo & below)
                end = lo | below;
            else if ((end & below) != below)
                end = (end & ~below) - 1;
        }
        for (unsigned shift = 16; shift > 0; shift -= 4) {
            uint32_t next = shift == 4 ? to : nib_grammar_node(b);
            draw_digits(b, at, next, lo >> (shift - 4) & 15, end >> (shift - 4) & 15);
            at = next;
        }
        lo = end + 1;
    }
}

/* Characters beyond FFFF as a pair of surrogates, behind the \u of the first one. */
static void draw_pairs(nib_grammar_build *b, uint32_t from, uint32_t to, uint32_t lo, uint32_t hi) {
    while (lo <= hi && b->status == NIB_OK) {
        uint32_t x = lo - 0x10000, end = hi - 0x10000;
        if (x >> 10 != end >> 10) { /* several first halves: only with all second ones */
            if (x & 0x3FF)
                end = x | 0x3FF;
            else if ((end & 0x3FF) != 0x3FF)
                end = (end & ~UINT32_C(0x3FF)) - 1;
        }
        nib_grammar_piece middle = nib_grammar_text(b, (nib_str){"\\u", 2});
        draw_hex(b, from, middle.start, 0xD800 + (x >> 10), 0xD800 + (end >> 10));
        draw_hex(b, middle.end, to, 0xDC00 + (x & 0x3FF), 0xDC00 + (end & 0x3FF));
        lo = end + 0x10000 + 1;
    }
}

static bool needs_escape(uint32_t c) {
    return c < 0x20 || c == '"' || c == '\\';
}

/* The parts of a range that JSON shows as they are. */
static void draw_plain(nib_grammar_build *b, uint32_t from, uint32_t to, nib_grammar_range r) {
    static const uint32_t cuts[][2] = {{0x20, '"' - 1}, {'"' + 1, '\\' - 1}, {'\\' + 1, LAST}};
    for (size_t i = 0; i < 3; i++) {
        nib_grammar_range part = {r.lo > cuts[i][0] ? r.lo : cuts[i][0], r.hi < cuts[i][1] ? r.hi : cuts[i][1]};
        if (part.lo <= part.hi) draw_ranges(b, from, to, &part, 1);
    }
}

void nib_grammar_charset_draw_json(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_charset *set,
                                   bool with_escapes) {
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    uint32_t backslash = NIB_GRAMMAR_NO, u = NIB_GRAMMAR_NO;
    check_memory(b, set);
    for (size_t i = 0; values[i]; i++) {
        uint32_t c = (uint8_t)values[i];
        if (!nib_grammar_charset_has(set, c) || (!needs_escape(c) && !with_escapes)) continue;
        if (backslash == NIB_GRAMMAR_NO) backslash = nib_grammar_node(b);
        nib_grammar_bytes(b, backslash, to, (uint8_t)letters[i], (uint8_t)letters[i]);
    }
    for (size_t i = 0; i < set->n && b->status == NIB_OK; i++) {
        nib_grammar_range r = set->ranges[i];
        draw_plain(b, from, to, r);
        uint32_t first_end = r.hi < 0x1F ? r.hi : 0x1F, lo = with_escapes || r.lo >= 0x80 ? r.lo : 0x80;
        uint32_t hi = r.hi < 0xFFFF ? r.hi : 0xFFFF;
        bool has_control = r.lo <= first_end && !with_escapes;
        if (!has_control && lo > r.hi) continue;
        if (backslash == NIB_GRAMMAR_NO) backslash = nib_grammar_node(b);
        if (u == NIB_GRAMMAR_NO) {
            u = nib_grammar_node(b);
            nib_grammar_bytes(b, backslash, u, 'u', 'u');
        }
        if (has_control) draw_hex(b, u, to, r.lo, first_end);
        if (lo <= hi) draw_hex(b, u, to, lo, hi);
        if (r.hi > 0xFFFF) draw_pairs(b, u, to, r.lo > 0x10000 ? r.lo : 0x10000, r.hi);
    }
    if (backslash != NIB_GRAMMAR_NO) nib_grammar_bytes(b, from, backslash, '\\', '\\');
}
