/* cli/list.h - growable arrays. */
#ifndef NIB_CLI_LIST_H
#define NIB_CLI_LIST_H

#include "base/buf.h"

/* Zero-initialise; free with nib_cli_list_free. */
typedef struct nib_cli_list {
    void *items; /* of one type: the owner says which */
    size_t n, capacity;
} nib_cli_list;

/* Copies n items of size bytes to the end. False when memory is out. */
bool nib_cli_list_append(nib_cli_list *list, const void *items, size_t n, size_t size);
void nib_cli_list_free(nib_cli_list *list);
/* The same for ids. */
bool nib_cli_append_ids(nib_token_list *list, const nib_token *ids, size_t n);

/* What a buffer holds. */
static inline nib_str nib_cli_bytes(const nib_buf *buf) {
    return (nib_str){buf->ptr, buf->len};
}

#endif
