/* plan/emit.c - builders that append one step each to a plan and check that shapes fit.
 *
 * Shape errors here are mistakes of a decoder or of a file whose tensors contradict each other; they name the step. */
#include "plan/emit.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

static bool fails(const nib_plan_builder *b) {
    return b->status != NIB_OK;
}

static void no_memory(nib_plan_builder *b) {
    if (!fails(b)) b->status = nib_fail_nomem(b->err, 0, "the plan");
}

/* Room for one more element; its index, or -1. */
#define APPEND(b, array, n, cap, value)                                                                                \
    (fails(b) ? -1                                                                                                     \
     : nib_grow(&(b)->plan->array, &(b)->plan->cap, (b)->plan->n + 1, sizeof *(b)->plan->array)                        \
         ? ((b)->plan->array[(b)->plan->n] = (value), (int)(b)->plan->n++)                                             \
         : (no_memory(b), -1))

int nib_plan_add_buffer(nib_plan_builder *b, uint32_t width) {
    return APPEND(b, buffers, n_buffers, cap_buffers, ((nib_plan_buffer){width}));
}

int nib_plan_add_weight(nib_plan_builder *b, const nib_plan_weight *weight) {
    return APPEND(b, weights, n_weights, cap_weights, *weight);
}

int nib_plan_add_kv_layer(nib_plan_builder *b, const nib_plan_kv_layer *layer) {
    return APPEND(b, kv_layers, n_kv_layers, cap_kv_layers, *layer);
}

/* A step with what all steps share; the caller fills the rest. NULL after an error. */
static nib_plan_step *add_step(nib_plan_builder *b, nib_plan_op op, const char *name) {
    char full[96];
    if (b->layer >= 0) snprintf(full, sizeof full, "blk.%d.%s", b->layer, name);
    else snprintf(full, sizeof full, "%s", name);
    char *copy = fails(b) ? NULL : nib_arena_copy(&b->plan->arena, full, strlen(full));
    if (!copy) return no_memory(b), NULL;
    nib_plan_step step = {.op = op, .rows = b->rows, .layer = b->layer, .name = copy};
    step.in = step.in2 = step.out = step.weight = step.act = step.table = step.kv_layer = NIB_PLAN_NONE;
    int i = APPEND(b, steps, n_steps, cap_steps, step);
    return i < 0 ? NULL : &b->plan->steps[i];
}

static uint32_t width_of(const nib_plan_builder *b, int buffer) {
    return buffer < 0 ? 0 : b->plan->buffers[buffer].width;
}

static void expect(nib_plan_builder *b, const nib_plan_step *s, const char *what, uint32_t found, uint32_t wanted) {
    if (!fails(b) && found != wanted)
        b->status = nib_fail(b->err, NIB_E_FORMAT, "step %s: %s is %u wide, expected %u", s->name, what, found, wanted);
}

int nib_plan_add_rope_table(nib_plan_builder *b, const float *inv_freq, uint32_t n_rot, float mscale) {
    float *copy = fails(b) ? NULL : nib_arena_copy(&b->plan->arena, inv_freq, n_rot / 2 * sizeof *inv_freq);
    if (!copy) return no_memory(b), -1;
    nib_plan_rope_table table = {.n_rot = n_rot, .inv_freq = copy, .mscale = mscale};
    table.buffer = nib_plan_add_buffer(b, n_rot);
    int i = APPEND(b, tables, n_tables, cap_tables, table);
    nib_plan_step *s = add_step(b, NIB_OP_ANGLES, "angles");
    if (!s) return -1;
    s->table = i;
    s->out = table.buffer;
    s->n_out = n_rot;
    return i;
}

void nib_plan_embed(nib_plan_builder *b, int weight, float scale, int out) {
    nib_plan_step *s = add_step(b, NIB_OP_EMBED, "embed");
    if (!s) return;
    const nib_plan_weight *w = &b->plan->weights[weight];
    expect(b, s, "the embedding", w->n_in, width_of(b, out));
    s->weight = weight;
    s->scale = scale;
    s->out = out;
    s->n_out = w->n_in;
    s->bytes = (uint64_t)w->n_in / w->type->block_size * w->type->block_bytes;
}

static int add_act(nib_plan_builder *b, int source) {
    return APPEND(b, acts, n_acts, cap_acts, ((nib_plan_act){source, width_of(b, source)}));
}

static nib_plan_step *add_norm(nib_plan_builder *b, const char *name, int in, int weight, float eps, int out) {
    nib_plan_step *s = add_step(b, NIB_OP_NORM, name);
    if (!s) return NULL;
    s->in = in;
    s->out = out;
    s->weight = weight;
    s->eps = eps;
    s->n_in = s->n_out = width_of(b, in);
    s->bytes = 4 * (uint64_t)s->n_in;
    expect(b, s, "the weight", b->plan->weights[weight].n_out, s->n_in);
    expect(b, s, "the output", width_of(b, out), s->n_in);
    return s;
}

int nib_plan_norm(nib_plan_builder *b, const char *name, int in, int weight, float eps, int out) {
    int act = add_act(b, out);
    nib_plan_step *s = add_norm(b, name, in, weight, eps, out);
    if (s) s->act = act;
    return act;
}

void nib_plan_norm_add(nib_plan_builder *b, const char *name, int in, int weight, float eps, int out) {
    nib_plan_step *s = add_norm(b, name, in, weight, eps, out);
    if (s) s->adds = true;
}

