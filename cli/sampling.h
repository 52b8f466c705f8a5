/* cli/sampling.h - the sampler that the options, the file's recommendations and its special tokens make. */
#ifndef NIB_CLI_SAMPLING_H
#define NIB_CLI_SAMPLING_H

#include "session.h"

/* The file's recommendations (general.sampling.*) hold where no option was given. Needs s->tok and s->model. */
nib_status nib_cli_sampler_new(nib_sampler **out, const nib_cli_session *s, nib_error *err);
/* What can be said of the options without a model. */
nib_status nib_cli_sampling_check(const nib_cli_options *opt, nib_error *err);
/* The recommendations alone; what is wrong with them is a warning. */
void nib_cli_sampling_hints(const nib_cli_session *s, nib_sampler_params *params);

#endif
