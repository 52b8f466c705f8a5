/* engine/measure.c - the first figures of how long batches take (sched/cost): what an engine does before its first request. */
#include "base/status.h"
#include "base/sys.h"
#include "decode/pages.h"
#include "engine/engine.h"

enum {
    MAX_DOUBLINGS = 17, /* batches of 1, 2, 4 … tokens */
    N_RUNS = 2,         /* of which the faster counts */
    FAR = 1024,         /* positions that a token looks back over, to see what that costs */
    LEAST_FAR = 128,
};

typedef struct trial {
    uint32_t pos, n_tok, n_rows;
} trial;

/* One batch behind `pos` positions of which nobody knows what they hold: no kernel looks at values. */
static nib_status run_trial(nib_engine *e, const trial *t, double *ms, nib_error *err) {
    nib_kv_table *table = nib_decode_pages_table(e->ctx, 0);
    uint32_t n_vocab = nib_model_n_vocab(e->model);
    nib_batch_clear(e->batch);
    nib_kv_table_append(table, e->pool, t->pos);
    for (uint32_t i = 0; i < t->n_tok; i++)
        NIB_TRY(nib_batch_add(e->batch, (nib_token)(i * 7919u % n_vocab), NIB_POS_NEXT, 0, i >= t->n_tok - t->n_rows, err));
    double start = nib_sys_now();
    nib_status status = nib_decode(e->ctx, e->batch, err);
    *ms = 1e3 * (nib_sys_now() - start);
    nib_seq_free(e->ctx, 0);
    return status;
}

static nib_status time_trial(nib_engine *e, const trial *t, double *ms, nib_error *err) {
    for (int i = 0; i < N_RUNS; i++) {
        double now;
        NIB_TRY(run_trial(e, t, &now, err));
        if (i == 0 || now < *ms) *ms = now;
    }
    return NIB_OK;
}

/* What it costs to look back, seen on the largest batch that takes no whole turn. */
static nib_status look_back(nib_engine *e, uint32_t n_tok, nib_error *err) {
    trial t = {.n_tok = n_tok};
    double near, far;
    uint32_t room = e->max_context - n_tok, pos = room < FAR ? room : FAR;
    if (pos < LEAST_FAR) return NIB_OK;
    NIB_TRY(time_trial(e, &t, &near, err));
    t.pos = pos;
    NIB_TRY(time_trial(e, &t, &far, err));
    nib_sched_cost_look_back(&e->cost, n_tok, pos, near, far);
    return NIB_OK;
}

nib_status nib_engine_measure(nib_engine *e, nib_error *err) {
    uint32_t most = e->config.context.n_ubatch < e->max_context ? e->config.context.n_ubatch : e->max_context, largest = 1;
    trial trials[MAX_DOUBLINGS] = {{.n_tok = 1, .n_rows = 1}};
    double ms[MAX_DOUBLINGS];
    int n = 0;
    nib_sched_cost_init(&e->cost, e->model);
    NIB_TRY(run_trial(e, &trials[0], &ms[0], err)); /* touches memory and does not count */
    for (uint32_t n_tok = 1; n_tok <= most && n < MAX_DOUBLINGS; n_tok *= 2) {
        trials[n] = (trial){0, n_tok, n_tok <= e->n_seq ? n_tok : 1};
        NIB_TRY(time_trial(e, &trials[n], &ms[n], err));
        if (ms[n] < e->config.turn_ms) largest = n_tok;
        if (ms[n++] >= e->config.turn_ms) break;
    }
    NIB_TRY(look_back(e, largest, err));
    for (int i = 0; i < n; i++)
        nib_sched_cost_learn(&e->cost, nib_sched_cost_work(&e->cost, 0, trials[i].n_tok, trials[i].n_rows), ms[i]);
    return NIB_OK;
}
