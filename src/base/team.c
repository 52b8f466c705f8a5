/* base/team.c - worker threads and a spin-then-sleep barrier; and the look, every fifty milliseconds of work, at how long each
 * thread had to wait for a CPU (base/crowd decides what follows).
 *
 * At the barrier every thread counts its meetings in a line of its own, and reads the lines of the others. So who comes last waits
 * for one line to cross to the other core, and so do those who spin; a counter of arrivals and a word that the last one changes
 * crossed three times, one after the other (0.44 us for two threads, now 0.36, and 0.2 less between steps of 1 us). */
#include "base/team.h"

#include "base/crowd.h"
#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* About 30 us of pauses, then yields for half a millisecond, longer where others take them up: a thread that lost its CPU is not waited
 * for at full speed, but what runs instead of it, as the server's other threads, is mostly done sooner than a sleeper on a CPU gone
 * idle would be awake. */
#define SPIN_PAUSES 2000
#define SPIN_YIELDS 1000

#define LOOK_SECONDS 0.05

/* A thread at the barrier. Only `met` is read by others: 64 bits, for a thread that is left out of runs stays far behind. */
typedef struct lane {
    _Alignas(128) _Atomic uint64_t met; /* meetings that it has come to */
    _Alignas(128) int n;                /* threads of this run */
    int n_here;                         /* of them, those that are known to be here */
} lane;

typedef struct worker {
    nib_team *team;
    pthread_t thread;
    int index;
    double waited; /* for a CPU, in all, when the last look was taken */
} worker;

/* Where threads sleep that have waited too long. */
typedef struct bed {
    _Alignas(64) atomic_int sleepers;
    pthread_cond_t changed;
} bed;

/* The word that begins a run: number of the run, and how many threads take part in it, in the low bits. One word, so that
 * a thread that was left out of some runs sees both of the same run. */
#define ACTIVE_BITS 11
#define ACTIVE_MASK ((1u << ACTIVE_BITS) - 1)
#define QUIT ACTIVE_MASK /* instead of a number of threads: the end */

struct nib_team {
    int n_threads, n_started, n_pauses, n_yields;
    int n_limit, n_active;  /* of the next run, and of this one */
    uint64_t n_met;         /* meetings before this run */
    _Alignas(64) atomic_uint run;
    bed run_bed, barrier_bed;
    pthread_mutex_t mutex;  /* of both beds */
    nib_team_fn fn;
    void *arg;
    worker *workers;        /* n_threads - 1 */
    bool adapts, looks;     /* looks: the threads of this run note how long they waited */
    bool is_compared;       /* the threads of the next look have taken one before */
    nib_crowd crowd;
    double busy;            /* seconds of runs since the last look */
    pthread_t caller;       /* of the last run, and its waiting */
    double caller_waited;
    atomic_int late;        /* threads, counted while a look is taken */
    lane lanes[];           /* by thread */
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Who changes what sleepers wait for does so before it looks at their number, and they raise it before they look again, so a wake-up
 * cannot be missed. The mutex is the only lock. */
static void wake(nib_team *team, bed *b) {
    if (!atomic_load(&b->sleepers)) return;
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&b->changed);
    pthread_mutex_unlock(&team->mutex);
}

/* What is waited for: a run to begin after run `word`, or all threads of the run of `lane` to be here. */
typedef struct wish {
    lane *lane;
    unsigned word;
} wish;

static bool are_all_here(const nib_team *team, lane *l) {
    uint64_t met = atomic_load_explicit(&l->met, memory_order_relaxed);
    while (l->n_here < l->n && atomic_load(&team->lanes[l->n_here].met) >= met) l->n_here++;
    return l->n_here == l->n;
}

static bool is_granted(const nib_team *team, const wish *w) {
    return w->lane ? are_all_here(team, w->lane) : atomic_load(&team->run) != w->word;
}

static void wait_for(nib_team *team, const wish *w, bool spins) {
    for (int i = 0; spins && i < team->n_pauses; i++) {
        if (is_granted(team, w)) return;
        pause_cpu();
    }
    for (int i = 0; spins && i < team->n_yields; i++) {
        if (is_granted(team, w)) return;
        sched_yield();
    }
    bed *b = w->lane ? &team->barrier_bed : &team->run_bed;
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&b->sleepers, 1);
    while (!is_granted(team, w)) pthread_cond_wait(&b->changed, &team->mutex);
    atomic_fetch_sub(&b->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
}

void nib_team_barrier(nib_team *team, int index) {
    lane *l = &team->lanes[index];
    l->n_here = 0;
    if (l->n == 1) return;
    atomic_store(&l->met, atomic_load_explicit(&l->met, memory_order_relaxed) + 1);
    /* Of two that arrive together, at least the one that comes second sees both; it wakes the others. */
    if (are_all_here(team, l)) wake(team, &team->barrier_bed);
    else wait_for(team, &(wish){.lane = l}, true);
}

/* A thread of n that begins a run is at the meeting that the others are at. */
static void enter(nib_team *team, int index, int n) {
    team->lanes[index].n = n;
    atomic_store_explicit(&team->lanes[index].met, team->n_met, memory_order_relaxed);
}

