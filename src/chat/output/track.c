/* chat/output/track.c - byte by byte through JSON calls. Keys count on the level of a call only; the first arguments do. */
#include "chat/output/track.h"

#include <string.h>

static bool is_one_of(nib_str key, const char *const *names) {
    for (; *names; names++)
        if (key.len == strlen(*names) + 2 && memcmp(key.ptr + 1, *names, key.len - 2) == 0) return true;
    return false;
}

/* A string of the level of a call ends: a key, or the value of one. */
static void end_string(nib_chat_track *t, nib_chat_range range, const char *window, size_t from) {
    static const char *const names[] = {"name", "tool_name", "function", NULL}, *const ids[] = {"id", "tool_call_id", NULL};
    if (!t->is_value) {
        t->key = range;
        return;
    }
    nib_str key = {window + (t->key.from - from), t->key.to - t->key.from};
    if (is_one_of(key, names)) t->name = range;
    if (is_one_of(key, ids)) t->id = range;
}

static bool begins_arguments(const nib_chat_track *t, const char *window, size_t from) {
    static const char *const arguments[] = {"arguments", "parameters", NULL};
    if (!t->is_value || t->has_arguments || t->name.to - t->name.from <= 2) return false; /* 2: an empty name */
    return is_one_of((nib_str){window + (t->key.from - from), t->key.to - t->key.from}, arguments);
}

/* A bracket, comma or colon outside of strings; depth: behind it. */
static nib_chat_track_result take_sign(nib_chat_track *t, char c, size_t at, const char *window, size_t from) {
    uint8_t level = t->is_list ? 2 : 1, depth = t->json.depth;
    if ((c == ',' || c == ':') && depth == level) t->is_value = c == ':';
    if (c == '{' && depth == level) {
        t->call = (nib_chat_range){at, 0};
        t->key = t->name = t->id = t->arguments = (nib_chat_range){0, 0};
        t->is_value = t->has_arguments = false;
    } else if (c == '{' && depth == level + 1 && begins_arguments(t, window, from)) {
        t->has_arguments = t->in_arguments = true;
        t->arguments = (nib_chat_range){at, 0};
        return NIB_CHAT_TRACK_ARGUMENTS;
    } else if (c == '}' && depth == level && t->in_arguments) {
        t->in_arguments = false;
        t->arguments.to = at + 1;
    } else if (c == '}' && depth + 1 == level) {
        t->call.to = at + 1;
        t->n_calls++;
        return NIB_CHAT_TRACK_CALL;
    }
    return NIB_CHAT_TRACK_MORE;
}

nib_chat_track_result nib_chat_track_byte(nib_chat_track *t, char c, size_t at, const char *window, size_t from) {
    size_t used;
    bool is_first = t->json.depth == 0, was_in_list = t->is_list && t->json.depth == 1;
    nib_chat_json_result result = nib_chat_json_read(&t->json, &c, 1, &used);
    if (result == NIB_CHAT_JSON_BAD) return NIB_CHAT_TRACK_BAD;
    t->is_done = result == NIB_CHAT_JSON_DONE;
    if (is_first && c == '[') t->is_list = true;
    else if (was_in_list && !nib_chat_is_blank(c) && !strchr(",]{", c)) return NIB_CHAT_TRACK_BAD;
    bool is_inside = t->json.depth == (t->is_list ? 2 : 1);
    if (t->in_string) {
        bool ends = c == '"' && !t->is_escaped;
        t->is_escaped = c == '\\' && !t->is_escaped;
        t->in_string = !ends;
        if (ends && is_inside) end_string(t, (nib_chat_range){t->string_from, at + 1}, window, from);
        return NIB_CHAT_TRACK_MORE;
    }
    if (c == '"') t->string_from = at;
    if (c == '"') t->in_string = true;
    return take_sign(t, c, at, window, from);
}
