/* kv/store_file.c - pages as files: names, heads, sums, and the thread that writes (store_file.h). */
#define _DEFAULT_SOURCE /* flock */
#include "kv/store_file.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "nib-kvp"
#define JOB_BYTES ((size_t)64 << 20) /* of pages that wait to be written, about */
#define LEAST_JOBS 4
#define MOST_JOBS 64

typedef unsigned long long ull;

enum { NAME = 64 };

_Static_assert(sizeof(nib_kv_store_head) == 72 + NIB_KV_PAGE * 4, "a head is written as it lies in memory: no padding");

static void page_name(const nib_kv_store_file *f, uint64_t id, const char *ending, char name[NAME]) {
    snprintf(name, NAME, "nib-%016" PRIx64 "-%016" PRIx64 ".%s", f->identity, id, ending);
}

static uint64_t head_sum(const nib_kv_store_head *head) {
    return nib_hash64(0, head, offsetof(nib_kv_store_head, sum));
}

static void fill_head(const nib_kv_store_file *f, nib_kv_store_head *head) {
    memcpy(head->magic, MAGIC, sizeof MAGIC);
    head->byte_order = 0x01020304;
    head->n_tokens = NIB_KV_PAGE;
    head->identity = f->identity;
    head->page_bytes = f->page_bytes;
}

/* ---- write, on the writer's thread */

static int write_all(int fd, const void *data, size_t n) {
    const unsigned char *p = data;
    while (n) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return errno;
        p += put, n -= (size_t)put;
    }
    return 0;
}

static int write_page(const nib_kv_store_file *f, nib_kv_store_job *job) {
    char part[NAME], name[NAME];
    struct rlimit most; /* beyond it a write raises SIGXFSZ */
    page_name(f, job->id, "part", part);
    page_name(f, job->id, "page", name);
    job->head.page_sum = nib_hash64(0, job->page, f->page_bytes);
    job->head.sum = head_sum(&job->head);
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && f->page_bytes + sizeof job->head > most.rlim_cur)
        return EFBIG;
    int fd = openat(f->folder, part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return errno;
    int error = write_all(fd, &job->head, sizeof job->head);
    if (!error) error = write_all(fd, job->page, f->page_bytes);
    if (close(fd) != 0 && !error) error = errno;
    if (!error && renameat(f->folder, part, f->folder, name) != 0) error = errno;
    if (error) (void)unlinkat(f->folder, part, 0);
    return error;
}

void nib_kv_store_file_unlink(const nib_kv_store_file *f, uint64_t id) {
    char name[NAME];
    page_name(f, id, "page", name);
    (void)unlinkat(f->folder, name, 0);
}

static void *be_writer(void *arg) {
    nib_kv_store_file *f = arg;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (f->n_done == f->n_given && !f->is_closing) pthread_cond_wait(&f->work, &f->lock);
        if (f->n_done == f->n_given) break;
        nib_kv_store_job *job = &f->jobs[f->n_done % f->n_jobs];
        pthread_mutex_unlock(&f->lock);
        if (job->is_write) job->error = write_page(f, job);
        else nib_kv_store_file_unlink(f, job->id);
        pthread_mutex_lock(&f->lock);
        f->n_done++;
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* ---- open and close */

static nib_status make_jobs(nib_kv_store_file *f, nib_error *err) {
    size_t n = JOB_BYTES / f->page_bytes;
    f->n_jobs = n < LEAST_JOBS ? LEAST_JOBS : n < MOST_JOBS ? (uint32_t)n : MOST_JOBS;
    f->jobs = nib_calloc(f->n_jobs, sizeof *f->jobs);
    bool ok = f->jobs != NULL;
    for (uint32_t i = 0; ok && i < f->n_jobs; i++) ok = (f->jobs[i].page = nib_alloc(1, f->page_bytes)) != NULL;
    return ok ? NIB_OK : nib_fail_nomem(err, f->n_jobs * f->page_bytes, "pages on their way to disk");
}

static nib_status open_folder(nib_kv_store_file *f, const char *path, nib_error *err) {
    char name[NAME];
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return nib_fail_errno(err, errno, "cannot make the folder");
    f->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->folder < 0) return nib_fail_errno(err, errno, "cannot open the folder");
    snprintf(name, sizeof name, "nib-%016" PRIx64 ".lock", f->identity);
    f->lock_file = openat(f->folder, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->lock_file < 0) return nib_fail_errno(err, errno, "cannot write there");
    if (flock(f->lock_file, LOCK_EX | LOCK_NB) == 0) return NIB_OK;
    return nib_fail(err, NIB_E_IO, "another engine uses it for this model");
}

