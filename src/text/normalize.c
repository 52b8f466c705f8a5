/* text/normalize.c - well-formed UTF-8, and NFC by utf8proc's tables.
 *
 * utf8proc's own reordering of combining marks is quadratic in the length of a run of them, so the runs are sorted
 * here. */
#include "text/normalize.h"

#include "base/mem.h"
#include "text/utf8.h"

#include <string.h>
#include <utf8proc.h>

/* The length of the well-formed start of text. */
static size_t well_formed_start(nib_str text) {
    size_t i = 0;
    while (i < text.len) {
        uint32_t cp;
        size_t len = nib_text_utf8_get(text.ptr + i, text.len - i, &cp);
        if (len == 0 || (len > 1 && cp < (len == 2 ? 0x80u : len == 3 ? 0x800u : 0x10000u))) break;
        i += len;
    }
    return i;
}

nib_str nib_text_well_formed(nib_str text, nib_buf *scratch) {
    size_t i = well_formed_start(text);
    scratch->len = 0;
    if (i == text.len) return text;
    nib_buf_append(scratch, text.ptr, i);
    while (i < text.len && !scratch->failed) {
        uint32_t cp;
        char bytes[4];
        size_t len = nib_text_utf8_get(text.ptr + i, text.len - i, &cp);
        if (len) nib_buf_append(scratch, bytes, nib_text_utf8_put(cp, bytes));
        else nib_buf_str(scratch, NIB_TEXT_REPLACEMENT);
        i += len ? len : 1;
    }
    return scratch->failed ? (nib_str){"", 0} : (nib_str){scratch->ptr, scratch->len};
}

static int class_of(int32_t cp) {
    return utf8proc_get_property(cp)->combining_class;
}

/* Sorts a run of combining marks by class, keeping the order of equal ones: by insertion while it is short (nearly
 * always), else by counting. */
static bool sort_marks(int32_t *marks, size_t n) {
    if (n <= 16) {
        for (size_t i = 1; i < n; i++) {
            int32_t mark = marks[i];
            size_t j = i;
            for (; j > 0 && class_of(marks[j - 1]) > class_of(mark); j--) marks[j] = marks[j - 1];
            marks[j] = mark;
        }
        return true;
    }
    int32_t *sorted = nib_alloc(n, sizeof *sorted);
    if (!sorted) return false;
    size_t at[257] = {0};
    for (size_t i = 0; i < n; i++) at[class_of(marks[i]) + 1]++;
    for (size_t c = 1; c < 257; c++) at[c] += at[c - 1];
    for (size_t i = 0; i < n; i++) sorted[at[class_of(marks[i])]++] = marks[i];
    memcpy(marks, sorted, n * sizeof *sorted);
    nib_free(sorted);
    return true;
}

static bool reorder(int32_t *cps, size_t n) {
    for (size_t i = 0; i < n;) {
        if (class_of(cps[i]) == 0) {
            i++;
            continue;
        }
        size_t from = i;
        while (i < n && class_of(cps[i])) i++;
        if (!sort_marks(cps + from, i - from)) return false;
    }
    return true;
}

#define MAX_DECOMPOSED 4 /* code points of the longest canonical decomposition */

static bool decompose(nib_str text, int32_t **out, size_t *n) {
    size_t capacity = 0;
    *out = NULL;
    *n = 0;
    if (!nib_grow(out, &capacity, text.len + MAX_DECOMPOSED, sizeof **out)) return false;
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        size_t len = nib_text_utf8_get(text.ptr + i, text.len - i, &cp);
        if (!len) len = 1, cp = 0xFFFD;
        i += len;
        if (!nib_grow(out, &capacity, *n + MAX_DECOMPOSED, sizeof **out)) return false;
        int boundary = 0;
        utf8proc_ssize_t made = utf8proc_decompose_char((int32_t)cp, *out + *n, MAX_DECOMPOSED,
                                                        UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, &boundary);
        if (made < 1 || made > MAX_DECOMPOSED) { /* never, as Unicode stands */
            (*out)[*n] = (int32_t)cp;
            made = 1;
        }
        *n += (size_t)made;
    }
    return reorder(*out, *n);
}

nib_str nib_text_nfc(nib_str text, nib_buf *scratch) {
    size_t i = 0, n = 0;
    while (i < text.len && (unsigned char)text.ptr[i] < 0xCC) i++; /* below U+0300 nothing composes */
    scratch->len = 0;
    if (i == text.len) return text;
    int32_t *cps = NULL;
    bool ok = decompose(text, &cps, &n);
    utf8proc_ssize_t composed = -1;
    if (ok) composed = utf8proc_normalize_utf32(cps, (utf8proc_ssize_t)n, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    for (utf8proc_ssize_t k = 0; k < composed; k++) {
        char bytes[4];
        nib_buf_append(scratch, bytes, nib_text_utf8_put((uint32_t)cps[k], bytes));
    }
    nib_free(cps);
    if (composed < 0) scratch->failed = true;
    return scratch->failed ? (nib_str){"", 0} : (nib_str){scratch->ptr, scratch->len};
}

nib_str nib_text_escape(nib_str text, bool with_prefix, nib_buf *scratch) {
    scratch->len = 0;
    nib_buf_reserve(scratch, text.len + text.len / 2); /* a guess that most text fits */
    if (with_prefix) nib_buf_str(scratch, NIB_TEXT_SPACE);
    while (text.len) {
        const char *space = memchr(text.ptr, ' ', text.len);
        size_t n = space ? (size_t)(space - text.ptr) : text.len;
        nib_buf_append(scratch, text.ptr, n);
        if (space) nib_buf_append(scratch, NIB_TEXT_SPACE, sizeof NIB_TEXT_SPACE - 1);
        text = (nib_str){text.ptr + n + (space != NULL), text.len - n - (space != NULL)};
    }
    return scratch->failed ? (nib_str){"", 0} : (nib_str){scratch->ptr, scratch->len};
}
