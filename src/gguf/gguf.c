/* gguf/gguf.c - the GGUF header parser: bytes in, keys and tensors out, or an error with its byte offset. No I/O.
 *
 * A cursor moves over the bytes; need() is the one place that compares a length with what is left. Nothing recurses:
 * arrays in arrays are walked with a small stack. Called by gguf/file.c. */
#include "gguf/gguf.h"

#include "base/status.h"
#include "gguf/value.h"
#include "quant/type.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull; /* for %llu */

/* The smallest records: a name of one byte; a value of one byte, or one dimension. */
enum { MIN_KEY_BYTES = 8 + 1 + 4 + 1, MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8 };

/* Passed up like an error: the bytes at hand end too early, reader.want says how many there must be. */
enum { NEED_MORE = 1 };

typedef struct reader {
    const uint8_t *bytes;
    uint64_t end; /* bytes that may be read: at hand and within the limit */
    uint64_t pos, want, file_bytes, max_bytes;
    nib_error *err;
    /* What is being read, for messages: "key 3 of 24", or with its name once that is known. */
    const char *what;
    uint64_t i, n;
    nib_str name;
} reader;

struct text {
    char s[256];
};

static struct text where(const reader *r) {
    struct text t;
    if (r->name.len) snprintf(t.s, sizeof t.s, "%s '%.*s'", r->what, NIB_STR_ARG(r->name));
    else if (r->n) snprintf(t.s, sizeof t.s, "%s %llu of %llu", r->what, (ull)r->i + 1, (ull)r->n);
    else snprintf(t.s, sizeof t.s, "%s", r->what);
    return t;
}

static nib_status cannot_read(reader *r, uint64_t n) {
    if (n > r->file_bytes - r->pos)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos,
                           "%s needs %llu bytes at offset %llu, but the file ends at %llu: truncated or damaged",
                           where(r).s, (ull)n, (ull)r->pos, (ull)r->file_bytes);
    if (n > r->max_bytes - r->pos)
        return nib_fail_at(r->err, NIB_E_LIMIT, r->pos, "%s passes the limit of %llu bytes of metadata", where(r).s,
                           (ull)r->max_bytes);
    r->want = r->pos + n;
    return (nib_status)NEED_MORE;
}

/* n bytes at the cursor can be read. */
static inline nib_status need(reader *r, uint64_t n) {
    return n <= r->end - r->pos ? NIB_OK : cannot_read(r, n);
}

static nib_status read_u32(reader *r, uint32_t *out) {
    NIB_TRY(need(r, 4));
    *out = nib_gguf_value_le32(r->bytes + r->pos);
    r->pos += 4;
    return NIB_OK;
}

static nib_status read_u64(reader *r, uint64_t *out) {
    NIB_TRY(need(r, 8));
    *out = nib_gguf_value_le64(r->bytes + r->pos);
    r->pos += 8;
    return NIB_OK;
}

static nib_status read_string(reader *r, nib_str *out) {
    uint64_t n;
    NIB_TRY(read_u64(r, &n));
    NIB_TRY(need(r, n));
    *out = (nib_str){(const char *)r->bytes + r->pos, (size_t)n};
    r->pos += n;
    return NIB_OK;
}

/* The name of a key or tensor; from here on messages carry it. */
static nib_status read_name(reader *r) {
    uint64_t n;
    NIB_TRY(read_u64(r, &n));
    if (n == 0 || n > NIB_GGUF_MAX_NAME)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8, "%s has a name of length %llu, expected 1 to %d",
                           where(r).s, (ull)n, NIB_GGUF_MAX_NAME);
    r->pos -= 8;
    return read_string(r, &r->name);
}

/* ------------------------------------------------------------------------------------------------ header */

/* What people take for a GGUF file. The old formats stand on disk in either byte order. */
static const char *known_magic(const uint8_t *p, uint64_t n) {
    static const char old[][5] = {"ggml", "ggmf", "ggjt", "ggla", "ggsn"};
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++) {
        int forward = 0, backward = 0;
        for (int k = 0; k < 4; k++) {
            forward += (p[k] | 32) == old[i][k];
            backward += (p[k] | 32) == old[i][3 - k];
        }
        if (forward == 4 || backward == 4) return "a format older than GGUF; convert the original model again";
    }
    static const struct {
        const char *start, *is;
    } others[] = {
        {"version https://git-lfs", "a Git LFS pointer; fetch the file itself with git lfs pull"},
        {"<", "a web page? Then the download went wrong"},
        {"PK\003\004", "a zip archive, as PyTorch writes"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t len = strlen(others[i].start);
        if (n >= len && memcmp(p, others[i].start, len) == 0) return others[i].is;
    }
    if (n > 8 && p[8] == '{') return "a safetensors file; convert it to GGUF";
    return "unknown";
}

