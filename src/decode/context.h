/* decode/context.h - what a context is made of: pages, tables of sequences, the backend. Private to decode/. */
#ifndef NIB_DECODE_CONTEXT_H
#define NIB_DECODE_CONTEXT_H

#include "cpu/cpu.h"
#include "kv/table.h"
#include "model/model.h"

struct nib_context {
    const nib_model *model;
    nib_context_config config;
    nib_cpu *cpu;
    nib_kv_pool pool;
    nib_kv_table *tables;   /* by sequence */
    uint32_t *added, *kept; /* by sequence: positions that the batch adds; length before it */
    nib_token *token;       /* n_ubatch */
    uint32_t *pos, *out;
    const uint32_t **pages;
    uint32_t n_rows;        /* of logits or hidden states in the last nib_decode */
    bool has_hidden;        /* the rows are hidden states */
};

nib_status nib_context_check_seq(const nib_context *ctx, uint32_t seq, nib_error *err);

#endif
