/* gguf/file.c - one file of a model on disk: path in, parsed header and bytes of tensors out.
 *
 * The descriptor stays open, so a file that is renamed or deleted can still be read; one that was shortened gives
 * NIB_E_CHANGED. Called by gguf/open.c. */
#define _FILE_OFFSET_BITS 64
#include "gguf/file.h"

#include "base/hash.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PIECE ((uint64_t)1 << 20) /* most headers without a vocabulary, read at once */
#define MAX_READ ((uint64_t)1 << 30)    /* pread's count is limited on some systems */
#define N_SAMPLES 64                    /* of a file's data, for its identity */
#define SAMPLE_BYTES 4096

typedef unsigned long long ull;

static nib_status open_regular(nib_gguf_file *file, nib_error *err) {
    /* Opening a FIFO would wait for a writer, were it not for O_NONBLOCK. */
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->fd < 0) return nib_fail_errno(err, errno, "cannot open the model");
    struct stat st;
    if (fstat(file->fd, &st) != 0) return nib_fail_errno(err, errno, "cannot stat the model");
    if (S_ISDIR(st.st_mode)) return nib_fail(err, NIB_E_IO, "is a directory, expected a GGUF file");
    if (!S_ISREG(st.st_mode)) return nib_fail(err, NIB_E_IO, "is not a regular file, expected a GGUF file");
    file->n_bytes = (uint64_t)st.st_size;
    return NIB_OK;
}

static nib_status changed(nib_error *err, uint64_t expected, uint64_t found) {
    return nib_fail(err, NIB_E_CHANGED, "the file changed while in use: it has %llu bytes, expected at least %llu",
                    (ull)found, (ull)expected);
}

