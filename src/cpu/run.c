/* cpu/run.c - prepares a plan (memory, team) and runs its steps on all threads.
 *
 * Barriers stand only where threads exchange rows. A stop (abort callback, a failed read) names the step at which it
 * takes effect and is looked at right after a barrier, so that all threads leave at the same step. */
#include "cpu/internal.h"

#include "base/mem.h"
#include "base/status.h"
#include "base/sys.h"

#include <limits.h>
#include <string.h>

typedef void (*op_fn)(nib_cpu *cpu, const nib_plan_step *s, int index);

static const op_fn op_table[NIB_OP_COUNT] = {
    [NIB_OP_EMBED] = nib_cpu_op_embed,         [NIB_OP_ANGLES] = nib_cpu_op_angles,
    [NIB_OP_NORM] = nib_cpu_op_norm,           [NIB_OP_HEAD_NORM] = nib_cpu_op_heads,
    [NIB_OP_QUANT] = nib_cpu_op_quant,         [NIB_OP_MATMUL] = nib_cpu_op_matmul,
    [NIB_OP_ROPE] = nib_cpu_op_heads,          [NIB_OP_KV_STORE] = nib_cpu_op_kv_store,
    [NIB_OP_ATTENTION] = nib_cpu_op_attention, [NIB_OP_GLU] = nib_cpu_op_glu,
    [NIB_OP_GATHER] = nib_cpu_op_gather,
};

/* Hands out pieces of one mapping, in two passes: the first (memory NULL) only adds up. */
typedef struct layout {
    unsigned char *memory;
    size_t at;
    bool overflow;
} layout;

static void *take(layout *l, size_t n, size_t size) {
    size_t bytes;
    if (!nib_mem_size(n, size, &bytes) || bytes > SIZE_MAX / 4 - l->at) {
        l->overflow = true;
        return NULL;
    }
    void *p = l->memory ? l->memory + l->at : NULL;
    l->at += (bytes + 63) & ~(size_t)63;
    return p;
}

static size_t max_size(size_t a, size_t b) {
    return a > b ? a : b;
}

#define SUMS_TOK 512 /* tokens whose sums of a chunk stay in L2 */

static size_t scratch_size(nib_cpu *cpu) {
    const nib_plan *plan = cpu->plan;
    size_t n = 4096;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const nib_plan_step *s = &plan->steps[i];
        for (int j = 0; j < s->n_products; j++)
            n = max_size(n, nib_cpu_product_scratch(cpu->isa, nib_cpu_matrix_of(cpu, s, j), cpu->config.n_tok));
        n = max_size(n, 8 * (size_t)(s->op == NIB_OP_MATMUL ? s->n_in : max_size(s->n_in, s->n_out)));
        if (s->op == NIB_OP_ATTENTION) n = max_size(n, nib_cpu_attention_scratch(s));
    }
    cpu->sums_at = (n + 63) & ~(size_t)63;
    cpu->n_sums = NIB_GATE_SUMS * (size_t)(cpu->config.n_tok < SUMS_TOK ? cpu->config.n_tok : SUMS_TOK);
    return cpu->sums_at + cpu->n_sums * sizeof(float);
}

static size_t partial_size(const nib_cpu *cpu) {
    size_t n = 0;
    for (size_t i = 0; i < cpu->plan->n_steps; i++) {
        const nib_plan_step *s = &cpu->plan->steps[i];
        if (s->op == NIB_OP_ATTENTION)
            n = max_size(n, nib_cpu_attention_partials(s, cpu->config.n_threads, cpu->config.n_pages));
    }
    return n;
}

