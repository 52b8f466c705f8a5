/* base/crowd.c - late threads in -> number of threads out. */
#include "base/crowd.h"

#define FIRST_PAUSE 0.5
#define LONGEST_PAUSE 16.0
#define PATIENCE 0.1  /* part of the time that a thread of a large team may wait */
#define TRUST 2.0 /* seconds that all threads must go well before trials come quickly again */

double nib_crowd_late(int n) {
    double fair = 0.8 / n;
    return fair > PATIENCE ? fair : PATIENCE;
}

void nib_crowd_init(nib_crowd *crowd, int n_most) {
    *crowd = (nib_crowd){.n_most = n_most, .n = n_most, .pause = FIRST_PAUSE};
}

void nib_crowd_judge(nib_crowd *crowd, double now, int n_late) {
    if (n_late > 0) {
        if (crowd->is_trial) crowd->pause = 2 * crowd->pause < LONGEST_PAUSE ? 2 * crowd->pause : LONGEST_PAUSE;
        crowd->is_trial = false;
        crowd->trial_at = now + crowd->pause;
        /* Half of the late ones: the scheduler has more room for the rest. */
        crowd->n -= (n_late + 1) / 2;
        if (crowd->n < 1) crowd->n = 1;
        return;
    }
    if (crowd->n == crowd->n_most) {
        if (crowd->is_trial) crowd->trusted_at = now + TRUST;
        crowd->is_trial = false;
        if (now >= crowd->trusted_at) crowd->pause = FIRST_PAUSE;
    } else if (now >= crowd->trial_at) {
        crowd->n = crowd->n_most;
        crowd->is_trial = true;
    }
}
