/* cli/cmd_grammar.c - nib grammar check|test|explain: a grammar, schema or regular expression -> whether it compiles,
 * whether texts match it and if not where and why, the rules that it became. */
#include "base/status.h"
#include "constraint.h"
#include "input.h"
#include "json.h"
#include "session.h"

#include <stdlib.h>
#include <string.h>

typedef struct state {
    const nib_cli_options *opt;
    nib_cli_out out;
    nib_cli_session s; /* with -m only: the tokens that a grammar names */
    nib_grammar_vocab *vocab;
    nib_buf source, input;
    nib_grammar *grammar;
    bool has_failed; /* a text does not match, or a request has a grammar that does not compile */
} state;

static nib_grammar_config config_of(const nib_cli_options *opt) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    config.syntax = opt->is_schema ? NIB_SYNTAX_JSON_SCHEMA : opt->is_regex ? NIB_SYNTAX_REGEX : NIB_SYNTAX_GBNF;
    config.space = (nib_json_space)opt->json_space;
    config.key_order = opt->key_order == NIB_CLI_KEYS_SCHEMA;
    return config;
}

/* ---- one text */

typedef struct verdict {
    bool match, incomplete;
    size_t n_bytes, n_chars; /* that fit */
    nib_str expected;        /* borrowed from the matcher */
} verdict;

/* Characters, and of bytes that are not UTF-8 each. */
static size_t count_chars(nib_str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++) n += ((unsigned char)s.ptr[i] & 0xC0) != 0x80;
    return n;
}

static nib_status judge(nib_matcher *m, nib_str text, verdict *v, nib_error *err) {
    nib_status status = nib_matcher_feed(m, text, &v->n_bytes, err);
    if (status != NIB_OK && status != NIB_E_ARG) return status;
    v->match = status == NIB_OK && nib_matcher_may_end(m);
    v->incomplete = status == NIB_OK && !v->match;
    v->n_chars = count_chars((nib_str){text.ptr, v->n_bytes});
    if (status != NIB_OK) NIB_TRY(nib_matcher_feed(m, (nib_str){text.ptr, v->n_bytes}, NULL, err));
    v->expected = nib_matcher_expected(m);
    return NIB_OK;
}

/* ---- JSON lines */

static json_t *error_json(const nib_error *err) {
    json_t *error = json_object();
    const char *end = err->message[0] == '#' ? strstr(err->message, ": ") : NULL;
    nib_cli_json_set_str(error, "message", err->message);
    if (end)
        json_object_set_new(error, "pointer", nib_cli_json_str((nib_str){err->message, (size_t)(end - err->message)}));
    if (err->offset != NIB_NO_OFFSET && !end) nib_cli_json_set_int(error, "offset", (int64_t)err->offset);
    return error;
}

/* The grammar of a request: "grammar", "schema" (as JSON, or as its text) or "regex". */
static nib_status compile_request(state *st, json_t *request, nib_grammar **out, nib_error *err) {
    static const char *const names[] = {"grammar", "schema", "regex"};
    static const nib_syntax syntaxes[] = {NIB_SYNTAX_GBNF, NIB_SYNTAX_JSON_SCHEMA, NIB_SYNTAX_REGEX};
    nib_grammar_config config = config_of(st->opt);
    json_t *value = NULL;
    for (size_t i = 0; i < 3 && !value; i++) {
        value = json_object_get(request, names[i]);
        config.syntax = syntaxes[i];
    }
    if (!value || (config.syntax != NIB_SYNTAX_JSON_SCHEMA && !json_is_string(value)))
        return nib_fail(err, NIB_E_ARG, "one of \"grammar\" and \"regex\" (texts) and \"schema\" (JSON) was expected");
    char *text = json_is_string(value) ? NULL : nib_cli_json_dump(value);
    const char *source = text ? text : json_string_value(value);
    nib_status status =
        source ? nib_grammar_new(out, source, text ? strlen(text) : json_string_length(value), st->vocab, &config, err)
               : nib_fail_nomem(err, 0, "a schema");
    free(text);
    return status;
}

static nib_status judge_one(nib_grammar *g, json_t *text, json_t *results, nib_error *err) {
    nib_matcher *m;
    verdict v = {0};
    if (!json_is_string(text)) return nib_fail(err, NIB_E_ARG, "\"texts\" is a list of texts");
    NIB_TRY(nib_matcher_new(&m, g, err));
    nib_status status = judge(m, (nib_str){json_string_value(text), json_string_length(text)}, &v, err);
    if (status == NIB_OK) {
        json_t *result = json_object();
        json_object_set_new(result, "match", json_boolean(v.match));
        json_object_set_new(result, "incomplete", json_boolean(v.incomplete));
        json_object_set_new(result, "dead_at",
                            v.match || v.incomplete ? json_null() : json_integer((json_int_t)v.n_chars));
        json_array_append_new(results, result);
    }
    nib_matcher_free(m);
    return status;
}

static nib_status answer(void *user, json_t *request, json_t *reply, nib_error *err) {
    state *st = user;
    nib_grammar *g = NULL;
    json_t *results = json_array(), *text;
    size_t i;
    nib_status status = compile_request(st, request, &g, err);
    json_array_foreach(json_object_get(request, "texts"), i, text) if (status == NIB_OK) status =
        judge_one(g, text, results, err);
    if (status == NIB_OK)
        json_object_set(reply, "results", results);
    else
        json_object_set_new(reply, "error", error_json(err));
    st->has_failed |= status != NIB_OK;
    json_decref(results);
    nib_grammar_free(g);
    return NIB_OK;
}

