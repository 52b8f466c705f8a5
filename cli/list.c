/* cli/list.c - growable arrays of options, ids and log-probabilities. */
#include "list.h"

#include "base/mem.h"

#include <string.h>

bool nib_cli_list_append(nib_cli_list *list, const void *items, size_t n, size_t size) {
    if (!nib_grow(&list->items, &list->capacity, list->n + n, size)) return false;
    if (n) memcpy((char *)list->items + list->n * size, items, n * size);
    list->n += n;
    return true;
}

void nib_cli_list_free(nib_cli_list *list) {
    nib_free(list->items);
    *list = (nib_cli_list){0};
}

bool nib_cli_append_ids(nib_token_list *list, const nib_token *ids, size_t n) {
    if (!nib_grow(&list->ids, &list->capacity, list->n + n, sizeof *ids)) return false;
    if (n) memcpy(list->ids + list->n, ids, n * sizeof *ids);
    list->n += n;
    return true;
}
