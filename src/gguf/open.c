/* gguf/open.c - a model's GGUF file, or all files of a split one, as one handle: the public functions of nib.h.
 *
 * nib_gguf is a list of files, their tensors in one list with one index, and the metadata of the first file. The names
 * of split files end in -00001-of-0000N.gguf; their keys split.no, split.count and split.tensors.count must agree. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"
#include "gguf/file.h"
#include "gguf/value.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

struct nib_gguf {
    nib_gguf_file *files;
    uint32_t n_files;
    uint64_t n_bytes;
    nib_gguf_tensor *tensors; /* of all files; the first document's own when there is one file */
    size_t n_tensors;
    nib_gguf_index merged;    /* of tensors, when there are several files */
};

/* ------------------------------------------------------------------------------------------------ split models */

/* The number behind a split.* key; `missing` when there is none. */
static nib_status split_number(const nib_gguf_file *file, const char *key, uint64_t missing, uint64_t *n,
                               nib_error *err) {
    const nib_gguf_value *v = nib_gguf_doc_find(&file->doc, key);
    *n = missing;
    if (!v || nib_gguf_value_u64(v, n)) return NIB_OK;
    return nib_fail(err, NIB_E_FORMAT, "%s: key '%s' is of type %s, expected a whole number from 0 on", file->path, key,
                    nib_gguf_type_name(v->type));
}

#define MAX_SPLIT 65535u          /* split.count is 16 bits wide */
#define SUFFIX_FORMAT "-%05u-of-%05u.gguf"

/* "…-00001-of-00003.gguf" -> the same with another number, in *out. False when the path does not end like that. */
static bool sibling_path(const char *path, uint32_t own, uint32_t wanted, uint32_t count, nib_buf *out) {
    char suffix[40];
    size_t n = (size_t)snprintf(suffix, sizeof suffix, SUFFIX_FORMAT, (unsigned)own, (unsigned)count);
    size_t len = strlen(path);
    if (len < n || strcmp(path + len - n, suffix) != 0) return false;
    out->len = 0;
    nib_buf_append(out, path, len - n);
    nib_buf_printf(out, SUFFIX_FORMAT, (unsigned)wanted, (unsigned)count);
    nib_buf_cstr(out);
    return true;
}

/* The first file says how many there are: 1 when the model is not split. */
static nib_status split_count(const nib_gguf_file *first, uint32_t *count, nib_error *err) {
    uint64_t n, no;
    NIB_TRY(split_number(first, "split.count", 1, &n, err));
    NIB_TRY(split_number(first, "split.no", 0, &no, err));
    *count = 1;
    if (n <= 1) return NIB_OK;
    if (n > MAX_SPLIT || no >= n)
        return nib_fail(err, NIB_E_FORMAT, "%s: split.no is %llu and split.count %llu, expected less than %u parts",
                        first->path, (ull)no, (ull)n, MAX_SPLIT);
    *count = (uint32_t)n;
    if (no == 0) return NIB_OK;
    nib_buf path = {0};
    if (sibling_path(first->path, (uint32_t)no + 1, 1, *count, &path) && !path.failed)
        nib_fail(err, NIB_E_ARG, "%s: part %llu of %llu of a split model; open its first part, %s", first->path,
                 (ull)no + 1, (ull)n, path.ptr);
    else
        nib_fail(err, NIB_E_ARG, "%s: part %llu of %llu of a split model; open its first part", first->path,
                 (ull)no + 1, (ull)n);
    nib_buf_free(&path);
    return NIB_E_ARG;
}

/* Part i (from 0) says that it is that. */
static nib_status check_part(const nib_gguf_file *file, uint32_t i, uint32_t count, nib_error *err) {
    uint64_t no, n;
    NIB_TRY(split_number(file, "split.no", UINT64_MAX, &no, err));
    NIB_TRY(split_number(file, "split.count", UINT64_MAX, &n, err));
    if (no == i && n == count) return NIB_OK;
    if (no == UINT64_MAX || n == UINT64_MAX)
        return nib_fail(err, NIB_E_FORMAT, "%s: split.%s is missing, expected part %u of %u", file->path,
                        no == UINT64_MAX ? "no" : "count", (unsigned)i + 1, (unsigned)count);
    return nib_fail(err, NIB_E_FORMAT, "%s: split.no is %llu and split.count %llu, expected %u and %u", file->path,
                    (ull)no, (ull)n, (unsigned)i, (unsigned)count);
}

