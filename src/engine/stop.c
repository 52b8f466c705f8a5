/* engine/stop.c - nib_stop: streamed text in; out, as much of it as can no longer become a stop string, and the first
 * stop string that is complete.
 *
 * Each string is matched by the method of Knuth, Morris and Pratt, byte by byte: time is linear in the text, and where
 * the text is cut into pieces makes no difference. What is held back is what the furthest string has matched. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"

#include <limits.h>
#include <string.h>

typedef struct stop_string {
    const char *ptr;
    size_t len;
    size_t *border; /* of its first i bytes: the longest shorter beginning that they end with */
    size_t matched; /* bytes of it that the text so far ends with */
} stop_string;

struct nib_stop {
    stop_string *strings;
    size_t n;
    nib_arena memory; /* of the strings */
    nib_buf text;     /* what the last call gave out, then what is held back */
    size_t n_given;
    int found; /* the string that ended the text; -1: none yet */
};

static void step(stop_string *s, char c) {
    while (s->matched > 0 && (s->matched == s->len || s->ptr[s->matched] != c)) s->matched = s->border[s->matched];
    if (s->ptr[s->matched] == c) s->matched++;
}

static nib_status add_string(nib_stop *stop, nib_str text, nib_error *err) {
    stop_string *s = &stop->strings[stop->n];
    size_t n_bytes;
    if (text.len == 0) return nib_fail(err, NIB_E_ARG, "stop string %zu is empty, expected at least one byte", stop->n);
    *s = (stop_string){.ptr = nib_arena_copy(&stop->memory, text.ptr, text.len), .len = text.len};
    if (nib_mem_size(text.len + 1, sizeof *s->border, &n_bytes)) s->border = nib_arena_alloc(&stop->memory, n_bytes);
    if (!s->ptr || !s->border) return nib_fail_nomem(err, text.len, "a stop string");
    s->border[0] = s->border[1] = 0;
    for (size_t i = 1; i < s->len; i++) {
        step(s, s->ptr[i]); /* the string matched against itself, one byte on */
        s->border[i + 1] = s->matched;
    }
    s->matched = 0;
    stop->n++;
    return NIB_OK;
}

nib_status nib_stop_new(nib_stop **out, const nib_str *strings, size_t n, nib_error *err) {
    *out = NULL;
    if (n > INT_MAX) return nib_fail(err, NIB_E_ARG, "%zu stop strings; at most %d", n, INT_MAX);
    nib_stop *stop = nib_calloc(1, sizeof *stop);
    if (stop) stop->strings = nib_calloc(n, sizeof *stop->strings);
    if (!stop || !stop->strings) {
        nib_stop_free(stop);
        return nib_fail_nomem(err, n * sizeof *stop->strings, "stop strings");
    }
    stop->found = -1;
    nib_status status = NIB_OK;
    for (size_t i = 0; i < n && status == NIB_OK; i++) status = add_string(stop, strings[i], err);
    if (status == NIB_OK) *out = stop;
    else nib_stop_free(stop);
    return status;
}

void nib_stop_free(nib_stop *stop) {
    if (!stop) return;
    nib_arena_free(&stop->memory);
    nib_buf_free(&stop->text);
    nib_free(stop->strings);
    nib_free(stop);
}

/* Steps all strings. Returns the longest that is complete now, of equal ones the first; -1: none. */
static int step_all(nib_stop *stop, char c) {
    int found = -1;
    for (size_t i = 0; i < stop->n; i++) {
        stop_string *s = &stop->strings[i];
        step(s, c);
        if (s->matched == s->len && (found < 0 || s->len > stop->strings[found].len)) found = (int)i;
    }
    return found;
}

static size_t n_held(const nib_stop *stop) {
    size_t held = 0;
    for (size_t i = 0; i < stop->n; i++)
        if (stop->strings[i].matched > held) held = stop->strings[i].matched;
    return held;
}

int nib_stop_push(nib_stop *stop, nib_str piece, nib_str *show) {
    nib_buf *text = &stop->text;
    *show = (nib_str){"", 0};
    if (stop->found >= 0) return stop->found;
    if (stop->n_given) memmove(text->ptr, text->ptr + stop->n_given, text->len -= stop->n_given);
    stop->n_given = 0;
    if (!nib_buf_reserve(text, piece.len)) {
        text->failed = false;
        return -2;
    }
    for (size_t i = 0; i < piece.len && stop->found < 0; i++) {
        text->ptr[text->len++] = piece.ptr[i];
        stop->found = step_all(stop, piece.ptr[i]);
    }
    size_t rest = stop->found < 0 ? n_held(stop) : stop->strings[stop->found].len;
    stop->n_given = text->len - rest;
    if (stop->n_given) *show = (nib_str){text->ptr, stop->n_given};
    return stop->found;
}

nib_str nib_stop_finish(nib_stop *stop) {
    nib_str rest = {"", 0};
    if (stop->found < 0 && stop->text.len > stop->n_given)
        rest = (nib_str){stop->text.ptr + stop->n_given, stop->text.len - stop->n_given};
    stop->n_given = stop->text.len;
    for (size_t i = 0; i < stop->n; i++) stop->strings[i].matched = 0;
    return rest;
}
