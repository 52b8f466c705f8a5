/* text/list.h - appending to a nib_token_list. */
#ifndef NIB_TEXT_LIST_H
#define NIB_TEXT_LIST_H

#include "base/mem.h"
#include "nib.h"

static inline bool nib_text_list_add(nib_token_list *list, nib_token id) {
    if (list->n == list->capacity && !nib_grow(&list->ids, &list->capacity, list->n + 1, sizeof *list->ids)) return false;
    list->ids[list->n++] = id;
    return true;
}

#endif
