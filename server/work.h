/* server/work.h - a few threads for what would hold up the loop: reading bodies, rendering, tokenizing, compiling grammars. */
#ifndef NIB_SERVER_WORK_H
#define NIB_SERVER_WORK_H

#include "nib.h"

typedef struct nib_server_work nib_server_work;

/* Bytes of a body from which on a job is long: megabytes take seconds. */
enum { NIB_SERVER_LONG_BODY = 1 << 18 };

/* Belongs to the caller. */
typedef struct nib_server_job {
    void (*run)(struct nib_server_job *job);
    struct nib_server_job *next;
    bool is_long; /* one thread, where there are more, never runs such jobs, so that the others need not wait for them */
} nib_server_job;

nib_status nib_server_work_new(nib_server_work **out, int n_threads, nib_error *err);
/* From any thread: job->run(job) on one of the threads, in the order of the calls; short ones may overtake long ones. */
void nib_server_work_add(nib_server_work *work, nib_server_job *job);
/* Runs what waits, and ends the threads. */
void nib_server_work_free(nib_server_work *work);

#endif
