/* base/crowd.h - how many threads of a team are worth running while other programs want the same CPUs.
 *
 * A thread that shares its CPU is away for milliseconds at a time, and at every barrier all others wait for it: two threads
 * ran at a third of the speed of one on a machine with three programs a CPU. So a team that sees its threads wait for CPUs
 * leaves some of them out, and tries again later, more and more seldom while it fails. Arithmetic only: the clock and the
 * waiting times come from the caller, base/team. */
#ifndef NIB_BASE_CROWD_H
#define NIB_BASE_CROWD_H

#include <stdbool.h>

typedef struct nib_crowd {
    int n_most, n;      /* threads at most, and now */
    bool is_trial;      /* n was raised and nothing is known since */
    double pause;       /* seconds between trials */
    double trial_at, trusted_at;
} nib_crowd;

/* A thread of n that run is late when it waited for a CPU for more than this part of the time. The others waited with it, so
 * n of them did at best the work of n (1 - part), without it n - 1 would have done theirs: below 1 / n it is worth its place.
 * Large teams are patient, for a hundredth of the time is less than what the look can tell. */
double nib_crowd_late(int n);

void nib_crowd_init(nib_crowd *crowd, int n_most);
/* At the time `now` (seconds), after some runs with crowd->n threads of which n_late were late: sets crowd->n. */
void nib_crowd_judge(nib_crowd *crowd, double now, int n_late);

#endif
