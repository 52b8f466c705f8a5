/* jinja/value.h - values of a template: what Python has, as far as templates can see it.
 *
 * A value is copied freely; what it points to lives in the arena of the render and is shared. Strings are UTF-8 and know
 * for every byte whether it is trusted: whether it comes from the template or from the data. Integers have 64 bits: a
 * result beyond that is an error. */
#ifndef NIB_JINJA_VALUE_H
#define NIB_JINJA_VALUE_H

#include "nib.h"

enum {
#define TYPE(id, name) JINJA_##id,
#include "jinja/types.def"
#undef TYPE
    JINJA_N_TYPES
};

enum {
#define FLAVOR(id, name, opening, closing) JINJA_AS_##id,
#include "jinja/flavors.def"
#undef FLAVOR
    JINJA_N_FLAVORS
};

typedef struct jinja_value {
    uint8_t type;     /* JINJA_STR … */
    bool is_trusted;  /* for all of it, unless it is a string with marks */
    bool is_markup;   /* a string that is HTML already */
    uint32_t len;     /* of a string, in bytes */
    union {
        bool b;
        int64_t i;
        double f;
        const char *ptr; /* not NUL-terminated */
        struct jinja_list *list;
        struct jinja_dict *dict; /* DICT, NAMESPACE */
        const struct jinja_undefined *undefined;
        struct jinja_loop *loop;
        const struct jinja_macro *macro;
        const struct jinja_method *method;
        const struct jinja_builtin *function;
        struct jinja_cycler *cycler; /* CYCLER, JOINER */
    } as;
    const char *marks; /* of a string: a byte for each byte, 1 where it is trusted; NULL: all as is_trusted says */
} jinja_value;

typedef struct jinja_list {
    uint8_t flavor; /* JINJA_AS_LIST … */
    jinja_value *items;
    uint32_t n, capacity;
    uint32_t next;           /* of a generator: items before it were taken */
    int64_t start, stop, step; /* of a range */
} jinja_list;

typedef struct jinja_pair {
    jinja_value key, value;
} jinja_pair;

/* In the order of insertion; beyond a few pairs an index of open addressing. */
typedef struct jinja_dict {
    jinja_pair *pairs;
    uint32_t n, capacity;
    uint32_t *slots; /* number of a pair + 1; 0: free */
    uint32_t n_slots;
    uint32_t n_probes; /* at most, to find a key */
} jinja_dict;

/* Why there is no value: its use is an error that says so. */
typedef struct jinja_undefined {
    enum { JINJA_NO_NAME, JINJA_NO_MEMBER, JINJA_UNSAFE, JINJA_EMPTY } why;
    jinja_value object; /* that lacks it */
    jinja_value name;   /* or the whole message, of EMPTY */
} jinja_undefined;

typedef struct jinja_cycler {
    jinja_value *items;
    uint32_t n, at;
} jinja_cycler;

/* A method with its object. */
typedef struct jinja_method {
    jinja_value self;
    const struct jinja_builtin *row;
} jinja_method;

static inline jinja_value jinja_none(void) {
    return (jinja_value){.type = JINJA_NONE, .is_trusted = true};
}

static inline jinja_value jinja_bool(bool b) {
    return (jinja_value){.type = JINJA_BOOL, .is_trusted = true, .as.b = b};
}

static inline jinja_value jinja_int(int64_t i) {
    return (jinja_value){.type = JINJA_INT, .is_trusted = true, .as.i = i};
}

static inline jinja_value jinja_float(double f) {
    return (jinja_value){.type = JINJA_FLOAT, .is_trusted = true, .as.f = f};
}

/* A trusted string; borrows the bytes. */
static inline jinja_value jinja_str(const char *ptr, size_t len) {
    return (jinja_value){.type = JINJA_STR, .is_trusted = true, .len = (uint32_t)len, .as.ptr = ptr};
}

/* Bytes from … to of a string. */
static inline jinja_value jinja_part(jinja_value s, size_t from, size_t to) {
    s.as.ptr += from;
    if (s.marks) s.marks += from;
    s.len = (uint32_t)(to - from);
    return s;
}

static inline bool jinja_is(const jinja_value *v, int type) {
    return v->type == type;
}

static inline bool jinja_is_given(const jinja_value *v) {
    return v->type != JINJA_MISSING;
}

/* bool counts as a number, as in Python. */
static inline bool jinja_is_integer(const jinja_value *v) {
    return v->type == JINJA_INT || v->type == JINJA_BOOL;
}

static inline bool jinja_is_number(const jinja_value *v) {
    return jinja_is_integer(v) || v->type == JINJA_FLOAT;
}

static inline int64_t jinja_as_int(const jinja_value *v) {
    return v->type == JINJA_BOOL ? v->as.b : v->as.i;
}

static inline double jinja_as_float(const jinja_value *v) {
    return v->type == JINJA_FLOAT ? v->as.f : (double)jinja_as_int(v);
}

static inline bool jinja_str_is(const jinja_value *v, const char *text, size_t len) {
    return v->type == JINJA_STR && v->len == len && __builtin_memcmp(v->as.ptr, text, len) == 0;
}

#endif
