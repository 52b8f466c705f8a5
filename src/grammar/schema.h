/* grammar/schema.h - a JSON Schema on its way to rules. For schema*.c, and for chat/shape, which puts values by schemas into
 * the calls of tools.
 *
 * The unit of work is a conjunction: a list of schemas that all hold for one value. It becomes one rule; equal lists
 * become the same one, which is how recursion ends. $ref and allOf add to the list, anyOf and oneOf make one list for
 * each branch, and the children of arrays and objects are lists of what the members of the list say of them. */
#ifndef NIB_GRAMMAR_SCHEMA_H
#define NIB_GRAMMAR_SCHEMA_H

#include "grammar/front.h"
#include "grammar/json.h"
#include "grammar/pattern.h"

enum { /* keywords of a term that were taken care of */
       NIB_GRAMMAR_ANY_OF_DONE = 1,
       NIB_GRAMMAR_ONE_OF_DONE = 2,
       NIB_GRAMMAR_VALUES_DONE = 4,
};

enum { /* types of values */
       NIB_GRAMMAR_T_NULL = 1,
       NIB_GRAMMAR_T_BOOLEAN = 2,
       NIB_GRAMMAR_T_OBJECT = 4,
       NIB_GRAMMAR_T_ARRAY = 8,
       NIB_GRAMMAR_T_STRING = 16,
       NIB_GRAMMAR_T_INTEGER = 32,
       NIB_GRAMMAR_T_FRACTION = 64, /* numbers that are no integers */
       NIB_GRAMMAR_T_ALL = 127,
};

typedef enum nib_grammar_writing { /* of values: the notation, which differs in strings, keys and words only */
    NIB_GRAMMAR_IN_JSON,
    NIB_GRAMMAR_IN_TAGS,   /* JSON in which no string has a plain "</": so it can stand between tags */
    NIB_GRAMMAR_IN_PYTHON, /* JSON that Python reads alike, and None, True, False */
    NIB_GRAMMAR_IN_GEMMA,  /* strings as they are between <|"|>, keys without quotes */
} nib_grammar_writing;

typedef struct nib_grammar_term {
    const nib_grammar_json *schema;
    uint32_t done;
} nib_grammar_term;

typedef struct nib_grammar_conj { /* zero-initialise: anything */
    nib_grammar_term *terms;      /* sorted by nib_grammar_conj_close */
    size_t n, capacity;
    bool is_never; /* a member is false */
} nib_grammar_conj;

typedef struct nib_grammar_job { /* a rule to fill */
    nib_grammar_conj conj;
    uint32_t rule;
} nib_grammar_job;

typedef struct nib_grammar_schema {
    nib_grammar_build *b;
    const nib_grammar_config *config;
    nib_grammar_writing writing;
    nib_arena arena;
    const nib_grammar_json *root;
    nib_grammar_job *jobs;
    size_t n_jobs, jobs_capacity, n_filled;
    uint32_t *table; /* hash of conjunctions; index of the job + 1 */
    size_t n_table;
    uint32_t space, any_string; /* rules; NIB_GRAMMAR_NO: not made yet */
} nib_grammar_schema;

