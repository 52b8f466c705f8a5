/* grammar/schema.c - a JSON Schema in -> rules of the JSON texts that are valid by it out. */
#include "grammar/schema.h"

#include "base/status.h"
#include "grammar/number.h"

#include <string.h>

enum { MAX_SPACE = 64, MAX_INDENT = 32 };

void nib_grammar_schema_free(nib_grammar_schema *s) {
    for (size_t i = 0; i < s->n_jobs; i++) nib_grammar_conj_free(&s->jobs[i].conj);
    nib_free(s->jobs);
    nib_free(s->table);
    nib_arena_free(&s->arena);
}

/* ---- space */

static void draw_blanks(nib_grammar_build *b, uint32_t from, uint32_t to, const char *blanks) {
    for (; *blanks; blanks++) nib_grammar_bytes(b, from, to, (uint8_t)*blanks, (uint8_t)*blanks);
}

static uint32_t make_space(nib_grammar_schema *s) {
    nib_grammar_build *b = s->b;
    nib_grammar_piece blank = {nib_grammar_node(b), nib_grammar_node(b)};
    bool is_pretty = s->config->space == NIB_JSON_SPACE_PRETTY;
    draw_blanks(b, blank.start, blank.end, is_pretty ? " " : " \t\n\r");
    nib_grammar_piece run = nib_grammar_repeat(b, blank, 0, is_pretty ? MAX_INDENT : MAX_SPACE);
    uint32_t rule = nib_grammar_rule_new(b, (nib_str){"space", 5});
    if (b->status != NIB_OK) return 0;
    uint32_t start = b->rules[rule].rule.start, end = b->rules[rule].end;
    if (is_pretty) {
        nib_grammar_empty(b, start, end);
        nib_grammar_bytes(b, start, end, ' ', ' ');
        nib_grammar_bytes(b, start, run.start, '\n', '\n');
    } else {
        nib_grammar_empty(b, start, run.start);
    }
    nib_grammar_empty(b, run.end, end);
    return rule;
}

void nib_grammar_schema_space(nib_grammar_schema *s, uint32_t from, uint32_t to) {
    if (s->config->space == NIB_JSON_SPACE_COMPACT) {
        nib_grammar_empty(s->b, from, to);
        return;
    }
    if (s->space == NIB_GRAMMAR_NO) s->space = make_space(s);
    nib_grammar_call(s->b, from, to, s->space);
}

void nib_grammar_schema_sign(nib_grammar_schema *s, uint32_t from, uint32_t to, char sign) {
    uint32_t before = nib_grammar_node(s->b), behind = nib_grammar_node(s->b);
    nib_grammar_schema_space(s, from, before);
    nib_grammar_bytes(s->b, before, behind, (uint8_t)sign, (uint8_t)sign);
    nib_grammar_schema_space(s, behind, to);
}

/* ---- rules of conjunctions */

static uint64_t hash_conj(const nib_grammar_conj *conj) {
    uint64_t h = conj->is_never ? 1 : 2;
    for (size_t i = 0; i < conj->n; i++) {
        h = (h ^ conj->terms[i].schema->offset) * UINT64_C(0x9E3779B97F4A7C15);
        h = (h ^ conj->terms[i].done) * UINT64_C(0xC2B2AE3D27D4EB4F);
        h ^= h >> 31;
    }
    return h;
}

static bool same_conj(const nib_grammar_conj *a, const nib_grammar_conj *b) {
    bool same = a->n == b->n && a->is_never == b->is_never;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->terms[i].schema == b->terms[i].schema && a->terms[i].done == b->terms[i].done;
    return same;
}

static size_t conj_slot(const nib_grammar_schema *s, const nib_grammar_conj *conj) {
    size_t at = (size_t)hash_conj(conj) & (s->n_table - 1);
    while (s->table[at] && !same_conj(&s->jobs[s->table[at] - 1].conj, conj)) at = (at + 1) & (s->n_table - 1);
    return at;
}

