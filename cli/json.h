/* cli/json.h - JSON out and JSON lines in, over jansson. Out of memory ends the program with a message, so building a
 * value cannot fail; floats are printed with 9 digits, enough to read a float32 back exactly. */
#ifndef NIB_CLI_JSON_H
#define NIB_CLI_JSON_H

#include "term.h"

#include <jansson.h>

/* Must come before the first use. */
void nib_cli_json_init(void);

/* Invalid UTF-8 becomes U+FFFD: JSON cannot hold other bytes. */
json_t *nib_cli_json_str(nib_str text);
bool nib_cli_json_is_utf8(nib_str text);
/* null for NaN and infinities. */
json_t *nib_cli_json_number(double x);
json_t *nib_cli_json_hash(uint64_t hash); /* 16 hex digits */
json_t *nib_cli_json_ids(const nib_token *ids, size_t n);
json_t *nib_cli_json_logprobs(const nib_logprob *items, size_t n); /* [[id,logprob],…] */

/* Sets a member of an object. */
void nib_cli_json_set_int(json_t *object, const char *key, int64_t value);
void nib_cli_json_set_real(json_t *object, const char *key, double value);
void nib_cli_json_set_str(json_t *object, const char *key, const char *value);

/* The value as text, compact, with numbers as they were read (nib_free); NULL: memory is out. */
char *nib_cli_json_dump(const json_t *value);
/* Writes the value and a newline, and frees it. */
void nib_cli_json_write(nib_cli_out *out, json_t *value);

/* Any JSON value; keys given twice and nesting deeper than 64 are errors. *out belongs to the caller. */
nib_status nib_cli_json_parse(nib_str text, json_t **out, nib_error *err);
/* The same of a file, - is standard input; the error names it. */
nib_status nib_cli_json_file(const char *path, json_t **out, nib_error *err);
/* The object that an option gives; NULL where it was not given. NIB_E_ARG names the option. */
nib_status nib_cli_json_option(const char *option, const char *given, json_t **out, nib_error *err);

/* Answers one request; on error `err` says why. */
typedef nib_status (*nib_cli_jsonl_fn)(void *user, json_t *request, json_t *answer, nib_error *err);
/* Reads requests, one object a line, from standard input until its end; writes one answer a line, {"error": …} where a
 * request fails. Returns the exit status: NIB_CLI_FAILED when some request failed. */
int nib_cli_jsonl(nib_cli_out *out, const nib_cli_term *term, nib_cli_jsonl_fn answer, void *user);

/* Fields of a request; the error names the field. */
nib_status nib_cli_json_bool(json_t *request, const char *key, bool fallback, bool *out, nib_error *err);
/* Appends the numbers of an array. */
nib_status nib_cli_json_get_ids(json_t *request, const char *key, nib_token_list *out, nib_error *err);
/* The bytes of "text", or of "hex": bytes is scratch that owns the latter. */
nib_status nib_cli_json_get_text(json_t *request, nib_buf *bytes, nib_str *text, nib_error *err);

#endif
