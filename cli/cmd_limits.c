/* cli/cmd_limits.c - nib limits: how fast this machine reads memory and multiplies at most, by number of threads. Nothing
 * else can make a model faster than these. */
#include "limits.h"

#include "command.h"

static void print(nib_cli_out *out, const nib_cli_limits *limits) {
    const char *reason;
    int n_cpu = nib_cpu_count(&reason);
    nib_cli_out_printf(out, "machine   %s, CPUs %s; nib would use %d threads (%s)\n", limits->cpu, limits->allowed,
                       n_cpu, reason);
    nib_cli_out_printf(out, "%s; best with %d threads\n\n", limits->is_cached ? "measured before (--refresh measures anew)" :
                       "measured now", nib_cli_limits_best_threads(limits));
    nib_cli_out_printf(out, "%8s  %s  %-10s %14s %14s\n%8s", "", "read GB/s, by MiB of the set", "level", "int8 GMAC/s",
                       "f32 GMAC/s", "threads");
    for (size_t i = 0; i < NIB_CLI_N_SETS; i++) nib_cli_out_printf(out, " %6u", nib_cli_set_mib[i]);
    nib_cli_out_puts(out, "\n");
    for (size_t i = 0; i < limits->n_rows; i++) {
        const nib_cli_limit *row = &limits->rows[i];
        nib_cli_out_printf(out, "%8d", row->n_threads);
        for (size_t k = 0; k < NIB_CLI_N_SETS; k++) nib_cli_out_printf(out, " %6.2f", row->read_bytes[k] / 1e9);
        for (size_t k = 0; k < row->n_peaks; k++)
            nib_cli_out_printf(out, "%*s  %-10s %14.1f %14.1f\n", k ? 8 + 7 * NIB_CLI_N_SETS : 0, "", row->peaks[k].isa,
                               row->peaks[k].int8_macs / 1e9, row->peaks[k].f32_macs / 1e9);
    }
}

int nib_cli_cmd_limits(const nib_cli_options *opt, const nib_cli_term *term) {
    nib_cli_limits limits;
    nib_cli_out out;
    nib_error err;
    nib_cli_out_open(&out);
    int status = NIB_CLI_DONE;
    if (nib_cli_limits_get(&limits, opt->n_threads, opt->refresh ? NIB_CLI_LIMITS_REFRESH : NIB_CLI_LIMITS_NEEDED, term,
                           &err) != NIB_OK)
        status = nib_cli_fail(term, &err);
    else if (opt->json)
        nib_cli_json_write(&out, nib_cli_limits_json(&limits));
    else
        print(&out, &limits);
    nib_cli_limits_free(&limits);
    return nib_cli_out_close(&out, term, status);
}