nib_status nib_kv_store_file_open(nib_kv_store_file *f, const char *folder, uint64_t identity, size_t page_bytes, nib_error *err) {
    nib_status status;
    *f = (nib_kv_store_file){.folder = -1, .lock_file = -1, .identity = identity, .page_bytes = page_bytes};
    NIB_TRY_OUT(open_folder(f, folder, err));
    NIB_TRY_OUT(make_jobs(f, err));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->work, NULL);
    f->has_lock = true;
    int code = pthread_create(&f->writer, NULL, be_writer, f);
    if (code) NIB_TRY_OUT(nib_fail_errno(err, code, "a thread could not be started"));
    f->has_writer = true;
    return NIB_OK;
out:
    nib_kv_store_file_close(f);
    return status;
}

void nib_kv_store_file_close(nib_kv_store_file *f) {
    if (f->has_writer) {
        pthread_mutex_lock(&f->lock);
        f->is_closing = true;
        pthread_cond_signal(&f->work);
        pthread_mutex_unlock(&f->lock);
        pthread_join(f->writer, NULL);
    }
    if (f->has_lock) {
        pthread_mutex_destroy(&f->lock);
        pthread_cond_destroy(&f->work);
    }
    for (uint32_t i = 0; f->jobs && i < f->n_jobs; i++) nib_free(f->jobs[i].page);
    nib_free(f->jobs);
    if (f->lock_file >= 0) close(f->lock_file);
    if (f->folder >= 0) close(f->folder);
    *f = (nib_kv_store_file){.folder = -1, .lock_file = -1};
}

/* ---- read */