static nib_status check_magic(reader *r) {
    uint64_t n = r->file_bytes < NIB_GGUF_HEADER_BYTES ? r->file_bytes : NIB_GGUF_HEADER_BYTES;
    if (n < 4)
        return nib_fail_at(r->err, NIB_E_FORMAT, 0, n ? "the file has %llu bytes, a GGUF header %d"
                                                      : "the file is empty (%llu bytes, a GGUF header has %d)",
                           (ull)n, NIB_GGUF_HEADER_BYTES);
    NIB_TRY(need(r, n));
    const uint8_t *p = r->bytes;
    if (memcmp(p, "GGUF", 4) == 0) return NIB_OK;
    if (memcmp(p, "FUGG", 4) == 0)
        return nib_fail_at(r->err, NIB_E_UNSUPPORTED, 0, "the file is big-endian, nib reads little-endian GGUF files");
    bool is_text = true;
    for (int i = 0; i < 4; i++) is_text &= p[i] >= 0x20 && p[i] < 0x7f;
    if (is_text)
        return nib_fail_at(r->err, NIB_E_FORMAT, 0, "not a GGUF file: it begins with \"%.4s\" (%s)", (const char *)p,
                           known_magic(p, n));
    return nib_fail_at(r->err, NIB_E_FORMAT, 0, "not a GGUF file: it begins with %02x %02x %02x %02x (%s)", p[0], p[1],
                       p[2], p[3], known_magic(p, n));
}

static nib_status check_version(reader *r, uint32_t version) {
    if (version == 2 || version == 3) return NIB_OK;
    if (version == 1)
        return nib_fail_at(r->err, NIB_E_UNSUPPORTED, 4,
                           "GGUF version 1 (32-bit lengths), nib reads versions 2 and 3; convert the model again");
    if ((version & 0xffff) == 0 && version != 0)
        return nib_fail_at(r->err, NIB_E_UNSUPPORTED, 4,
                           "the file is big-endian (its version reads as 0x%08x), nib reads little-endian GGUF files",
                           (unsigned)version);
    return nib_fail_at(r->err, NIB_E_UNSUPPORTED, 4, "GGUF version %u, nib reads versions 2 and 3", (unsigned)version);
}

/* A count of records of at least min_bytes each. */
static nib_status read_count(reader *r, const char *what, uint64_t min_bytes, uint32_t limit, uint64_t *n) {
    NIB_TRY(read_u64(r, n));
    if (*n > r->file_bytes / min_bytes)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8,
                           "%llu %s announced, but a file of %llu bytes has room for %llu", (ull)*n, what,
                           (ull)r->file_bytes, (ull)(r->file_bytes / min_bytes));
    if (*n > limit)
        return nib_fail_at(r->err, NIB_E_LIMIT, r->pos - 8, "%llu %s, the limit is %u", (ull)*n, what,
                           (unsigned)limit);
    return NIB_OK;
}

/* ------------------------------------------------------------------------------------------------ values */

static nib_status check_bools(reader *r, const uint8_t *p, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (p[i] > 1)
            return nib_fail_at(r->err, NIB_E_FORMAT, (uint64_t)(p + i - r->bytes),
                               "%s has a bool of %u, expected 0 or 1", where(r).s, (unsigned)p[i]);
    return NIB_OK;
}

/* Walks over the n strings of an array. */
static nib_status skip_strings(reader *r, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        NIB_TRY(need(r, 8));
        uint64_t len = nib_gguf_value_le64(r->bytes + r->pos);
        r->pos += 8;
        NIB_TRY(need(r, len));
        r->pos += len;
    }
    return NIB_OK;
}

typedef struct array_head {
    uint32_t elem;
    uint64_t n;
} array_head;

