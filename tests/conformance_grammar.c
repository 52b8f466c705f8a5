/* tests/conformance_grammar.c - grammars and schemas against what llama.cpp's tests say of them, and the standard where
 * they differ.
 *
 * usage: conformance_grammar [FOLDER]      the folder is $NIB_CONFORMANCE_DATA/grammar when none is given
 * Each line of gbnf.jsonl and schema.jsonl has texts that match and texts that do not: "incomplete" or "dead_at" a
 * character. gbnf_parse.jsonl must load, gbnf_invalid.jsonl must not. For schema_gbnf.jsonl every text that llama.cpp's
 * grammar of the schema gives must fit ours, if it is JSON: random ones are drawn from it, unless it is known to widen
 * the schema. Exit 0: all right, 1: not, 77: no folder. */
#include "nib.h"
#include "support/conformance.h"
#include "support/grammar.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned g_rows, g_texts, g_bad;
static nib_grammar_vocab *g_vocab;

static void complain(json_t *row, const char *what, const char *text) {
    g_bad++;
    printf("%s: %s: %s\n",
           json_string_value(json_object_get(row, "name")) ? json_string_value(json_object_get(row, "name")) : "-",
           what, text);
}

static nib_grammar *compile(json_t *row, nib_syntax syntax, nib_error *err) {
    nib_grammar_config config = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    const char *text = json_string_value(json_object_get(row, syntax == NIB_SYNTAX_GBNF ? "grammar" : "schema_text"));
    config.syntax = syntax;
    if (nib_grammar_new(&g, text, strlen(text), g_vocab, &config, err) != NIB_OK) return NULL;
    return g;
}

/* Characters in n bytes. */
static size_t chars_in(const char *text, size_t n) {
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)text[i] & 0xC0) != 0x80;
    return chars;
}

/* A text may die later than llama.cpp says when up to there it is the beginning of one that is valid by the standard:
 * -0. */
static bool begins_like_a_valid_one(json_t *row, const char *text, size_t n) {
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(row, "reject"), i,
                       item) if (json_is_true(json_object_get(item, "standard_says_valid")) &&
                                 strncmp(json_string_value(json_object_get(item, "text")), text, n) == 0) return true;
    return false;
}

static void check_text(nib_grammar *g, json_t *row, json_t *item, bool wanted) {
    const char *text = json_string_value(json_object_get(item, "text"));
    json_t *dead = json_object_get(item, "dead_at");
    bool standard = json_is_true(json_object_get(item, "standard_says_valid"));
    size_t taken;
    grammar_verdict verdict = grammar_match(g, (nib_str){text, strlen(text)}, &taken);
    bool ok = verdict == GRAMMAR_MATCH;
    if (!wanted && !standard && dead)
        ok = verdict == GRAMMAR_DEAD && ((json_int_t)chars_in(text, taken) == json_integer_value(dead) ||
                                         begins_like_a_valid_one(row, text, taken));
    else if (!wanted && !standard)
        ok = verdict == GRAMMAR_INCOMPLETE;
    g_texts++;
    if (!ok) {
        char what[100];
        snprintf(what, sizeof what, "%s at byte %zu",
                 verdict == GRAMMAR_MATCH  ? "matches"
                 : verdict == GRAMMAR_DEAD ? "dead"
                                           : "incomplete",
                 taken);
        complain(row, what, text);
    }
}

static bool take(nib_matcher *m, nib_token id) {
    uint32_t mask[16];
    bool allowed = nib_matcher_mask(m, mask, 356, NULL) == NIB_OK && (mask[id / 32] >> id % 32 & 1);
    return nib_matcher_accept(m, id, NULL) == NIB_OK && allowed;
}

/* Texts with tokens in between: each character is a token. */
static void check_parts(nib_grammar *g, json_t *row, json_t *parts, bool wanted) {
    nib_matcher *m;
    json_t *part;
    size_t i;
    bool ok = nib_matcher_new(&m, g, NULL) == NIB_OK;
    json_array_foreach(parts, i, part) {
        const char *text = json_string_value(part);
        for (; ok && text && *text; text++) ok = take(m, GRAMMAR_BYTE_IDS + (unsigned char)*text);
        if (ok && json_is_object(part)) ok = take(m, (nib_token)json_integer_value(json_object_get(part, "token")));
    }
    ok = ok && nib_matcher_may_end(m);
    g_texts++;
    if (ok != wanted) complain(row, wanted ? "does not match" : "matches", "a text with tokens");
    nib_matcher_free(m);
}

