/* server/fields.h - the fields of a JSON object by a table: names, types, ranges, and where the values go.
 *
 * null is as good as not given. What is wrong is a fault whose param is the field. Fields that no row knows do nothing; they
 * are refused when the server is strict. */
#ifndef NIB_SERVER_FIELDS_H
#define NIB_SERVER_FIELDS_H

#include "ask.h"

typedef enum nib_server_kind {
    NIB_SERVER_BOOL,   /* bool */
    NIB_SERVER_NOT,    /* bool, the opposite of the value */
    NIB_SERVER_INT,    /* int32_t */
    NIB_SERVER_UINT,   /* uint32_t */
    NIB_SERVER_FLOAT,  /* float; whole numbers, too */
    NIB_SERVER_STRING, /* const char *, without NUL inside */
    NIB_SERVER_CUSTOM, /* the row's function */
    NIB_SERVER_UNUSED, /* changes nothing here, whatever it is */
    NIB_SERVER_ABSENT, /* would change the answer, and cannot be had: only null, false, 0, "", [] and {} are taken */
} nib_server_kind;

typedef nib_status (*nib_server_field_fn)(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault);

typedef struct nib_server_field {
    const char *name;
    nib_server_kind kind;
    size_t offset;          /* in nib_server_ask */
    double low, high;       /* of numbers */
    nib_server_field_fn read;
    const char *why;        /* ABSENT: a clause for the message */
} nib_server_field;

/* Rows of a table: what a member of the ask is set to. */
#define NIB_SERVER_FIELD(name, kind, member, low, high) {name, NIB_SERVER_##kind, offsetof(nib_server_ask, member), low, high, NULL, NULL}
#define NIB_SERVER_FIELD_BY(name, function) {name, NIB_SERVER_CUSTOM, 0, 0, 0, function, NULL}
#define NIB_SERVER_FIELD_UNUSED(name) {name, NIB_SERVER_UNUSED, 0, 0, 0, NULL, NULL}
#define NIB_SERVER_FIELD_ABSENT(name, why) {name, NIB_SERVER_ABSENT, 0, 0, 0, NULL, why}

/* Reads ask->body by the tables, NULL behind the last one; a table ends with a row of zeros. A row goes before those of the same
 * name in later tables. */
nib_status nib_server_fields_read(nib_server_ask *ask, const nib_server_field *const *tables, nib_server_fault *fault);

/* Single values, for functions of rows. path names the field in messages. */
nib_status nib_server_fields_bool(const json_t *value, const char *path, bool *out, nib_server_fault *fault);
nib_status nib_server_fields_number(const json_t *value, const char *path, double low, double high, double *out,
                                    nib_server_fault *fault);
nib_status nib_server_fields_integer(const json_t *value, const char *path, double low, double high, int64_t *out,
                                     nib_server_fault *fault);
nib_status nib_server_fields_string(const json_t *value, const char *path, const char **out, nib_server_fault *fault);
/* Appends the text of a string, or of a list of parts that are text, with `between` between them. */
nib_status nib_server_fields_text(const json_t *value, const char *path, const char *between, nib_buf *text, nib_server_fault *fault);
/* "a string", "a list", … */
const char *nib_server_fields_kind_of(const json_t *value);

#endif
