/* chat/tools.c - the tools of a request: checked as OpenAI's API has them, written in the shape that a template takes. */
#include "chat/tools.h"

#include "base/status.h"
#include "chat/build.h"

/* ---- reading */

static nib_status read_tool(nib_chat_reader *r, const jinja_value *tool) {
    const jinja_value *function, *ignored;
    jinja_value text;
    if (tool->type != JINJA_DICT) return nib_chat_field_wrong(r, "", tool, "an object");
    NIB_TRY(nib_chat_field_name(r, tool->as.dict, "type", &text));
    if (!jinja_str_is(&text, "function", 8)) return nib_chat_field_unknown(r, "type", &text, "\"function\"");
    NIB_TRY(nib_chat_field_get(r, tool->as.dict, "function", JINJA_DICT, &function));
    if (!function) return nib_chat_field_wrong(r, "function", nib_jinja_dict_get(tool->as.dict, "function"), "an object");
    size_t mark = nib_chat_field_enter(r, ".function");
    NIB_TRY(nib_chat_field_name(r, function->as.dict, "name", &text));
    NIB_TRY(nib_chat_field_get(r, function->as.dict, "description", JINJA_STR, &ignored));
    NIB_TRY(nib_chat_field_get(r, function->as.dict, "parameters", JINJA_DICT, &ignored));
    nib_chat_field_leave(r, mark);
    return NIB_OK;
}

static nib_status read_tools(nib_chat_reader *r, const jinja_dict *object, jinja_value *out) {
    const jinja_value *list;
    NIB_TRY(nib_chat_field_get(r, object, "tools", JINJA_LIST, &list));
    if (!list || !list->as.list->n) return NIB_OK;
    for (uint32_t i = 0; i < list->as.list->n; i++) {
        size_t mark = nib_chat_field_enter(r, "tools[%u]", i);
        NIB_TRY(read_tool(r, &list->as.list->items[i]));
        nib_chat_field_leave(r, mark);
    }
    *out = *list;
    return NIB_OK;
}

static bool has_tool(const jinja_value *tools, const jinja_value *name) {
    for (uint32_t i = 0; tools->type == JINJA_LIST && i < tools->as.list->n; i++) {
        const jinja_value *function = nib_jinja_dict_get(tools->as.list->items[i].as.dict, "function");
        const jinja_value *known = nib_jinja_dict_get(function->as.dict, "name");
        if (jinja_str_is(known, name->as.ptr, name->len)) return true;
    }
    return false;
}

static nib_status read_named_choice(nib_chat_reader *r, const jinja_dict *choice, const jinja_value *tools) {
    const jinja_value *function;
    jinja_value name;
    size_t mark = nib_chat_field_enter(r, "tool_choice");
    NIB_TRY(nib_chat_field_get(r, choice, "function", JINJA_DICT, &function));
    if (!function) return nib_chat_field_wrong(r, "function", nib_jinja_dict_get(choice, "function"), "an object");
    nib_chat_field_enter(r, ".function");
    NIB_TRY(nib_chat_field_name(r, function->as.dict, "name", &name));
    if (!has_tool(tools, &name)) return nib_chat_field_unknown(r, "name", &name, "the name of one of the tools");
    nib_chat_field_leave(r, mark);
    return NIB_OK;
}

/* What the model must do is not the template's business; only "none" is, which hides the tools. */
static nib_status read_choice(nib_chat_reader *r, const jinja_dict *object, jinja_value *tools) {
    const char *expected = "\"none\", \"auto\", \"required\", or an object that names a tool";
    const jinja_value *choice = nib_jinja_dict_get(object, "tool_choice");
    if (!choice || choice->type == JINJA_NONE || jinja_str_is(choice, "auto", 4)) return NIB_OK;
    if (choice->type == JINJA_DICT) return read_named_choice(r, choice->as.dict, tools);
    if (choice->type != JINJA_STR) return nib_chat_field_wrong(r, "tool_choice", choice, expected);
    if (jinja_str_is(choice, "none", 4)) {
        *tools = jinja_none();
        return NIB_OK;
    }
    if (!jinja_str_is(choice, "required", 8)) return nib_chat_field_unknown(r, "tool_choice", choice, expected);
    if (tools->type == JINJA_NONE) return nib_chat_field_fail(r, "tool_choice", "is \"required\", but there are no tools");
    return NIB_OK;
}

