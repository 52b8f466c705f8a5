/* cli/bench_serve.h - nib bench --serve: what the clients of a server see when many ask at once. */
#ifndef NIB_CLI_BENCH_SERVE_H
#define NIB_CLI_BENCH_SERVE_H

#include "options.h"
#include "term.h"

nib_status nib_cli_bench_serve(nib_cli_out *out, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err);

#endif
