/* cpu/cpu.h - the CPU backend: prepare a plan once, run it for every batch.
 *
 * Owns activation buffers, logits, KV memory and the worker team. A run is one call of the team; steps meet at barriers,
 * except by-row steps in succession, where every thread keeps its rows. Weights stay the model's. */
#ifndef NIB_CPU_CPU_H
#define NIB_CPU_CPU_H

#include "cpu/isa.h"
#include "cpu/matrix.h"
#include "plan/batch.h"
#include "plan/plan.h"

/* A weight as it lies in memory; which member is used depends on the plan's nib_plan_weight_kind. */
typedef struct nib_cpu_weight {
    nib_cpu_matrix matrix;
    const float *vector;
    const nib_gguf *file;          /* NIB_WEIGHT_ROWS: rows are read when they are needed */
    const nib_gguf_tensor *tensor;
} nib_cpu_weight;

typedef struct nib_cpu_config {
    const nib_cpu_isa *isa;
    const nib_cpu_weight *weights; /* as many as the plan has */
    int n_threads;
    uint32_t n_tok, n_logits, n_pages; /* most tokens of a run, rows of logits, pages of KV cache */
    const char *k_type, *v_type;
    bool profile;
    bool adapts; /* fewer threads while other programs take CPUs */
    bool (*abort)(void *user);
    void *user;
} nib_cpu_config;

typedef struct nib_cpu nib_cpu;

/* plan and weights must outlive it. */
nib_status nib_cpu_new(nib_cpu **out, const nib_plan *plan, const nib_cpu_config *config, nib_error *err);
void nib_cpu_free(nib_cpu *cpu);
/* Runs all steps. Allocates nothing. */
nib_status nib_cpu_run(nib_cpu *cpu, const nib_plan_batch *batch, nib_error *err);
/* Lets the next runs use the first n_threads threads only; 1 to config.n_threads. The bits stay the same. */
void nib_cpu_limit_threads(nib_cpu *cpu, int n_threads);
const float *nib_cpu_logits(const nib_cpu *cpu, uint32_t row);
/* The best of each 32 of them, the last of fewer; +INFINITY where one is NaN. */
const float *nib_cpu_best_logits(const nib_cpu *cpu, uint32_t row);
/* After a run that wanted hidden states: one of them. */
const float *nib_cpu_hidden(const nib_cpu *cpu, uint32_t row);
void nib_cpu_copy_page(nib_cpu *cpu, uint32_t from, uint32_t to);
/* The bytes of a page, keys and values of all layers, the same on every level; and the names of their types. */
void *nib_cpu_page(const nib_cpu *cpu, uint32_t page, size_t *n_bytes);
void nib_cpu_kv_types(const nib_cpu *cpu, const char **k_type, const char **v_type);
/* With config.profile: milliseconds of step i since the last reset, as thread 0 saw them, and the threads' average of what
 * they waited at the barrier after it. Else 0. */
double nib_cpu_step_ms(const nib_cpu *cpu, size_t i);
double nib_cpu_wait_ms(const nib_cpu *cpu, size_t i);
void nib_cpu_reset_times(nib_cpu *cpu);
uint64_t nib_cpu_kv_total_bytes(const nib_cpu *cpu);
uint64_t nib_cpu_buffer_bytes(const nib_cpu *cpu);

#endif
