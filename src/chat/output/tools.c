/* chat/output/tools.c - a list of tools read with the templates' reader of JSON, and questions about it. */
#include "chat/output/tools.h"

#include "base/status.h"
#include "jinja/dict.h"
#include "jinja/json.h"

#include <string.h>

enum { MAX_DEPTH = 200, MAX_SUM_DEPTH = 8 };

nib_status nib_chat_tools_init(nib_chat_tools *tools, nib_str json, nib_error *err) {
    *tools = (nib_chat_tools){.arena = {.limit = (size_t)64 << 20}};
    jinja_value *list = nib_arena_alloc(&tools->arena, sizeof *list);
    if (!list) return nib_fail_nomem(err, sizeof *list, "tools");
    nib_status status = nib_jinja_json_read(json, MAX_DEPTH, &tools->arena, list, err);
    if (status != NIB_OK) nib_error_prefix(err, "tools");
    else if (list->type == JINJA_LIST) tools->list = list;
    else if (list->type != JINJA_NONE) status = nib_fail(err, NIB_E_ARG, "tools: a JSON list expected");
    if (status != NIB_OK) nib_chat_tools_fini(tools);
    return status;
}

void nib_chat_tools_fini(nib_chat_tools *tools) {
    nib_arena_free(&tools->arena);
    tools->list = NULL;
}

static const jinja_value *member(const jinja_value *v, const char *name) {
    return v && v->type == JINJA_DICT ? nib_jinja_dict_get(v->as.dict, name) : NULL;
}

static bool is_text(const jinja_value *v, nib_str text) {
    return v && v->type == JINJA_STR && v->len == text.len &&
           (text.len == 0 || memcmp(v->as.ptr, text.ptr, text.len) == 0);
}

/* The function of that name, with or without OpenAI's {"type": "function", "function": …} around it. */
static const jinja_value *find_function(const nib_chat_tools *tools, nib_str name) {
    for (uint32_t i = 0; tools->list && i < tools->list->as.list->n; i++) {
        const jinja_value *tool = &tools->list->as.list->items[i], *function = member(tool, "function");
        if (!function) function = tool;
        if (is_text(member(function, "name"), name)) return function;
    }
    return NULL;
}

bool nib_chat_tools_has(const nib_chat_tools *tools, nib_str name) {
    return find_function(tools, name) != NULL;
}

const nib_chat_schema *nib_chat_tools_find(const nib_chat_tools *tools, nib_str name) {
    return member(find_function(tools, name), "parameters");
}

const nib_chat_schema *nib_chat_schema_property(const nib_chat_schema *schema, nib_str key) {
    const jinja_value *properties = member(schema, "properties");
    if (!properties || properties->type != JINJA_DICT) return NULL;
    jinja_value name = {.type = JINJA_STR, .len = (uint32_t)key.len, .as.ptr = key.ptr};
    const jinja_pair *pair = nib_jinja_dict_find(properties->as.dict, &name);
    return pair ? &pair->value : NULL;
}

const nib_chat_schema *nib_chat_schema_items(const nib_chat_schema *schema) {
    return member(schema, "items");
}

static unsigned type_named(const jinja_value *name) {
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {{"string", NIB_CHAT_STRING},   {"number", NIB_CHAT_NUMBER}, {"integer", NIB_CHAT_NUMBER},
                 {"boolean", NIB_CHAT_BOOLEAN}, {"null", NIB_CHAT_NULL},     {"array", NIB_CHAT_ARRAY},
                 {"object", NIB_CHAT_OBJECT}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_text(name, (nib_str){types[i].name, strlen(types[i].name)})) return types[i].type;
    return 0;
}

static unsigned type_of(const jinja_value *v) {
    switch (v->type) {
    case JINJA_NONE: return NIB_CHAT_NULL;
    case JINJA_BOOL: return NIB_CHAT_BOOLEAN;
    case JINJA_INT:
    case JINJA_FLOAT: return NIB_CHAT_NUMBER;
    case JINJA_STR: return NIB_CHAT_STRING;
    case JINJA_LIST: return NIB_CHAT_ARRAY;
    default: return NIB_CHAT_OBJECT;
    }
}

/* The sum over a list; 0 as soon as one of its items does not say. */
static unsigned sum(const jinja_value *list, unsigned (*types)(const jinja_value *, int), int depth) {
    unsigned all = 0;
    for (uint32_t i = 0; i < list->as.list->n; i++) {
        unsigned some = types(&list->as.list->items[i], depth);
        if (!some) return 0;
        all |= some;
    }
    return all;
}

static unsigned named(const jinja_value *v, int depth) {
    (void)depth;
    return type_named(v);
}

static unsigned valued(const jinja_value *v, int depth) {
    (void)depth;
    return type_of(v);
}

static unsigned types_of(const jinja_value *schema, int depth) {
    static const char *const sums[] = {"anyOf", "oneOf"};
    const jinja_value *type = member(schema, "type"), *values = member(schema, "enum"),
                      *value = member(schema, "const");
    if (type) return type->type == JINJA_LIST ? sum(type, named, depth) : type_named(type);
    if (value) return type_of(value);
    if (values && values->type == JINJA_LIST) return sum(values, valued, depth);
    for (size_t i = 0; i < sizeof sums / sizeof *sums && depth < MAX_SUM_DEPTH; i++) {
        const jinja_value *list = member(schema, sums[i]);
        if (list && list->type == JINJA_LIST) return sum(list, types_of, depth + 1);
    }
    return 0;
}

unsigned nib_chat_schema_types(const nib_chat_schema *schema) {
    return types_of(schema, 0);
}
