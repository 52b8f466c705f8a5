/* cpu/claim.c - how threads share the groups of a product: each begins with a part of its own, and who is done helps others.
 *
 * A part is contiguous, so that reading and its prefetch run on from chunk to chunk, and what is left of it stands in a line
 * of its thread: taking a chunk costs nothing, where a counter that all take from goes from core to core. Who is done takes
 * from the back of the part that has most left. Chunks shrink towards the end of a part, so that the threads finish together: one
 * that waits for the last chunk of 64 KiB waits for 4 us, in a step of 9.
 *
 * The parts of a product are opened before the barrier that ends the product before it, each by its thread. There are two sets in
 * turn, as others may still be taking from this product's. */
#include "cpu/internal.h"

#define DECODE_CHUNK_BYTES (64 << 10) /* keeps the reads contiguous; decoding is bound by them */
#define PREFILL_CHUNK_GROUPS 8        /* stay in L2 while all tokens pass over them */
#define PREFILL_ROWS 16

typedef struct part {
    uint32_t lo, hi; /* groups lo … hi-1, counted through the products of the step */
} part;

static uint64_t packed(part p) {
    return (uint64_t)p.hi << 32 | p.lo;
}

static part unpacked(uint64_t word) {
    return (part){(uint32_t)word, (uint32_t)(word >> 32)};
}

static uint32_t max_chunk(const nib_cpu_matrix *m, uint32_t n_rows) {
    if (n_rows >= PREFILL_ROWS) return PREFILL_CHUNK_GROUPS;
    size_t n = DECODE_CHUNK_BYTES / m->group_bytes;
    return n < 1 ? 1 : (uint32_t)n;
}

nib_cpu_claims nib_cpu_claims_of(const nib_cpu *cpu, const nib_plan_step *s, int index) {
    bool gates = nib_cpu_gates_chunks(cpu, s), makes_logits = s->product[0].out == cpu->plan->logits;
    nib_cpu_claims c = {.lanes = cpu->lanes, .n_lanes = cpu->n_active, .index = index};
    c.unit = gates ? nib_cpu_gate_unit(cpu, s) : makes_logits ? NIB_BLOCK_VALUES / NIB_GROUP_ROWS : 1;
    for (int j = 0; j < (gates ? 1 : s->n_products); j++) {
        const nib_cpu_matrix *m = nib_cpu_matrix_of(cpu, s, j);
        uint32_t most = max_chunk(m, nib_cpu_n_rows(cpu, s->rows)) / c.unit * c.unit;
        c.most[j] = most < c.unit ? c.unit : most;
        c.first[j] = c.n_groups;
        c.first[j + 1] = c.n_groups += m->n_groups;
    }
    return c;
}

/* The product that has group `at`. */
static int product_at(const nib_cpu_claims *c, uint32_t at) {
    int j = 0;
    while (at >= c->first[j + 1]) j++;
    return j;
}

/* The part that a thread begins with: whole units. */
static part part_of(const nib_cpu_claims *c) {
    uint64_t unit = c->unit, n = (uint64_t)c->n_lanes, i = (uint64_t)c->index, n_units = (c->n_groups + unit - 1) / unit;
    uint64_t lo = n_units * i / n * unit, hi = n_units * (i + 1) / n * unit;
    return (part){(uint32_t)lo, (uint32_t)(hi < c->n_groups ? hi : c->n_groups)};
}

void nib_cpu_open_part(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_lane *lane = &cpu->lanes[index];
    nib_cpu_claims c = nib_cpu_claims_of(cpu, s, index);
    lane->turn++;
    atomic_store_explicit(&lane->left[lane->turn % 2], packed(part_of(&c)), memory_order_relaxed);
}

/* The thread with most left, -1 when nobody has anything. */
static int richest(const nib_cpu_claims *c, unsigned set) {
    int best = -1;
    uint32_t most = 0;
    for (int i = 0; i < c->n_lanes; i++) {
        part p = unpacked(atomic_load_explicit(&c->lanes[i].left[set], memory_order_relaxed));
        if (p.hi - p.lo > most) most = p.hi - p.lo, best = i;
    }
    return best;
}

/* Takes a chunk from the front or the back of what is left in a part; false when nothing is. */
static bool take(const nib_cpu_claims *c, _Atomic uint64_t *left, bool front, nib_cpu_chunk *chunk) {
    uint64_t word = atomic_load_explicit(left, memory_order_relaxed);
    part p, taken;
    int j;
    do {
        p = unpacked(word);
        if (p.lo == p.hi) return false;
        j = product_at(c, front ? p.lo : p.hi - 1);
        uint32_t lo = p.lo > c->first[j] ? p.lo : c->first[j], hi = p.hi < c->first[j + 1] ? p.hi : c->first[j + 1];
        uint32_t n = (p.hi - p.lo) / 2 / c->unit * c->unit;
        if (n > c->most[j]) n = c->most[j];
        if (n < c->unit) n = c->unit;
        if (n > hi - lo) n = hi - lo;
        taken = front ? (part){lo, lo + n} : (part){(hi - n + c->unit - 1) / c->unit * c->unit, hi}; /* the last unit may be a short one */
        if (front) p.lo = taken.hi;
        else p.hi = taken.lo;
    } while (!atomic_compare_exchange_weak_explicit(left, &word, packed(p), memory_order_relaxed, memory_order_relaxed));
    *chunk = (nib_cpu_chunk){j, taken.lo - c->first[j], taken.hi - c->first[j]};
    return true;
}

bool nib_cpu_claim_chunk(const nib_cpu_claims *c, nib_cpu_chunk *chunk) {
    unsigned set = c->lanes[c->index].turn % 2;
    if (take(c, &c->lanes[c->index].left[set], true, chunk)) return true;
    for (int i; (i = richest(c, set)) >= 0;)
        if (take(c, &c->lanes[i].left[set], false, chunk)) return true;
    return false;
}
