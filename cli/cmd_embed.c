/* cli/cmd_embed.c - nib embed: texts in -> a vector for each of them out, its numbers in a line, or as JSON lines. */
#include "base/mem.h"
#include "base/status.h"
#include "input.h"
#include "json.h"
#include "session.h"

#include <string.h>

typedef struct embed_state {
    nib_cli_session s;
    nib_cli_out out;
    nib_buf text; /* the input, or scratch for "hex" */
    nib_token_list ids;
    nib_pooling pooling;
    float *vector; /* n_embd */
} embed_state;

/* The vector of e->ids. */
static nib_status embed_ids(embed_state *e, nib_error *err) {
    NIB_TRY(nib_embed(e->s.ctx, e->ids.ids, e->ids.n, e->pooling, e->vector, err));
    if (e->s.opt->normalize) nib_normalise(e->vector, nib_model_n_embd(e->s.model));
    return NIB_OK;
}

static void set_vector(const embed_state *e, json_t *reply) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < nib_model_n_embd(e->s.model); i++)
        json_array_append_new(list, nib_cli_json_number((double)e->vector[i]));
    json_object_set_new(reply, "embedding", list);
    nib_cli_json_set_int(reply, "n_tokens", (int64_t)e->ids.n);
}

/* {"text", "hex" or "ids", "add_special", "parse_special"} -> {"embedding", "n_tokens"} */
static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    embed_state *e = user;
    nib_str text;
    bool add, parse;
    e->ids.n = 0;
    if (json_object_get(request, "ids")) {
        NIB_TRY(nib_cli_json_get_ids(request, "ids", &e->ids, err));
    } else {
        NIB_TRY(nib_cli_json_get_text(request, &e->text, &text, err));
        NIB_TRY(nib_cli_json_bool(request, "add_special", true, &add, err));
        NIB_TRY(nib_cli_json_bool(request, "parse_special", true, &parse, err));
        unsigned flags = (add ? NIB_ADD_SPECIAL : 0u) | (parse ? NIB_PARSE_SPECIAL : 0u);
        NIB_TRY(nib_tokenize(e->s.tok, text.ptr, text.len, flags, &e->ids, err));
    }
    NIB_TRY(embed_ids(e, err));
    set_vector(e, reply);
    return NIB_OK;
}

static nib_status write_one(embed_state *e, nib_str text, nib_error *err) {
    e->ids.n = 0;
    NIB_TRY(nib_tokenize(e->s.tok, text.ptr, text.len, NIB_ADD_SPECIAL | NIB_PARSE_SPECIAL, &e->ids, err));
    NIB_TRY(embed_ids(e, err));
    if (e->s.opt->json) {
        json_t *reply = json_object();
        set_vector(e, reply);
        nib_cli_json_write(&e->out, reply);
        return NIB_OK;
    }
    for (uint32_t i = 0; i < nib_model_n_embd(e->s.model); i++)
        nib_cli_out_printf(&e->out, "%s%.9g", i ? " " : "", (double)e->vector[i]);
    nib_cli_out_puts(&e->out, "\n");
    return NIB_OK;
}

/* One text, or every line of it as one. */
static nib_status write_all(embed_state *e, bool by_lines, nib_error *err) {
    nib_str left = nib_cli_bytes(&e->text);
    if (!by_lines) return write_one(e, left, err);
    for (uint64_t line = 1; left.len; line++) {
        const char *end = memchr(left.ptr, '\n', left.len);
        size_t len = end ? (size_t)(end - left.ptr) : left.len;
        nib_status status = write_one(e, (nib_str){left.ptr, len}, err);
        if (status != NIB_OK) {
            nib_error_prefix(err, "line %llu", (unsigned long long)line);
            return status;
        }
        if (end) len++;
        left = (nib_str){left.ptr + len, left.len - len};
    }
    return NIB_OK;
}

static nib_status prepare(embed_state *e, const nib_cli_options *opt, const nib_cli_term *term, nib_error *err) {
    NIB_TRY(nib_cli_need_model(opt, err));
    NIB_TRY(opt->jsonl ? nib_cli_input_none(opt, err) : nib_cli_input_read(opt, &e->text, err));
    NIB_TRY(nib_cli_session_open(&e->s, opt, term, err));
    NIB_TRY(nib_cli_session_model(&e->s, err));
    e->pooling = opt->pooling ? (nib_pooling)opt->pooling : nib_model_pooling(e->s.model);
    if (e->pooling == NIB_POOLING_NONE)
        return nib_fail(err, NIB_E_ARG, "the model's file asks for a kind of pooling that nib does not do: give --pooling");
    nib_context_config config = nib_cli_context_config(opt);
    NIB_TRY(nib_cli_session_context(&e->s, &config, err));
    e->vector = nib_calloc(nib_model_n_embd(e->s.model), sizeof *e->vector);
    if (!e->vector) return nib_fail_nomem(err, 0, "a vector");
    return opt->jsonl ? NIB_OK : write_all(e, !opt->prompt && !opt->file && !opt->operands.n, err);
}

int nib_cli_cmd_embed(const nib_cli_options *opt, const nib_cli_term *term) {
    embed_state e = {0};
    nib_error err;
    nib_cli_out_open(&e.out);
    int status = prepare(&e, opt, term, &err) == NIB_OK ? NIB_CLI_DONE : nib_cli_fail(term, &err);
    if (status == NIB_CLI_DONE && opt->jsonl) status = nib_cli_jsonl(&e.out, term, answer, &e);
    nib_free(e.vector);
    nib_token_list_free(&e.ids);
    nib_buf_free(&e.text);
    nib_cli_session_close(&e.s);
    return nib_cli_out_close(&e.out, term, status);
}