static void lay_out(nib_cpu *cpu, layout *l) {
    const nib_plan *plan = cpu->plan;
    cpu->lanes = take(l, (size_t)cpu->config.n_threads, sizeof *cpu->lanes); /* first: where the mapping is aligned */
    for (size_t i = 0; i < plan->n_buffers; i++) {
        uint32_t rows = (int)i == plan->logits ? cpu->config.n_logits : cpu->config.n_tok;
        cpu->buffers[i] = take(l, rows, (size_t)plan->buffers[i].width * sizeof(float));
    }
    cpu->best = take(l, cpu->config.n_logits, nib_cpu_n_best(cpu) * sizeof *cpu->best);
    /* An act lives from the step that writes it to the product right after, so two places serve them all in turn. */
    size_t n_act = 0;
    for (size_t i = 0; i < plan->n_acts; i++)
        n_act = max_size(n_act, nib_cpu_act_bytes(cpu->config.n_tok, plan->acts[i].width, cpu->act_forms[i]));
    void *place[2] = {take(l, 1, n_act), take(l, 1, n_act)};
    for (size_t i = 0; i < plan->n_acts; i++) cpu->act_memory[i] = place[i % 2];
    cpu->own = take(l, (size_t)cpu->config.n_threads, cpu->own_bytes);
    cpu->scratch = take(l, (size_t)cpu->config.n_threads, cpu->scratch_bytes);
}

/* A row of floats and an act of a few rows, for the largest of the plan. */
static void size_own(nib_cpu *cpu) {
    size_t act = 0, row = 0;
    for (size_t i = 0; i < cpu->plan->n_acts; i++) {
        uint32_t width = cpu->plan->acts[i].width;
        act = max_size(act, nib_cpu_act_bytes(nib_cpu_own_rows(cpu, width), width, cpu->act_forms[i]));
        row = max_size(row, width * sizeof(float));
    }
    cpu->own_act_at = (row + 63) & ~(size_t)63;
    cpu->own_bytes = (cpu->own_act_at + act + 127) & ~(size_t)127;
}

static nib_status allocate(nib_cpu *cpu, nib_error *err) {
    const nib_plan *plan = cpu->plan;
    cpu->buffers = nib_calloc(plan->n_buffers, sizeof *cpu->buffers);
    cpu->act_memory = nib_calloc(plan->n_acts, sizeof *cpu->act_memory);
    cpu->act_forms = nib_calloc(plan->n_acts, sizeof *cpu->act_forms);
    cpu->act_places = nib_calloc(plan->n_acts, sizeof *cpu->act_places);
    cpu->shares = nib_calloc(plan->n_steps, sizeof *cpu->shares);
    cpu->gates = nib_calloc(plan->n_steps, sizeof *cpu->gates);
    cpu->act_rows = nib_calloc(plan->n_acts, sizeof *cpu->act_rows);
    cpu->claimed = nib_calloc(plan->n_steps, sizeof *cpu->claimed);
    cpu->blocks = nib_calloc(cpu->config.n_tok, sizeof *cpu->blocks);
    cpu->finished = nib_calloc((size_t)cpu->config.n_threads * NIB_SPLIT_PAIRS, sizeof *cpu->finished);
    if (cpu->config.profile) {
        cpu->step_ms = nib_calloc(plan->n_steps, sizeof *cpu->step_ms);
        cpu->wait_ms = nib_calloc((size_t)cpu->config.n_threads * plan->n_steps, sizeof *cpu->wait_ms);
    }
    if (!cpu->buffers || !cpu->act_memory || !cpu->act_forms || !cpu->act_places || !cpu->shares || !cpu->gates ||
        !cpu->act_rows || !cpu->claimed || !cpu->blocks || !cpu->finished || (cpu->config.profile && (!cpu->step_ms || !cpu->wait_ms)))
        return nib_fail_nomem(err, 0, "the tables of a context");
    for (size_t i = 0; i < plan->n_steps; i++) {
        const nib_plan_step *s = &plan->steps[i];
        for (int j = 0; j < s->n_products; j++)
            cpu->act_forms[s->act] |= nib_cpu_matrix_of(cpu, s, j)->act_form;
        if (s->op != NIB_OP_MATMUL && s->act >= 0) cpu->act_rows[s->act] = s->rows;
    }
    nib_cpu_share_plan(cpu);
    size_own(cpu);
    cpu->partial_bytes = partial_size(cpu);
    cpu->partials = cpu->partial_bytes ? nib_pages_new(cpu->partial_bytes) : NULL;
    if (cpu->partial_bytes && !cpu->partials) return nib_fail_nomem(err, cpu->partial_bytes, "attention over long contexts");
    cpu->scratch_bytes = scratch_size(cpu);
    layout l = {0};
    lay_out(cpu, &l);
    cpu->n_bytes = l.at;
    bool fits = !l.overflow && l.at <= nib_sys_total_memory(); /* as for the KV cache: cpu/kv.c */
    l = (layout){.memory = fits ? nib_pages_new(l.at) : NULL};
    if (!l.memory) return nib_fail_nomem(err, cpu->n_bytes, "activations and logits; ask for fewer tokens in a batch");
    cpu->memory = l.memory;
    lay_out(cpu, &l);
    return NIB_OK;
}