/* Type and number of the elements of an array. */
static nib_status read_array_head(reader *r, array_head *a) {
    NIB_TRY(read_u32(r, &a->elem));
    if (a->elem >= NIB_GGUF_N_TYPES)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 4, "%s is an array of type %u, expected a type 0 to %d",
                           where(r).s, (unsigned)a->elem, NIB_GGUF_N_TYPES - 1);
    NIB_TRY(read_u64(r, &a->n));
    uint64_t size = nib_gguf_value_size(a->elem), left = r->file_bytes - r->pos;
    if (size == 0) size = 8; /* a string's length; an array needs more */
    if (a->n > left / size)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8,
                           "%s is an array of %llu elements of type %s, but only %llu bytes follow: truncated or "
                           "damaged",
                           where(r).s, (ull)a->n, nib_gguf_type_name((nib_gguf_type)a->elem), (ull)left);
    return NIB_OK;
}

/* Walks over n elements that are not arrays. */
static nib_status skip_elements(reader *r, array_head a) {
    if (a.elem == NIB_GGUF_STRING) return skip_strings(r, a.n);
    uint64_t size = a.n * nib_gguf_value_size(a.elem); /* fits: read_array_head compared it with the file */
    NIB_TRY(need(r, size));
    if (a.elem == NIB_GGUF_BOOL) NIB_TRY(check_bools(r, r->bytes + r->pos, size));
    r->pos += size;
    return NIB_OK;
}

static nib_status read_array(reader *r, nib_gguf_value *v) {
    array_head open[NIB_GGUF_MAX_DEPTH]; /* arrays of arrays that are not yet walked; n is what is left */
    int depth = 0;
    array_head a;
    NIB_TRY(read_array_head(r, &a));
    uint64_t begin = r->pos;
    *v = (nib_gguf_value){.type = NIB_GGUF_ARRAY, .elem = (nib_gguf_type)a.elem, .n = a.n};
    for (;;) {
        if (a.elem != NIB_GGUF_ARRAY) {
            NIB_TRY(skip_elements(r, a));
        } else if (depth + 1 < NIB_GGUF_MAX_DEPTH) {
            open[depth++] = a;
        } else {
            return nib_fail_at(r->err, NIB_E_UNSUPPORTED, r->pos, "%s is an array nested more than %d deep", where(r).s,
                               NIB_GGUF_MAX_DEPTH);
        }
        while (depth > 0 && open[depth - 1].n == 0) depth--;
        if (depth == 0) break;
        open[depth - 1].n--;
        NIB_TRY(read_array_head(r, &a));
    }
    v->as.raw = (nib_str){(const char *)r->bytes + begin, (size_t)(r->pos - begin)};
    return NIB_OK;
}

static nib_status read_value(reader *r, nib_gguf_value *v) {
    uint32_t type;
    NIB_TRY(read_u32(r, &type));
    if (type >= NIB_GGUF_N_TYPES)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 4, "%s has the value type %u, expected 0 to %d", where(r).s,
                           (unsigned)type, NIB_GGUF_N_TYPES - 1);
    if (type == NIB_GGUF_ARRAY) return read_array(r, v);
    if (type == NIB_GGUF_STRING) {
        *v = (nib_gguf_value){.type = NIB_GGUF_STRING};
        return read_string(r, &v->as.str);
    }
    size_t size = nib_gguf_value_size(type);
    NIB_TRY(need(r, size));
    if (type == NIB_GGUF_BOOL) NIB_TRY(check_bools(r, r->bytes + r->pos, 1));
    nib_gguf_value_load(v, (nib_gguf_type)type, r->bytes + r->pos);
    r->pos += size;
    return NIB_OK;
}

/* ------------------------------------------------------------------------------------------------ records */

/* Byte position of a record whose name this is. */
static uint64_t record_of(const reader *r, nib_str name) {
    return (uint64_t)((const uint8_t *)name.ptr - r->bytes) - 8;
}

static nib_status check_unique(reader *r, const nib_gguf_index *index, const void *items, size_t stride) {
    const void *earlier, *later = nib_gguf_index_duplicate(index, &earlier);
    if (!later) return NIB_OK;
    nib_str name = *(const nib_str *)later;
    size_t a = (size_t)((const char *)earlier - (const char *)items) / stride;
    size_t b = (size_t)((const char *)later - (const char *)items) / stride;
    return nib_fail_at(r->err, NIB_E_FORMAT, record_of(r, name), "duplicate %s '%.*s': numbers %zu and %zu of %llu",
                       r->what, NIB_STR_ARG(name), a + 1, b + 1, (ull)r->n);
}

