/* grammar/number.c - bounds -> an automaton that reads the digits of a number and compares them with the bounds as they
 * come.
 *
 * A magnitude is read from its first digit on: the comparison with a bound is decided by the number of digits before
 * the point, and among as many digits by the first that differs. So the state is the place and what the two comparisons
 * say so far; for multiples also the remainder. Numbers with an exponent have one digit before the point; there the
 * exponents are compared first. */
#include "grammar/number.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- decimals */

bool nib_grammar_decimal_read(nib_str text, nib_grammar_decimal *out) {
    nib_grammar_decimal d = {.is_set = true, .is_negative = text.len && text.ptr[0] == '-'};
    long exponent = 0, point = -1, n = 0;
    size_t i = d.is_negative;
    for (; i < text.len && (text.ptr[i] | 32) != 'e'; i++) {
        if (text.ptr[i] == '.')
            point = n;
        else if (n == NIB_GRAMMAR_MAX_DIGITS)
            return false;
        else
            d.digits[n++] = text.ptr[i];
    }
    if (i < text.len) exponent = strtol(text.ptr + i + 1, NULL, 10);
    if (exponent > NIB_GRAMMAR_MAX_DIGITS || exponent < -NIB_GRAMMAR_MAX_DIGITS) return false;
    long n_int = (point < 0 ? n : point) + exponent, zeros = 0;
    while (zeros < n && d.digits[zeros] == '0') zeros++; /* in front */
    while (n > zeros && d.digits[n - 1] == '0') n--;     /* at the end */
    n -= zeros;
    n_int -= zeros;
    memmove(d.digits, d.digits + zeros, (size_t)n);
    if (n == 0) n_int = 0;
    long before = n_int < 0 ? -n_int : 0, after = n_int > n ? n_int - n : 0; /* zeros to add */
    if (n + before + after > NIB_GRAMMAR_MAX_DIGITS) return false;
    memmove(d.digits + before, d.digits, (size_t)n);
    memset(d.digits, '0', (size_t)before);
    memset(d.digits + before + n, '0', (size_t)after);
    d.n_int = (uint16_t)(n_int < 0 ? 0 : n_int);
    d.n_frac = (uint16_t)(n + before + after - d.n_int);
    if (n == 0) d.is_negative = false;
    *out = d;
    return true;
}

static int compare_magnitudes(const nib_grammar_decimal *a, const nib_grammar_decimal *b) {
    if (a->n_int != b->n_int) return a->n_int < b->n_int ? -1 : 1;
    size_t n_a = (size_t)a->n_int + a->n_frac, n_b = (size_t)b->n_int + b->n_frac, n = n_a < n_b ? n_a : n_b;
    int c = memcmp(a->digits, b->digits, n);
    return c ? (c < 0 ? -1 : 1) : n_a < n_b ? -1 : n_a > n_b;
}

int nib_grammar_decimal_compare(const nib_grammar_decimal *a, const nib_grammar_decimal *b) {
    if (a->is_negative != b->is_negative) return a->is_negative ? -1 : 1;
    int c = compare_magnitudes(a, b);
    return a->is_negative ? -c : c;
}

/* ---- magnitudes */

typedef struct magnitude {
    const nib_grammar_decimal *low, *high; /* is_set false: none */
    bool is_integer;
    bool one_digit;     /* before the point, not 0 */
    bool leading_zeros; /* allowed: exponents */
    uint32_t multiple;
} magnitude;

enum { IN_INT, IN_ZERO, AT_POINT, IN_FRAC }; /* where the reading is */

typedef struct spot {
    uint8_t part;
    int8_t low, high; /* comparisons so far: -1, 0, 1 */
    uint16_t n;       /* digits of the part, up to a number from which nothing changes */
    uint32_t rest;    /* modulo multiple */
} spot;

typedef struct drawing {
    nib_grammar_build *b;
    const magnitude *m;
    spot *spots;
    uint32_t *nodes;
    size_t n, spots_capacity, nodes_capacity;
    uint32_t *table; /* hash; index + 1 */
    size_t n_table;
    uint32_t end;
} drawing;