nib_status nib_cpu_new(nib_cpu **out, const nib_plan *plan, const nib_cpu_config *config, nib_error *err) {
    *out = NULL;
    nib_cpu *cpu = nib_calloc(1, sizeof *cpu);
    if (!cpu) return nib_fail_nomem(err, sizeof *cpu, "a context");
    cpu->plan = plan;
    cpu->config = *config;
    cpu->isa = config->isa;
    cpu->ops = config->isa->ops;
    cpu->weights = config->weights;
    const nib_cpu_kv_type *k, *v;
    nib_status status;
    NIB_TRY_OUT(nib_cpu_kv_type_find(&k, config->k_type, err));
    NIB_TRY_OUT(nib_cpu_kv_type_find(&v, config->v_type, err));
    NIB_TRY_OUT(nib_cpu_kv_init(&cpu->kv, plan, k, v, config->n_pages, err));
    NIB_TRY_OUT(allocate(cpu, err));
    NIB_TRY_OUT(nib_team_new(&cpu->team, config->n_threads, nib_cpu_count(NULL), err));
    if (config->adapts) nib_team_adapt(cpu->team);
    *out = cpu;
    cpu = NULL;
out:
    nib_cpu_free(cpu);
    return status;
}

void nib_cpu_free(nib_cpu *cpu) {
    if (!cpu) return;
    nib_team_free(cpu->team);
    nib_cpu_kv_fini(&cpu->kv);
    nib_pages_free(cpu->memory, cpu->n_bytes);
    nib_free(cpu->buffers);
    nib_free(cpu->act_memory);
    nib_free(cpu->act_forms);
    nib_free(cpu->act_places);
    nib_free(cpu->shares);
    nib_free(cpu->gates);
    nib_free(cpu->act_rows);
    nib_free(cpu->claimed);
    nib_free(cpu->blocks);
    nib_free(cpu->finished);
    nib_pages_free(cpu->partials, cpu->partial_bytes);
    nib_free(cpu->step_ms);
    nib_free(cpu->wait_ms);
    nib_free(cpu);
}

void nib_cpu_stop(nib_cpu *cpu, const nib_plan_step *s, const nib_error *error) {
    unsigned never = UINT_MAX;
    if (!atomic_compare_exchange_strong(&cpu->stop_at, &never, (unsigned)(s - cpu->plan->steps) + 1)) return;
    cpu->error = *error;
    cpu->status = error->code;
}

/* Adds the time since `then` to a sum; returns now. */
static double add_time(double *ms, double then) {
    double now = nib_sys_now();
    *ms += (now - then) * 1e3;
    return now;
}