void nib_grammar_schema_free(nib_grammar_schema *s);
/* Fails with the pointer of a place and a message. */
void nib_grammar_fail_at(nib_grammar_build *b, nib_status code, const nib_grammar_json *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool nib_grammar_schema_failed(const nib_grammar_schema *s);

/* ---- conjunctions (schema_conj.c) */
void nib_grammar_conj_add(nib_grammar_schema *s, nib_grammar_conj *conj, const nib_grammar_json *schema, uint32_t done);
/* Adds what $ref and allOf lead to, checks the keywords, sorts. */
void nib_grammar_conj_close(nib_grammar_schema *s, nib_grammar_conj *conj);
void nib_grammar_conj_free(nib_grammar_conj *conj);
nib_grammar_conj nib_grammar_conj_copy(nib_grammar_schema *s, const nib_grammar_conj *conj);
/* Types that all members allow. */
unsigned nib_grammar_conj_types(nib_grammar_schema *s, const nib_grammar_conj *conj);
unsigned nib_grammar_value_type(const nib_grammar_json *value);
/* The next member that has the keyword, from *i on: its value; NULL: none. */
const nib_grammar_json *nib_grammar_conj_next(const nib_grammar_conj *conj, size_t *i, const char *keyword);
/* A count: a whole number, at least 0. */
uint32_t nib_grammar_schema_count(nib_grammar_schema *s, const nib_grammar_json *value);
/* The greatest (least) of all members; `none` when there is none. */
uint32_t nib_grammar_conj_greatest(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *keyword);
uint32_t nib_grammar_conj_least(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *keyword);
/* Whether no value of the types is valid by both; false also when that is not clear. depth: 0. */
bool nib_grammar_schema_apart(nib_grammar_schema *s, const nib_grammar_json *a, const nib_grammar_json *b,
                              unsigned types, unsigned depth);
const nib_grammar_json *nib_grammar_schema_resolve(nib_grammar_schema *s, const nib_grammar_json *ref);

/* ---- pieces. A conjunction given to rule_for is taken over. */
uint32_t nib_grammar_schema_rule_for(nib_grammar_schema *s, nib_grammar_conj *conj);
void nib_grammar_schema_space(nib_grammar_schema *s, uint32_t from, uint32_t to);
/* space, the character, space, without the spaces that are not asked for */
void nib_grammar_schema_sign(nib_grammar_schema *s, uint32_t from, uint32_t to, char sign);
nib_grammar_piece nib_grammar_schema_string(nib_grammar_schema *s, const nib_grammar_conj *conj);
nib_grammar_piece nib_grammar_schema_number(nib_grammar_schema *s, const nib_grammar_conj *conj, unsigned types);
nib_grammar_piece nib_grammar_schema_array(nib_grammar_schema *s, const nib_grammar_conj *conj);
nib_grammar_piece nib_grammar_schema_object(nib_grammar_schema *s, const nib_grammar_conj *conj);
/* Strings, in quotes, as they are written (schema_write.c): one; those of a pattern, which is used up; all. */
nib_grammar_piece nib_grammar_schema_literal(nib_grammar_schema *s, nib_str text);
nib_grammar_piece nib_grammar_schema_strings(nib_grammar_schema *s, nib_grammar_pattern *p);
nib_grammar_piece nib_grammar_schema_any_string(nib_grammar_schema *s);
/* min … max characters. */
nib_grammar_piece nib_grammar_schema_counted_string(nib_grammar_schema *s, uint32_t min, uint32_t max);
/* The same for keys. */
nib_grammar_piece nib_grammar_schema_key(nib_grammar_schema *s, nib_str text);
nib_grammar_piece nib_grammar_schema_keys(nib_grammar_schema *s, nib_grammar_pattern *p);
/* pattern, format and lengths of strings together; false: none of these, *out is untouched. */
bool nib_grammar_schema_text(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_pattern *out);
/* enum and const, when a member has one: false when none does. */
bool nib_grammar_schema_values(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_piece *out);
/* Values that enum and const allow, one by one; false when no member has these. */
bool nib_grammar_schema_each_value(nib_grammar_schema *s, const nib_grammar_conj *conj,
                                   void (*take)(void *user, const nib_grammar_json *value), void *user);
/* The branches of anyOf and oneOf, one by one, each with the other members; false: there are none. A branch is taken over. */
bool nib_grammar_schema_each_branch(nib_grammar_schema *s, const nib_grammar_conj *conj,
                                    void (*take)(void *user, nib_grammar_conj *branch), void *user);
nib_grammar_piece nib_grammar_schema_value(nib_grammar_schema *s, const nib_grammar_json *v); /* of these */
/* What is said of all items of a list; false: they have schemas of their own. */
bool nib_grammar_schema_items(nib_grammar_schema *s, const nib_grammar_conj *conj, nib_grammar_conj *item, uint32_t *min,
                              uint32_t *max);
/* A rule of the named members of an object, in any order unless the config says otherwise, required ones included, with
 * `between` them: draw makes one of them; the value is closed by the caller. */
typedef nib_grammar_piece (*nib_grammar_member_fn)(void *user, nib_str key, nib_grammar_conj *value);
uint32_t nib_grammar_schema_members(nib_grammar_schema *s, const nib_grammar_conj *conj, const char *between,
                                    nib_grammar_member_fn draw, void *user);
/* The schemas below $defs, which must be understood even where nothing refers to them. */
void nib_grammar_schema_definitions(nib_grammar_schema *s, const nib_grammar_json *schema);
/* All rules that were asked for. */
void nib_grammar_schema_fill(nib_grammar_schema *s);

#endif