/* Opens part i (from 0) beside the first. */
static nib_status open_part(nib_gguf *g, uint32_t i, uint32_t count, const nib_gguf_config *config, nib_error *err) {
    const nib_gguf_file *first = &g->files[0];
    nib_status status = NIB_OK;
    nib_buf path = {0};
    if (!sibling_path(first->path, 1, i + 1, count, &path))
        return nib_fail(err, NIB_E_FORMAT,
                        "%s: part 1 of %u of a split model, but the other parts cannot be found: its name does not end "
                        "in " SUFFIX_FORMAT,
                        first->path, (unsigned)count, 1u, (unsigned)count);
    if (path.failed) NIB_TRY_OUT(nib_fail_nomem(err, path.len, "a path"));
    status = nib_gguf_file_open(&g->files[i], path.ptr, i, config, err);
    if (status != NIB_OK) {
        nib_error_prefix(err, "%s: part %u of %u of this split model", first->path, (unsigned)i + 1, (unsigned)count);
        goto out;
    }
    g->n_files = i + 1;
    status = check_part(&g->files[i], i, count, err);
out:
    nib_buf_free(&path);
    return status;
}

/* The tensors of all parts as one list. */
static nib_status merge(nib_gguf *g, uint32_t max_tensors, nib_error *err) {
    const char *path = g->files[0].path;
    size_t n = 0;
    for (uint32_t i = 0; i < g->n_files; i++) n += g->files[i].doc.n_tensors;
    uint64_t announced;
    NIB_TRY(split_number(&g->files[0], "split.tensors.count", n, &announced, err));
    if (announced != n)
        return nib_fail(err, NIB_E_FORMAT, "%s: split.tensors.count is %llu, but its %u parts hold %zu tensors", path,
                        (ull)announced, (unsigned)g->n_files, n);
    if (n > max_tensors)
        return nib_fail(err, NIB_E_LIMIT, "%s: %zu tensors in all parts, the limit is %u", path, n,
                        (unsigned)max_tensors);
    g->tensors = nib_alloc(n, sizeof *g->tensors);
    if (!g->tensors) return nib_fail_nomem(err, (uint64_t)n * sizeof *g->tensors, "the list of tensors");
    for (uint32_t i = 0; i < g->n_files; i++) {
        const nib_gguf_doc *doc = &g->files[i].doc;
        if (doc->n_tensors) memcpy(g->tensors + g->n_tensors, doc->tensors, doc->n_tensors * sizeof *doc->tensors);
        g->n_tensors += doc->n_tensors;
    }
    NIB_TRY(nib_gguf_index_build(&g->merged, g->tensors, n, sizeof *g->tensors, err));
    const void *earlier;
    const nib_gguf_tensor *later = nib_gguf_index_duplicate(&g->merged, &earlier);
    if (!later) return NIB_OK;
    return nib_fail(err, NIB_E_FORMAT, "%s: duplicate tensor '%.*s', in this file and in part %u",
                    g->files[later->file].path, NIB_STR_ARG(later->name),
                    (unsigned)((const nib_gguf_tensor *)earlier)->file + 1);
}

/* ------------------------------------------------------------------------------------------------ nib.h */

static nib_status open_all(nib_gguf *g, const char *path, const nib_gguf_config *config, nib_error *err) {
    g->files = nib_calloc(1, sizeof *g->files);
    if (!g->files) return nib_fail_nomem(err, sizeof *g->files, "a GGUF file");
    NIB_TRY(nib_gguf_file_open(&g->files[0], path, 0, config, err));
    g->n_files = 1;
    uint32_t count;
    NIB_TRY(split_count(&g->files[0], &count, err));
    if (count == 1) {
        g->tensors = g->files[0].doc.tensors;
        g->n_tensors = g->files[0].doc.n_tensors;
    } else {
        nib_gguf_file *files = nib_realloc(g->files, count, sizeof *files);
        if (!files) return nib_fail_nomem(err, (uint64_t)count * sizeof *files, "the parts of a split model");
        g->files = files;
        for (uint32_t i = 1; i < count; i++) NIB_TRY(open_part(g, i, count, config, err));
        NIB_TRY(merge(g, config->max_tensors, err));
    }
    for (uint32_t i = 0; i < g->n_files; i++) g->n_bytes += g->files[i].n_bytes;
    return NIB_OK;
}