/* A barrier after step i; the wait belongs to the step. */
static double wait_after(nib_cpu *cpu, size_t i, int index, double then) {
    if (!cpu->step_ms) {
        nib_team_barrier(cpu->team, index);
        return 0;
    }
    double arrived = nib_sys_now();
    nib_team_barrier(cpu->team, index);
    double now = add_time(&cpu->wait_ms[(size_t)index * cpu->plan->n_steps + i], arrived);
    if (index == 0) cpu->step_ms[i] += (now - then) * 1e3;
    return now;
}

/* The first product at or after step i; NULL: there is none. */
static const nib_plan_step *product_from(const nib_plan *plan, size_t i) {
    while (i < plan->n_steps && plan->steps[i].op != NIB_OP_MATMUL) i++;
    return i < plan->n_steps ? &plan->steps[i] : NULL;
}

static void open_product_from(nib_cpu *cpu, size_t i, int index) {
    const nib_plan_step *next = product_from(cpu->plan, i);
    if (next) nib_cpu_open_part(cpu, next, index);
}

static void run_thread(void *arg, int index, int n_threads) {
    (void)n_threads;
    nib_cpu *cpu = arg;
    const nib_plan *plan = cpu->plan;
    size_t n_steps = plan->n_steps - cpu->batch->wants_hidden;
    double then = cpu->step_ms ? nib_sys_now() : 0;
    size_t last = 0; /* step that was run */
    for (size_t i = 0; i < n_steps; i++) {
        const nib_plan_step *s = &plan->steps[i];
        if (nib_cpu_is_in_attention(cpu, s)) continue;
        if (nib_cpu_needs_barrier(cpu, i)) {
            if (index == 0 && cpu->config.abort && cpu->config.abort(cpu->config.user)) {
                nib_error error;
                nib_fail(&error, NIB_E_CANCELLED, "stopped by the caller at step %s", s->name);
                nib_cpu_stop(cpu, s - 1, &error);
            }
            then = wait_after(cpu, last, index, then);
            if (atomic_load(&cpu->stop_at) <= i) return;
        } else if (index == 0 && cpu->step_ms && i > 0) {
            then = add_time(&cpu->step_ms[last], then);
        }
        if (nib_cpu_n_rows(cpu, s->rows)) op_table[s->op](cpu, s, index);
        if (s->op == NIB_OP_MATMUL) open_product_from(cpu, i + 1, index);
        last = i;
    }
    if (cpu->step_ms) wait_after(cpu, last, index, then);
}

#define SMALL_BLOCK 8 /* tokens; smaller ones turn pages into floats too often */

/* Cuts n consecutive tokens of one sequence into blocks of about the same size, as many for each thread. */
static void cut_run(nib_cpu *cpu, uint32_t first, uint32_t n) {
    uint32_t n_active = (uint32_t)cpu->n_active, n_blocks = (n + NIB_BLOCK_TOK - 1) / NIB_BLOCK_TOK;
    n_blocks = (n_blocks + n_active - 1) / n_active * n_active;
    if (n_blocks > n / SMALL_BLOCK) n_blocks = n < SMALL_BLOCK ? 1 : n / SMALL_BLOCK;
    for (uint32_t end = first + n; n_blocks; n_blocks--) {
        uint32_t size = (end - first + n_blocks - 1) / n_blocks;
        cpu->blocks[cpu->n_blocks++] = (nib_cpu_block){first, size};
        first += size;
    }
}

/* Runs of consecutive tokens of one sequence, cut into blocks. */
static void find_blocks(nib_cpu *cpu) {
    const nib_plan_batch *b = cpu->batch;
    cpu->n_blocks = 0;
    for (uint32_t t = 0, n; t < b->n_tok; t += n) {
        for (n = 1; t + n < b->n_tok && b->pages[t + n] == b->pages[t] && b->pos[t + n] == b->pos[t + n - 1] + 1;) n++;
        cut_run(cpu, t, n);
    }
}

#define MOST_SEQUENCES 32 /* that are looked at for heads; with more of them a barrier is little */

