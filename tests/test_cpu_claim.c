/* tests/test_cpu_claim.c - every group of a product is somebody's once, whoever takes the chunks and in whatever order; units stay
 * whole; the parts of the next product do not disturb this one's; threads that race for chunks. */
#include "cpu/internal.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MAX_GROUPS 4000
#define MAX_THREADS 8

typedef struct fixture {
    nib_plan plan;
    nib_plan_step steps[2];
    nib_cpu_weight weights[5];
    nib_plan_batch batch;
    nib_plan_act acts[1];
    bool gates[2];
    unsigned forms[1];
    nib_cpu_lane lanes[MAX_THREADS];
    nib_cpu cpu;
    unsigned char taken[2][3][MAX_GROUPS]; /* by step, product and group: how often */
} fixture;

static unsigned seed = 1;

static uint32_t random_below(uint32_t n) {
    seed = seed * 1103515245 + 12345;
    return (seed >> 8) % n;
}

/* A step of three products and one of one, which makes logits where that is wanted. */
static void open_fixture(fixture *f, int n_threads, uint32_t n_tok, bool logits) {
    memset(f, 0, sizeof *f);
    f->plan = (nib_plan){.steps = f->steps, .n_steps = 2, .acts = f->acts, .n_acts = 1, .logits = logits ? 9 : -1};
    f->steps[0] = (nib_plan_step){.op = NIB_OP_MATMUL, .n_products = 3, .product = {{0, -1, 1}, {1, -1, 2}, {2, -1, 3}}};
    f->steps[1] = (nib_plan_step){.op = NIB_OP_MATMUL, .n_products = 1, .product = {{3, -1, 9}}};
    for (int i = 0; i < 5; i++) {
        uint32_t n_groups = 1 + random_below(i == 3 ? MAX_GROUPS - 1 : 90);
        f->weights[i].matrix = (nib_cpu_matrix){.n_groups = n_groups, .group_bytes = 64 << random_below(9)};
    }
    f->batch.n_tok = f->batch.n_out = n_tok;
    f->cpu.plan = &f->plan;
    f->cpu.weights = f->weights;
    f->cpu.batch = &f->batch;
    f->cpu.gates = f->gates;
    f->cpu.act_forms = f->forms;
    f->cpu.lanes = f->lanes;
    f->cpu.n_active = n_threads;
}

static bool claim(const fixture *f, const nib_plan_step *s, int index, nib_cpu_chunk *c) {
    nib_cpu_claims claims = nib_cpu_claims_of(&f->cpu, s, index);
    return nib_cpu_claim_chunk(&claims, c);
}

/* The first step becomes two products that are gated together: groups of the first stand for both, 16 of them for a block of codes. */
static void open_gated(fixture *f, int n_threads) {
    uint32_t n_blocks = (uint32_t)n_threads * NIB_GATE_UNITS + random_below(40);
    open_fixture(f, n_threads, 16, false);
    f->forms[0] = NIB_ACT_Q256;
    f->gates[0] = true;
    f->cpu.n_sums = 16 * NIB_GATE_SUMS;
    f->steps[0].n_products = 2;
    f->steps[1].n_in = 256 * n_blocks;
    f->weights[0].matrix.n_groups = f->weights[1].matrix.n_groups = 16 * n_blocks;
    assert_true(nib_cpu_gates_chunks(&f->cpu, &f->steps[0]));
}

static void note(fixture *f, int step, const nib_cpu_chunk *c, uint32_t unit) {
    uint32_t n_groups = f->weights[f->steps[step].product[c->product].weight].matrix.n_groups;
    assert_true(c->g0 < c->g1 && c->g1 <= n_groups);
    assert_int_equal(c->g0 % unit, 0);
    assert_true(c->g1 % unit == 0 || c->g1 == n_groups);
    for (uint32_t g = c->g0; g < c->g1; g++) f->taken[step][c->product][g]++;
}

static void check_all_taken(const fixture *f) {
    for (int step = 0; step < 2; step++)
        for (int j = 0; j < (f->gates[step] ? 1 : f->steps[step].n_products); j++) {
            uint32_t n = f->weights[f->steps[step].product[j].weight].matrix.n_groups;
            for (uint32_t g = 0; g < MAX_GROUPS; g++) assert_int_equal(f->taken[step][j][g], g < n);
        }
}