static bool grow_jobs(nib_grammar_schema *s) {
    if (!nib_grow(&s->jobs, &s->jobs_capacity, s->n_jobs + 1, sizeof *s->jobs)) return false;
    if (s->n_jobs * 2 < s->n_table) return true;
    size_t n = s->n_table ? s->n_table * 2 : 64;
    uint32_t *table = nib_calloc(n, sizeof *table);
    if (!table) return false;
    nib_free(s->table);
    s->table = table;
    s->n_table = n;
    for (size_t i = 0; i < s->n_jobs; i++) s->table[conj_slot(s, &s->jobs[i].conj)] = (uint32_t)i + 1;
    return true;
}

/* The name of a rule is the pointer of its first schema. */
static uint32_t new_rule(nib_grammar_schema *s, const nib_grammar_conj *conj) {
    nib_buf name = {0};
    if (conj->n) nib_grammar_json_pointer(conj->terms[0].schema, &name);
    nib_str text = conj->n ? (nib_str){name.ptr ? name.ptr : "", name.len} : (nib_str){"any", 3};
    uint32_t rule = nib_grammar_rule_new(s->b, text);
    nib_buf_free(&name);
    return rule;
}

uint32_t nib_grammar_schema_rule_for(nib_grammar_schema *s, nib_grammar_conj *conj) {
    uint32_t rule = 0;
    nib_grammar_conj_close(s, conj);
    if (!nib_grammar_schema_failed(s) && !grow_jobs(s))
        nib_grammar_build_fail(s->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for a schema");
    if (nib_grammar_schema_failed(s)) goto out;
    size_t at = conj_slot(s, conj);
    if (s->table[at]) {
        rule = s->jobs[s->table[at] - 1].rule;
        goto out;
    }
    rule = new_rule(s, conj);
    if (nib_grammar_schema_failed(s)) goto out;
    s->jobs[s->n_jobs] = (nib_grammar_job){*conj, rule};
    s->table[at] = (uint32_t)++s->n_jobs;
    *conj = (nib_grammar_conj){0};
    return rule;
out:
    nib_grammar_conj_free(conj);
    return rule;
}

/* ---- the body of a rule */

static void join(nib_grammar_schema *s, uint32_t rule, nib_grammar_piece piece) {
    if (nib_grammar_schema_failed(s)) return;
    nib_grammar_empty(s->b, s->b->rules[rule].rule.start, piece.start);
    nib_grammar_empty(s->b, piece.end, s->b->rules[rule].end);
}

static void join_words(nib_grammar_schema *s, uint32_t rule, const char *words) {
    for (; *words; words += strlen(words) + 1) join(s, rule, nib_grammar_text(s->b, (nib_str){words, strlen(words)}));
}

/* Each branch with the other members. */
static void take_branches(nib_grammar_schema *s, const nib_grammar_conj *conj, size_t term, const char *keyword,
                          void (*take)(void *user, nib_grammar_conj *branch), void *user) {
    const nib_grammar_json *list = nib_grammar_json_get(conj->terms[term].schema, keyword);
    bool is_one = strcmp(keyword, "oneOf") == 0;
    unsigned types = nib_grammar_conj_types(s, conj);
    if (list->kind != NIB_GRAMMAR_JSON_ARRAY || !list->n)
        nib_grammar_fail_at(s->b, NIB_E_FORMAT, list, "a list of schemas was expected");
    for (const nib_grammar_json *x = list->first; x && !nib_grammar_schema_failed(s); x = x->next) {
        for (const nib_grammar_json *y = x->next; is_one && y && !nib_grammar_schema_failed(s); y = y->next)
            if (!nib_grammar_schema_apart(s, x, y, types, 0))
                nib_grammar_fail_at(
                    s->b, NIB_E_UNSUPPORTED, y,
                    "branches %u and %u of oneOf may both hold for a value: use anyOf, or tell them apart by type "
                    "or by a required property with const or enum",
                    x->index, y->index);
        nib_grammar_conj branch = nib_grammar_conj_copy(s, conj);
        if (nib_grammar_schema_failed(s)) {
            nib_grammar_conj_free(&branch);
            return;
        }
        branch.terms[term].done |= is_one ? NIB_GRAMMAR_ONE_OF_DONE : NIB_GRAMMAR_ANY_OF_DONE;
        nib_grammar_conj_add(s, &branch, x, 0);
        take(user, &branch);
    }
}

bool nib_grammar_schema_each_branch(nib_grammar_schema *s, const nib_grammar_conj *conj,
                                    void (*take)(void *user, nib_grammar_conj *branch), void *user) {
    for (size_t i = 0; i < conj->n; i++) {
        const nib_grammar_term *t = &conj->terms[i];
        bool any = !(t->done & NIB_GRAMMAR_ANY_OF_DONE) && nib_grammar_json_get(t->schema, "anyOf");
        if (!any && ((t->done & NIB_GRAMMAR_ONE_OF_DONE) || !nib_grammar_json_get(t->schema, "oneOf"))) continue;
        take_branches(s, conj, i, any ? "anyOf" : "oneOf", take, user);
        return true;
    }
    return false;
}

typedef struct branches {
    nib_grammar_schema *s;
    uint32_t rule;
} branches;

/* One rule for each. */
static void join_branch(void *user, nib_grammar_conj *branch) {
    const branches *all = user;
    join(all->s, all->rule, nib_grammar_calls(all->s->b, nib_grammar_schema_rule_for(all->s, branch)));
}

static void fill_rule(nib_grammar_schema *s, uint32_t rule, const nib_grammar_conj *conj) {
    nib_grammar_piece values;
    branches all = {s, rule};
    bool is_python = s->writing == NIB_GRAMMAR_IN_PYTHON;
    if (conj->is_never || nib_grammar_schema_each_branch(s, conj, join_branch, &all)) return;
    if (nib_grammar_schema_values(s, conj, &values)) {
        join(s, rule, values);
        return;
    }
    unsigned types = nib_grammar_conj_types(s, conj);
    if (types & NIB_GRAMMAR_T_NULL) join_words(s, rule, is_python ? "null\0None\0" : "null\0");
    if (types & NIB_GRAMMAR_T_BOOLEAN) join_words(s, rule, is_python ? "true\0false\0True\0False\0" : "true\0false\0");
    if (types & NIB_GRAMMAR_T_STRING) join(s, rule, nib_grammar_schema_string(s, conj));
    if (types & (NIB_GRAMMAR_T_INTEGER | NIB_GRAMMAR_T_FRACTION))
        join(s, rule, nib_grammar_schema_number(s, conj, types));
    if (types & NIB_GRAMMAR_T_ARRAY) join(s, rule, nib_grammar_schema_array(s, conj));
    if (types & NIB_GRAMMAR_T_OBJECT) join(s, rule, nib_grammar_schema_object(s, conj));
}

void nib_grammar_schema_fill(nib_grammar_schema *s) {
    while (s->n_filled < s->n_jobs && !nib_grammar_schema_failed(s)) {
        nib_grammar_job job = s->jobs[s->n_filled++]; /* the list of terms stays where it is */
        s->b->offset = job.conj.n ? job.conj.terms[0].schema->offset : 0;
        fill_rule(s, job.rule, &job.conj);
    }
}

/* ---- the whole */

void nib_grammar_schema_definitions(nib_grammar_schema *s, const nib_grammar_json *schema) {
    static const char *const holders[] = {"$defs", "definitions"};
    for (size_t i = 0; i < 2; i++) {
        const nib_grammar_json *list = nib_grammar_json_get(schema, holders[i]);
        if (list && list->kind != NIB_GRAMMAR_JSON_OBJECT)
            nib_grammar_fail_at(s->b, NIB_E_FORMAT, list, "%s is an object of schemas", holders[i]);
        for (const nib_grammar_json *c = list ? list->first : NULL; c && !nib_grammar_schema_failed(s); c = c->next) {
            nib_grammar_conj conj = {0};
            nib_grammar_conj_add(s, &conj, c, 0);
            nib_grammar_schema_rule_for(s, &conj);
            nib_grammar_schema_definitions(s, c); /* as deep as the text is nested */
        }
    }
}

static uint32_t make_root(nib_grammar_schema *s, nib_grammar_conj *conj) {
    nib_grammar_build *b = s->b;
    uint32_t value = nib_grammar_schema_rule_for(s, conj), root = nib_grammar_rule_new(b, (nib_str){"json", 4});
    if (b->status != NIB_OK) return 0;
    nib_grammar_piece piece = nib_grammar_calls(b, value);
    bool is_any = s->config->space == NIB_JSON_SPACE_ANY;
    if (is_any)
        nib_grammar_schema_space(s, b->rules[root].rule.start, piece.start);
    else
        nib_grammar_empty(b, b->rules[root].rule.start, piece.start);
    if (is_any)
        nib_grammar_schema_space(s, piece.end, b->rules[root].end);
    else
        nib_grammar_empty(b, piece.end, b->rules[root].end);
    nib_grammar_schema_definitions(s, s->root);
    nib_grammar_schema_fill(s);
    return root;
}

static uint32_t from_schema(nib_grammar_build *b, nib_str text, const nib_grammar_config *config) {
    nib_grammar_schema s = {.b = b, .config = config, .space = NIB_GRAMMAR_NO, .any_string = NIB_GRAMMAR_NO};
    nib_grammar_conj conj = {0};
    uint32_t root = 0;
    nib_error err = {0};
    s.root = nib_grammar_json_read(text, b->limits->max_depth, &s.arena, &err);
    if (!s.root) nib_grammar_build_fail(b, err.code, err.offset, "#: %s", err.message);
    if (s.root) nib_grammar_conj_add(&s, &conj, s.root, 0);
    if (b->status == NIB_OK) root = make_root(&s, &conj);
    nib_grammar_conj_free(&conj);
    nib_grammar_schema_free(&s);
    return root;
}

uint32_t nib_grammar_from_schema(nib_grammar_build *b, const nib_grammar_source *source) {
    return from_schema(b, source->text, source->config);
}

uint32_t nib_grammar_from_object(nib_grammar_build *b, const nib_grammar_source *source) {
    static const char any_object[] = "{\"type\":\"object\"}";
    return from_schema(b, (nib_str){any_object, sizeof any_object - 1}, source->config);
}

uint32_t nib_grammar_from_choices(nib_grammar_build *b, const nib_grammar_source *source) {
    nib_arena arena = {0};
    nib_error err = {0};
    const nib_grammar_json *list = nib_grammar_json_read(source->text, b->limits->max_depth, &arena, &err);
    uint32_t rule = nib_grammar_rule_new(b, (nib_str){"choices", 7});
    if (!list)
        nib_grammar_build_fail(b, err.code, err.offset, "%s", err.message);
    else if (list->kind != NIB_GRAMMAR_JSON_ARRAY || !list->n)
        nib_grammar_build_fail(b, NIB_E_FORMAT, list->offset, "the choices are a JSON array of strings, at least one");
    for (const nib_grammar_json *c = list ? list->first : NULL; c && b->status == NIB_OK; c = c->next) {
        nib_grammar_piece piece = nib_grammar_text(b, c->text);
        if (c->kind != NIB_GRAMMAR_JSON_STRING)
            nib_grammar_build_fail(b, NIB_E_FORMAT, c->offset, "a choice is a string");
        if (b->status != NIB_OK) break;
        nib_grammar_empty(b, b->rules[rule].rule.start, piece.start);
        nib_grammar_empty(b, piece.end, b->rules[rule].end);
    }
    nib_arena_free(&arena);
    return rule;
}
