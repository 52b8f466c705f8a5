/* server/json.h - JSON in and out, over jansson. Its allocator ends the program when memory is out (cli/json.c), so building a
 * value cannot fail. */
#ifndef NIB_SERVER_JSON_H
#define NIB_SERVER_JSON_H

#include "base/buf.h"

#include <jansson.h>

/* A client's text: nested at most 64 deep, keys once. Integers beyond 64 bits become real numbers. *out belongs to the caller. */
nib_status nib_server_json_parse(nib_str text, json_t **out, nib_error *err);
/* The arguments of a call; {} when they are no JSON, as when they were cut. */
json_t *nib_server_json_arguments(const nib_buf *text);
/* Bytes that are not UTF-8 become U+FFFD. */
json_t *nib_server_json_str(nib_str text);
/* null for NaN and infinities. */
json_t *nib_server_json_number(double x);
/* Appends the value, compact, and frees it. */
void nib_server_json_put(json_t *value, nib_buf *out);
/* The value as text, compact, with numbers as the client wrote them; it stays the caller's, and so does the text (nib_free).
 * NULL: memory is out. */
char *nib_server_json_dump(const json_t *value);
/* The string at a key of an object, "" when there is none. */
static inline const char *nib_server_json_word(const json_t *object, const char *key) {
    const char *word = json_string_value(json_object_get(object, key));
    return word ? word : "";
}

/* The bytes of a string. */
static inline nib_str nib_server_json_text(const json_t *value) {
    return (nib_str){json_string_value(value), json_string_length(value)};
}

#endif
