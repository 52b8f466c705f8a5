/* jinja/template.c - nib_template: the source of a chat template, parsed once -> text for any data, with what of it is
 * trusted. Every render has its own arena and limits, so that one template serves many threads. */
#include "base/buf.h"
#include "base/status.h"
#include "base/utf8.h"
#include "jinja/eval.h"
#include "jinja/json.h"
#include "jinja/parse.h"
#include "jinja/template.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_SOURCE = 512 << 10,  /* the longest known template has 20 KB */
    MAX_PARSED = 8 << 20,    /* bytes of the source and its nodes */
    MAX_NESTING = 200,       /* of what is in the source */
};

struct nib_template {
    nib_arena memory;
    jinja_node *root;
};

/* The source with \n for \r\n and \r. */
static nib_status copy_source(nib_template *t, nib_str text, nib_str *out, nib_error *err) {
    uint32_t cp;
    char *copy = nib_arena_alloc(&t->memory, text.len + 1), *to = copy;
    if (!copy) return nib_fail_nomem(err, text.len, "a template");
    for (size_t i = 0, n; i < text.len; i += n) {
        n = nib_utf8_char(text.ptr + i, text.len - i, &cp);
        if (n == 0) return nib_fail_at(err, NIB_E_FORMAT, (size_t)(to - copy), "a byte that is not UTF-8");
        memcpy(to, text.ptr + i, n);
        if (*to == '\r') {
            *to = '\n';
            if (i + 1 < text.len && text.ptr[i + 1] == '\n') n = 2;
            to++;
        } else {
            to += n;
        }
    }
    *out = (nib_str){copy, (size_t)(to - copy)};
    return NIB_OK;
}

nib_status nib_template_new(nib_template **out, const char *text, size_t len, nib_error *err) {
    nib_str source = {0};
    *out = NULL;
    if (len > MAX_SOURCE) return nib_fail(err, NIB_E_LIMIT, "a template of %zu bytes, at most %d are read", len, MAX_SOURCE);
    nib_template *t = nib_calloc(1, sizeof *t);
    if (!t) return nib_fail_nomem(err, sizeof *t, "a template");
    t->memory.limit = MAX_PARSED;
    nib_status status = copy_source(t, (nib_str){text, len}, &source, err);
    if (status == NIB_OK) status = nib_jinja_parse(source, MAX_NESTING, &t->memory, &t->root, err);
    if (status == NIB_OK) *out = t;
    else nib_template_free(t);
    return status;
}

void nib_template_free(nib_template *t) {
    if (!t) return;
    nib_arena_free(&t->memory);
    nib_free(t);
}

void nib_template_place(const char *text, size_t len, uint64_t offset, uint32_t *line, uint32_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < len && offset > 0; i++, offset--) {
        bool is_end = text[i] == '\n' || text[i] == '\r';
        if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n') i++;
        *line += is_end;
        *column = is_end ? 1 : *column + (((unsigned char)text[i] & 0xC0) != 0x80);
    }
}

/* ---- rendering */

/* A string of the data that the caller vouches for, such as bos_token; with a path "a.b" that of the member b, in a list
 * that of all items. */
static void trust(jinja_value *v, nib_str path) {
    const char *dot = path.len ? memchr(path.ptr, '.', path.len) : NULL;
    size_t n = dot ? (size_t)(dot - path.ptr) : path.len;
    if (v->type == JINJA_LIST) {
        for (uint32_t i = 0; i < v->as.list->n; i++) trust(&v->as.list->items[i], path);
    } else if (v->type == JINJA_STR && path.len == 0) {
        v->is_trusted = true;
    } else if (v->type == JINJA_DICT && path.len > 0) {
        nib_str rest = {path.ptr + n + !!dot, path.len - n - !!dot};
        for (uint32_t i = 0; i < v->as.dict->n; i++)
            if (jinja_str_is(&v->as.dict->pairs[i].key, path.ptr, n)) trust(&v->as.dict->pairs[i].value, rest);
    }
}