static nib_status read_keys(reader *r, nib_gguf_doc *doc) {
    for (; doc->n_keys < r->n; doc->n_keys++) {
        nib_gguf_key *key = &doc->keys[doc->n_keys];
        r->i = doc->n_keys;
        r->name = (nib_str){0};
        NIB_TRY(read_name(r));
        key->name = r->name;
        NIB_TRY(read_value(r, &key->value));
    }
    NIB_TRY(nib_gguf_index_build(&doc->key_index, doc->keys, doc->n_keys, sizeof *doc->keys, r->err));
    return check_unique(r, &doc->key_index, doc->keys, sizeof *doc->keys);
}

static nib_status read_alignment(reader *r, nib_gguf_doc *doc) {
    doc->alignment = NIB_GGUF_DEFAULT_ALIGNMENT;
    const nib_gguf_value *v = nib_gguf_doc_find(doc, "general.alignment");
    if (!v) return NIB_OK;
    if (v->type != NIB_GGUF_U32)
        return nib_fail(r->err, NIB_E_FORMAT, "key 'general.alignment' is of type %s, expected u32",
                        nib_gguf_type_name(v->type));
    uint64_t a = v->as.u64;
    if (a == 0 || (a & (a - 1)) != 0 || a > NIB_GGUF_MAX_ALIGNMENT)
        return nib_fail(r->err, NIB_E_FORMAT, "key 'general.alignment' is %llu, expected a power of two up to %u",
                        (ull)a, NIB_GGUF_MAX_ALIGNMENT);
    doc->alignment = (uint32_t)a;
    return NIB_OK;
}

static nib_status read_dims(reader *r, nib_gguf_tensor *t) {
    NIB_TRY(read_u32(r, &t->n_dims));
    if (t->n_dims < 1 || t->n_dims > 4)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 4, "%s has %u dimensions, expected 1 to 4", where(r).s,
                           (unsigned)t->n_dims);
    uint64_t n = 1;
    for (uint32_t i = 0; i < 4; i++) {
        t->dims[i] = 1;
        if (i < t->n_dims) NIB_TRY(read_u64(r, &t->dims[i]));
        if (t->dims[i] == 0)
            return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8,
                               "%s has 0 elements in dimension %u, expected 1 or more", where(r).s, (unsigned)i);
        if (__builtin_mul_overflow(n, t->dims[i], &n) || n > INT64_MAX)
            return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8, "%s: the product of its dimensions overflows 63 bits",
                               where(r).s);
    }
    t->n_elements = n;
    return NIB_OK;
}

static nib_status read_type(reader *r, nib_gguf_doc *doc, nib_gguf_tensor *t) {
    NIB_TRY(read_u32(r, &t->type));
    uint32_t block_size = 0, block_bytes = 0;
    t->type_name = nib_quant_gguf_name(t->type, &block_size, &block_bytes);
    t->is_supported = nib_quant_type_by_gguf(t->type) != NULL;
    if (!t->type_name) {
        char text[24];
        int n = snprintf(text, sizeof text, "type %u", (unsigned)t->type);
        t->type_name = nib_arena_copy(&doc->texts, text, (size_t)n);
        return t->type_name ? NIB_OK : nib_fail_nomem(r->err, (uint64_t)n, "the name of a type");
    }
    if (t->dims[0] % block_size)
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 4,
                           "%s has rows of %llu elements, expected a multiple of %u, the block of %s", where(r).s,
                           (ull)t->dims[0], (unsigned)block_size, t->type_name);
    if (__builtin_mul_overflow(t->n_elements / block_size, (uint64_t)block_bytes, &t->n_bytes))
        return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 4, "%s: its size in bytes overflows 64 bits", where(r).s);
    return NIB_OK;
}

static nib_status read_tensors(reader *r, nib_gguf_doc *doc, uint32_t file) {
    for (; doc->n_tensors < r->n; doc->n_tensors++) {
        nib_gguf_tensor *t = &doc->tensors[doc->n_tensors];
        *t = (nib_gguf_tensor){.file = file};
        r->i = doc->n_tensors;
        r->name = (nib_str){0};
        NIB_TRY(read_name(r));
        t->name = r->name;
        NIB_TRY(read_dims(r, t));
        NIB_TRY(read_type(r, doc, t));
        NIB_TRY(read_u64(r, &t->offset));
        if (t->offset % doc->alignment)
            return nib_fail_at(r->err, NIB_E_FORMAT, r->pos - 8, "%s has the offset %llu, expected a multiple of %u",
                               where(r).s, (ull)t->offset, (unsigned)doc->alignment);
    }
    NIB_TRY(nib_gguf_index_build(&doc->tensor_index, doc->tensors, doc->n_tensors, sizeof *doc->tensors, r->err));
    return check_unique(r, &doc->tensor_index, doc->tensors, sizeof *doc->tensors);
}

