/* cli/constraint.c - options in -> grammar and matcher out. Called by run, chat and grammar. */
#include "constraint.h"

#include "base/buf.h"
#include "base/status.h"
#include "input.h"
#include "json.h"

#include <stdlib.h>
#include <string.h>

typedef struct request { /* a grammar that was asked for */
    const char *option, *text;
    bool is_file, is_given;
    nib_syntax syntax;
} request;

/* "a,b" -> ["a","b"] */
static nib_status put_choices(const char *text, nib_buf *out, nib_error *err) {
    json_t *list = json_array();
    for (const char *p = text, *end; p; p = *end ? end + 1 : NULL) {
        end = p + strcspn(p, ",");
        json_array_append_new(list, nib_cli_json_str((nib_str){p, (size_t)(end - p)}));
    }
    char *dump = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    bool ok = dump && nib_buf_str(out, dump);
    free(dump);
    return ok ? NIB_OK : nib_fail_nomem(err, strlen(text), "choices");
}

static nib_status read_text(const request *r, nib_buf *out, nib_error *err) {
    if (r->is_file) return nib_cli_input_file(r->text, out, err);
    if (r->syntax == NIB_SYNTAX_CHOICES) return put_choices(r->text, out, err);
    return !r->text || nib_buf_str(out, r->text) ? NIB_OK : nib_fail_nomem(err, 0, "a grammar");
}

/* The only one that was asked for; NULL: none. */
static nib_status find(const request *all, size_t n, const request **found, nib_error *err) {
    *found = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!all[i].text && !all[i].is_given) continue;
        if (*found)
            return nib_fail(err, NIB_E_ARG, "%s and %s: one grammar at a time", (*found)->option, all[i].option);
        *found = &all[i];
    }
    return NIB_OK;
}

nib_status nib_cli_constraint_read(nib_cli_constraint *c, const nib_cli_options *opt, nib_error *err) {
    const request all[] = {
        {"--grammar", opt->grammar, false, false, NIB_SYNTAX_GBNF},
        {"--grammar-file", opt->grammar_file, true, false, NIB_SYNTAX_GBNF},
        {"--json-schema", opt->json_schema, false, false, NIB_SYNTAX_JSON_SCHEMA},
        {"--json-schema-file", opt->json_schema_file, true, false, NIB_SYNTAX_JSON_SCHEMA},
        {"--regex", opt->regex, false, false, NIB_SYNTAX_REGEX},
        {"--choice", opt->choice, false, false, NIB_SYNTAX_CHOICES},
        {"--json-object", NULL, false, opt->json_object, NIB_SYNTAX_JSON_OBJECT},
    };
    const request *wanted;
    c->config = (nib_grammar_config)NIB_GRAMMAR_CONFIG_INIT;
    c->config.space = (nib_json_space)opt->json_space;
    c->config.key_order = opt->key_order == NIB_CLI_KEYS_SCHEMA;
    NIB_TRY(find(all, sizeof all / sizeof *all, &wanted, err));
    if (!wanted) return NIB_OK;
    c->option = wanted->option;
    c->config.syntax = wanted->syntax;
    return read_text(wanted, &c->text, err);
}

/* Names the option, and the byte unless a pointer says where. */
static nib_status name_option(const nib_cli_constraint *c, nib_status status, nib_error *err) {
    if (status == NIB_OK || !c->option) return status;
    if (err->offset != NIB_NO_OFFSET && !strchr(err->message, '#'))
        nib_error_prefix(err, "%s, byte %llu", c->option, (unsigned long long)err->offset);
    else
        nib_error_prefix(err, "%s", c->option);
    return status;
}

nib_status nib_cli_constraint_text(nib_cli_constraint *c, const nib_tokenizer *tok, nib_error *err) {
    if (!c->option) return NIB_OK;
    NIB_TRY(nib_grammar_vocab_new(&c->vocab, tok, err));
    NIB_TRY(name_option(c, nib_grammar_new(&c->grammar, c->text.ptr, c->text.len, c->vocab, &c->config, err), err));
    return nib_matcher_new(&c->matcher, c->grammar, err);
}

void nib_cli_constraint_choice(const nib_cli_constraint *c, const nib_cli_options *opt, nib_str tools,
                               nib_chat_grammar_config *config) {
    const char *choice = opt->tool_choice;
    bool is_word = choice && (strcmp(choice, "none") == 0 || strcmp(choice, "auto") == 0 || strcmp(choice, "required") == 0);
    *config = (nib_chat_grammar_config)NIB_CHAT_GRAMMAR_CONFIG_INIT;
    config->grammar = c->config;
    config->content = c->option ? nib_cli_bytes(&c->text).ptr : NULL;
    config->content_len = c->text.len;
    config->tools = tools.ptr;
    config->tools_len = tools.len;
    config->tool_choice = choice && !is_word ? "required" : choice;
    config->tool_name = choice && !is_word ? choice : NULL;
    config->strict = choice != NULL;
}

nib_status nib_cli_constraint_answer(nib_cli_constraint *c, const nib_chat *chat, const nib_chat_grammar_config *config,
                                     nib_error *err) {
    bool is_same = c->is_made && c->starts_thinking == config->starts_thinking && c->no_thinking == config->no_thinking;
    nib_matcher_free(c->matcher);
    c->matcher = NULL;
    if (!config->content && !config->strict) return NIB_OK;
    if (!c->vocab) NIB_TRY(nib_chat_vocab_new(&c->vocab, chat, err));
    if (!is_same) {
        nib_grammar_free(c->grammar);
        c->grammar = NULL;
        NIB_TRY(name_option(c, nib_chat_grammar_new(&c->grammar, config, c->vocab, err), err));
        c->is_made = true;
        c->starts_thinking = config->starts_thinking;
        c->no_thinking = config->no_thinking;
    }
    return c->grammar ? nib_matcher_new(&c->matcher, c->grammar, err) : NIB_OK;
}

void nib_cli_constraint_free(nib_cli_constraint *c) {
    nib_buf_free(&c->text);
    nib_matcher_free(c->matcher);
    nib_grammar_free(c->grammar);
    nib_grammar_vocab_free(c->vocab);
    *c = (nib_cli_constraint){0};
}