static nib_status read_at(int fd, uint64_t offset, uint64_t n, void *dst, nib_error *err) {
    uint8_t *p = dst;
    for (uint64_t end = offset + n; offset < end;) {
        uint64_t piece = end - offset < MAX_READ ? end - offset : MAX_READ;
        ssize_t got = pread(fd, p, (size_t)piece, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return nib_fail_errno(err, errno, "cannot read %llu bytes at %llu", (ull)piece, (ull)offset);
        if (got == 0) {
            struct stat st;
            return changed(err, end, fstat(fd, &st) == 0 ? (uint64_t)st.st_size : offset);
        }
        p += got;
        offset += (uint64_t)got;
    }
    return NIB_OK;
}

static nib_status map(nib_gguf_file *file, nib_error *err) {
    if (file->n_bytes == 0) return NIB_OK; /* cannot be mapped; the parser has the message */
    if (file->n_bytes > PTRDIFF_MAX) return nib_fail_nomem(err, file->n_bytes, "mapping the model");
    void *p = mmap(NULL, (size_t)file->n_bytes, PROT_READ, MAP_PRIVATE, file->fd, 0);
    if (p == MAP_FAILED) return nib_fail_errno(err, errno, "cannot map the model");
    file->bytes = p;
    file->is_mapped = true;
    return NIB_OK;
}

/* Reads pieces that double, until the parser has the whole header. */
static nib_status read_header(nib_gguf_file *file, uint32_t number, const nib_gguf_limits *limits, nib_error *err) {
    uint64_t have = 0, want = file->n_bytes < FIRST_PIECE ? file->n_bytes : FIRST_PIECE;
    uint64_t most = file->n_bytes < limits->max_bytes ? file->n_bytes : limits->max_bytes;
    while (want) {
        uint8_t *grown = want <= PTRDIFF_MAX ? nib_realloc(file->bytes, (size_t)want, 1) : NULL;
        if (!grown) return nib_fail_nomem(err, want, "the metadata");
        file->bytes = grown;
        NIB_TRY(read_at(file->fd, have, want - have, file->bytes + have, err));
        have = want;
        nib_gguf_input input = {file->bytes, (size_t)have, file->n_bytes, number};
        NIB_TRY(nib_gguf_parse(&file->doc, &input, limits, &want, err));
        if (want && want < most && want < 2 * have) want = 2 * have < most ? 2 * have : most;
    }
    return NIB_OK;
}

static nib_status parse(nib_gguf_file *file, uint32_t number, const nib_gguf_config *config, nib_error *err) {
    nib_gguf_limits limits = {config->max_metadata_bytes, config->max_keys, config->max_tensors};
    if (file->n_bytes && !file->is_mapped) return read_header(file, number, &limits, err);
    uint64_t want;
    nib_gguf_input input = {file->bytes, (size_t)file->n_bytes, file->n_bytes, number};
    return nib_gguf_parse(&file->doc, &input, &limits, &want, err);
}

nib_status nib_gguf_file_open(nib_gguf_file *file, const char *path, uint32_t number, const nib_gguf_config *config,
                              nib_error *err) {
    nib_status status = NIB_OK;
    size_t len = strlen(path);
    *file = (nib_gguf_file){.fd = -1, .path = nib_alloc(len + 1, 1)};
    if (!file->path) return nib_fail_nomem(err, len + 1, "a path");
    memcpy(file->path, path, len + 1);
    NIB_TRY_OUT(open_regular(file, err));
    if (config->mode == NIB_LOAD_MMAP) NIB_TRY_OUT(map(file, err));
    NIB_TRY_OUT(parse(file, number, config, err));
    return NIB_OK;
out:
    nib_error_prefix(err, "%s", path);
    nib_gguf_file_close(file);
    return status;
}

void nib_gguf_file_close(nib_gguf_file *file) {
    if (!file->path) return;
    nib_gguf_doc_free(&file->doc);
    if (file->is_mapped) munmap(file->bytes, (size_t)file->n_bytes);
    else nib_free(file->bytes);
    if (file->fd >= 0) close(file->fd);
    nib_free(file->path);
    *file = (nib_gguf_file){.fd = -1};
}

nib_status nib_gguf_file_read(const nib_gguf_file *file, uint64_t offset, uint64_t n, void *dst, nib_error *err) {
    nib_status status = NIB_OK;
    if (n == 0) return NIB_OK;
    if (file->is_mapped) {
        /* A file that is already shorter is found here; one that shrinks during the copy raises SIGBUS. */
        struct stat st;
        if (fstat(file->fd, &st) != 0) NIB_TRY_OUT(nib_fail_errno(err, errno, "cannot stat the model"));
        if ((uint64_t)st.st_size < offset + n) NIB_TRY_OUT(changed(err, offset + n, (uint64_t)st.st_size));
        memcpy(dst, file->bytes + offset, (size_t)n);
    } else {
        NIB_TRY_OUT(read_at(file->fd, offset, n, dst, err));
    }
    return NIB_OK;
out:
    nib_error_prefix(err, "%s", file->path);
    return status;
}

nib_status nib_gguf_file_identify(const nib_gguf_file *file, nib_gguf_identity *identity, nib_error *err) {
    struct stat st;
    if (fstat(file->fd, &st) != 0) {
        nib_fail_errno(err, errno, "%s: cannot stat the model", file->path);
        return NIB_E_IO;
    }
    int64_t size = st.st_size, time[] = {st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
    uint64_t begin = file->doc.header_bytes, step = (file->n_bytes - begin) / N_SAMPLES;
    uint64_t n = step < SAMPLE_BYTES ? step : SAMPLE_BYTES, hash = nib_hash64(identity->content, &size, sizeof size);
    hash = nib_hash64(hash, file->bytes, (size_t)begin);
    for (uint64_t i = 0; i < N_SAMPLES; i++) { /* the last one ends with the file */
        uint8_t sample[SAMPLE_BYTES];
        NIB_TRY(nib_gguf_file_read(file, i + 1 < N_SAMPLES ? begin + i * step : file->n_bytes - n, n, sample, err));
        hash = nib_hash64(hash, sample, (size_t)n);
    }
    identity->content = hash;
    identity->times = nib_hash64(identity->times, time, sizeof time);
    return NIB_OK;
}
