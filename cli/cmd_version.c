/* cli/cmd_version.c - nib version: the version, the instruction sets of this build and what this machine runs. */
#include "options.h"

int nib_cli_cmd_version(const nib_cli_options *opt, const nib_cli_term *term) {
    nib_cli_out out;
    nib_cli_out_open(&out);
    nib_cli_out_printf(&out, "nib %s\n", nib_version());
    if (opt->verbose) {
        const char *reason;
        int n_cpu = nib_cpu_count(&reason);
        nib_cli_out_printf(&out, "CPUs: %d (%s)\ninstruction sets:", n_cpu, reason);
        for (const char *const *isa = nib_isa_names(); *isa; isa++)
            nib_cli_out_printf(&out, " %s%s", *isa, nib_isa_usable(*isa) ? "" : " (not on this machine)");
        nib_cli_out_puts(&out, "\n");
    }
    return nib_cli_out_close(&out, term, NIB_CLI_DONE);
}
