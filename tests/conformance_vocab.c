/* tests/conformance_vocab.c - the tokenizers against answers of programs that are not nib.
 *
 * usage: conformance_vocab [FOLDER]      the folder is $NIB_CONFORMANCE_DATA/vocab when none is given FOLDER/X.gguf or
 * ggml-vocab-X.gguf is a vocabulary, X.cases.jsonl and X.detok.jsonl are cases, one JSON object a line;
 * ggml-vocab-X.gguf.inp and .out are texts and ids. Prints the number of rows for each file and every difference. Exit
 * 0: all equal, 1: not, 77: no folder. Where a row has hf_ids, the model's own tokenizer normalises to NFC and
 * llama.cpp does not: those ids count. In the same file there are texts whose row has only the ids of llama.cpp: of
 * these the ids must be those of the text in NFC; they are counted as normalised. */
#include "base/buf.h"
#include "nib.h"
#include "support/conformance.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#define MAX_SHOWN 10 /* differences printed for one file */

typedef struct tally {
    unsigned n, n_bad, n_normalised;
    bool normalises; /* the file has rows with hf_ids */
} tally;

static unsigned g_files, g_bad_files;

static bool read_file(const char *path, nib_buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) nib_buf_append(out, block, n);
    fclose(f);
    return nib_buf_cstr(out) != NULL;
}

/* "text", or "hex" where the bytes are no UTF-8. */
static void text_of(json_t *row, nib_buf *out) {
    json_t *text = json_object_get(row, "text"), *hex = json_object_get(row, "hex");
    out->len = 0;
    if (text) nib_buf_append(out, json_string_value(text), json_string_length(text));
    const char *p = hex ? json_string_value(hex) : "";
    for (; p[0] && p[1]; p += 2) {
        char digits[3] = {p[0], p[1], 0};
        nib_buf_char(out, (char)strtoul(digits, NULL, 16));
    }
}

static bool ids_equal(const nib_token_list *found, json_t *ids) {
    if (found->n != json_array_size(ids)) return false;
    for (size_t i = 0; i < found->n; i++)
        if (found->ids[i] != json_integer_value(json_array_get(ids, i))) return false;
    return true;
}

static void print_ids(const char *name, const nib_token_list *list) {
    printf("    %s:", name);
    for (size_t i = 0; i < list->n && i < 60; i++) printf(" %d", list->ids[i]);
    printf("\n");
}

static void to_list(json_t *ids, nib_token_list *out) {
    out->n = 0;
    size_t n = json_array_size(ids);
    out->ids = realloc(out->ids, (n + 1) * sizeof *out->ids);
    out->capacity = n + 1;
    for (; out->n < n; out->n++) out->ids[out->n] = (nib_token)json_integer_value(json_array_get(ids, out->n));
}

/* The text is not in NFC, and tokenizes as if it were. */
static bool is_normalised(const nib_tokenizer *tok, nib_buf *text, unsigned flags, const nib_token_list *found) {
    char *normal = (char *)utf8proc_NFC((const utf8proc_uint8_t *)nib_buf_cstr(text));
    nib_token_list ids = {0};
    bool is_same = normal && strcmp(normal, text->ptr) != 0 &&
                   nib_tokenize(tok, normal, strlen(normal), flags, &ids, NULL) == NIB_OK && ids.n == found->n &&
                   memcmp(ids.ids, found->ids, ids.n * sizeof *ids.ids) == 0;
    nib_token_list_free(&ids);
    free(normal);
    return is_same;
}

/* A tag that is user-defined: nib_tokenize always takes it for a token, nib_tokenize_spans where it is trusted. */
static bool has_markup(const nib_tokenizer *tok, const nib_token_list *list) {
    for (size_t i = 0; i < list->n; i++) {
        nib_str text = nib_tokenizer_text(tok, list->ids[i]);
        bool is_tag = text.len > 2 && (text.ptr[0] == '<' || text.ptr[0] == '[');
        if (is_tag && (nib_tokenizer_attr(tok, list->ids[i]) & NIB_TOKEN_USER)) return true;
    }
    return false;
}

/* Text of one span is tokenized as by nib_tokenize, with special tokens where it is trusted. */
static bool spans_agree(const nib_tokenizer *tok, const nib_buf *text, bool is_trusted) {
    nib_token_list found = {0}, wanted = {0};
    nib_span span = {text->len, is_trusted};
    nib_rendered rendered = {text->ptr, text->len, &span, 1};
    bool ok = nib_tokenize_spans(tok, &rendered, 0, &found, NULL) ==
              nib_tokenize(tok, text->ptr, text->len, is_trusted ? NIB_PARSE_SPECIAL : 0, &wanted, NULL);
    bool is_same = found.n == wanted.n && (!found.n || memcmp(found.ids, wanted.ids, found.n * sizeof *found.ids) == 0);
    ok = ok && (is_same || (!is_trusted && has_markup(tok, &wanted)));
    nib_token_list_free(&found);
    nib_token_list_free(&wanted);
    return ok;
}

