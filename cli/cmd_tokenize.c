/* cli/cmd_tokenize.c - nib tokenize: text in -> ids out, one line a token, as a list, or as JSON lines. Files without
 * tensors (vocabulary only) are fine. */
#include "base/status.h"
#include "input.h"
#include "json.h"
#include "list.h"
#include "session.h"
#include "tokens.h"

typedef struct tokenize_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf text; /* the input, or scratch for "hex" */
    nib_token_list ids;
} tokenize_state;

/* {"text" or "hex", "add_special", "parse_special"} -> {"ids"} */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    tokenize_state *t = user;
    nib_str text;
    bool add, parse;
    NIB_TRY(nib_cli_json_get_text(request, &t->text, &text, err));
    NIB_TRY(nib_cli_json_bool(request, "add_special", t->s.opt->add_bos, &add, err));
    NIB_TRY(nib_cli_json_bool(request, "parse_special", t->s.opt->parse_special, &parse, err));
    t->ids.n = 0;
    NIB_TRY(nib_tokenize(t->s.tok, text.ptr, text.len, (add ? NIB_ADD_SPECIAL : 0u) | (parse ? NIB_PARSE_SPECIAL : 0u),
                         &t->ids, err));
    json_object_set_new(reply, "ids", nib_cli_json_ids(t->ids.ids, t->ids.n));
    return NIB_OK;
}

static void print(tokenize_state *t) {
    const nib_cli_options *opt = t->s.opt;
    if (opt->ids_only) nib_cli_out_puts(&t->out, "[");
    for (size_t i = 0; i < t->ids.n; i++) {
        if (opt->ids_only) {
            nib_cli_out_printf(&t->out, "%s%d", i ? ", " : "", t->ids.ids[i]);
            continue;
        }
        nib_buf line = {0};
        nib_cli_token_line(&line, t->s.tok, t->ids.ids[i]);
        nib_cli_out_write(&t->out, nib_cli_bytes(&line));
        nib_cli_out_puts(&t->out, "\n");
        nib_buf_free(&line);
    }
    if (opt->ids_only) nib_cli_out_puts(&t->out, "]\n");
    if (opt->show_count) nib_cli_out_printf(&t->out, "Total number of tokens: %zu\n", t->ids.n);
}

static nib_status tokenize(tokenize_state *t, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(opt->jsonl ? nib_cli_input_none(opt, err) : nib_cli_input_read(opt, &t->text, err));
    NIB_TRY(nib_cli_session_open(&t->s, opt, term, err));
    if (opt->jsonl) return NIB_OK;
    unsigned flags = (opt->add_bos ? NIB_ADD_SPECIAL : 0u) | (opt->parse_special ? NIB_PARSE_SPECIAL : 0u);
    NIB_TRY(nib_tokenize(t->s.tok, t->text.ptr, t->text.len, flags, &t->ids, err));
    print(t);
    return NIB_OK;
}

int nib_cli_cmd_tokenize(const nib_cli_options *opt, const nib_cli_term *term) {
    tokenize_state t = {0};
    nib_error err;
    nib_cli_out_open(&t.out);
    int status = tokenize(&t, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (status == NIB_CLI_DONE && opt->jsonl) status = nib_cli_jsonl(&t.out, term, answer, &t);
    nib_token_list_free(&t.ids);
    nib_buf_free(&t.text);
    nib_cli_session_close(&t.s);
    return nib_cli_out_close(&t.out, term, status);
}
