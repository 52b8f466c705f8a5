/* cpu/op_rows.c - steps that compute each row of the batch from that row alone: embed, angles, norms, quantise, rope,
 * store in the cache, gate. Every thread keeps its rows from step to step; a few rows are shared as cpu/share.c says. */
#include "cpu/internal.h"

#include "base/math.h"
#include "base/status.h"

#include <string.h>

/* Row t of a step's act, from the row of floats it has just written. */
static void quantize_row(nib_cpu *cpu, const nib_plan_step *s, const nib_cpu_act *act, uint32_t t) {
    if (s->act >= 0) nib_cpu_act_quantize(cpu->isa, act, t, t + 1);
}

static nib_cpu_act act_of(const nib_cpu *cpu, const nib_plan_step *s, int index) {
    return s->act >= 0 ? nib_cpu_act_of(cpu, s->act, index) : (nib_cpu_act){0};
}

/* An embedding row that is not held in memory comes from the file; it is small and in the page cache. */
static nib_status read_row(const nib_cpu_weight *w, const nib_plan_weight *pw, uint32_t row, unsigned char *scratch,
                           float *out, nib_error *err) {
    size_t n = (size_t)pw->n_in / pw->type->block_size * pw->type->block_bytes;
    NIB_TRY(nib_gguf_read(w->file, w->tensor, row * n, n, scratch, err));
    pw->type->dequantize(scratch, out, pw->n_in);
    return NIB_OK;
}

void nib_cpu_op_embed(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    const nib_cpu_weight *w = &cpu->weights[s->weight];
    const nib_plan_weight *pw = &cpu->plan->weights[s->weight];
    for (uint32_t t = p.t0; t < p.t1; t++) {
        float *x = nib_cpu_row(cpu, s->out, t);
        uint32_t row = (uint32_t)cpu->batch->token[t];
        if (pw->kind == NIB_WEIGHT_ROWS) {
            nib_error error;
            if (read_row(w, pw, row, nib_cpu_scratch(cpu, index), x, &error) != NIB_OK) {
                nib_cpu_stop(cpu, s, &error);
                return;
            }
        } else {
            nib_cpu_matrix_row(&w->matrix, row, x);
        }
        if (s->scale != 1.0f) cpu->ops->scale(x, s->scale, s->n_out);
    }
}

void nib_cpu_op_angles(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    const nib_plan_rope_table *table = &cpu->plan->tables[s->table];
    uint32_t half = table->n_rot / 2;
    for (uint32_t t = p.t0; t < p.t1; t++) {
        float *cs = nib_cpu_row(cpu, s->out, t);
        for (uint32_t i = 0; i < half; i++) {
            double sin, cos;
            nib_sincos((double)cpu->batch->pos[t] * (double)table->inv_freq[i], &sin, &cos);
            cs[i] = (float)cos * table->mscale;
            cs[i + half] = (float)sin * table->mscale;
        }
    }
}

void nib_cpu_op_norm(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    nib_cpu_act act = act_of(cpu, s, index);
    const float *w = cpu->weights[s->weight].vector;
    for (uint32_t t = p.t0; t < p.t1; t++) {
        float *out = nib_cpu_out_row(cpu, s, index, t), *y = s->adds ? nib_cpu_scratch(cpu, index) : out;
        cpu->ops->rms_norm(nib_cpu_row(cpu, s->in, t), w, s->eps, y, s->n_in);
        if (s->adds) cpu->ops->add(out, y, s->n_in);
        quantize_row(cpu, s, &act, t);
    }
}

void nib_cpu_head(const nib_cpu *cpu, const nib_plan_step *s, uint32_t t, float *x) {
    if (s->op == NIB_OP_HEAD_NORM) {
        cpu->ops->rms_norm(x, cpu->weights[s->weight].vector, s->eps, x, s->k_dim);
        return;
    }
    const float *cs = nib_cpu_row(cpu, s->in2, t);
    uint32_t n_rot = cpu->plan->tables[s->table].n_rot;
    if (s->rope == NIB_ROPE_HALVES) cpu->ops->rope_halves(x, cs, n_rot);
    else cpu->ops->rope_pairs(x, cs, n_rot);
}

void nib_cpu_op_heads(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    for (uint32_t t = p.t0; t < p.t1; t++)
        for (uint32_t h = 0; h < s->n_head; h++) nib_cpu_head(cpu, s, t, nib_cpu_row(cpu, s->in, t) + (size_t)h * s->k_dim);
}

void nib_cpu_op_quant(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    nib_cpu_act act = act_of(cpu, s, index);
    for (uint32_t t = p.t0; t < p.t1; t++) quantize_row(cpu, s, &act, t);
}

void nib_cpu_store_head(const nib_cpu *cpu, const nib_plan_step *s, uint32_t t, uint32_t head, const float *k, const float *v) {
    const nib_cpu_kv *kv = &cpu->kv;
    uint32_t pos = cpu->batch->pos[t], page = cpu->batch->pages[t][pos / NIB_PAGE_POS], slot = pos % NIB_PAGE_POS;
    kv->k_type->store_key(nib_cpu_kv_keys(kv, s->kv_layer, page, head), slot, k, s->k_dim, cpu->ops);
    kv->v_type->store_value(nib_cpu_kv_values(kv, s->kv_layer, page, head), slot, v, s->v_dim, cpu->ops);
}

void nib_cpu_op_kv_store(nib_cpu *cpu, const nib_plan_step *s, int index) {
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    for (uint32_t t = p.t0; t < p.t1; t++) {
        const float *k = nib_cpu_row(cpu, s->in, t), *v = nib_cpu_row(cpu, s->in2, t);
        for (uint32_t h = 0; h < s->n_head_kv; h++)
            nib_cpu_store_head(cpu, s, t, h, k + (size_t)h * s->k_dim, v + (size_t)h * s->v_dim);
    }
}

void nib_cpu_gate_row(nib_cpu *cpu, const nib_plan_step *s, const float *const in[2], float *out, size_t n) {
    if (s->fn == NIB_ACT_SILU) cpu->ops->silu_mul(in[0], in[1], out, n);
    else cpu->ops->gelu_mul(in[0], in[1], out, n);
}

void nib_cpu_op_glu(nib_cpu *cpu, const nib_plan_step *s, int index) {
    if (s > cpu->plan->steps && nib_cpu_gates_chunks(cpu, s - 1)) return;
    nib_cpu_part p = nib_cpu_my_part(cpu, s, index);
    nib_cpu_act act = act_of(cpu, s, index);
    for (uint32_t t = p.t0; t < p.t1; t++) {
        const float *in[2] = {nib_cpu_row(cpu, s->in, t), nib_cpu_row(cpu, s->in2, t)};
        nib_cpu_gate_row(cpu, s, in, nib_cpu_out_row(cpu, s, index, t), s->n_in);
        quantize_row(cpu, s, &act, t);
    }
}

/* In place: the rows kept are ascending, so none is overwritten before it is read. */
void nib_cpu_op_gather(nib_cpu *cpu, const nib_plan_step *s, int index) {
    if (index != 0) return;
    for (uint32_t i = 0; i < cpu->batch->n_out; i++)
        if (cpu->batch->out[i] != i)
            memcpy(nib_cpu_row(cpu, s->out, i), nib_cpu_row(cpu, s->in, cpu->batch->out[i]), s->n_in * sizeof(float));
}
