/* cli/energy.h - energy that the processors' packages have taken, where the kernel lets one read it (RAPL). */
#ifndef NIB_CLI_ENERGY_H
#define NIB_CLI_ENERGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NIB_CLI_MAX_PACKAGES = 16 };

typedef struct nib_cli_energy {
    char paths[NIB_CLI_MAX_PACKAGES][96];
    uint64_t last[NIB_CLI_MAX_PACKAGES], wraps[NIB_CLI_MAX_PACKAGES]; /* microjoules; the counter begins anew after so many */
    size_t n; /* 0: not readable */
} nib_cli_energy;

/* folder: "/sys/class/powercap". */
void nib_cli_energy_open(nib_cli_energy *energy, const char *folder);
/* Joules since the last call, or since open. Must be called before the counters have gone round twice (about an hour). */
double nib_cli_energy_joules(nib_cli_energy *energy);

#endif