static void check_texts(nib_grammar *g, json_t *row, const char *key, bool wanted) {
    json_t *item;
    size_t i;
    json_array_foreach(json_object_get(row, key), i, item) {
        json_t *parts = json_object_get(item, "parts");
        if (parts)
            check_parts(g, row, parts, wanted);
        else
            check_text(g, row, item, wanted);
    }
}

static void run_matches(json_t *row, nib_syntax syntax) {
    nib_error err;
    nib_grammar *g = compile(row, syntax, &err);
    if (!g) {
        complain(row, "refused", err.message);
        return;
    }
    check_texts(g, row, "match", true);
    check_texts(g, row, "reject", false);
    nib_grammar_free(g);
}

static void run_loads(json_t *row, bool wanted) {
    nib_error err;
    nib_grammar *g = compile(row, NIB_SYNTAX_GBNF, &err);
    if (!g == wanted)
        complain(row, wanted ? "refused" : "not refused", json_string_value(json_object_get(row, "grammar")));
    nib_grammar_free(g);
}

/* A random text of a grammar, byte by byte. False: it grew too long. */
static bool draw(nib_grammar *g, uint64_t *seed, char *text, size_t *len) {
    nib_matcher *m;
    if (nib_matcher_new(&m, g, NULL) != NIB_OK) abort();
    for (*len = 0; *len < 400;) {
        unsigned first, i;
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        if (nib_matcher_may_end(m) && (nib_matcher_must_end(m) || *seed >> 62 == 0)) {
            nib_matcher_free(m);
            return true;
        }
        first = (unsigned)(*seed >> 40) % 95;
        for (i = 0; i < 95; i++) {
            text[*len] = (char)(' ' + (first + i) % 95);
            if (nib_matcher_feed(m, (nib_str){text + *len, 1}, NULL, NULL) == NIB_OK) break;
        }
        if (i == 95) break;
        ++*len;
    }
    nib_matcher_free(m);
    return false;
}

static void run_equivalent(json_t *row) {
    static const char *const widened[] = {"unanchored", "unsupported", "top-level alternation", "empty name"};
    const char *name = json_string_value(json_object_get(row, "name")),
               *gbnf = json_string_value(json_object_get(row, "gbnf"));
    uint64_t seed = 1;
    char text[401];
    size_t len;
    nib_error err;
    nib_grammar *ours = compile(row, NIB_SYNTAX_JSON_SCHEMA, &err), *theirs = NULL;
    if (!ours && gbnf) complain(row, "refused", err.message);
    if (ours && gbnf && nib_grammar_new(&theirs, gbnf, strlen(gbnf), NULL, NULL, &err) != NIB_OK)
        complain(row, "their grammar", err.message);
    for (size_t i = 0; i < sizeof widened / sizeof *widened; i++)
        if (strstr(name, widened[i])) goto out;
    for (int i = 0; theirs && i < 200; i++) {
        if (!draw(theirs, &seed, text, &len)) continue;
        json_t *value = json_loadb(text, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        json_decref(value);
        if (!value) continue;
        g_texts++;
        if (grammar_match(ours, (nib_str){text, len}, NULL) == GRAMMAR_MATCH) continue;
        text[len] = 0;
        complain(row, "does not take", text);
        break;
    }
out:
    nib_grammar_free(ours);
    nib_grammar_free(theirs);
}

static void run_file(const char *folder, const char *name) {
    char path[4096], line[65536];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    while (f && fgets(line, sizeof line, f)) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        g_rows++;
        if (!row)
            g_bad++;
        else if (strcmp(name, "gbnf.jsonl") == 0)
            run_matches(row, NIB_SYNTAX_GBNF);
        else if (strcmp(name, "schema.jsonl") == 0)
            run_matches(row, NIB_SYNTAX_JSON_SCHEMA);
        else if (strcmp(name, "gbnf_parse.jsonl") == 0)
            run_loads(row, true);
        else if (strcmp(name, "gbnf_invalid.jsonl") == 0)
            run_loads(row, false);
        else if (strcmp(name, "schema_gbnf.jsonl") == 0)
            run_equivalent(row);
        json_decref(row);
    }
    if (f) fclose(f);
}

int main(int argc, char **argv) {
    g_vocab = grammar_vocab(NULL, 0);
    int n = conformance_each(argc, argv, "grammar", ".jsonl", run_file);
    nib_grammar_vocab_free(g_vocab);
    if (n < 0) return 77;
    printf("%u grammars and schemas, %u texts, %u differ\n", g_rows, g_texts, g_bad);
    return n > 0 && g_texts > 0 && g_bad == 0 ? 0 : 1;
}
