/* cli/cmd_detokenize.c - nib detokenize: ids in -> text out, byte for byte, or as JSON lines. */
#include "base/status.h"
#include "input.h"
#include "json.h"
#include "list.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

typedef struct detokenize_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf text;
    nib_token_list ids;
} detokenize_state;

/* {"ids", "remove_special", "unparse_special"} -> {"text"}, or {"hex"} when the bytes are not UTF-8 */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    static const char digits[] = "0123456789abcdef";
    detokenize_state *d = user;
    bool remove, unparse;
    char *text;
    size_t len;
    d->ids.n = 0;
    NIB_TRY(nib_cli_json_get_ids(request, "ids", &d->ids, err));
    NIB_TRY(nib_cli_json_bool(request, "remove_special", false, &remove, err));
    NIB_TRY(nib_cli_json_bool(request, "unparse_special", d->s.opt->special, &unparse, err));
    unsigned flags = (remove ? NIB_REMOVE_SPECIAL : 0u) | (unparse ? NIB_UNPARSE_SPECIAL : 0u);
    NIB_TRY(nib_detokenize(d->s.tok, d->ids.ids, d->ids.n, flags, &text, &len, err));
    if (nib_cli_json_is_utf8((nib_str){text, len})) {
        json_object_set_new(reply, "text", json_stringn_nocheck(text, len));
    } else {
        d->text.len = 0;
        for (size_t i = 0; i < len; i++) {
            nib_buf_char(&d->text, digits[(unsigned char)text[i] >> 4]);
            nib_buf_char(&d->text, digits[text[i] & 15]);
        }
        json_object_set_new(reply, "hex", nib_cli_json_str(nib_cli_bytes(&d->text)));
    }
    free(text);
    return NIB_OK;
}

/* Ids between anything that is a blank, a comma or a bracket: "[1, 2, 3]". */
static nib_status parse_ids(nib_str text, nib_token_list *ids, nib_error *err) {
    for (size_t i = 0; i < text.len;) {
        if (strchr(" \t\r\n,[]", text.ptr[i]) && text.ptr[i]) {
            i++;
            continue;
        }
        size_t start = i;
        int64_t id = 0;
        for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9' && id <= INT32_MAX; i++)
            id = id * 10 + (text.ptr[i] - '0');
        if (i == start || id > INT32_MAX)
            return nib_fail(err, NIB_E_ARG, "expected token ids, found '%.*s'",
                            (int)(text.len - start < 20 ? text.len - start : 20), text.ptr + start);
        nib_token token = (nib_token)id;
        if (!nib_cli_append_ids(ids, &token, 1)) return nib_fail_nomem(err, sizeof token, "ids");
    }
    return NIB_OK;
}

static nib_status read_ids(detokenize_state *d, const nib_cli_options *opt, nib_error *err) {
    const nib_str *items = opt->operands.items;
    bool only_dash = opt->operands.n == 1 && !strcmp(items[0].ptr, "-");
    if (opt->operands.n && opt->file)
        return nib_fail(err, NIB_E_ARG, "the ids are given twice: leave out -f or the others");
    for (size_t i = 0; i < opt->operands.n && !only_dash; i++) NIB_TRY(parse_ids(items[i], &d->ids, err));
    if (opt->operands.n && !only_dash) return NIB_OK;
    NIB_TRY(nib_cli_input_read(opt, &d->text, err));
    return parse_ids(nib_cli_bytes(&d->text), &d->ids, err);
}

static nib_status detokenize(detokenize_state *d, const nib_cli_options *opt, const nib_cli_term *term,
                             nib_error *err) {
    char *text;
    size_t len;
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(opt->jsonl ? nib_cli_input_none(opt, err) : read_ids(d, opt, err));
    NIB_TRY(nib_cli_session_open(&d->s, opt, term, err));
    if (opt->jsonl) return NIB_OK;
    NIB_TRY(nib_detokenize(d->s.tok, d->ids.ids, d->ids.n, opt->special ? NIB_UNPARSE_SPECIAL : 0, &text, &len, err));
    nib_cli_out_write(&d->out, (nib_str){text, len});
    if (term->out_is_terminal) nib_cli_out_puts(&d->out, "\n");
    free(text);
    return NIB_OK;
}

int nib_cli_cmd_detokenize(const nib_cli_options *opt, const nib_cli_term *term) {
    detokenize_state d = {0};
    nib_error err;
    nib_cli_out_open(&d.out);
    int status = detokenize(&d, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (status == NIB_CLI_DONE && opt->jsonl) status = nib_cli_jsonl(&d.out, term, answer, &d);
    nib_token_list_free(&d.ids);
    nib_buf_free(&d.text);
    nib_cli_session_close(&d.s);
    return nib_cli_out_close(&d.out, term, status);
}