nib_status nib_gguf_open(nib_gguf **out, const char *path, const nib_gguf_config *config, nib_error *err) {
    nib_gguf_config c = NIB_GGUF_CONFIG_INIT;
    if (!out) return nib_fail(err, NIB_E_ARG, "out is NULL");
    *out = NULL;
    if (!path || !*path) return nib_fail(err, NIB_E_ARG, "no path of a GGUF file");
    if (config) {
        if (config->size < sizeof config->size)
            return nib_fail(err, NIB_E_ARG, "nib_gguf_config.size is %zu; use NIB_GGUF_CONFIG_INIT", config->size);
        memcpy(&c, config, config->size < sizeof c ? config->size : sizeof c);
    }
    if (c.mode != NIB_LOAD_READ && c.mode != NIB_LOAD_MMAP)
        return nib_fail(err, NIB_E_ARG, "nib_gguf_config.mode is %d, expected NIB_LOAD_READ or NIB_LOAD_MMAP",
                        (int)c.mode);
    nib_gguf *g = nib_calloc(1, sizeof *g);
    if (!g) return nib_fail_nomem(err, sizeof *g, "a GGUF file");
    nib_status status = open_all(g, path, &c, err);
    if (status == NIB_OK) *out = g;
    else nib_gguf_close(g);
    return status;
}

void nib_gguf_close(nib_gguf *file) {
    if (!file) return;
    if (file->n_files > 1) nib_free(file->tensors);
    nib_gguf_index_free(&file->merged);
    for (uint32_t i = 0; i < file->n_files; i++) nib_gguf_file_close(&file->files[i]);
    nib_free(file->files);
    nib_free(file);
}

const char *nib_gguf_path(const nib_gguf *file) {
    return file->files[0].path;
}

uint32_t nib_gguf_version(const nib_gguf *file) {
    return file->files[0].doc.version;
}

uint32_t nib_gguf_alignment(const nib_gguf *file) {
    return file->files[0].doc.alignment;
}

uint64_t nib_gguf_file_bytes(const nib_gguf *file) {
    return file->n_bytes;
}

uint32_t nib_gguf_n_files(const nib_gguf *file) {
    return file->n_files;
}

size_t nib_gguf_n_keys(const nib_gguf *file) {
    return file->files[0].doc.n_keys;
}

nib_str nib_gguf_key_at(const nib_gguf *file, size_t i, const nib_gguf_value **value) {
    const nib_gguf_doc *doc = &file->files[0].doc;
    bool exists = i < doc->n_keys;
    if (value) *value = exists ? &doc->keys[i].value : NULL;
    return exists ? doc->keys[i].name : (nib_str){0};
}

const nib_gguf_value *nib_gguf_find(const nib_gguf *file, const char *name) {
    return nib_gguf_doc_find(&file->files[0].doc, name);
}

size_t nib_gguf_n_tensors(const nib_gguf *file) {
    return file->n_tensors;
}

const nib_gguf_tensor *nib_gguf_tensor_at(const nib_gguf *file, size_t i) {
    return i < file->n_tensors ? &file->tensors[i] : NULL;
}

const nib_gguf_tensor *nib_gguf_find_tensor(const nib_gguf *file, const char *name) {
    const nib_gguf_index *index = file->n_files > 1 ? &file->merged : &file->files[0].doc.tensor_index;
    return nib_gguf_index_find(index, (nib_str){name, strlen(name)});
}

nib_status nib_gguf_read(const nib_gguf *file, const nib_gguf_tensor *tensor, uint64_t from, uint64_t n_bytes,
                         void *dst, nib_error *err) {
    if (tensor->file >= file->n_files || from > tensor->n_bytes || n_bytes > tensor->n_bytes - from)
        return nib_fail(err, NIB_E_ARG, "tensor '%.*s' has %llu bytes, %llu from byte %llu on were asked for",
                        NIB_STR_ARG(tensor->name), (ull)tensor->n_bytes, (ull)n_bytes, (ull)from);
    const nib_gguf_file *f = &file->files[tensor->file];
    return nib_gguf_file_read(f, tensor->offset + from, n_bytes, dst, err);
}

nib_status nib_gguf_identify(const nib_gguf *file, nib_gguf_identity *out, nib_error *err) {
    *out = (nib_gguf_identity){0};
    for (uint32_t i = 0; i < file->n_files; i++) NIB_TRY(nib_gguf_file_identify(&file->files[i], out, err));
    return NIB_OK;
}