nib_status nib_chat_tools_read(nib_chat_reader *r, const jinja_dict *request, jinja_value *out) {
    *out = jinja_none();
    NIB_TRY(read_tools(r, request, out));
    return read_choice(r, request, out);
}

/* ---- writing */

/* {"type": "integer", …} with "required": true or false. */
static bool define(nib_arena *arena, const jinja_pair *parameter, const jinja_value *required, jinja_value *out) {
    bool is_required = false;
    for (uint32_t i = 0; required && required->type == JINJA_LIST && i < required->as.list->n; i++)
        is_required |= jinja_str_is(&required->as.list->items[i], parameter->key.as.ptr, parameter->key.len);
    jinja_value flag = jinja_bool(is_required);
    if (!nib_chat_dict(arena, out)) return false;
    for (uint32_t i = 0; parameter->value.type == JINJA_DICT && i < parameter->value.as.dict->n; i++) {
        const jinja_pair *field = &parameter->value.as.dict->pairs[i];
        if (!nib_jinja_dict_set(arena, out->as.dict, &field->key, &field->value)) return false;
    }
    return nib_chat_set(arena, out, "required", &flag);
}

/* The parameters of a JSON schema, each with its own definition. */
static bool define_all(nib_arena *arena, const jinja_value *parameters, jinja_value *out) {
    const jinja_dict *schema = parameters && parameters->type == JINJA_DICT ? parameters->as.dict : NULL;
    const jinja_value *properties = schema ? nib_jinja_dict_get(schema, "properties") : NULL;
    if (!nib_chat_dict(arena, out)) return false;
    for (uint32_t i = 0; properties && properties->type == JINJA_DICT && i < properties->as.dict->n; i++) {
        const jinja_pair *pair = &properties->as.dict->pairs[i];
        jinja_value definition;
        if (!define(arena, pair, nib_jinja_dict_get(schema, "required"), &definition)) return false;
        if (!nib_jinja_dict_set(arena, out->as.dict, &pair->key, &definition)) return false;
    }
    return true;
}

static bool write_defined(nib_arena *arena, const jinja_dict *function, jinja_value *out) {
    jinja_value definitions;
    if (!nib_chat_dict(arena, out)) return false;
    for (uint32_t i = 0; i < function->n; i++)
        if (!nib_jinja_dict_set(arena, out->as.dict, &function->pairs[i].key, &function->pairs[i].value)) return false;
    return define_all(arena, nib_jinja_dict_get(function, "parameters"), &definitions) &&
           nib_chat_set(arena, out, "parameter_definitions", &definitions);
}

nib_status nib_chat_tools_write(const nib_chat_reader *r, const jinja_value *tools, const nib_chat_caps *caps,
                                jinja_value *out) {
    *out = *tools;
    if (tools->type == JINJA_NONE) {
        bool ok = !caps->needs_tools || nib_chat_list(r->arena, 0, out);
        return ok ? NIB_OK : nib_chat_field_nomem(r);
    }
    if (caps->tools != NIB_CHAT_TOOLS_BARE && caps->tools != NIB_CHAT_TOOLS_DEFINED) return NIB_OK;
    if (!nib_chat_list(r->arena, tools->as.list->n, out)) return nib_chat_field_nomem(r);
    bool ok = true;
    for (uint32_t i = 0; ok && i < tools->as.list->n; i++) {
        const jinja_value *function = nib_jinja_dict_get(tools->as.list->items[i].as.dict, "function");
        jinja_value *item = &out->as.list->items[i];
        *item = *function;
        if (caps->tools == NIB_CHAT_TOOLS_DEFINED) ok = write_defined(r->arena, function->as.dict, item);
    }
    return ok ? NIB_OK : nib_chat_field_nomem(r);
}