/* Notes how long the calling thread has waited; counts it when that was too long. */
static void look(nib_team *team, double *waited) {
    double now = nib_sys_cpu_waited();
    if (team->is_compared && now - *waited > nib_crowd_late(team->n_active) * team->busy) atomic_fetch_add(&team->late, 1);
    *waited = now;
}

static void *work(void *arg) {
    worker *w = arg;
    nib_team *team = w->team;
    bool takes_part = true; /* whoever is left out of runs sleeps at once: others want the CPU */
    for (unsigned word = 0;;) {
        wait_for(team, &(wish){.word = word}, takes_part);
        word = atomic_load(&team->run);
        unsigned n = word & ACTIVE_MASK;
        if (n == QUIT) return NULL;
        takes_part = (unsigned)w->index < n;
        if (!takes_part) continue;
        enter(team, w->index, (int)n);
        team->fn(team->arg, w->index, (int)n);
        if (team->looks) look(team, &w->waited);
        nib_team_barrier(team, w->index);
    }
}

/* Begins the next run with n threads, or QUIT. */
static void begin(nib_team *team, unsigned n) {
    unsigned number = (atomic_load(&team->run) >> ACTIVE_BITS) + 1;
    atomic_store(&team->run, number << ACTIVE_BITS | n);
    wake(team, &team->run_bed);
}

nib_status nib_team_new(nib_team **out, int n_threads, int n_cpus, nib_error *err) {
    *out = NULL;
    if (n_threads < 1 || n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "threads: %d, expected 1 to 1024", n_threads);
    void *place;
    size_t n_bytes = sizeof(nib_team) + (size_t)n_threads * sizeof(lane);
    if (posix_memalign(&place, _Alignof(nib_team), n_bytes) != 0) return nib_fail_nomem(err, n_bytes, "threads");
    nib_team *team = place;
    *team = (nib_team){.n_threads = n_threads, .n_started = 1, .n_limit = n_threads};
    memset(team->lanes, 0, (size_t)n_threads * sizeof(lane));
    if (n_threads <= n_cpus) team->n_pauses = SPIN_PAUSES, team->n_yields = SPIN_YIELDS;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->barrier_bed.changed, NULL);
    pthread_cond_init(&team->run_bed.changed, NULL);
    team->workers = nib_calloc((size_t)n_threads, sizeof *team->workers);
    if (!team->workers) {
        nib_team_free(team);
        return nib_fail_nomem(err, sizeof(worker) * (size_t)n_threads, "threads");
    }
    for (int i = 1; i < n_threads; i++, team->n_started++) {
        worker *w = &team->workers[i - 1];
        *w = (worker){.team = team, .index = i};
        int code = pthread_create(&w->thread, NULL, work, w);
        if (!code) continue;
        nib_fail(err, NIB_E_NOMEM, "thread %d of %d could not be started (error %d): ask for fewer threads",
                 team->n_started + 1, n_threads, code);
        nib_team_free(team);
        return NIB_E_NOMEM;
    }
    *out = team;
    return NIB_OK;
}

void nib_team_free(nib_team *team) {
    if (!team) return;
    begin(team, QUIT);
    for (int i = 0; i < team->n_started - 1; i++) pthread_join(team->workers[i].thread, NULL);
    nib_free(team->workers);
    pthread_cond_destroy(&team->run_bed.changed);
    pthread_cond_destroy(&team->barrier_bed.changed);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

int nib_team_size(const nib_team *team) {
    return team->n_threads;
}

void nib_team_limit(nib_team *team, int n_threads) {
    team->n_limit = n_threads;
}

void nib_team_adapt(nib_team *team) {
    team->adapts = true;
    nib_crowd_init(&team->crowd, team->n_threads);
}

int nib_team_active(const nib_team *team) {
    return team->adapts && team->crowd.n < team->n_limit ? team->crowd.n : team->n_limit;
}

/* After a run that took a look: another number of threads, or another caller, begins with a look that only notes. */
static void judge(nib_team *team, double now) {
    if (team->is_compared) nib_crowd_judge(&team->crowd, now, atomic_load(&team->late));
    team->is_compared = nib_team_active(team) == team->n_active;
    team->busy = 0;
}

void nib_team_run(nib_team *team, nib_team_fn fn, void *arg) {
    int n = team->n_active = nib_team_active(team);
    double start = team->adapts ? nib_sys_now() : 0;
    team->fn = fn;
    team->arg = arg;
    team->looks = team->adapts && (team->busy >= LOOK_SECONDS || !team->is_compared);
    if (team->looks && team->is_compared && !pthread_equal(team->caller, pthread_self())) team->is_compared = false;
    team->caller = pthread_self();
    atomic_store(&team->late, 0);
    enter(team, 0, n);
    if (n > 1) begin(team, (unsigned)n);
    fn(arg, 0, n);
    if (team->looks) look(team, &team->caller_waited);
    nib_team_barrier(team, 0);
    team->n_met = atomic_load_explicit(&team->lanes[0].met, memory_order_relaxed);
    if (!team->adapts) return;
    double now = nib_sys_now();
    team->busy += now - start;
    if (team->looks) judge(team, now);
}
