/* sched/cost.h - how long a batch will take: t(n), learned from every batch that ran.
 *
 * The work of a token is 1, more the further it looks back, and more when its logits are wanted: with a large vocabulary that
 * can be most of it. Times are kept by work in steps of a fifth. Two things are
 * known of the curve: more work takes no less time, and no more time than in proportion (the weights are read once). What
 * is learned at one place therefore bounds all others, so that old figures do not outlive a change of the machine. */
#ifndef NIB_SCHED_COST_H
#define NIB_SCHED_COST_H

#include "nib.h"

#define NIB_SCHED_COST_PLACES 80 /* four to an octave: up to a million tokens' work */

typedef struct nib_sched_cost {
    double row_work;            /* of a row of logits */
    double far_work, near_work; /* of a token, per position that it sees: in layers that see all, and those with a window */
    uint32_t window;
    double ms[NIB_SCHED_COST_PLACES]; /* of the work at each place, 2^(i/4); 0: not known */
} nib_sched_cost;

/* Of the steps of a model; nothing is known of times. */
void nib_sched_cost_init(nib_sched_cost *cost, const nib_model *model);
/* The time of batches of n tokens, without rows, from the positions 0 and pos on: how dear it is to look back. */
void nib_sched_cost_look_back(nib_sched_cost *cost, uint32_t n, uint32_t pos, double ms_at_0, double ms_at_pos);
/* Work of n tokens from position pos on, with n_rows rows of logits. */
double nib_sched_cost_work(const nib_sched_cost *cost, uint32_t pos, uint32_t n, uint32_t n_rows);
void nib_sched_cost_learn(nib_sched_cost *cost, double work, double ms);
/* A batch of this work was cut for want of time: what is known of somewhat longer ones fades, so that they are tried again
 * some day. Nothing else would show that the machine became faster. */
void nib_sched_cost_fade(nib_sched_cost *cost, double work);
/* 0 when nothing was learned. */
double nib_sched_cost_ms(const nib_sched_cost *cost, double work);
/* The most work that is done in ms; 1 at least. Without anything learned: 1. */
double nib_sched_cost_fit(const nib_sched_cost *cost, double ms);

#endif
