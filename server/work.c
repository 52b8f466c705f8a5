/* server/work.c - threads and a queue (work.h). */
#include "work.h"

#include "base/mem.h"
#include "base/status.h"

#include <pthread.h>

enum { MAX_THREADS = 8 };

struct nib_server_work {
    pthread_t threads[MAX_THREADS];
    int n_threads;
    pthread_mutex_t lock;
    pthread_cond_t arrived;
    nib_server_job *first, **end;
    int n_long, most_long; /* of the jobs that run */
    bool is_ending;
};

/* Under the lock: the first job that may run now, or NULL. */
static nib_server_job *take(nib_server_work *w) {
    for (nib_server_job **at = &w->first; *at; at = &(*at)->next) {
        nib_server_job *job = *at;
        if (job->is_long && w->n_long == w->most_long) continue;
        *at = job->next;
        if (w->end == &job->next) w->end = at;
        w->n_long += job->is_long;
        return job;
    }
    return NULL;
}

static void *work(void *arg) {
    nib_server_work *w = arg;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        nib_server_job *job;
        while (!(job = take(w)) && (w->first || !w->is_ending)) pthread_cond_wait(&w->arrived, &w->lock);
        bool is_long = job && job->is_long;
        pthread_mutex_unlock(&w->lock);
        if (!job) return NULL;
        job->run(job);
        pthread_mutex_lock(&w->lock);
        w->n_long -= is_long;
        if (is_long) pthread_cond_broadcast(&w->arrived);
    }
}

nib_status nib_server_work_new(nib_server_work **out, int n_threads, nib_error *err) {
    nib_server_work *w = nib_calloc(1, sizeof *w);
    *out = NULL;
    if (!w) return nib_fail_nomem(err, sizeof *w, "threads");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->arrived, NULL);
    w->end = &w->first;
    w->most_long = n_threads > 1 ? (n_threads < MAX_THREADS ? n_threads : MAX_THREADS) - 1 : 1;
    for (int code; w->n_threads < n_threads && w->n_threads < MAX_THREADS; w->n_threads++)
        if ((code = pthread_create(&w->threads[w->n_threads], NULL, work, w))) {
            nib_server_work_free(w);
            return nib_fail_errno(err, code, "a thread could not be started");
        }
    *out = w;
    return NIB_OK;
}

void nib_server_work_add(nib_server_work *w, nib_server_job *job) {
    job->next = NULL;
    pthread_mutex_lock(&w->lock);
    *w->end = job;
    w->end = &job->next;
    pthread_cond_signal(&w->arrived);
    pthread_mutex_unlock(&w->lock);
}

void nib_server_work_free(nib_server_work *w) {
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->is_ending = true;
    pthread_cond_broadcast(&w->arrived);
    pthread_mutex_unlock(&w->lock);
    for (int i = 0; i < w->n_threads; i++) pthread_join(w->threads[i], NULL);
    pthread_cond_destroy(&w->arrived);
    pthread_mutex_destroy(&w->lock);
    nib_free(w);
}