/* Threads in any order, some of which come late; who is done opens its part of the next product at once. */
static void test_every_group_once(void **unused) {
    (void)unused;
    static fixture f;
    for (int round = 0; round < 3000; round++) {
        int n = 1 + (int)random_below(MAX_THREADS);
        bool gated = round % 5 == 0, logits = round % 2 && !gated;
        if (gated) open_gated(&f, n);
        else open_fixture(&f, n, 1 + random_below(40), logits);
        for (int i = 0; i < n; i++) nib_cpu_open_part(&f.cpu, &f.steps[0], i);
        for (int step = 0; step < 2; step++) {
            bool done[MAX_THREADS] = {0};
            for (int n_done = 0; n_done < n;) {
                int i = (int)random_below(round % 3 ? (uint32_t)n : 1 + random_below((uint32_t)n)); /* small numbers more often */
                nib_cpu_chunk c;
                for (int j = 0; j < n && done[i]; j++) i = (i + 1) % n;
                if (claim(&f, &f.steps[step], i, &c)) {
                    note(&f, step, &c, step == 0 && gated ? 16 : step == 1 && logits ? 2 : 1);
                    continue;
                }
                done[i] = true;
                n_done++;
                if (step == 0) nib_cpu_open_part(&f.cpu, &f.steps[1], i);
            }
        }
        check_all_taken(&f);
    }
}

/* A thread alone reads on from chunk to chunk; then it helps, from the back. */
static void test_order(void **unused) {
    (void)unused;
    static fixture f;
    open_fixture(&f, 2, 1, false);
    f.weights[3].matrix.n_groups = 100;
    for (int i = 0; i < 2; i++) nib_cpu_open_part(&f.cpu, &f.steps[1], i);
    nib_cpu_chunk c;
    uint32_t at = 0;
    while (at < 50) {
        assert_true(claim(&f, &f.steps[1], 0, &c));
        assert_int_equal(c.g0, at);
        at = c.g1;
    }
    assert_int_equal(at, 50);
    assert_true(claim(&f, &f.steps[1], 0, &c));
    assert_int_equal(c.g1, 100);
    assert_true(c.g0 >= 75);
    assert_true(claim(&f, &f.steps[1], 1, &c));
    assert_int_equal(c.g0, 50);
}

typedef struct racer {
    fixture *f;
    int index;
    pthread_barrier_t *barrier;
    unsigned char taken[2][3][MAX_GROUPS];
} racer;

static void *race(void *arg) {
    racer *r = arg;
    for (int step = 0; step < 2; step++) {
        pthread_barrier_wait(r->barrier);
        for (nib_cpu_chunk c; claim(r->f, &r->f->steps[step], r->index, &c);)
            for (uint32_t g = c.g0; g < c.g1; g++) r->taken[step][c.product][g]++;
        if (step == 0) nib_cpu_open_part(&r->f->cpu, &r->f->steps[1], r->index);
    }
    return NULL;
}

static void test_races(void **unused) {
    (void)unused;
    static fixture f;
    static racer racers[4];
    for (int round = 0; round < 300; round++) {
        int n = 2 + round % 3;
        open_fixture(&f, n, 1, round % 2);
        pthread_barrier_t barrier;
        pthread_t threads[4];
        assert_int_equal(pthread_barrier_init(&barrier, NULL, (unsigned)n), 0);
        for (int i = 0; i < n; i++) nib_cpu_open_part(&f.cpu, &f.steps[0], i);
        memset(racers, 0, sizeof racers);
        for (int i = 0; i < n; i++) {
            racers[i].f = &f, racers[i].index = i, racers[i].barrier = &barrier;
            assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
        }
        for (int i = 0; i < n; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
        pthread_barrier_destroy(&barrier);
        for (int i = 0; i < n; i++)
            for (size_t k = 0; k < sizeof f.taken; k++) ((unsigned char *)f.taken)[k] += ((unsigned char *)racers[i].taken)[k];
        check_all_taken(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_group_once),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
