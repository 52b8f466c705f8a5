/* base/team.c - worker threads and a spin-then-sleep barrier (a counter and a generation number). */
#include "base/team.h"

#include "base/mem.h"
#include "base/status.h"

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
} worker;

struct nib_team {
    int n_threads, n_started, n_pauses, n_yields;
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint generation;
    _Alignas(64) atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t woken;   /* a barrier opened, or a run began */
    nib_team_fn fn;
    void *arg;
    bool quit;
    worker *workers;        /* n_threads - 1 */
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_until_open(nib_team *team, unsigned generation) {
    /* mutex is the only lock; sleepers is raised before the generation is looked at again, and the last to arrive
     * changes the generation before it looks at sleepers, so a wake-up cannot be missed. */
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    while (atomic_load(&team->generation) == generation) pthread_cond_wait(&team->woken, &team->mutex);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
}

void nib_team_barrier(nib_team *team) {
    if (team->n_threads == 1) return;
    unsigned generation = atomic_load(&team->generation);
    if (atomic_fetch_add(&team->arrived, 1) == team->n_threads - 1) {
        atomic_store(&team->arrived, 0);
        atomic_store(&team->generation, generation + 1);
        if (atomic_load(&team->sleepers)) {
            pthread_mutex_lock(&team->mutex);
            pthread_cond_broadcast(&team->woken);
            pthread_mutex_unlock(&team->mutex);
        }
        return;
    }
    for (int i = 0; i < team->n_pauses; i++) {
        if (atomic_load_explicit(&team->generation, memory_order_acquire) != generation) return;
        pause_cpu();
    }
    for (int i = 0; i < team->n_yields; i++) {
        if (atomic_load_explicit(&team->generation, memory_order_acquire) != generation) return;
        sched_yield();
    }
    sleep_until_open(team, generation);
}

/* A run is two barriers: one that starts it, one that ends it. */
static void *work(void *arg) {
    worker *w = arg;
    nib_team *team = w->team;
    pthread_mutex_lock(&team->mutex); /* nib_team_new holds it until it is known how many meet at barriers */
    pthread_mutex_unlock(&team->mutex);
    for (;;) {
        nib_team_barrier(team);
        if (team->quit) return NULL;
        team->fn(team->arg, w->index, team->n_threads);
        nib_team_barrier(team);
    }
}

nib_status nib_team_new(nib_team **out, int n_threads, int n_cpus, nib_error *err) {
    *out = NULL;
    if (n_threads < 1 || n_threads > 1024)
        return nib_fail(err, NIB_E_ARG, "threads: %d, expected 1 to 1024", n_threads);
    void *place;
    if (posix_memalign(&place, 64, sizeof(nib_team)) != 0) return nib_fail_nomem(err, sizeof(nib_team), "threads");
    nib_team *team = place;
    *team = (nib_team){.n_threads = n_threads, .n_started = 1};
    if (n_threads <= n_cpus) team->n_pauses = SPIN_PAUSES, team->n_yields = SPIN_YIELDS;
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->woken, NULL);
    team->workers = nib_calloc((size_t)n_threads, sizeof *team->workers);
    if (!team->workers) {
        nib_team_free(team);
        return nib_fail_nomem(err, sizeof(worker) * (size_t)n_threads, "threads");
    }
    pthread_mutex_lock(&team->mutex);
    int code = 0;
    for (int i = 1; i < n_threads; i++, team->n_started++) {
        worker *w = &team->workers[i - 1];
        *w = (worker){.team = team, .index = i};
        code = pthread_create(&w->thread, NULL, work, w);
        if (code) break;
    }
    team->n_threads = team->n_started;
    pthread_mutex_unlock(&team->mutex);
    if (code) {
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
    if (team->n_started > 1) {
        team->quit = true;
        nib_team_barrier(team);
        for (int i = 0; i < team->n_started - 1; i++) pthread_join(team->workers[i].thread, NULL);
    }
    nib_free(team->workers);
    pthread_cond_destroy(&team->woken);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

int nib_team_size(const nib_team *team) {
    return team->n_threads;
}

void nib_team_run(nib_team *team, nib_team_fn fn, void *arg) {
    team->fn = fn;
    team->arg = arg;
    nib_team_barrier(team);
    fn(arg, 0, team->n_threads);
    nib_team_barrier(team);
}