/* Does every token belong to another sequence? */
static bool are_single_tokens(const nib_cpu *cpu) {
    const nib_plan_batch *b = cpu->batch;
    if (cpu->n_blocks != b->n_tok || b->n_tok > MOST_SEQUENCES) return false;
    for (uint32_t t = 1; t < b->n_tok; t++)
        for (uint32_t i = 0; i < t; i++)
            if (b->pages[i] == b->pages[t]) return false;
    return true;
}

nib_status nib_cpu_run(nib_cpu *cpu, const nib_plan_batch *batch, nib_error *err) {
    const nib_plan *plan = cpu->plan;
    cpu->batch = batch;
    cpu->n_active = nib_team_active(cpu->team);
    cpu->status = NIB_OK;
    atomic_store(&cpu->stop_at, UINT_MAX);
    for (size_t i = 0; i < plan->n_steps; i++) atomic_store_explicit(&cpu->claimed[i], 0, memory_order_relaxed);
    find_blocks(cpu);
    cpu->folds_heads = are_single_tokens(cpu);
    for (int i = 0; i < cpu->n_active; i++) {
        cpu->lanes[i].turn = 0;
        open_product_from(cpu, 0, i);
    }
    nib_team_run(cpu->team, run_thread, cpu);
    if (cpu->status != NIB_OK && err) *err = cpu->error;
    return cpu->status;
}

const float *nib_cpu_logits(const nib_cpu *cpu, uint32_t row) {
    return nib_cpu_row(cpu, cpu->plan->logits, row);
}

const float *nib_cpu_best_logits(const nib_cpu *cpu, uint32_t row) {
    return nib_cpu_best_row(cpu, row);
}

const float *nib_cpu_hidden(const nib_cpu *cpu, uint32_t row) {
    return nib_cpu_row(cpu, cpu->plan->hidden, row);
}

void nib_cpu_copy_page(nib_cpu *cpu, uint32_t from, uint32_t to) {
    nib_cpu_kv_copy(&cpu->kv, from, to);
}

void *nib_cpu_page(const nib_cpu *cpu, uint32_t page, size_t *n_bytes) {
    *n_bytes = cpu->kv.page_bytes;
    return cpu->kv.memory + page * cpu->kv.page_bytes;
}

void nib_cpu_kv_types(const nib_cpu *cpu, const char **k_type, const char **v_type) {
    *k_type = cpu->kv.k_type->name;
    *v_type = cpu->kv.v_type->name;
}

void nib_cpu_limit_threads(nib_cpu *cpu, int n_threads) {
    nib_team_limit(cpu->team, n_threads);
}

double nib_cpu_step_ms(const nib_cpu *cpu, size_t i) {
    return cpu->step_ms && i < cpu->plan->n_steps ? cpu->step_ms[i] : 0;
}

double nib_cpu_wait_ms(const nib_cpu *cpu, size_t i) {
    double sum = 0;
    if (!cpu->step_ms || i >= cpu->plan->n_steps) return 0;
    for (int t = 0; t < cpu->config.n_threads; t++) sum += cpu->wait_ms[(size_t)t * cpu->plan->n_steps + i];
    return sum / (cpu->n_active > 0 ? cpu->n_active : 1);
}

void nib_cpu_reset_times(nib_cpu *cpu) {
    if (!cpu->step_ms) return;
    memset(cpu->step_ms, 0, cpu->plan->n_steps * sizeof *cpu->step_ms);
    memset(cpu->wait_ms, 0, (size_t)cpu->config.n_threads * cpu->plan->n_steps * sizeof *cpu->wait_ms);
}

uint64_t nib_cpu_kv_total_bytes(const nib_cpu *cpu) {
    return cpu->kv.n_bytes;
}

uint64_t nib_cpu_buffer_bytes(const nib_cpu *cpu) {
    return cpu->n_bytes;
}
