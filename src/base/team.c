/* base/team.c - worker threads and a spin-then-sleep barrier (a counter and a generation number); and the look, every
 * fifty milliseconds of work, at how long each thread had to wait for a CPU (base/crowd decides what follows). */
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

/* About 20 us of pauses, then a few yields: a thread that lost its CPU is not waited for at full speed. */
#define SPIN_PAUSES 2000
#define SPIN_YIELDS 50

typedef struct worker {
    nib_team *team;
    pthread_t thread;
    int index;
    double waited; /* for a CPU, in all, when the last look was taken */
} worker;

#define LOOK_SECONDS 0.05

/* A word that threads wait for; who waited too long sleeps. */
typedef struct gate {
    _Alignas(64) atomic_uint word;
    _Alignas(64) atomic_int sleepers;
    pthread_cond_t changed;
} gate;

/* The word of the run gate: number of the run, and how many threads take part in it, in the low bits. One word, so that
 * a thread that was left out of some runs sees both of the same run. */
#define ACTIVE_BITS 11
#define ACTIVE_MASK ((1u << ACTIVE_BITS) - 1)
#define QUIT ACTIVE_MASK /* instead of a number of threads: the end */

struct nib_team {
    int n_threads, n_started, n_pauses, n_yields;
    int n_limit, n_active;  /* of the next run, and of this one */
    _Alignas(64) atomic_int arrived;
    gate barrier, run;
    pthread_mutex_t mutex;  /* of both gates */
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
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_at(nib_team *team, gate *g, unsigned old) {
    /* mutex is the only lock; sleepers is raised before the word is looked at again, and who changes the word does so
     * before looking at sleepers, so a wake-up cannot be missed. */
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->word) == old) pthread_cond_wait(&g->changed, &team->mutex);
    atomic_fetch_sub(&g->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
}

/* Waits until the word is no longer `old`; returns the new one. */
static unsigned wait_at(nib_team *team, gate *g, unsigned old, bool spins) {
    unsigned word;
    for (int i = 0; spins && i < team->n_pauses; i++) {
        if ((word = atomic_load_explicit(&g->word, memory_order_acquire)) != old) return word;
        pause_cpu();
    }
    for (int i = 0; spins && i < team->n_yields; i++) {
        if ((word = atomic_load_explicit(&g->word, memory_order_acquire)) != old) return word;
        sched_yield();
    }
    sleep_at(team, g, old);
    return atomic_load(&g->word);
}

static void change(nib_team *team, gate *g, unsigned word) {
    atomic_store(&g->word, word);
    if (!atomic_load(&g->sleepers)) return;
    pthread_mutex_lock(&team->mutex);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&team->mutex);
}

void nib_team_barrier(nib_team *team) {
    int last = team->n_active - 1; /* read before arriving: after that the next run may begin */
    if (last == 0) return;
    unsigned generation = atomic_load(&team->barrier.word);
    if (atomic_fetch_add(&team->arrived, 1) < last) {
        wait_at(team, &team->barrier, generation, true);
        return;
    }
    atomic_store(&team->arrived, 0);
    change(team, &team->barrier, generation + 1);
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
        word = wait_at(team, &team->run, word, takes_part);
        unsigned n = word & ACTIVE_MASK;
        if (n == QUIT) return NULL;
        takes_part = (unsigned)w->index < n;
        if (!takes_part) continue;
        team->fn(team->arg, w->index, (int)n);
        if (team->looks) look(team, &w->waited);
        nib_team_barrier(team);
    }
}

/* Begins the next run with n threads, or QUIT. */
static void begin(nib_team *team, unsigned n) {
    unsigned number = (atomic_load(&team->run.word) >> ACTIVE_BITS) + 1;
    change(team, &team->run, number << ACTIVE_BITS | n);
}

nib_status nib_team_new(nib_team **out, int n_threads, int n_cpus, nib_error *err) {
    *out = NULL;
    if (n_threads < 1 || n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "threads: %d, expected 1 to 1024", n_threads);
    void *place;
    if (posix_memalign(&place, 64, sizeof(nib_team)) != 0) return nib_fail_nomem(err, sizeof(nib_team), "threads");
    nib_team *team = place;
    *team = (nib_team){.n_threads = n_threads, .n_started = 1, .n_limit = n_threads};
    if (n_threads <= n_cpus) team->n_pauses = SPIN_PAUSES, team->n_yields = SPIN_YIELDS;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->barrier.changed, NULL);
    pthread_cond_init(&team->run.changed, NULL);
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
    pthread_cond_destroy(&team->run.changed);
    pthread_cond_destroy(&team->barrier.changed);
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
    if (n > 1) begin(team, (unsigned)n);
    fn(arg, 0, n);
    if (team->looks) look(team, &team->caller_waited);
    nib_team_barrier(team);
    if (!team->adapts) return;
    double now = nib_sys_now();
    team->busy += now - start;
    if (team->looks) judge(team, now);
}