void nib_plan_head_norm(nib_plan_builder *b, const char *name, int buffer, int weight, float eps) {
    nib_plan_step *s = add_step(b, NIB_OP_HEAD_NORM, name);
    if (!s) return;
    s->in = s->out = buffer;
    s->weight = weight;
    s->eps = eps;
    s->n_in = s->n_out = width_of(b, buffer);
    s->k_dim = b->plan->weights[weight].n_out;
    s->n_head = s->k_dim ? s->n_in / s->k_dim : 0;
    s->bytes = 4 * (uint64_t)s->k_dim;
    expect(b, s, "all heads together", s->n_head * s->k_dim, s->n_in);
}

int nib_plan_quant(nib_plan_builder *b, const char *name, int in) {
    int act = add_act(b, in);
    nib_plan_step *s = add_step(b, NIB_OP_QUANT, name);
    if (!s) return -1;
    s->in = in;
    s->act = act;
    s->n_in = s->n_out = width_of(b, in);
    return act;
}

void nib_plan_matmul(nib_plan_builder *b, const char *name, int act, const nib_plan_product *products, int n,
                     int add_to) {
    nib_plan_step *s = add_step(b, NIB_OP_MATMUL, name);
    if (!s) return;
    s->act = act;
    s->in = b->plan->acts[act].source;
    s->n_in = b->plan->acts[act].width;
    s->adds = add_to >= 0;
    s->n_products = n;
    for (int i = 0; i < n; i++) {
        const nib_plan_weight *w = &b->plan->weights[products[i].weight];
        s->product[i].weight = products[i].weight;
        s->product[i].bias = products[i].bias;
        s->product[i].out = products[i].out;
        s->n_out += w->n_out;
        s->macs += (uint64_t)w->n_in * w->n_out;
        s->bytes += (uint64_t)w->n_in / w->type->block_size * w->type->block_bytes * w->n_out;
        expect(b, s, w->name, w->n_in, s->n_in);
        if (products[i].out >= 0) expect(b, s, "the output", width_of(b, products[i].out), w->n_out);
        if (products[i].bias >= 0) {
            s->bytes += 4 * (uint64_t)w->n_out;
            expect(b, s, "the bias", b->plan->weights[products[i].bias].n_out, w->n_out);
        }
    }
    s->out = s->adds ? add_to : products[0].out;
    if (s->adds) expect(b, s, "the sum", width_of(b, add_to), s->n_out);
}

void nib_plan_rope(nib_plan_builder *b, const char *name, int buffer, uint32_t head_dim, int table,
                   nib_plan_rope_kind kind) {
    nib_plan_step *s = add_step(b, NIB_OP_ROPE, name);
    if (!s) return;
    s->in = s->out = buffer;
    s->in2 = b->plan->tables[table].buffer;
    s->table = table;
    s->rope = kind;
    s->n_in = s->n_out = width_of(b, buffer);
    s->k_dim = head_dim;
    s->n_head = head_dim ? s->n_in / head_dim : 0;
    expect(b, s, "all heads together", s->n_head * head_dim, s->n_in);
}

void nib_plan_attention(nib_plan_builder *b, const nib_plan_attention_params *p) {
    if (fails(b)) return;
    const nib_plan_kv_layer kv = b->plan->kv_layers[p->kv_layer];
    nib_plan_step *s = add_step(b, NIB_OP_KV_STORE, "kv_store");
    if (!s) return;
    s->in = p->k;
    s->in2 = p->v;
    s->n_in = kv.n_head_kv * (kv.k_dim + kv.v_dim);
    s->kv_layer = p->kv_layer;
    s->n_head_kv = kv.n_head_kv;
    s->k_dim = kv.k_dim;
    s->v_dim = kv.v_dim;
    expect(b, s, "the key", width_of(b, p->k), kv.n_head_kv * kv.k_dim);
    expect(b, s, "the value", width_of(b, p->v), kv.n_head_kv * kv.v_dim);
    nib_plan_step store = *s;
    s = add_step(b, NIB_OP_ATTENTION, "attention");
    if (!s) return;
    s->in = p->q;
    s->out = p->out;
    s->n_in = p->n_head * kv.k_dim;
    s->n_out = p->n_head * kv.v_dim;
    s->kv_layer = p->kv_layer;
    s->n_head = p->n_head;
    s->n_head_kv = store.n_head_kv;
    s->k_dim = kv.k_dim;
    s->v_dim = kv.v_dim;
    s->window = p->window;
    s->scale = p->scale;
    s->macs = (uint64_t)p->n_head * (kv.k_dim + kv.v_dim);
    expect(b, s, "the query", width_of(b, p->q), s->n_in);
    expect(b, s, "the output", width_of(b, p->out), s->n_out);
}

int nib_plan_glu(nib_plan_builder *b, nib_plan_act_fn fn, int gate, int up, int out) {
    int act = add_act(b, out);
    nib_plan_step *s = add_step(b, NIB_OP_GLU, "ffn_glu");
    if (!s) return -1;
    s->in = gate;
    s->in2 = up;
    s->out = out;
    s->fn = fn;
    s->act = act;
    s->n_in = s->n_out = width_of(b, gate);
    expect(b, s, "up", width_of(b, up), s->n_in);
    expect(b, s, "the output", width_of(b, out), s->n_in);
    return act;
}

void nib_plan_gather(nib_plan_builder *b, int buffer) {
    nib_plan_step *s = add_step(b, NIB_OP_GATHER, "gather");
    if (!s) return;
    s->in = s->out = buffer;
    s->n_in = s->n_out = width_of(b, buffer);
    b->rows = NIB_ROWS_OUT;
}
