/* kv/store_file.h - pages of KV cache as files of a folder: a thread writes and removes them, the caller's reads them.
 *
 * A page is a file of its own: a head that tells what it is, then its bytes. It is written under a name of its own and renamed
 * when it is whole, so a process that dies leaves nothing that could be taken for a page; sums find what the disk did. Names
 * begin with what the pages are bound to; files of other names are never touched. One owner thread beside the writer. */
#ifndef NIB_KV_STORE_FILE_H
#define NIB_KV_STORE_FILE_H

#include "kv/pool.h"

#include <pthread.h>

typedef struct nib_kv_store_head {
    char magic[8];
    uint32_t byte_order, n_tokens;
    uint64_t identity;        /* of model, version and cache types */
    uint64_t id, parent;      /* parent 0: the first page of a text */
    uint64_t salt, page_bytes;
    nib_token tokens[NIB_KV_PAGE];
    uint64_t page_sum, sum;   /* of the page; of all above */
} nib_kv_store_head;

typedef struct nib_kv_store_job {
    bool is_write; /* else the file goes */
    uint64_t id;
    uint32_t tag;  /* the owner's */
    int error;     /* errno of a write that failed */
    nib_kv_store_head head;
    void *page;    /* a copy */
} nib_kv_store_job;

typedef struct nib_kv_store_file {
    int folder, lock_file;
    uint64_t identity;
    size_t page_bytes;
    nib_kv_store_job *jobs;           /* a ring */
    uint32_t n_jobs;
    uint64_t n_given, n_done, n_seen; /* to the writer; by it; whose outcome the owner knows */
    pthread_t writer;
    bool has_writer, is_closing, has_lock;
    pthread_mutex_t lock;
    pthread_cond_t work;
} nib_kv_store_file;

/* What a scan finds: the head of a sound file and when it was written, or why one is not sound. */
typedef void (*nib_kv_store_found_fn)(void *user, const nib_kv_store_head *head, double written, const nib_error *fault);

/* Makes the folder when there is none, and keeps other processes from using it for the same identity. */
nib_status nib_kv_store_file_open(nib_kv_store_file *file, const char *folder, uint64_t identity, size_t page_bytes, nib_error *err);
/* Writes what was given to be written first. */
void nib_kv_store_file_close(nib_kv_store_file *file);
/* Before anything is written: looks at all files. Those that are not sound are removed after found was told of them. */
nib_status nib_kv_store_file_scan(nib_kv_store_file *file, nib_kv_store_found_fn found, void *user, nib_error *err);

/* At once. */
void nib_kv_store_file_unlink(const nib_kv_store_file *file, uint64_t id);

/* Jobs that can be given now. */
uint32_t nib_kv_store_file_room(const nib_kv_store_file *file);
/* There must be room. head: id, parent, salt and tokens are set. The page is copied. */
void nib_kv_store_file_write(nib_kv_store_file *file, const nib_kv_store_head *head, const void *page, uint32_t tag);
void nib_kv_store_file_remove(nib_kv_store_file *file, uint64_t id);
/* A write that has ended since the last call; valid until the next one is given. NULL: there is none. */
const nib_kv_store_job *nib_kv_store_file_outcome(nib_kv_store_file *file);
/* Reads the page that has this id, parent, salt and these tokens, or fails and says why. */
nib_status nib_kv_store_file_read(const nib_kv_store_file *file, const nib_kv_store_head *head, void *page, nib_error *err);

#endif
