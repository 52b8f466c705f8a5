/* plan/plan.c - texts, totals and the end of a plan. */
#include "plan/plan.h"

static const struct {
    const char *text;
    bool by_row;
} ops[] = {
#define X(name, text, by_row) {text, by_row},
#include "plan/ops.def"
#undef X
};
_Static_assert(sizeof ops / sizeof *ops == NIB_OP_COUNT && NIB_OP_COUNT <= 32, "one row an op, at most 32 ops");

void nib_plan_free(nib_plan *plan) {
    nib_free(plan->steps);
    nib_free(plan->buffers);
    nib_free(plan->acts);
    nib_free(plan->weights);
    nib_free(plan->tables);
    nib_free(plan->kv_layers);
    nib_arena_free(&plan->arena);
    *plan = (nib_plan){0};
}

const char *nib_plan_op_text(nib_plan_op op) {
    return ops[op].text;
}

bool nib_plan_op_is_by_row(nib_plan_op op) {
    return ops[op].by_row;
}

uint64_t nib_plan_bytes_per_token(const nib_plan *plan) {
    uint64_t sum = 0;
    for (size_t i = 0; i < plan->n_steps; i++) sum += plan->steps[i].bytes;
    return sum;
}