static void tokenize_row(const nib_tokenizer *tok, json_t *row, const char *line, tally *result) {
    static nib_buf text;
    nib_token_list found = {0}, wanted = {0};
    nib_error err;
    json_t *hf_ids = json_object_get(row, "hf_ids"), *ids = hf_ids ? hf_ids : json_object_get(row, "ids");
    unsigned flags = json_is_true(json_object_get(row, "add_special")) && !hf_ids ? NIB_ADD_SPECIAL : 0;
    if (json_is_true(json_object_get(row, "parse_special"))) flags |= NIB_PARSE_SPECIAL;
    text_of(row, &text);
    nib_status status = nib_tokenize(tok, text.ptr, text.len, flags, &found, &err);
    result->n++;
    bool is_bad = ids && (status != NIB_OK || !ids_equal(&found, ids));
    if (is_bad && result->normalises && is_normalised(tok, &text, flags, &found)) {
        result->n_normalised++;
    } else if (is_bad && ++result->n_bad <= MAX_SHOWN) {
        printf("  tokenize %.200s\n", line);
        if (status != NIB_OK) printf("    error: %s\n", err.message);
        to_list(ids, &wanted);
        print_ids("found ", &found);
        print_ids("wanted", &wanted);
    }
    if ((!spans_agree(tok, &text, true) || !spans_agree(tok, &text, false)) && ++result->n_bad <= MAX_SHOWN)
        printf("  spans %.200s\n", line);
    nib_token_list_free(&found);
    free(wanted.ids);
}

static void detokenize_row(const nib_tokenizer *tok, json_t *row, const char *line, tally *result) {
    static nib_buf wanted;
    nib_token_list ids = {0};
    nib_error err = {0};
    char *text;
    size_t len;
    to_list(json_object_get(row, "ids"), &ids);
    text_of(row, &wanted);
    unsigned flags = json_is_true(json_object_get(row, "remove_special")) ? NIB_REMOVE_SPECIAL : 0;
    if (json_is_true(json_object_get(row, "unparse_special"))) flags |= NIB_UNPARSE_SPECIAL;
    nib_status status = nib_detokenize(tok, ids.ids, ids.n, flags, &text, &len, &err);
    result->n++;
    if ((status != NIB_OK || len != wanted.len || memcmp(text, wanted.ptr, len) != 0) && ++result->n_bad <= MAX_SHOWN)
        printf("  detokenize %.200s\n    found : %s\n    wanted: %s\n", line, status ? err.message : text,
               nib_buf_cstr(&wanted));
    free(text);
    free(ids.ids);
}

static void report(const char *name, tally result) {
    printf("%-32s %5u rows, %u differ", name, result.n, result.n_bad);
    if (result.n_normalised) printf(", %u normalised", result.n_normalised);
    printf("\n");
    g_files++;
    g_bad_files += result.n_bad > 0 || result.n == 0;
}

static void run_jsonl(const nib_tokenizer *tok, const char *folder, const char *name,
                      void (*run)(const nib_tokenizer *, json_t *, const char *, tally *)) {
    char path[4096];
    nib_buf file = {0};
    tally result = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!read_file(path, &file)) return;
    result.normalises = strstr(file.ptr, "\"hf_ids\"") != NULL;
    for (char *line = file.ptr, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) break;
        *end = 0;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        if (row) run(tok, row, line, &result);
        else result.n_bad++;
        json_decref(row);
    }
    nib_buf_free(&file);
    report(name, result);
}

#define SEPARATOR "\n__ggml_vocab_test__\n"

/* Texts and, in the same order, one line of ids for each; without special tokens. */
static void run_pairs(const nib_tokenizer *tok, const char *folder, const char *name) {
    char path[4096];
    nib_buf inputs = {0}, outputs = {0};
    tally result = {0};
    snprintf(path, sizeof path, "%s/%s.inp", folder, name);
    bool ok = read_file(path, &inputs);
    snprintf(path, sizeof path, "%s/%s.out", folder, name);
    ok = ok && read_file(path, &outputs);
    for (char *text = inputs.ptr, *line = outputs.ptr; ok && *line; result.n++) {
        char *text_end = strstr(text, SEPARATOR), *line_end = strchr(line, '\n');
        if (!text_end || !line_end) break;
        *line_end = 0;
        nib_token_list found = {0};
        nib_buf ids = {0};
        nib_tokenize(tok, text, (size_t)(text_end - text), 0, &found, NULL);
        for (size_t i = 0; i < found.n; i++) nib_buf_printf(&ids, " %d", found.ids[i]);
        if (strcmp(line, nib_buf_cstr(&ids)) != 0 && ++result.n_bad <= MAX_SHOWN)
            printf("  text %u: found %s\n         wanted %s\n", result.n, ids.ptr, line);
        nib_buf_free(&ids);
        nib_token_list_free(&found);
        text = text_end + strlen(SEPARATOR);
        line = line_end + 1;
    }
    if (ok) report(name, result);
    nib_buf_free(&inputs);
    nib_buf_free(&outputs);
}

static void run_vocabulary(const char *folder, const char *file_name) {
    char path[4096], name[256], cases[300];
    nib_gguf *file = NULL;
    nib_tokenizer *tok = NULL;
    nib_error err;
    snprintf(path, sizeof path, "%s/%s", folder, file_name);
    const char *base = strncmp(file_name, "ggml-vocab-", 11) == 0 ? file_name + 11 : file_name;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(base) - strlen(".gguf")), base);
    if (nib_gguf_open(&file, path, NULL, &err) != NIB_OK || nib_tokenizer_new(&tok, file, NULL, &err) != NIB_OK) {
        printf("%s: %s\n", file_name, err.message);
        g_bad_files++;
    } else {
        snprintf(cases, sizeof cases, "%s.cases.jsonl", name);
        run_jsonl(tok, folder, cases, tokenize_row);
        snprintf(cases, sizeof cases, "%s.detok.jsonl", name);
        run_jsonl(tok, folder, cases, detokenize_row);
        run_pairs(tok, folder, file_name);
    }
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
}

int main(int argc, char **argv) {
    int n = conformance_each(argc, argv, "vocab", ".gguf", run_vocabulary);
    if (n < 0) return 77;
    printf("%u files, %u with differences\n", g_files, g_bad_files);
    return n > 0 && g_files > 0 && g_bad_files == 0 ? 0 : 1;
}
