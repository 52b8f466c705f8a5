/* jinja/eval.h - private to jinja/: the state of one render, and the functions that its parts call of each other.
 *
 * A function that returns bool returns false after nib_jinja_fail; its caller passes that on. What is printed, captured or
 * pieced together goes to the end of one buffer: a capture begins with nib_jinja_mark and ends with nib_jinja_take. */
#ifndef NIB_JINJA_EVAL_H
#define NIB_JINJA_EVAL_H

#include "base/buf.h"
#include "base/mem.h"
#include "jinja/ast.h"
#include "jinja/builtin.h"
#include "jinja/dict.h"

typedef struct jinja_binding {
    struct jinja_binding *next;
    jinja_value name, value;
} jinja_binding;

/* The names of one block. A scope outlives it where a macro refers to it. */
typedef struct jinja_scope {
    struct jinja_scope *parent;
    jinja_binding *first;
    bool is_shared; /* a macro refers to it */
} jinja_scope;

/* `loop` of a template. */
typedef struct jinja_loop {
    jinja_value *items;
    uint32_t n, at, depth;
    const jinja_node *node; /* FOR */
    jinja_scope *scope;     /* around it */
    jinja_value changed;    /* what loop.changed() was asked last */
} jinja_loop;

typedef struct jinja_macro {
    const jinja_node *node;
    jinja_scope *scope; /* where it was defined */
} jinja_macro;

/* A long string with room behind its end, where nothing was written yet. */
typedef struct jinja_growing {
    char *text, *marks;
    size_t len, capacity;
} jinja_growing;

enum { JINJA_N_GROWING = 4, JINJA_LONG = 1024 };

typedef struct jinja {
    nib_arena *memory; /* its limit is that of the render, less what `text` takes */
    size_t max_bytes;
    nib_buf text, marks; /* marks: a byte for each byte of text, 1: trusted */
    uint64_t steps_left, max_steps;
    uint32_t depth, max_depth;
    const jinja_dict *context; /* the data */
    jinja_scope *scope;
    jinja_binding *spare; /* of scopes that are gone */
    jinja_growing growing[JINJA_N_GROWING];
    unsigned next_growing; /* that is given up for another */
    const jinja_value *block_text; /* what a filter without input takes */
    const jinja_node *at; /* for errors */
    enum { JINJA_GO_ON, JINJA_BREAK, JINJA_CONTINUE } leave;
    int64_t now; /* civil time as seconds since 1970 */
    nib_error *err;
} jinja;

typedef struct jinja_args {
    jinja_value *items;
    uint32_t n;
    jinja_dict *named; /* NULL: none */
} jinja_args;

