/* cli/energy.c - counters of /sys/class/powercap in -> joules out. */
#include "energy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool read_text(const char *zone, const char *name, char *out, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", zone, name);
    FILE *f = fopen(path, "r");
    bool ok = f && fgets(out, (int)size, f);
    if (f) fclose(f);
    return ok;
}

static bool read_number(const char *zone, const char *name, uint64_t *out) {
    char text[32];
    return read_text(zone, name, text, sizeof text) && sscanf(text, "%" SCNu64, out) == 1;
}

/* Zones intel-rapl:0, :1 … are packages (AMD's too) or the whole platform, which holds them and is left out. */
void nib_cli_energy_open(nib_cli_energy *energy, const char *folder) {
    *energy = (nib_cli_energy){0};
    for (int i = 0; i < NIB_CLI_MAX_PACKAGES; i++) {
        char *zone = energy->paths[energy->n], name[32];
        size_t n = energy->n;
        int length = snprintf(zone, sizeof energy->paths[0], "%s/intel-rapl:%d", folder, i);
        if (length < 0 || (size_t)length >= sizeof energy->paths[0] || !read_text(zone, "name", name, sizeof name)) continue;
        if (!strncmp(name, "package", 7) && read_number(zone, "energy_uj", &energy->last[n]) &&
            read_number(zone, "max_energy_range_uj", &energy->wraps[n]))
            energy->n++;
    }
}

double nib_cli_energy_joules(nib_cli_energy *energy) {
    double sum = 0;
    for (size_t i = 0; i < energy->n; i++) {
        uint64_t now;
        if (!read_number(energy->paths[i], "energy_uj", &now)) continue;
        sum += (double)(now >= energy->last[i] ? now - energy->last[i] : now + energy->wraps[i] - energy->last[i]) / 1e6;
        energy->last[i] = now;
    }
    return sum;
}