/* The data of every tensor lies inside the file. Offsets become positions in the file. */
static nib_status check_data(reader *r, nib_gguf_doc *doc) {
    uint64_t a = doc->alignment, data = (doc->header_bytes + a - 1) & ~(a - 1);
    uint64_t have = r->file_bytes > data ? r->file_bytes - data : 0;
    for (size_t i = 0; i < doc->n_tensors; i++) {
        nib_gguf_tensor *t = &doc->tensors[i];
        if (t->offset > have)
            return nib_fail_at(r->err, NIB_E_FORMAT, record_of(r, t->name),
                               "tensor '%.*s' has the offset %llu, but the file has %llu bytes of data: truncated?",
                               NIB_STR_ARG(t->name), (ull)t->offset, (ull)have);
        if (t->n_bytes > have - t->offset)
            return nib_fail_at(r->err, NIB_E_FORMAT, record_of(r, t->name),
                               "tensor '%.*s' has %llu bytes from offset %llu on, but the file is %llu bytes too "
                               "short: truncated?",
                               NIB_STR_ARG(t->name), (ull)t->n_bytes, (ull)(data + t->offset),
                               (ull)(t->n_bytes - (have - t->offset)));
        t->offset += data;
    }
    return NIB_OK;
}

static nib_status parse(reader *r, nib_gguf_doc *doc, const nib_gguf_limits *limits, uint32_t file) {
    uint64_t n_tensors, n_keys;
    NIB_TRY(check_magic(r));
    NIB_TRY(need(r, NIB_GGUF_HEADER_BYTES));
    r->pos = 4;
    NIB_TRY(read_u32(r, &doc->version));
    NIB_TRY(check_version(r, doc->version));
    NIB_TRY(read_count(r, "tensors", MIN_TENSOR_BYTES, limits->max_tensors, &n_tensors));
    NIB_TRY(read_count(r, "metadata keys", MIN_KEY_BYTES, limits->max_keys, &n_keys));

    doc->keys = nib_alloc((size_t)n_keys, sizeof *doc->keys);
    if (!doc->keys) return nib_fail_nomem(r->err, n_keys * sizeof *doc->keys, "the metadata");
    r->what = "key";
    r->n = n_keys;
    NIB_TRY(read_keys(r, doc));
    NIB_TRY(read_alignment(r, doc));

    doc->tensors = nib_alloc((size_t)n_tensors, sizeof *doc->tensors);
    if (!doc->tensors) return nib_fail_nomem(r->err, n_tensors * sizeof *doc->tensors, "the list of tensors");
    r->what = "tensor";
    r->n = n_tensors;
    NIB_TRY(read_tensors(r, doc, file));
    doc->header_bytes = r->pos;
    return check_data(r, doc);
}

nib_status nib_gguf_parse(nib_gguf_doc *doc, const nib_gguf_input *input, const nib_gguf_limits *limits, uint64_t *want,
                          nib_error *err) {
    reader r = {.bytes = input->bytes, .file_bytes = input->file_bytes, .max_bytes = limits->max_bytes, .err = err};
    r.end = input->len < limits->max_bytes ? input->len : limits->max_bytes;
    if (r.end > r.file_bytes) r.end = r.file_bytes;
    r.what = "the header";
    *doc = (nib_gguf_doc){0};
    *want = 0;
    nib_status status = parse(&r, doc, limits, input->file);
    if (status == NIB_OK) return NIB_OK;
    nib_gguf_doc_free(doc);
    if ((int)status != NEED_MORE) return status;
    *want = r.want;
    return NIB_OK;
}

void nib_gguf_doc_free(nib_gguf_doc *doc) {
    nib_gguf_index_free(&doc->key_index);
    nib_gguf_index_free(&doc->tensor_index);
    nib_arena_free(&doc->texts);
    nib_free(doc->keys);
    nib_free(doc->tensors);
    *doc = (nib_gguf_doc){0};
}

const nib_gguf_value *nib_gguf_doc_find(const nib_gguf_doc *doc, const char *name) {
    const nib_gguf_key *key = nib_gguf_index_find(&doc->key_index, (nib_str){name, strlen(name)});
    return key ? &key->value : NULL;
}