static nib_status read_at(int fd, uint64_t at, void *data, size_t n, nib_error *err) {
    unsigned char *p = data;
    while (n) {
        ssize_t got = pread(fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return nib_fail_errno(err, errno, "cannot be read");
        if (got == 0) return nib_fail(err, NIB_E_FORMAT, "ends at byte %llu", (ull)at);
        p += got, n -= (size_t)got, at += (uint64_t)got;
    }
    return NIB_OK;
}

static nib_status check_head(const nib_kv_store_file *f, const nib_kv_store_head *head, uint64_t id, nib_error *err) {
    nib_kv_store_head want = *head;
    fill_head(f, &want);
    if (head_sum(head) != head->sum) return nib_fail(err, NIB_E_FORMAT, "is damaged in its head");
    if (memcmp(&want, head, sizeof want) != 0 || head->id != id || id == 0)
        return nib_fail(err, NIB_E_FORMAT, "is no page of this model and version");
    return NIB_OK;
}

static nib_status open_page(const nib_kv_store_file *f, uint64_t id, int *fd, nib_kv_store_head *head, nib_error *err) {
    char name[NAME];
    struct stat st;
    page_name(f, id, "page", name);
    *fd = openat(f->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0) return nib_fail_errno(err, errno, "cannot be opened");
    nib_status status = read_at(*fd, 0, head, sizeof *head, err);
    if (status == NIB_OK) status = check_head(f, head, id, err);
    if (status == NIB_OK && (fstat(*fd, &st) != 0 || (uint64_t)st.st_size != sizeof *head + f->page_bytes))
        status = nib_fail(err, NIB_E_FORMAT, "has not the %zu bytes of a page", sizeof *head + f->page_bytes);
    if (status == NIB_OK) return NIB_OK;
    close(*fd);
    return status;
}

nib_status nib_kv_store_file_read(const nib_kv_store_file *f, const nib_kv_store_head *want, void *page, nib_error *err) {
    nib_kv_store_head head = {0};
    int fd;
    NIB_TRY(open_page(f, want->id, &fd, &head, err));
    nib_status status = NIB_OK;
    if (head.parent != want->parent || head.salt != want->salt || memcmp(head.tokens, want->tokens, sizeof head.tokens) != 0)
        status = nib_fail(err, NIB_E_FORMAT, "holds other tokens than it did");
    if (status == NIB_OK) status = read_at(fd, sizeof head, page, f->page_bytes, err);
    close(fd);
    if (status == NIB_OK && nib_hash64(0, page, f->page_bytes) != head.page_sum)
        status = nib_fail(err, NIB_E_FORMAT, "is damaged");
    return status;
}

/* ---- scan */

/* The id of one of our names; 0: it is none. */
static uint64_t id_of(const nib_kv_store_file *f, const char *name, const char *ending) {
    char same[NAME];
    unsigned long long id = 0;
    if (strlen(name) >= NAME || sscanf(name, "nib-%*16[0-9a-f]-%16llx.", &id) != 1) return 0;
    page_name(f, id, ending, same);
    return strcmp(same, name) == 0 ? id : 0;
}

static void look_at(nib_kv_store_file *f, uint64_t id, const char *name, nib_kv_store_found_fn found, void *user) {
    nib_kv_store_head head;
    nib_error err;
    struct stat st;
    int fd;
    if (open_page(f, id, &fd, &head, &err) == NIB_OK) {
        double written = fstat(fd, &st) == 0 ? (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec : 0;
        close(fd);
        found(user, &head, written, NULL);
        return;
    }
    nib_error_prefix(&err, "%s", name);
    found(user, NULL, 0, &err);
    (void)unlinkat(f->folder, name, 0);
}

nib_status nib_kv_store_file_scan(nib_kv_store_file *f, nib_kv_store_found_fn found, void *user, nib_error *err) {
    int fd = openat(f->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int error = errno;
        if (fd >= 0) close(fd);
        return nib_fail_errno(err, error, "cannot list the folder");
    }
    const struct dirent *entry;
    while ((entry = readdir(dir))) {
        uint64_t id = id_of(f, entry->d_name, "page");
        if (id) look_at(f, id, entry->d_name, found, user);
        else if (id_of(f, entry->d_name, "part")) (void)unlinkat(f->folder, entry->d_name, 0); /* of somebody who died */
    }
    closedir(dir);
    return NIB_OK;
}

/* ---- jobs */

uint32_t nib_kv_store_file_room(const nib_kv_store_file *f) {
    return f->n_jobs - (uint32_t)(f->n_given - f->n_seen);
}

static void give(nib_kv_store_file *f) {
    pthread_mutex_lock(&f->lock);
    f->n_given++;
    pthread_cond_signal(&f->work);
    pthread_mutex_unlock(&f->lock);
}

void nib_kv_store_file_write(nib_kv_store_file *f, const nib_kv_store_head *head, const void *page, uint32_t tag) {
    nib_kv_store_job *job = &f->jobs[f->n_given % f->n_jobs];
    job->is_write = true;
    job->id = head->id;
    job->tag = tag;
    job->head = *head;
    fill_head(f, &job->head);
    memcpy(job->page, page, f->page_bytes);
    give(f);
}

void nib_kv_store_file_remove(nib_kv_store_file *f, uint64_t id) {
    nib_kv_store_job *job = &f->jobs[f->n_given % f->n_jobs];
    job->is_write = false;
    job->id = id;
    give(f);
}

const nib_kv_store_job *nib_kv_store_file_outcome(nib_kv_store_file *f) {
    pthread_mutex_lock(&f->lock);
    uint64_t n_done = f->n_done;
    pthread_mutex_unlock(&f->lock);
    while (f->n_seen < n_done) {
        const nib_kv_store_job *job = &f->jobs[f->n_seen++ % f->n_jobs];
        if (job->is_write) return job;
    }
    return NULL;
}