static size_t spot_slot(const drawing *d, const spot *s) {
    uint64_t key = (uint64_t)s->part << 60 ^ (uint64_t)(s->low + 1) << 56 ^ (uint64_t)(s->high + 1) << 52 ^
                   (uint64_t)s->n << 32 ^ s->rest;
    size_t at = (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 30) & (d->n_table - 1);
    for (; d->spots && d->table[at]; at = (at + 1) & (d->n_table - 1)) {
        const spot *x = &d->spots[d->table[at] - 1];
        if (x->part == s->part && x->low == s->low && x->high == s->high && x->n == s->n && x->rest == s->rest) break;
    }
    return at;
}

static uint32_t spot_node(drawing *d, spot s) {
    if (d->n * 2 >= d->n_table) {
        size_t n = d->n_table ? d->n_table * 2 : 64;
        uint32_t *table = nib_calloc(n, sizeof *table);
        if (!table) nib_grammar_build_fail(d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a number");
        if (!table) return 0;
        nib_free(d->table);
        d->table = table;
        d->n_table = n;
        for (size_t i = 0; i < d->n; i++) d->table[spot_slot(d, &d->spots[i])] = (uint32_t)i + 1;
    }
    size_t at = spot_slot(d, &s);
    if (d->nodes && d->table[at]) return d->nodes[d->table[at] - 1];
    if (!nib_grow(&d->spots, &d->spots_capacity, d->n + 1, sizeof *d->spots) ||
        !nib_grow(&d->nodes, &d->nodes_capacity, d->n + 1, sizeof *d->nodes))
        nib_grammar_build_fail(d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a number");
    if (d->b->status != NIB_OK) return 0;
    d->spots[d->n] = s;
    d->nodes[d->n] = nib_grammar_node(d->b);
    d->table[at] = (uint32_t)++d->n;
    return d->nodes[d->n - 1];
}

static int next_comparison(int so_far, const nib_grammar_decimal *bound, size_t at, size_t end, char digit) {
    if (so_far || !bound->is_set) return so_far;
    char other = at < end ? bound->digits[at] : '0';
    return digit < other ? -1 : digit > other;
}

/* A comparison when the part before the point has n digits. */
static int compare_lengths(int so_far, const nib_grammar_decimal *bound, uint16_t n) {
    return n < bound->n_int ? -1 : n > bound->n_int ? 1 : so_far;
}

/* Whether the number may end here: 0 is equal, unless more digits of the bound follow. */
static bool is_inside(const drawing *d, spot s) {
    const nib_grammar_decimal *low = d->m->low, *high = d->m->high;
    if (s.part == IN_INT || s.part == IN_ZERO) {
        s.low = (int8_t)compare_lengths(s.low, low, s.n);
        s.high = (int8_t)compare_lengths(s.high, high, s.n);
        s.n = 0;
    }
    if (s.low == 0 && s.n < low->n_frac) s.low = -1;
    if (s.high == 0 && s.n < high->n_frac) s.high = -1;
    bool above = !low->is_set || s.low > 0 || (s.low == 0 && !low->is_exclusive);
    bool below = !high->is_set || s.high < 0 || (s.high == 0 && !high->is_exclusive);
    return above && below && s.rest == 0;
}

static uint16_t most(uint16_t n, uint16_t a, uint16_t b) {
    uint16_t limit = (uint16_t)((a > b ? a : b) + 1);
    return n > limit ? limit : n;
}

static spot after_digit(const drawing *d, spot s, char digit) {
    const nib_grammar_decimal *low = d->m->low, *high = d->m->high;
    if (s.part == IN_INT) {
        s.low = (int8_t)next_comparison(s.low, low, s.n, low->n_int, digit);
        s.high = (int8_t)next_comparison(s.high, high, s.n, high->n_int, digit);
        s.n = most((uint16_t)(s.n + 1), low->n_int, high->n_int);
        if (s.n > low->n_int) s.low = low->is_set ? 1 : 0; /* longer: decided; one state for all */
        if (s.n > high->n_int) s.high = high->is_set ? 1 : 0;
        if (d->m->multiple > 1) s.rest = (uint32_t)(((uint64_t)s.rest * 10 + (uint64_t)(digit - '0')) % d->m->multiple);
        return s;
    }
    s.low = (int8_t)next_comparison(s.low, low, (size_t)low->n_int + s.n, (size_t)low->n_int + low->n_frac, digit);
    s.high =
        (int8_t)next_comparison(s.high, high, (size_t)high->n_int + s.n, (size_t)high->n_int + high->n_frac, digit);
    s.n = most((uint16_t)(s.n + 1), low->n_frac, high->n_frac);
    s.part = IN_FRAC;
    return s;
}

static void draw_spot(drawing *d, size_t i) {
    spot s = d->spots[i];
    uint32_t node = d->nodes[i];
    bool is_start = s.part == IN_INT && s.n == 0;
    if (!is_start && s.part != AT_POINT && is_inside(d, s)) nib_grammar_empty(d->b, node, d->end);
    bool can_go_on = s.part != IN_ZERO && !(d->m->one_digit && s.part == IN_INT && s.n > 0);
    for (char digit = '0'; can_go_on && digit <= '9' && d->b->status == NIB_OK; digit++) {
        spot next = after_digit(d, s, digit);
        if (is_start && digit == '0') { /* 0 has no digits, and nothing but a point follows it */
            if (d->m->one_digit) continue;
            next = s;
            if (!d->m->leading_zeros) next.part = IN_ZERO;
            if (d->m->leading_zeros) { /* 0 by itself, or in front of more */
                spot zero = s;
                zero.part = IN_ZERO;
                nib_grammar_bytes(d->b, node, spot_node(d, zero), '0', '0');
            }
        }
        nib_grammar_bytes(d->b, node, spot_node(d, next), (uint8_t)digit, (uint8_t)digit);
    }
    if (is_start || s.part > IN_ZERO || d->m->is_integer) return;
    s.low = (int8_t)(d->m->low->is_set ? compare_lengths(s.low, d->m->low, s.n) : 0);
    s.high = (int8_t)(d->m->high->is_set ? compare_lengths(s.high, d->m->high, s.n) : 0);
    s.part = AT_POINT;
    s.n = 0;
    nib_grammar_bytes(d->b, node, spot_node(d, s), '.', '.');
}

/* From a node to a node. */
static void draw_magnitude(nib_grammar_build *b, uint32_t from, uint32_t to, const magnitude *m) {
    drawing d = {.b = b, .m = m, .end = to};
    nib_grammar_empty(b, from, spot_node(&d, (spot){.part = IN_INT}));
    for (size_t i = 0; i < d.n && b->status == NIB_OK; i++) draw_spot(&d, i);
    nib_free(d.spots);
    nib_free(d.nodes);
    nib_free(d.table);
}

/* ---- exponents */

static nib_grammar_decimal small(long x) {
    nib_grammar_decimal d = {.is_set = true};
    char text[24];
    size_t n = 0;
    for (long rest = x < 0 ? -x : x; rest; rest /= 10) text[n++] = (char)('0' + rest % 10);
    for (size_t i = 0; i < n; i++) d.digits[i] = text[n - 1 - i];
    d.n_int = (uint16_t)n;
    return d;
}

/* [eE] and a whole number from low to high; beyond LONG_… there is no bound. */
enum { NO_BOUND = 100000 };
static void draw_exponent(nib_grammar_build *b, uint32_t from, uint32_t to, long low, long high) {
    static const nib_grammar_decimal none = {0};
    uint32_t behind_e = nib_grammar_node(b), minus = nib_grammar_node(b), plus = nib_grammar_node(b);
    nib_grammar_bytes(b, from, behind_e, 'e', 'e');
    nib_grammar_bytes(b, from, behind_e, 'E', 'E');
    nib_grammar_bytes(b, behind_e, minus, '-', '-');
    nib_grammar_bytes(b, behind_e, plus, '+', '+');
    nib_grammar_empty(b, behind_e, plus);
    nib_grammar_decimal a = small(low), z = small(high);
    if (high >= 0) {
        magnitude m = {low > 0 ? &a : &none, high < NO_BOUND ? &z : &none, true, false, true, 0};
        draw_magnitude(b, plus, to, &m);
    }
    if (low <= 0) {
        magnitude m = {high < 0 ? &z : &none, low > -NO_BOUND ? &a : &none, true, false, true, 0};
        draw_magnitude(b, minus, to, &m);
    }
}

/* d.ddd and the exponent with which it is x > 0. */
static long split(const nib_grammar_decimal *x, nib_grammar_decimal *mantissa) {
    long exponent = (long)x->n_int - 1;
    size_t zeros = 0, n = (size_t)x->n_int + x->n_frac;
    while (zeros < n && x->digits[zeros] == '0') zeros++; /* only when n_int is 0 */
    *mantissa = *x;
    mantissa->n_int = 1;
    mantissa->n_frac = (uint16_t)(n - zeros - 1);
    memmove(mantissa->digits, x->digits + zeros, n - zeros);
    while (mantissa->n_frac && mantissa->digits[mantissa->n_frac] == '0') mantissa->n_frac--;
    return exponent - (long)zeros;
}

static void draw_with_exponent(nib_grammar_build *b, uint32_t from, uint32_t to, const magnitude *m) {
    static const nib_grammar_decimal none = {0};
    nib_grammar_decimal low = none, high = none;
    bool has_low = m->low->is_set && m->low->n_int + m->low->n_frac > 0, has_high = m->high->is_set;
    if (has_high && m->high->n_int + m->high->n_frac == 0) return; /* only 0 */
    long first = has_low ? split(m->low, &low) : -NO_BOUND, last = has_high ? split(m->high, &high) : NO_BOUND;
    const struct {
        const nib_grammar_decimal *low, *high;
        long first, last;
        bool is_wanted;
    } cases[] = {
        {&low, &high, first, last, has_low && has_high && first == last},
        {&low, &none, first, first, has_low && first != last},
        {&none, &none, has_low ? first + 1 : first, has_high ? last - 1 : last, true},
        {&none, &high, last, last, has_high && first != last},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!cases[i].is_wanted || cases[i].first > cases[i].last) continue;
        uint32_t middle = nib_grammar_node(b);
        magnitude part = {cases[i].low, cases[i].high, false, true, false, 0};
        draw_magnitude(b, from, middle, &part);
        draw_exponent(b, middle, to, cases[i].first, cases[i].last);
    }
}

/* ---- numbers */

static void draw_sign(nib_grammar_build *b, uint32_t from, uint32_t to, const nib_grammar_decimal *low,
                      const nib_grammar_decimal *high, const nib_grammar_number *n) {
    magnitude m = {low, high, n->is_integer, false, false, n->multiple};
    draw_magnitude(b, from, to, &m);
    if (!n->is_integer) draw_with_exponent(b, from, to, &m);
}

nib_grammar_piece nib_grammar_number_draw(nib_grammar_build *b, const nib_grammar_number *n) {
    nib_grammar_piece piece = {nib_grammar_node(b), nib_grammar_node(b)};
    nib_grammar_decimal zero = {.is_set = true}, none = {0};
    const nib_grammar_decimal *low = &n->low, *high = &n->high;
    bool low_is_zero = low->is_set && low->n_int + low->n_frac == 0,
         high_is_zero = high->is_set && high->n_int + high->n_frac == 0;
    if (!high->is_set || !high->is_negative) /* from the greater of low and 0 */
        draw_sign(b, piece.start, piece.end, low->is_set && !low->is_negative ? low : &none, high, n);
    if (!low->is_set || low->is_negative || (low_is_zero && !low->is_exclusive)) {
        uint32_t minus = nib_grammar_node(b);
        nib_grammar_bytes(b, piece.start, minus, '-', '-');
        const nib_grammar_decimal *from = high->is_set && (high->is_negative || high_is_zero) ? high : &none;
        draw_sign(b, minus, piece.end, from, low_is_zero ? &zero : low->is_set ? low : &none, n);
    }
    return piece;
}
