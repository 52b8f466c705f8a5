/* chat/shape/tools.c - the tools of a request, JSON -> those that may be called, with the schemas of their parameters. */
#include "base/status.h"
#include "chat/shape/shape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_TOOLS = 1024 };

static const nib_grammar_json *parse(nib_chat_shape *d, const char *text, size_t len) {
    nib_error err = {0};
    const nib_grammar_json *json = nib_grammar_json_read((nib_str){text, len}, d->b->limits->max_depth, &d->arena, &err);
    if (!json) nib_grammar_build_fail(d->b, err.code, err.offset, "#: %s", err.message);
    return json;
}

static bool is_name_char(char c) {
    return (unsigned char)c > ' ' && c != 0x7F && !strchr("<>[]{}()\"'`,\\;=", c);
}

/* A name that every format can write and read back. */
static void check_name(nib_chat_shape *d, const nib_grammar_json *name, const nib_grammar_json *function) {
    if (!name || name->kind != NIB_GRAMMAR_JSON_STRING || !name->text.len || name->text.len > 256) {
        nib_grammar_fail_at(d->b, NIB_E_FORMAT, name ? name : function, "the name of a tool is a string of 1 to 256 bytes");
        return;
    }
    for (size_t i = 0; i < name->text.len; i++)
        if (!is_name_char(name->text.ptr[i]))
            nib_grammar_fail_at(d->b, NIB_E_UNSUPPORTED, name, "a name with blanks, quotes, brackets or the like cannot be called");
}

static bool is_wanted(const nib_chat_shape *d, nib_str name) {
    const char *only = d->config->tool_name;
    return !only || (strlen(only) == name.len && memcmp(only, name.ptr, name.len) == 0);
}

static void add_tool(nib_chat_shape *d, const nib_grammar_json *node) {
    const nib_grammar_json *function = nib_grammar_json_get(node, "function");
    if (!function) function = node;
    if (function->kind != NIB_GRAMMAR_JSON_OBJECT) {
        nib_grammar_fail_at(d->b, NIB_E_FORMAT, function, "a tool is an object");
        return;
    }
    const nib_grammar_json *name = nib_grammar_json_get(function, "name");
    check_name(d, name, function);
    if (nib_chat_shape_failed(d) || !is_wanted(d, name->text)) return;
    nib_chat_shape_tool *tool = &d->tools[d->n_tools++];
    const nib_grammar_json *parameters = nib_grammar_json_get(function, "parameters");
    if (parameters && parameters->kind == NIB_GRAMMAR_JSON_NULL) parameters = NULL;
    *tool = (nib_chat_shape_tool){.name = name->text, .node = function, .parameters = parameters};
    for (int w = 0; w < 4; w++) {
        tool->arguments[w] = NIB_GRAMMAR_NO;
        tool->by[w] = (nib_grammar_schema){.b = d->b, .config = &d->config->grammar, .writing = (nib_grammar_writing)w,
                                           .root = parameters ? parameters : d->closed, .space = NIB_GRAMMAR_NO,
                                           .any_string = NIB_GRAMMAR_NO};
    }
}

void nib_chat_shape_read_tools(nib_chat_shape *d) {
    static const char closed[] = "{\"type\":\"object\",\"additionalProperties\":false}", object[] = "{\"type\":\"object\"}";
    static const char no_string[] = "{\"type\":[\"null\",\"boolean\",\"object\",\"array\",\"number\"]}";
    nib_error err;
    d->closed = parse(d, closed, sizeof closed - 1);
    d->object = parse(d, object, sizeof object - 1);
    d->no_string = parse(d, no_string, sizeof no_string - 1);
    const nib_grammar_json *list = parse(d, d->config->tools, d->config->tools_len);
    if (nib_chat_shape_failed(d)) return;
    if (list->kind != NIB_GRAMMAR_JSON_ARRAY || !list->n || list->n > MAX_TOOLS) {
        nib_grammar_fail_at(d->b, NIB_E_FORMAT, list, "a list of 1 to %d tools was expected", MAX_TOOLS);
        return;
    }
    d->tools = nib_arena_alloc(&d->arena, list->n * sizeof *d->tools);
    if (!d->tools) {
        nib_grammar_build_fail(d->b, NIB_E_NOMEM, NIB_NO_OFFSET, "no memory for %u tools", list->n);
        return;
    }
    for (const nib_grammar_json *c = list->first; c && !nib_chat_shape_failed(d); c = c->next) add_tool(d, c);
    if (!nib_chat_shape_failed(d) && !d->n_tools)
        nib_grammar_build_fail(d->b, NIB_E_ARG, NIB_NO_OFFSET, "no tool is called \"%.100s\"", d->config->tool_name);
    nib_str text = {d->config->tools, d->config->tools_len};
    if (!nib_chat_shape_failed(d) && nib_chat_tools_init(&d->types, text, &err) != NIB_OK)
        nib_grammar_build_fail(d->b, err.code, NIB_NO_OFFSET, "%s", err.message);
}

void nib_chat_shape_fill(nib_chat_shape *d) {
    for (size_t i = 0; i < d->n_tools; i++)
        for (int w = 0; w < 4; w++) nib_grammar_schema_fill(&d->tools[i].by[w]);
}

void nib_chat_shape_free_tools(nib_chat_shape *d) {
    for (size_t i = 0; i < d->n_tools; i++)
        for (int w = 0; w < 4; w++) nib_grammar_schema_free(&d->tools[i].by[w]);
    nib_chat_tools_fini(&d->types);
    nib_arena_free(&d->arena);
}
