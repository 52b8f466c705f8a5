/* sched/cost.c - how long a batch will take: t(n), learned from every batch that ran. */
#include "sched/cost.h"

#include <math.h>
#include <string.h>

/* Time of a multiply-accumulate in attention, of floats, against one of bytes in a product: about what kernels reach, until it
 * is measured; and what measuring may say. */
#define ATTENTION_FACTOR 2.0
#define LEAST_FACTOR 0.5
#define MOST_FACTOR 20.0
#define OCTAVE 4
#define FADING 0.02
#define LEARNING 0.25 /* weight of a new figure */
#define OUTLIER 2.0   /* a figure counts as no more than this much of what was expected */

void nib_sched_cost_init(nib_sched_cost *cost, const nib_model *model) {
    double products = 0;
    nib_step_info step;
    *cost = (nib_sched_cost){0};
    for (size_t i = 0; nib_model_step(model, i, &step) == NIB_OK; i++) {
        bool is_attention = strcmp(step.op, "attention") == 0;
        if (strcmp(step.rows, "TOK") != 0) cost->row_work += (double)step.macs;
        else if (!is_attention) products += (double)step.macs;
        else if (step.window) cost->near_work += (double)step.macs, cost->window = step.window;
        else cost->far_work += (double)step.macs;
    }
    if (products <= 0) products = 1;
    cost->row_work /= products;
    cost->far_work *= ATTENTION_FACTOR / products;
    cost->near_work *= ATTENTION_FACTOR / products;
}

/* Of a token, to look back over all positions before it. */
static double back_work(const nib_sched_cost *cost, double pos) {
    return cost->far_work * pos + cost->near_work * (pos < cost->window ? pos : cost->window);
}

double nib_sched_cost_work(const nib_sched_cost *cost, uint32_t pos, uint32_t n, uint32_t n_rows) {
    return n * (1 + back_work(cost, pos + 0.5 * n)) + n_rows * cost->row_work;
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* ratio = (1 + f far) / (1 + f near) for a factor f on what init assumed. */
void nib_sched_cost_look_back(nib_sched_cost *cost, uint32_t n, uint32_t pos, double ms_at_0, double ms_at_pos) {
    double far = back_work(cost, pos + 0.5 * n), near = back_work(cost, 0.5 * n), ratio = ms_at_pos / ms_at_0;
    if (!(ratio > 1) || far - ratio * near <= 0) return;
    double factor = clamp((ratio - 1) / (far - ratio * near), LEAST_FACTOR / ATTENTION_FACTOR, MOST_FACTOR / ATTENTION_FACTOR);
    cost->far_work *= factor;
    cost->near_work *= factor;
}

static double work_at(int place) {
    return exp2(place * 0.25);
}

static int place_of(double work) {
    int place = work > 1 ? (int)lrint(4 * log2(work)) : 0;
    return place < NIB_SCHED_COST_PLACES ? place : NIB_SCHED_COST_PLACES - 1;
}

void nib_sched_cost_learn(nib_sched_cost *cost, double work, double ms) {
    if (!(work >= 1) || !(ms > 0)) return;
    int place = place_of(work);
    double expected = nib_sched_cost_ms(cost, work), at = work_at(place);
    if (expected > 0 && ms > OUTLIER * expected) ms = OUTLIER * expected;
    ms *= at / work; /* the place stands for one amount of work */
    cost->ms[place] = cost->ms[place] > 0 ? cost->ms[place] + LEARNING * (ms - cost->ms[place]) : ms;
    for (int i = 0; i < NIB_SCHED_COST_PLACES; i++) {
        if (cost->ms[i] <= 0) continue;
        double known = cost->ms[place], in_proportion = known * work_at(i) / at;
        cost->ms[i] = i < place ? clamp(cost->ms[i], in_proportion, known) : clamp(cost->ms[i], known, in_proportion);
    }
}

void nib_sched_cost_fade(nib_sched_cost *cost, double work) {
    int place = place_of(work);
    double known = nib_sched_cost_ms(cost, work);
    for (int i = place + 1; i <= place + OCTAVE && i < NIB_SCHED_COST_PLACES; i++)
        if (cost->ms[i] > known) cost->ms[i] -= FADING * (cost->ms[i] - known);
}

double nib_sched_cost_ms(const nib_sched_cost *cost, double work) {
    int below = -1, above = -1;
    for (int i = 0; i < NIB_SCHED_COST_PLACES && above < 0; i++) {
        if (cost->ms[i] <= 0) continue;
        if (work_at(i) <= work) below = i;
        else above = i;
    }
    if (below < 0) return above < 0 ? 0 : cost->ms[above];
    if (above < 0) return cost->ms[below] * work / work_at(below);
    double share = (work - work_at(below)) / (work_at(above) - work_at(below));
    return cost->ms[below] + share * (cost->ms[above] - cost->ms[below]);
}

double nib_sched_cost_fit(const nib_sched_cost *cost, double ms) {
    double low = 1, high = work_at(NIB_SCHED_COST_PLACES - 1);
    if (nib_sched_cost_ms(cost, high) <= 0) return 1;
    for (int i = 0; i < 40; i++) {
        double middle = 0.5 * (low + high);
        if (nib_sched_cost_ms(cost, middle) <= ms) low = middle;
        else high = middle;
    }
    return low;
}
