/* cli/bench_kernels.h - nib bench --kernels: every matrix kernel alone, on one thread, against its bound. */
#ifndef NIB_CLI_BENCH_KERNELS_H
#define NIB_CLI_BENCH_KERNELS_H

#include "options.h"
#include "term.h"

nib_status nib_cli_bench_kernels(nib_cli_out *out, const nib_cli_options *opt, nib_error *err);

#endif