/* ---- limits and errors (state.c) */
bool nib_jinja_fail(jinja *j, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts work: that of copying n_bytes, or of looking at as many characters one by one. To be called before it is done. */
bool nib_jinja_work(jinja *j, size_t n_bytes);
static inline bool nib_jinja_work_on_chars(jinja *j, size_t n) {
    return nib_jinja_work(j, n * 8);
}
/* One step deeper; leave by j->depth--, also after a failure inside. */
bool nib_jinja_enter(jinja *j);
void *nib_jinja_alloc(jinja *j, size_t n_bytes); /* not zeroed; NULL after nib_jinja_fail */
bool nib_jinja_set(jinja *j, jinja_dict *dict, const jinja_value *key, const jinja_value *value);
/* *out: the pair with this key, NULL: there is none. */
bool nib_jinja_find_key(jinja *j, const jinja_dict *dict, const jinja_value *key, const jinja_pair **out);

/* ---- text (state.c) */
bool nib_jinja_put(jinja *j, const char *text, size_t n, bool is_trusted);
bool nib_jinja_put_str(jinja *j, const jinja_value *s);
/* A string with some characters written another way: escape gives it (in text, or a constant), NULL leaves a character. */
typedef const char *(*jinja_escape_fn)(uint32_t cp, int how, char text[16]);
bool nib_jinja_put_rewritten(jinja *j, const jinja_value *s, jinja_escape_fn escape, int how);
bool nib_jinja_put_format(jinja *j, bool is_trusted, const char *format, ...) __attribute__((format(printf, 3, 4)));
static inline size_t nib_jinja_mark(const jinja *j) {
    return j->text.len;
}
bool nib_jinja_take(jinja *j, size_t mark, jinja_value *out);
/* The same, behind the string a of at least JINJA_LONG bytes. Room is kept for more: a loop that appends to one string copies
 * it now and then, not every time. */
bool nib_jinja_take_behind(jinja *j, size_t mark, const jinja_value *a, jinja_value *out);
/* str(v) and repr(v) to the end of the text, and str(v) as a value (print.c). */
bool nib_jinja_put_value(jinja *j, const jinja_value *v);
bool nib_jinja_put_repr(jinja *j, const jinja_value *v);
bool nib_jinja_to_str(jinja *j, const jinja_value *v, jinja_value *out);
/* Python's repr of a float; text holds 32 bytes. Returns the length. */
enum { JINJA_FLOAT_WORK = 16 * 64 }; /* of the C library's functions: a microsecond or two */
size_t nib_jinja_float_text(double x, char *text);

/* ---- values (value.c) */
const char *nib_jinja_type_name(const jinja_value *v);
bool nib_jinja_undefined(jinja *j, int why, const jinja_value *object, const jinja_value *name, jinja_value *out);
/* Fails with the reason why there is no value. */
bool nib_jinja_fail_undefined(jinja *j, const jinja_value *v);
bool nib_jinja_is_true(const jinja_value *v);
bool nib_jinja_equal(jinja *j, const jinja_value *a, const jinja_value *b, bool *out);
/* *order < 0, 0, > 0; fails where Python's < does. */
bool nib_jinja_order(jinja *j, const jinja_value *a, const jinja_value *b, int *order);
bool nib_jinja_contains(jinja *j, const jinja_value *container, const jinja_value *v, bool *out);
bool nib_jinja_list_new(jinja *j, int flavor, uint32_t capacity, jinja_value *out);
bool nib_jinja_list_add(jinja *j, jinja_value *list, const jinja_value *item);
bool nib_jinja_tuple_of(jinja *j, const jinja_value *a, const jinja_value *b, jinja_value *out);
bool nib_jinja_dict_new(jinja *j, jinja_value *out);
/* Where `what` first stands in a string, from this byte on; SIZE_MAX: nowhere. */
bool nib_jinja_search(jinja *j, const jinja_value *s, size_t from, const jinja_value *what, size_t *at);
/* What a loop over v runs through: borrowed where it can be; uses a generator up. */
bool nib_jinja_items(jinja *j, const jinja_value *v, jinja_value **items, uint32_t *n);
/* len(v) */
bool nib_jinja_length(jinja *j, const jinja_value *v, int64_t *n);

/* ---- operators and members (ops.c, access.c) */
bool nib_jinja_binary(jinja *j, int op, const jinja_value *a, const jinja_value *b, jinja_value *out);
bool nib_jinja_compare(jinja *j, int op, const jinja_value *a, const jinja_value *b, bool *out);
bool nib_jinja_get_attr(jinja *j, const jinja_value *object, const jinja_value *name, jinja_value *out);
bool nib_jinja_get_item(jinja *j, const jinja_value *object, const jinja_value *key, jinja_value *out);
/* parts: start, stop, step, NONE where left out. */
bool nib_jinja_slice(jinja *j, const jinja_value *object, const jinja_value parts[3], jinja_value *out);

/* ---- calls (call.c) */
bool nib_jinja_call(jinja *j, const jinja_value *callee, const jinja_args *args, jinja_value *out);
bool nib_jinja_call_builtin(jinja *j, const jinja_builtin *row, const jinja_value *self, const jinja_args *args,
                            jinja_value *out);
bool nib_jinja_loop_attr(jinja *j, const jinja_value *loop, const jinja_value *name, jinja_value *out);

/* ---- nodes (eval_expr.c, eval_stmt.c) */
bool nib_jinja_eval(jinja *j, const jinja_node *node, jinja_value *out);
bool nib_jinja_eval_args(jinja *j, const jinja_node *list, jinja_args *out);
bool nib_jinja_exec(jinja *j, const jinja_node *body);
bool nib_jinja_run_loop(jinja *j, const jinja_node *node, const jinja_value *iterable, jinja_scope *scope, uint32_t depth);
bool nib_jinja_bind(jinja *j, jinja_scope *scope, const jinja_value *name, const jinja_value *value);
bool nib_jinja_lookup(jinja *j, const jinja_value *name, jinja_value *out);

/* ---- writers: "…" % args (builtin/format.c), JSON to the end of the text (tojson.c) */
struct jinja_json_style;
bool nib_jinja_percent(jinja *j, const jinja_value *format, const jinja_value *args, const jinja_dict *named, jinja_value *out);
bool nib_jinja_put_json(jinja *j, const jinja_value *v, const struct jinja_json_style *style);

#endif
