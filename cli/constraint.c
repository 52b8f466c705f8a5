/* cli/constraint.c - options in -> grammar and matcher out. Called by run and chat. */
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

nib_status nib_cli_constraint_new(nib_cli_constraint *c, const nib_cli_options *opt, const nib_tokenizer *tok,
                                  nib_error *err) {
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
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_buf text = {0};
    nib_status status = find(all, sizeof all / sizeof *all, &wanted, err);
    if (status != NIB_OK || !wanted) return status;
    config.syntax = wanted->syntax;
    config.space = (nib_json_space)opt->json_space;
    config.key_order = opt->key_order == NIB_CLI_KEYS_SCHEMA;
    NIB_TRY_OUT(read_text(wanted, &text, err));
    NIB_TRY_OUT(nib_grammar_vocab_new(&c->vocab, tok, err));
    status = nib_grammar_new(&c->grammar, text.ptr, text.len, c->vocab, &config, err);
    if (status != NIB_OK) {
        if (err->offset != NIB_NO_OFFSET && !strchr(err->message, '#'))
            nib_error_prefix(err, "%s, byte %llu", wanted->option, (unsigned long long)err->offset);
        else
            nib_error_prefix(err, "%s", wanted->option);
        goto out;
    }
    NIB_TRY_OUT(nib_matcher_new(&c->matcher, c->grammar, err));
out:
    nib_buf_free(&text);
    return status;
}

void nib_cli_constraint_free(nib_cli_constraint *c) {
    nib_matcher_free(c->matcher);
    nib_grammar_free(c->grammar);
    nib_grammar_vocab_free(c->vocab);
    *c = (nib_cli_constraint){0};
}
