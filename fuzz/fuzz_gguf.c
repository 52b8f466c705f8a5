/* fuzz/fuzz_gguf.c - the GGUF parser on any bytes: it must give a document whose every part can be walked, or an error
 * with a message; given in two pieces, it must come to the same end.
 *
 * The first byte of the input chooses where the pieces part; the rest is the file. */
#include "gguf/gguf.h"
#include "gguf/value.h"
#include "quant/type.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds) {
    if (!holds) abort();
}

static void walk_bytes(nib_str s, uint64_t *sum) {
    for (size_t i = 0; i < s.len; i++) *sum += (unsigned char)s.ptr[i];
}

static void walk_value(const nib_gguf_value *v, uint64_t *sum) {
    uint64_t n = 0;
    check((unsigned)v->type < NIB_GGUF_N_TYPES);
    nib_gguf_value_u64(v, sum);
    if (v->type == NIB_GGUF_STRING) walk_bytes(v->as.str, sum);
    if (v->type != NIB_GGUF_ARRAY) return;
    check((unsigned)v->elem < NIB_GGUF_N_TYPES);
    walk_bytes(v->as.raw, sum);
    if (v->elem == NIB_GGUF_STRING) {
        for (nib_str left = v->as.raw, s; nib_gguf_next_string(&left, &s); n++) walk_bytes(s, sum);
        check(n == v->n);
    } else if (v->elem != NIB_GGUF_ARRAY) {
        check(v->n * nib_gguf_value_size(v->elem) == v->as.raw.len);
        for (; n < v->n; n++) *sum += nib_gguf_number_at(v, n) != 0;
    }
}

static void walk(const nib_gguf_doc *doc, uint64_t file_bytes, uint64_t *sum) {
    check(doc->header_bytes <= file_bytes);
    check(doc->alignment && (doc->alignment & (doc->alignment - 1)) == 0);
    for (size_t i = 0; i < doc->n_keys; i++) {
        walk_bytes(doc->keys[i].name, sum);
        walk_value(&doc->keys[i].value, sum);
        check(nib_gguf_index_find(&doc->key_index, doc->keys[i].name) == &doc->keys[i]);
    }
    for (size_t i = 0; i < doc->n_tensors; i++) {
        const nib_gguf_tensor *t = &doc->tensors[i];
        walk_bytes(t->name, sum);
        check(t->n_dims >= 1 && t->n_dims <= 4 && t->n_elements >= 1);
        check(t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3] == t->n_elements);
        check(t->offset % doc->alignment == 0 && t->n_bytes <= file_bytes);
        check(!t->n_bytes || t->offset <= file_bytes - t->n_bytes);
        check(t->type_name != NULL && t->is_supported == (nib_quant_type_by_gguf(t->type) != NULL));
        check(nib_gguf_index_find(&doc->tensor_index, t->name) == t);
    }
}

/* Parses the first len bytes of the file; they are copied, so that a sanitizer sees any read beyond them. */
static nib_status parse(const uint8_t *file, size_t len, size_t file_bytes, uint64_t *want, uint64_t *sum) {
    static const nib_gguf_limits limits = {1 << 16, 1000, 1000};
    uint8_t *exact = malloc(len ? len : 1);
    if (!exact) abort();
    if (len) memcpy(exact, file, len);
    nib_gguf_doc doc;
    nib_error err = {0};
    nib_gguf_input input = {exact, len, file_bytes, 0};
    nib_status status = nib_gguf_parse(&doc, &input, &limits, want, &err);
    if (status != NIB_OK) check(err.code == status && err.message[0] && !doc.keys && !doc.tensors && *want == 0);
    else if (*want) check(*want > len && *want <= file_bytes && !doc.keys && !doc.tensors);
    else walk(&doc, file_bytes, sum);
    nib_gguf_doc_free(&doc);
    free(exact);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const uint8_t *file = data + 1;
    size_t n = size - 1, first = n * data[0] / 256;
    uint64_t want, sum = 0, again = 0;
    nib_status status = parse(file, n, n, &want, &sum);
    check(want == 0);
    nib_status split = parse(file, first, n, &want, &again);
    while (want) {
        again = 0;
        split = parse(file, (size_t)want, n, &want, &again);
    }
    check(split == status && (status != NIB_OK || again == sum));
    return 0;
}
