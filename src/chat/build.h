/* chat/build.h - dicts and lists for templates, made in an arena. False when memory is out. */
#ifndef NIB_CHAT_BUILD_H
#define NIB_CHAT_BUILD_H

#include "jinja/dict.h"

#include <string.h>

static inline jinja_value nib_chat_str(const char *text) {
    return jinja_str(text, strlen(text));
}

static inline bool nib_chat_is_blank(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool nib_chat_dict(nib_arena *arena, jinja_value *out) {
    jinja_dict *dict = nib_arena_alloc(arena, sizeof *dict);
    if (!dict) return false;
    *dict = (jinja_dict){0};
    *out = (jinja_value){.type = JINJA_DICT, .as.dict = dict};
    return true;
}

static inline bool nib_chat_set(nib_arena *arena, const jinja_value *dict, const char *name, const jinja_value *value) {
    jinja_value key = nib_chat_str(name);
    return nib_jinja_dict_set(arena, dict->as.dict, &key, value);
}

/* A list of n items, which the caller fills in. */
static inline bool nib_chat_list(nib_arena *arena, uint32_t n, jinja_value *out) {
    jinja_list *list = nib_arena_alloc(arena, sizeof *list + n * sizeof *list->items);
    if (!list) return false;
    *list = (jinja_list){.items = (jinja_value *)(list + 1), .n = n, .capacity = n};
    *out = (jinja_value){.type = JINJA_LIST, .as.list = list};
    return true;
}

#endif
