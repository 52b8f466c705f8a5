/* text/list.h - appending to a nib_token_list. False when memory is out. */
#ifndef NIB_TEXT_LIST_H
#define NIB_TEXT_LIST_H

#include "base/mem.h"
#include "nib.h"

static inline bool nib_text_list_reserve(nib_token_list *list, size_t more) {
    if (list->capacity - list->n >= more) return true;
    return nib_grow(&list->ids, &list->capacity, list->n + more, sizeof *list->ids);
}

static inline bool nib_text_list_add(nib_token_list *list, nib_token id) {
    if (!nib_text_list_reserve(list, 1)) return false;
    list->ids[list->n++] = id;
    return true;
}

/* Appends n ids that are in the list already, from `first` on. */
static inline bool nib_text_list_repeat(nib_token_list *list, size_t first, size_t n) {
    if (!nib_text_list_reserve(list, n)) return false;
    for (size_t i = 0; i < n; i++) list->ids[list->n++] = list->ids[first + i];
    return true;
}

#endif
