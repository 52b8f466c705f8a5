/* cli/cmd_check.c - nib check: GGUF files in -> every fault of each out, one a line; exit status 1 when there was one.
 * Header, hyper-parameters, tensors, their data (NaN and infinity), and the vocabulary; nothing is run. */
#include "base/status.h"
#include "json.h"
#include "list.h"
#include "session.h"

#include <errno.h>
#include <string.h>

typedef struct check_state {
    const nib_cli_options *opt;
    nib_cli_out out;
    const char *path;
    nib_buf shown; /* the path, fit for a line */
    json_t *faults;
    size_t n_faults;
} check_state;

static void report(void *user, const nib_error *fault) {
    check_state *c = user;
    c->n_faults++;
    if (!c->opt->json) {
        bool names_file = !strncmp(fault->message, c->shown.ptr, strlen(c->shown.ptr)); /* faults of opening do */
        nib_cli_out_printf(&c->out, "%s%s%s", names_file ? "" : c->shown.ptr, names_file ? "" : ": ", fault->message);
        if (fault->offset != NIB_NO_OFFSET)
            nib_cli_out_printf(&c->out, " (at byte %llu)", (unsigned long long)fault->offset);
        nib_cli_out_puts(&c->out, "\n");
        return;
    }
    json_t *o = json_object();
    nib_cli_json_set_str(o, "kind", nib_status_text(fault->code));
    nib_cli_json_set_str(o, "message", fault->message);
    if (fault->offset == NIB_NO_OFFSET)
        json_object_set_new(o, "offset", json_null());
    else
        nib_cli_json_set_int(o, "offset", (int64_t)fault->offset);
    json_array_append_new(c->faults, o);
}

/* The model's check reports each fault through the callback and the first one in err again. */
static void check_file(check_state *c) {
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_error err;
    size_t before = c->n_faults;
    c->shown.len = 0;
    nib_buf_str(&c->shown, c->path);
    if (!nib_buf_cstr(&c->shown)) {
        c->out.error = ENOMEM;
        return;
    }
    nib_clean_line(c->shown.ptr);
    if (nib_cli_open_file(&file, c->opt, c->path, &err) != NIB_OK) {
        report(c, &err);
        return;
    }
    nib_tokenizer_config config = NIB_TOKENIZER_CONFIG_INIT;
    if (nib_tokenizer_new(&tok, file, &config, &err) != NIB_OK) report(c, &err);
    nib_tokenizer_free(tok);
    size_t reported = c->n_faults;
    if (nib_model_check(file, true, report, c, &err) != NIB_OK && c->n_faults == reported) report(c, &err);
    if (c->n_faults == before && !c->opt->json)
        nib_cli_out_printf(&c->out, "%s: ok, %zu tensors\n", c->shown.ptr, nib_gguf_n_tensors(file));
    nib_gguf_close(file);
}

int nib_cli_cmd_check(const nib_cli_options *opt, const nib_cli_term *term) {
    check_state c = {.opt = opt};
    const nib_str *operands = opt->operands.items;
    size_t n_bad = 0, n_files = opt->operands.n + (opt->model != NULL);
    if (!n_files) {
        nib_cli_error(term, "expected files: nib check FILE.gguf...");
        return NIB_CLI_USAGE;
    }
    nib_cli_out_open(&c.out);
    for (size_t i = 0; i < n_files && !c.out.error; i++) {
        c.path = i < opt->operands.n ? operands[i].ptr : opt->model;
        c.faults = json_array();
        size_t before = c.n_faults;
        check_file(&c);
        n_bad += c.n_faults > before;
        if (opt->json) {
            json_t *o = json_object();
            nib_cli_json_set_str(o, "file", c.path);
            json_object_set_new(o, "ok", json_boolean(c.n_faults == before));
            json_object_set(o, "faults", c.faults);
            nib_cli_json_write(&c.out, o);
        }
        json_decref(c.faults);
        nib_cli_out_flush(&c.out);
    }
    nib_buf_free(&c.shown);
    int status = n_bad ? NIB_CLI_FAILED : NIB_CLI_DONE;
    return nib_cli_out_close(&c.out, term, status);
}
