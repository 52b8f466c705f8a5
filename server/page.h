/* server/page.h - the web page as the build embeds it (scripts/embed_page): files with what HTTP says of them. */
#ifndef NIB_SERVER_PAGE_H
#define NIB_SERVER_PAGE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct nib_server_page_file {
    const char *path, *type, *tag; /* tag: ETag, with its quotes */
    const unsigned char *bytes;
    size_t n_bytes;
    bool is_gzip;
} nib_server_page_file;

extern const nib_server_page_file nib_server_page_files[];
extern const size_t nib_server_page_n_files;

#endif
