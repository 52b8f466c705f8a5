/* text/list.h - appending to a nib_token_list. False when memory is out. Its limit is not looked at here, but wherever it pays. */
#ifndef NIB_TEXT_LIST_H
#define NIB_TEXT_LIST_H

#include "base/mem.h"
#include "base/status.h"
#include "nib.h"

static inline bool nib_text_list_reserve(nib_token_list *list, size_t more) {
    if (list->capacity - list->n >= more) return true;
    return nib_grow(&list->ids, &list->capacity, list->n + more, sizeof *list->ids);
}

/* NIB_E_LIMIT when n tokens more are too many. */
static inline nib_status nib_text_list_check(const nib_token_list *list, size_t n, nib_error *err) {
    if (!list->most || (n <= list->most && list->n <= list->most - n)) return NIB_OK;
    return nib_fail(err, NIB_E_LIMIT, "the text has more than %zu tokens", list->most);
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
