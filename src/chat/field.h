/* chat/field.h - reading the fields of JSON objects strictly. An error names the field by its path,
 * "messages[3].content", and says what was found and what was expected. */
#ifndef NIB_CHAT_FIELD_H
#define NIB_CHAT_FIELD_H

#include "base/mem.h"
#include "jinja/value.h"

typedef struct nib_chat_reader {
    nib_arena *arena;
    nib_error *err;
    char path[200]; /* of the object that is read; cut when it is longer */
} nib_chat_reader;

/* Goes into a member: appends to the path. leave gets the result, and goes back. */
size_t nib_chat_field_enter(nib_chat_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nib_chat_field_leave(nib_chat_reader *r, size_t mark);

/* "PATH NAME: MESSAGE"; name may be "". */
nib_status nib_chat_field_fail(const nib_chat_reader *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same for a value of a wrong kind; NULL: it is missing. */
nib_status nib_chat_field_wrong(const nib_chat_reader *r, const char *name, const jinja_value *found, const char *expected);
/* The same for a string that is not one of those expected. */
nib_status nib_chat_field_unknown(const nib_chat_reader *r, const char *name, const jinja_value *found, const char *expected);
nib_status nib_chat_field_nomem(const nib_chat_reader *r);

/* *out is the value of a field; NULL when it is missing or null. Another type than the one given is an error. */
nib_status nib_chat_field_get(const nib_chat_reader *r, const jinja_dict *object, const char *name, int type,
                              const jinja_value **out);
/* *out stays as it is when the field is missing or null. */
nib_status nib_chat_field_bool(const nib_chat_reader *r, const jinja_dict *object, const char *name, bool *out);
/* A string that is there and not empty. */
nib_status nib_chat_field_name(const nib_chat_reader *r, const jinja_dict *object, const char *name, jinja_value *out);

#endif
