/* jinja/state.c - what every part of a render leans on: errors with their place, the limits, and the buffer that all text
 * is pieced together in. */
#include "base/status.h"
#include "jinja/eval.h"

#include <stdio.h>
#include <string.h>

bool nib_jinja_fail(jinja *j, const char *format, ...) {
    char text[sizeof j->err->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    nib_fail_at(j->err, NIB_E_FORMAT, j->at ? j->at->offset : 0, "%s", text);
    return false;
}

static bool fail_limit(jinja *j, nib_status code, const char *what, unsigned long long limit) {
    nib_fail_at(j->err, code, j->at ? j->at->offset : 0, "the template needs more than %llu %s", limit, what);
    return false;
}

bool nib_jinja_work(jinja *j, size_t n_bytes) {
    uint64_t steps = n_bytes / 64 + 1; /* some nanoseconds each */
    if (steps > j->steps_left) return fail_limit(j, NIB_E_LIMIT, "steps", j->max_steps);
    j->steps_left -= steps;
    return true;
}

bool nib_jinja_enter(jinja *j) {
    j->depth++;
    if (j->depth > j->max_depth) return fail_limit(j, NIB_E_LIMIT, "levels of nesting", j->max_depth);
    return nib_jinja_work(j, 0);
}

static bool fail_memory(jinja *j, size_t n_bytes) {
    size_t left = j->memory->total < j->memory->limit ? j->memory->limit - j->memory->total : 0;
    if (n_bytes > left) return fail_limit(j, NIB_E_LIMIT, "bytes of memory", j->max_bytes);
    nib_fail_nomem(j->err, n_bytes, "a template");
    return false;
}

void *nib_jinja_alloc(jinja *j, size_t n_bytes) {
    if (!nib_jinja_work(j, n_bytes)) return NULL;
    void *p = nib_arena_alloc(j->memory, n_bytes);
    if (!p) fail_memory(j, n_bytes);
    return p;
}

/* Tuples may share parts, so that a small one is an endless key. */
static bool work_on_key(jinja *j, const jinja_value *key) {
    bool ok = nib_jinja_enter(j) && nib_jinja_work(j, key->type == JINJA_STR ? key->len : 0);
    if (key->type == JINJA_LIST)
        for (uint32_t i = 0; i < key->as.list->n && ok; i++) ok = work_on_key(j, &key->as.list->items[i]);
    j->depth--;
    return ok;
}

bool nib_jinja_find_key(jinja *j, const jinja_dict *dict, const jinja_value *key, const jinja_pair **out) {
    if (!work_on_key(j, key) || !nib_jinja_work(j, dict->n_probes * 16)) return false;
    *out = nib_jinja_dict_find(dict, key);
    return true;
}

bool nib_jinja_set(jinja *j, jinja_dict *dict, const jinja_value *key, const jinja_value *value) {
    if (!nib_jinja_is_hashable(key)) return nib_jinja_fail(j, "TypeError: unhashable type: '%s'", nib_jinja_type_name(key));
    if (!work_on_key(j, key) || !nib_jinja_work(j, dict->n_probes * 16)) return false;
    if (nib_jinja_dict_set(j->memory, dict, key, value)) return true;
    if (dict->n_probes < JINJA_MAX_PROBES) return fail_memory(j, j->memory->limit);
    return fail_limit(j, NIB_E_LIMIT, "keys with one hash", JINJA_MAX_PROBES);
}

static bool resize(nib_buf *buf, size_t capacity) {
    char *p = nib_realloc(buf->ptr, capacity, 1);
    if (!p) return false;
    buf->ptr = p;
    buf->capacity = capacity;
    return true;
}

/* Room for n more bytes in both buffers, which take of the render's memory what they could hold. */
static bool reserve(jinja *j, size_t n) {
    size_t left = j->memory->total < j->max_bytes ? (j->max_bytes - j->memory->total) / 2 : 0;
    if (!nib_jinja_work(j, n)) return false;
    if (j->text.capacity - j->text.len >= n) return true;
    if (left < j->text.len || n > left - j->text.len) return fail_memory(j, SIZE_MAX);
    size_t need = j->text.len + n, capacity = left - need > need / 2 + 256 ? need + need / 2 + 256 : left;
    if (!resize(&j->text, capacity) || !resize(&j->marks, capacity)) return fail_memory(j, 0);
    j->memory->limit = j->max_bytes - 2 * capacity;
    if (j->memory->limit == 0) j->memory->limit = 1; /* 0 is no limit */
    return true;
}

bool nib_jinja_put(jinja *j, const char *text, size_t n, bool is_trusted) {
    if (n == 0) return true;
    if (!reserve(j, n)) return false;
    memcpy(j->text.ptr + j->text.len, text, n);
    memset(j->marks.ptr + j->marks.len, is_trusted, n);
    j->text.len += n;
    j->marks.len += n;
    return true;
}

bool nib_jinja_put_str(jinja *j, const jinja_value *s) {
    size_t at = j->marks.len;
    if (!nib_jinja_put(j, s->as.ptr, s->len, s->is_trusted)) return false;
    if (s->marks && s->len) memcpy(j->marks.ptr + at, s->marks, s->len);
    return true;
}

bool nib_jinja_put_format(jinja *j, bool is_trusted, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return nib_jinja_put(j, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1, is_trusted);
}

bool nib_jinja_take(jinja *j, size_t mark, jinja_value *out) {
    size_t n = j->text.len - mark;
    if (n > UINT32_MAX) return nib_jinja_fail(j, "a string of %zu bytes", n);
    *out = jinja_str("", 0);
    if (n) {
        const char *marks = j->marks.ptr + mark;
        bool is_mixed = memchr(marks, !marks[0], n) != NULL;
        char *copy = nib_jinja_alloc(j, is_mixed ? 2 * n : n);
        if (!copy) return false;
        memcpy(copy, j->text.ptr + mark, n);
        *out = jinja_str(copy, n);
        out->is_trusted = marks[0];
        if (is_mixed) {
            memcpy(copy + n, marks, n);
            out->is_trusted = false;
            out->marks = copy + n;
        }
    }
    j->text.len = j->marks.len = mark;
    return true;
}

/* A copy of a with room for n more bytes. */
static jinja_growing *grow(jinja *j, const jinja_value *a, size_t n) {
    jinja_growing *g = &j->growing[j->next_growing++ % JINJA_N_GROWING];
    size_t capacity = a->len + n + (a->len + n) / 2;
    char *memory = nib_jinja_work(j, a->len) ? nib_jinja_alloc(j, 2 * capacity) : NULL;
    if (!memory) return NULL;
    *g = (jinja_growing){memory, memory + capacity, a->len, capacity};
    memcpy(g->text, a->as.ptr, a->len);
    if (a->marks) memcpy(g->marks, a->marks, a->len);
    else memset(g->marks, a->is_trusted, a->len);
    return g;
}

bool nib_jinja_take_behind(jinja *j, size_t mark, const jinja_value *a, jinja_value *out) {
    jinja_growing *g = NULL;
    size_t n = j->text.len - mark;
    if (a->len + n > UINT32_MAX) return nib_jinja_fail(j, "a string of %zu bytes", a->len + n);
    for (size_t i = 0; i < JINJA_N_GROWING; i++) { /* nothing may have been appended to the same string already */
        jinja_growing *own = &j->growing[i];
        if (own->text == a->as.ptr && own->len == a->len && own->capacity - own->len >= n) g = own;
    }
    if (!g && !(g = grow(j, a, n))) return false;
    if (n) {
        memcpy(g->text + g->len, j->text.ptr + mark, n);
        memcpy(g->marks + g->len, j->marks.ptr + mark, n);
    }
    g->len += n;
    *out = jinja_str(g->text, g->len);
    out->is_trusted = false;
    out->marks = g->marks;
    j->text.len = j->marks.len = mark;
    return true;
}
