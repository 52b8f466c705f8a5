/* cpu/share.c - what threads share of by-row steps and what each does in memory of its own: what a plan allows, once, and what a
 * run does.
 *
 * A row of floats that only becomes codes for the next product (norm, gate) is quantised where it was computed, in a row
 * that each thread has, instead of going out to memory and back.
 *
 * A few rows, as in decoding, are done by one thread each, or all by every thread for itself. A barrier costs about as much as a norm
 * of 1000 values, and 30 layers have hundreds; and acts of up to 16 tokens share their lines, so that two threads that write them
 * take these from each other: 16 rows of 512 values are quantised in 17 us by two threads, and in 5 us by one. So a by-row step
 * whose result only the next product reads (norm, quantise, gate) is done by every thread into memory of its own, without a barrier
 * before the product. Not so when it is much (OWN_VALUES), or when the product reads floats, for which there is room for one row.
 *
 * Where every token is of another sequence, what works head by head before attention (norms of heads, rope, storing keys) is done by
 * the thread that has the head in the attention. */
#include "cpu/internal.h"

/* Values that threads may do for themselves, all together: beyond, sharing them is faster. */
#define OWN_VALUES 65536

static bool may_be_own(const nib_plan_step *s) {
    return (s->op == NIB_OP_NORM && !s->adds && s->act >= 0) || s->op == NIB_OP_QUANT || (s->op == NIB_OP_GLU && s->act >= 0);
}

static bool is_by_heads(const nib_plan_step *s) {
    return s->op == NIB_OP_HEAD_NORM || s->op == NIB_OP_ROPE || s->op == NIB_OP_KV_STORE;
}

/* Nothing but steps by heads stands between here and an attention. */
static bool folds(const nib_plan *plan, size_t i) {
    if (!is_by_heads(&plan->steps[i])) return false;
    while (i < plan->n_steps && is_by_heads(&plan->steps[i])) i++;
    return i < plan->n_steps && plan->steps[i].op == NIB_OP_ATTENTION;
}

/* The product right after step i reads its act, and writes nothing that other threads may still be reading in step i. */
static bool feeds_next_product(const nib_plan *plan, size_t i) {
    const nib_plan_step *s = &plan->steps[i], *next = s + 1;
    if (i + 1 >= plan->n_steps || next->op != NIB_OP_MATMUL || next->act != s->act) return false;
    if (next->adds && (next->out == s->in || next->out == s->in2)) return false;
    for (int j = 0; j < next->n_products; j++)
        if (next->product[j].out == s->in || next->product[j].out == s->in2) return false;
    return true;
}

/* Is what step i leaves in buffer b read by a later step, other than through the act, or by the caller of the run? */
static bool is_read_later(const nib_plan *plan, size_t i, int b) {
    for (size_t j = i + 1; j < plan->n_steps; j++) {
        const nib_plan_step *s = &plan->steps[j];
        bool reads = s->op != NIB_OP_MATMUL && s->in == b; /* what a product has in `in` it reads through the act */
        if (reads || s->in2 == b || (s->adds && s->out == b)) return true;
        if (s->out == b) return false;
        for (int k = 0; k < s->n_products; k++)
            if (s->product[k].out == b) return false;
    }
    return b == plan->hidden;
}

/* Both inputs of the gate after step i come from it and go nowhere else. */
static bool is_gated(const nib_plan *plan, size_t i) {
    const nib_plan_step *s = &plan->steps[i], *gate = s + 1;
    if (i + 1 >= plan->n_steps || s->op != NIB_OP_MATMUL || s->n_products != 2 || s->adds || gate->op != NIB_OP_GLU) return false;
    for (int j = 0; j < 2; j++)
        if (s->product[j].out != gate->out && is_read_later(plan, i + 1, s->product[j].out)) return false;
    return gate->rows == s->rows && gate->in == s->product[0].out && gate->in2 == s->product[1].out && gate->act >= 0;
}

void nib_cpu_share_plan(nib_cpu *cpu) {
    const nib_plan *plan = cpu->plan;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const nib_plan_step *s = &plan->steps[i];
        bool alone = i == 0 || !nib_plan_op_is_by_row(plan->steps[i - 1].op); /* else the thread that has the row goes on */
        bool row_ends = s->op == NIB_OP_QUANT || (may_be_own(s) && !is_read_later(plan, i, s->out));
        bool is_own = may_be_own(s) && alone && row_ends && feeds_next_product(plan, i);
        cpu->shares[i] = is_own ? NIB_SHARE_OWN : folds(plan, i) ? NIB_SHARE_ATTENTION : NIB_SHARE_ROW;
        cpu->gates[i] = is_gated(plan, i);
        if (s->act < 0 || s->op == NIB_OP_MATMUL) continue;
        bool has_floats = cpu->act_forms[s->act] & NIB_ACT_F32; /* the product reads rows of them */
        cpu->act_places[s->act] = (nib_cpu_act_place){
            .own_when_few = is_own && (s->op == NIB_OP_QUANT || !has_floats),
            .own_row_when_single = is_own && s->op != NIB_OP_QUANT,
            .own_row = row_ends && s->op != NIB_OP_QUANT && !has_floats,
            .writer = i,
        };
    }
}

