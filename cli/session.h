/* cli/session.h - what the commands that run a model hold: file, tokenizer, model, context, batch.
 * Opened part by part from the options; a part is NULL until then. Close in any case. */
#ifndef NIB_CLI_SESSION_H
#define NIB_CLI_SESSION_H

#include "options.h"
#include "term.h"

typedef struct nib_cli_session {
    const nib_cli_options *opt;
    const nib_cli_term *term;
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_model *model;
    nib_context *ctx;
    nib_batch *batch;     /* as large as one nib_decode may be */
    bool plan_only;       /* set it before the model is opened: its weights are not read */
    double load_ms;       /* spent on file, tokenizer and weights */
    uint64_t logits_hash; /* over all rows so far, in order */
} nib_cli_session;

/* NIB_E_ARG when there is no -m. */
nib_status nib_cli_need_model(const nib_cli_options *opt, nib_error *err);
/* Opens a file in the load mode that the options ask for. */
nib_status nib_cli_open_file(nib_gguf **out, const nib_cli_options *opt, const char *path, nib_error *err);

/* Begins a session with a file and nothing else. */
nib_status nib_cli_session_file(nib_cli_session *s, const nib_cli_options *opt, const nib_cli_term *term,
                                const char *path, nib_error *err);
/* Begins a session with the file of -m and its tokenizer; warnings go to stderr. */
nib_status nib_cli_session_open(nib_cli_session *s, const nib_cli_options *opt, const nib_cli_term *term,
                                nib_error *err);
/* The weights. From here on Ctrl-C ends the work in good order. */
nib_status nib_cli_session_model(nib_cli_session *s, nib_error *err);
/* The options as a config, for the caller to change. */
nib_context_config nib_cli_context_config(const nib_cli_options *opt);
nib_status nib_cli_session_context(nib_cli_session *s, const nib_context_config *config, nib_error *err);
/* Frees context and batch, so that another one can be made. */
void nib_cli_session_end_context(nib_cli_session *s);
void nib_cli_session_close(nib_cli_session *s);

/* Runs n ids of sequence 0, no more than one batch holds, and keeps logits of the last n_rows. */
nib_status nib_cli_session_decode(nib_cli_session *s, const nib_token *ids, size_t n, size_t n_rows, nib_error *err);
/* Any number of ids, batch by batch, with logits of the last one. Draws a bar on a terminal. */
nib_status nib_cli_session_prefill(nib_cli_session *s, const nib_token *ids, size_t n, nib_error *err);
/* Rows of logits in one batch that keep their buffer small, for commands that want them at every position. */
uint32_t nib_cli_logits_rows(const nib_model *model);
/* "logits-hash: …" on stderr, with --logits-hash. */
void nib_cli_print_hash(const nib_cli_session *s);

#endif