static void trust_names(jinja_value *context, const char *names) {
    while (*names) {
        size_t n = strcspn(names, " ");
        if (n) trust(context, (nib_str){names, n});
        names += n + (names[n] == ' ');
    }
}

static bool add_span(nib_rendered *out, size_t *capacity, size_t len, bool is_trusted) {
    if (!nib_grow(&out->spans, capacity, out->n_spans + 1, sizeof *out->spans)) return false;
    out->spans[out->n_spans++] = (nib_span){len, is_trusted};
    return true;
}

static nib_status give(jinja *j, nib_rendered *out, nib_error *err) {
    size_t n = j->text.len, capacity = 0;
    if (!nib_buf_cstr(&j->text)) return nib_fail_nomem(err, n, "rendered text");
    for (size_t i = 0, end; i < n; i = end) {
        const char *other = memchr(j->marks.ptr + i, !j->marks.ptr[i], n - i);
        end = other ? (size_t)(other - j->marks.ptr) : n;
        if (!add_span(out, &capacity, end - i, j->marks.ptr[i])) return nib_fail_nomem(err, 0, "rendered text");
    }
    out->text = j->text.ptr;
    out->len = n;
    j->text = (nib_buf){0};
    return NIB_OK;
}

nib_status nib_jinja_template_run(const nib_template *t, nib_arena *arena, const jinja_dict *data,
                                  const nib_template_config *config, nib_rendered *out, nib_error *err) {
    nib_error local;
    jinja_scope scope = {0};
    jinja j = {.memory = arena, .max_bytes = config->max_bytes, .steps_left = config->max_steps,
               .max_steps = config->max_steps, .max_depth = config->max_depth, .scope = &scope, .now = config->now,
               .context = data, .err = err ? err : &local};
    *out = (nib_rendered){0};
    arena->limit = config->max_bytes;
    nib_status status = nib_jinja_exec(&j, t->root->body) ? give(&j, out, j.err) : j.err->code;
    if (status != NIB_OK) nib_rendered_free(out);
    nib_buf_free(&j.text);
    nib_buf_free(&j.marks);
    arena->limit = config->max_bytes;
    return status;
}

nib_status nib_template_render(const nib_template *t, const char *json, size_t len, const nib_template_config *config,
                               nib_rendered *out, nib_error *err) {
    static const nib_template_config defaults = NIB_TEMPLATE_CONFIG_INIT;
    jinja_value context;
    if (!config) config = &defaults;
    *out = (nib_rendered){0};
    if (config->max_bytes < 4096) return nib_fail(err, NIB_E_ARG, "max_bytes is %zu, at least 4096", config->max_bytes);
    nib_arena memory = {.limit = config->max_bytes};
    nib_status status = nib_jinja_json_read((nib_str){json, len}, NIB_JINJA_MAX_NESTING, &memory, &context, err);
    if (status == NIB_OK && context.type != JINJA_DICT)
        status = nib_fail(err, NIB_E_ARG, "the data of a template must be a JSON object");
    if (status == NIB_OK) {
        trust_names(&context, config->trusted);
        status = nib_jinja_template_run(t, &memory, context.as.dict, config, out, err);
    }
    nib_arena_free(&memory);
    return status;
}

nib_status nib_jinja_template_json(nib_arena *arena, const jinja_value *v, jinja_value *out, nib_error *err) {
    const jinja_json_style style = {.item_separator = jinja_str(", ", 2), .key_separator = jinja_str(": ", 2)};
    nib_error local;
    jinja j = {.memory = arena, .max_bytes = arena->limit, .steps_left = UINT64_MAX, .max_depth = 2 * NIB_JINJA_MAX_NESTING,
               .err = err ? err : &local};
    size_t limit = arena->limit;
    bool ok = nib_jinja_put_json(&j, v, &style) && nib_jinja_take(&j, 0, out);
    nib_buf_free(&j.text);
    nib_buf_free(&j.marks);
    arena->limit = limit;
    return ok ? NIB_OK : j.err->code;
}

void nib_rendered_free(nib_rendered *r) {
    if (!r) return;
    nib_free(r->text);
    nib_free(r->spans);
    *r = (nib_rendered){0};
}
