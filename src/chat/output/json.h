/* chat/output/json.h - strict JSON byte by byte, for what a model writes: where a value ends, whether it is valid, its
 * members.
 *
 * Valid is what RFC 8259 says, in UTF-8, surrogates in pairs, at most 64 levels deep. Duplicate keys are allowed. */
#ifndef NIB_CHAT_OUTPUT_JSON_H
#define NIB_CHAT_OUTPUT_JSON_H

#include "base/buf.h"

enum { NIB_CHAT_JSON_DEPTH = 64 };

typedef enum nib_chat_json_result { NIB_CHAT_JSON_MORE, NIB_CHAT_JSON_DONE, NIB_CHAT_JSON_BAD } nib_chat_json_result;

/* A value that is being read. Zero-initialise. */
typedef struct nib_chat_json {
    uint64_t objects; /* bit d: the container at depth d is an object */
    uint8_t depth, state;
    bool is_key;           /* the string is one */
    bool wants_low;        /* the string had the first half of a surrogate pair */
    uint8_t n_hex, n_more; /* digits of an escape read; bytes of a character that must come */
    uint8_t low, high;     /* what the next of these bytes may be */
    uint16_t code;         /* of the escape */
    const char *word;      /* rest of true, false, null */
} nib_chat_json;

/* Reads up to n bytes. *used counts those that belong to the value, or stand before the byte that is wrong. A number on
 * the outermost level has no end of its own: it is DONE when another byte follows; nib_chat_json_is_valid knows the
 * end. */
nib_chat_json_result nib_chat_json_read(nib_chat_json *json, const char *p, size_t n, size_t *used);
/* The text is one value, with blanks around it at most. */
bool nib_chat_json_is_valid(nib_str text);

/* ---- of valid text only */

/* Members of an object or items of a list (key is empty then), in order: p at its first byte. Both are raw JSON. */
typedef struct nib_chat_json_iter {
    const char *p, *end;
} nib_chat_json_iter;
nib_chat_json_iter nib_chat_json_begin(nib_str container);
bool nib_chat_json_next(nib_chat_json_iter *iter, nib_str *key, nib_str *value);
/* Appends what a string stands for. */
bool nib_chat_json_decode(nib_str string, nib_buf *out);

/* ---- out */

/* Appends the text as a string; bytes that are not UTF-8 become U+FFFD. */
bool nib_chat_json_put(nib_buf *out, nib_str text);
bool nib_chat_json_put_char(nib_buf *out, uint32_t cp); /* a character in UTF-8, as it is */

static inline bool nib_chat_is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
nib_str nib_chat_trim(nib_str text); /* blanks at both ends */

#endif
