/* decode/meter.h - private to decode/: the plan of one kind of step that a meter runs (nib_meter_* of nib.h). */
#ifndef NIB_DECODE_METER_H
#define NIB_DECODE_METER_H

#include "cpu/cpu.h"

/* Zero-initialise; nib_decode_probe_fini in any case. */
typedef struct nib_decode_probe {
    nib_plan plan;
    nib_cpu_weight *weights;
    unsigned char *memory; /* of all weights */
    size_t n_bytes;
    nib_cpu *cpu;
    nib_plan_batch batch;
    uint32_t *pos, *page_numbers;
    const uint32_t **pages;
    uint64_t bytes, macs, n_steps; /* of one run */
} nib_decode_probe;

/* Builds the plan, fills weights and cache with numbers that no arithmetic trips over. */
nib_status nib_decode_probe_init(nib_decode_probe *p, const nib_meter_config *config, const nib_cpu_isa *isa,
                                 nib_error *err);
void nib_decode_probe_fini(nib_decode_probe *p);

#endif