uint32_t nib_cpu_gate_unit(const nib_cpu *cpu, const nib_plan_step *s) {
    unsigned forms = cpu->act_forms[s[1].act];
    return (forms & NIB_ACT_Q256 ? 256 : forms & NIB_ACT_Q32 ? 32 : NIB_GROUP_ROWS) / NIB_GROUP_ROWS;
}

bool nib_cpu_gates_chunks(const nib_cpu *cpu, const nib_plan_step *s) {
    if (!cpu->gates[s - cpu->plan->steps]) return false;
    uint32_t n_rows = nib_cpu_n_rows(cpu, s->rows), width = s[1].n_in, unit = nib_cpu_gate_unit(cpu, s) * NIB_GROUP_ROWS;
    /* Units are claimed: with few of them for each thread some would wait longer than gating takes. */
    return n_rows >= NIB_ACT_PANEL && n_rows * (size_t)NIB_GATE_SUMS <= cpu->n_sums && width % unit == 0 &&
           width / unit >= NIB_GATE_UNITS * (uint32_t)cpu->n_active;
}

uint32_t nib_cpu_own_rows(const nib_cpu *cpu, uint32_t width) {
    uint32_t n = OWN_VALUES / width, most = cpu->config.n_tok < NIB_ACT_PANEL ? cpu->config.n_tok : NIB_ACT_PANEL;
    return n < 1 ? 1 : n < most ? n : most;
}

bool nib_cpu_does_own(const nib_cpu *cpu, size_t i) {
    const nib_plan_step *s = &cpu->plan->steps[i];
    if (cpu->shares[i] != NIB_SHARE_OWN) return false;
    if (nib_cpu_is_single(cpu)) return true;
    uint32_t n_rows = nib_cpu_n_rows(cpu, s->rows), width = cpu->plan->acts[s->act].width;
    return cpu->act_places[s->act].own_when_few && n_rows <= nib_cpu_own_rows(cpu, width) &&
           (size_t)n_rows * width * (size_t)cpu->n_active <= OWN_VALUES && !(i > 0 && nib_cpu_gates_chunks(cpu, s - 1));
}

bool nib_cpu_needs_barrier(const nib_cpu *cpu, size_t i) {
    const nib_plan *plan = cpu->plan;
    if (i == 0 || nib_cpu_is_in_attention(cpu, &plan->steps[i])) return false;
    bool before = nib_plan_op_is_by_row(plan->steps[i - 1].op), here = nib_plan_op_is_by_row(plan->steps[i].op);
    if (before && here)
        return nib_cpu_does_own(cpu, i - 1) != nib_cpu_does_own(cpu, i) || nib_cpu_is_in_attention(cpu, &plan->steps[i - 1]);
    return !(before && nib_cpu_does_own(cpu, i - 1)); /* the product that reads what this thread made */
}

static float *row_of(const nib_cpu *cpu, int index) {
    return (float *)(void *)(cpu->own + (size_t)index * cpu->own_bytes);
}

static bool has_own_row(const nib_cpu *cpu, int act) {
    const nib_cpu_act_place *p = &cpu->act_places[act];
    return p->own_row || (nib_cpu_is_single(cpu) && p->own_row_when_single);
}

nib_cpu_act nib_cpu_act_of(const nib_cpu *cpu, int act, int index) {
    const nib_plan_act *a = &cpu->plan->acts[act];
    bool is_own = nib_cpu_does_own(cpu, cpu->act_places[act].writer), own_row = has_own_row(cpu, act);
    void *memory = is_own ? (void *)((unsigned char *)row_of(cpu, index) + cpu->own_act_at) : cpu->act_memory[act];
    nib_cpu_act bound;
    nib_cpu_act_bind(&bound, memory, own_row ? row_of(cpu, index) : cpu->buffers[a->source], own_row ? 0 : a->width,
                     nib_cpu_n_rows(cpu, cpu->act_rows[act]), a->width, cpu->act_forms[act]);
    return bound;
}

float *nib_cpu_out_row(const nib_cpu *cpu, const nib_plan_step *s, int index, uint32_t row) {
    return s->act >= 0 && has_own_row(cpu, s->act) ? row_of(cpu, index) : nib_cpu_row(cpu, s->out, row);
}