/* ---- one grammar */

static nib_status open_vocab(state *st, const nib_cli_term *term, nib_error *err) {
    if (!st->opt->model) return NIB_OK;
    NIB_TRY(nib_cli_session_open(&st->s, st->opt, term, err));
    return nib_grammar_vocab_new(&st->vocab, st->s.tok, err);
}

static nib_status compile(state *st, const char *path, bool keep_rules, nib_error *err) {
    nib_grammar_config config = config_of(st->opt);
    config.keep_rules = keep_rules;
    NIB_TRY(nib_cli_input_file(path, &st->source, err));
    nib_status status = nib_grammar_new(&st->grammar, st->source.ptr, st->source.len, st->vocab, &config, err);
    if (status == NIB_OK) return NIB_OK;
    uint32_t line, column;
    nib_template_place(st->source.ptr, st->source.len, err->offset, &line, &column);
    if (err->offset == NIB_NO_OFFSET)
        nib_error_prefix(err, "%s", path);
    else
        nib_error_prefix(err, "%s:%u:%u", path, line, column);
    return status;
}

/* A grammar of answers that call tools. */
static nib_status compile_tools(state *st, bool keep_rules, nib_error *err) {
    nib_cli_constraint none = {.config = config_of(st->opt)};
    nib_chat_grammar_config config;
    NIB_TRY(nib_cli_input_file(st->opt->tools, &st->source, err));
    nib_cli_constraint_choice(&none, st->opt, nib_cli_bytes(&st->source), &config);
    config.format = st->opt->format;
    config.strict = true;
    config.grammar.keep_rules = keep_rules;
    nib_status status = nib_chat_grammar_new(&st->grammar, &config, st->vocab, err);
    if (status == NIB_OK && !st->grammar) return nib_fail(err, NIB_E_ARG, "--tool-choice none: nothing is left to look at");
    if (status != NIB_OK) nib_error_prefix(err, "%s", st->opt->tools);
    return status;
}

/* Standard input against the grammar. */
static nib_status test(state *st, nib_error *err) {
    nib_matcher *m;
    verdict v = {0};
    NIB_TRY(nib_cli_input_file("-", &st->input, err));
    NIB_TRY(nib_matcher_new(&m, st->grammar, err));
    nib_status status = judge(m, nib_cli_bytes(&st->input), &v, err);
    if (status == NIB_OK && v.match) nib_cli_out_puts(&st->out, "match\n");
    if (status == NIB_OK && !v.match) {
        nib_cli_out_printf(&st->out, "%s byte %zu (character %zu): expected %.*s\n",
                           v.incomplete ? "incomplete: ends at" : "no match: fails at", v.n_bytes, v.n_chars,
                           (int)v.expected.len, v.expected.ptr);
        st->has_failed = true;
    }
    nib_matcher_free(m);
    return status;
}

static nib_status run(state *st, const nib_cli_term *term, int *code, nib_error *err) {
    const nib_str *operands = st->opt->operands.items;
    const char *action = st->opt->operands.n ? operands[0].ptr : "";
    bool has_tools = st->opt->tools != NULL;
    size_t n_files = st->opt->jsonl || has_tools ? 0 : 1;
    bool is_test = strcmp(action, "test") == 0, is_explain = strcmp(action, "explain") == 0;
    if ((strcmp(action, "check") != 0 && !is_test && !is_explain) || (st->opt->jsonl && !is_test) ||
        st->opt->operands.n != 1 + n_files)
        return nib_fail(err, NIB_E_ARG, "expected check FILE, test FILE, test --jsonl or explain FILE; --tools FILE goes instead of FILE");
    if (has_tools && st->opt->jsonl) return nib_fail(err, NIB_E_ARG, "--tools and --jsonl: one at a time");
    NIB_TRY(open_vocab(st, term, err));
    if (st->opt->jsonl) {
        *code = nib_cli_jsonl(&st->out, term, answer, st);
        return NIB_OK;
    }
    const char *name = has_tools ? st->opt->tools : operands[1].ptr;
    NIB_TRY(has_tools ? compile_tools(st, is_explain, err) : compile(st, name, is_explain, err));
    if (is_explain)
        nib_cli_out_write(&st->out, nib_grammar_rules(st->grammar));
    else if (!is_test)
        nib_cli_out_printf(&st->out, "%s: %zu states\n", name, nib_grammar_n_states(st->grammar));
    return is_test ? test(st, err) : NIB_OK;
}

int nib_cli_cmd_grammar(const nib_cli_options *opt, const nib_cli_term *term) {
    state st = {.opt = opt};
    nib_error err;
    int code = NIB_CLI_DONE;
    nib_cli_out_open(&st.out);
    nib_status status = run(&st, term, &code, &err);
    if (status != NIB_OK)
        code = nib_cli_fail(term, &err);
    else if (code == NIB_CLI_DONE && st.has_failed)
        code = NIB_CLI_FAILED;
    nib_grammar_free(st.grammar);
    nib_grammar_vocab_free(st.vocab);
    nib_buf_free(&st.source);
    nib_buf_free(&st.input);
    nib_cli_session_close(&st.s);
    return nib_cli_out_close(&st.out, term, code);
}
