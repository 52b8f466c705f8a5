/* text/pretok.c - runs the passes of pretok.def one inside the other: each piece of a pass is cut by the next one at
 * once, so that the memory needed does not depend on the text. Patterns are compiled by PCRE2, with its JIT where there
 * is one.
 *
 * A pattern that gives up (PCRE2's limits) is an error, never other words. */
#include "text/pretok.h"

#include "base/mem.h"
#include "base/status.h"
#include "text/flags.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

enum {
    ADD_BOS = NIB_TEXT_ADD_BOS,
    ALWAYS_BOS = NIB_TEXT_ALWAYS_BOS,
    CLEAN = NIB_TEXT_CLEAN,
    NFC = NIB_TEXT_NFC,
    IGNORE_MERGES = NIB_TEXT_IGNORE_MERGES,
    WHOLE_NEWLINES = NIB_TEXT_WHOLE_NEWLINES,
    RAW = NIB_TEXT_RAW,
    ESCAPE = NIB_TEXT_ESCAPE,
};

#define RE(pattern) {pattern, NULL}
#define FN(function) {NULL, nib_text_find_##function}
#define GROUP(id, ...) static const nib_text_pass passes_##id[] = {__VA_ARGS__, {NULL, NULL}};
#include "text/pretok.def"
#define NAME(name, group, flags) {name, passes_##group, flags},
static const nib_text_pre rows[] = {
#include "text/pretok.def"
};
#undef RE
#undef FN

#define N_ROWS (sizeof rows / sizeof rows[0])

const nib_text_pre *nib_text_pre_at(size_t i) {
    return i < N_ROWS ? &rows[i] : NULL;
}

const nib_text_pre *nib_text_pre_find(nib_str name) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == name.len && memcmp(rows[i].name, name.ptr, name.len) == 0) return &rows[i];
    return NULL;
}

void nib_text_pre_list(nib_buf *out) {
    for (size_t i = 0; i < N_ROWS; i++)
        if (i == 0 || rows[i].passes != rows[i - 1].passes) nib_buf_printf(out, "%s%s", i ? " " : "", rows[i].name);
}

/* White_Space of Unicode. PCRE2's own \s has U+180E too, which ceased to be a space in Unicode 6.3. */
#define WHITE_SPACE                                                                                                    \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"

/* Replaces \s and \S by classes. Patterns have no class inside a class and no \S in one. */
static bool expand_spaces(const char *pattern, nib_buf *out) {
    bool in_class = false;
    for (const char *p = pattern; *p; p++) {
        if (p[0] == '\\' && p[1] == 's') {
            nib_buf_str(out, in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
            p++;
        } else if (p[0] == '\\' && p[1] == 'S') {
            nib_buf_str(out, "[^" WHITE_SPACE "]");
            p++;
        } else if (p[0] == '\\') {
            nib_buf_append(out, p++, 2);
        } else {
            if (*p == '[') in_class = true;
            if (*p == ']') in_class = false;
            nib_buf_char(out, *p);
        }
    }
    return !out->failed;
}

static void *pcre2_alloc(size_t n, void *user) {
    (void)user;
    return nib_alloc(n, 1);
}

static void pcre2_release(void *p, void *user) {
    (void)user;
    nib_free(p);
}

static nib_status compile(pcre2_code **out, const char *pattern, nib_error *err) {
    nib_buf text = {0};
    pcre2_general_context *general = pcre2_general_context_create(pcre2_alloc, pcre2_release, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    int code = PCRE2_ERROR_NOMEMORY;
    PCRE2_SIZE offset = 0;
    *out = NULL;
    if (context && expand_spaces(pattern, &text))
        *out = pcre2_compile((PCRE2_SPTR)text.ptr, text.len, PCRE2_UTF | PCRE2_UCP, &code, &offset, context);
    nib_buf_free(&text);
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    if (!*out)
        return nib_fail(err, NIB_E_NOMEM, "PCRE2 cannot compile a pre-tokenizer (error %d at %zu)", code, offset);
    pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE); /* pcre2_match interprets when this machine has no JIT */
    return NIB_OK;
}

nib_status nib_text_pretok_init(nib_text_pretok *pretok, const nib_text_pre *row, nib_error *err) {
    *pretok = (nib_text_pretok){.row = row};
    for (const nib_text_pass *pass = row->passes; pass->pattern || pass->find; pass++, pretok->n_passes++) {
        pcre2_code *code = NULL;
        nib_status status = pass->pattern ? compile(&code, pass->pattern, err) : NIB_OK;
        if (status != NIB_OK) {
            nib_text_pretok_free(pretok);
            return status;
        }
        pretok->code[pretok->n_passes] = code;
    }
    return NIB_OK;
}

void nib_text_pretok_free(nib_text_pretok *pretok) {
    for (size_t i = 0; i < pretok->n_passes; i++) pcre2_code_free(pretok->code[i]);
    *pretok = (nib_text_pretok){0};
}

static bool new_match_data(nib_text_pretok_walk *walk) {
    pcre2_general_context *general = pcre2_general_context_create(pcre2_alloc, pcre2_release, NULL);
    if (!general) return false;
    walk->match_data = pcre2_match_data_create(1, general);
    walk->match_context = pcre2_match_context_create(general);
    pcre2_general_context_free(general);
    if (!walk->match_data || !walk->match_context) return false;
    /* The limits guard against patterns that explode; ours are linear, and texts may be long. */
    pcre2_set_match_limit(walk->match_context, UINT32_MAX);
    pcre2_set_depth_limit(walk->match_context, UINT32_MAX);
    return true;
}

nib_status nib_text_pretok_begin(nib_text_pretok_walk *walk, const nib_text_pretok *pretok, nib_str text,
                                 nib_error *err) {
    if (!walk->match_data && !new_match_data(walk)) {
        nib_text_pretok_end(walk);
        return walk->status = nib_fail_nomem(err, 0, "matching a pattern");
    }
    walk->pretok = pretok;
    walk->status = NIB_OK;
    walk->depth = 0;
    walk->level[0] = (struct nib_text_pretok_level){.piece = text};
    return NIB_OK;
}

void nib_text_pretok_end(nib_text_pretok_walk *walk) {
    pcre2_match_data_free(walk->match_data);
    pcre2_match_context_free(walk->match_context);
    walk->match_data = walk->match_context = NULL;
}

/* The next piece that a pass finds in its level, or an empty one at the end of the text. */
static nib_status find(nib_text_pretok_walk *walk, struct nib_text_pretok_level *level, nib_error *err) {
    pcre2_code *code = walk->pretok->code[walk->depth];
    nib_str text = level->piece;
    level->start = level->end = text.len;
    if (!code) {
        size_t start, end;
        if (walk->pretok->row->passes[walk->depth].find(text, level->at, &start, &end))
            level->start = start, level->end = end;
        return NIB_OK;
    }
    int n = pcre2_match(code, (PCRE2_SPTR)text.ptr, text.len, level->at, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                        walk->match_data, walk->match_context);
    if (n == PCRE2_ERROR_NOMATCH) return NIB_OK;
    if (n < 0) return nib_fail(err, NIB_E_LIMIT, "pre-tokenizer \"%s\" gave up on %zu bytes of text (PCRE2 error %d)",
                               walk->pretok->row->name, text.len, n);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(walk->match_data);
    level->start = at[0];
    level->end = at[1];
    return NIB_OK;
}

/* The next piece of a level, found or between two found ones. */
static bool next_piece(nib_text_pretok_walk *walk, nib_str *piece, nib_error *err) {
    struct nib_text_pretok_level *level = &walk->level[walk->depth];
    if (level->at == level->piece.len) return false;
    if (level->start >= level->end || level->at > level->start) {
        walk->status = find(walk, level, err);
        if (walk->status != NIB_OK) return false;
    }
    size_t to = level->at < level->start ? level->start : level->end;
    *piece = (nib_str){level->piece.ptr + level->at, to - level->at};
    level->at = to;
    return true;
}

bool nib_text_pretok_next(nib_text_pretok_walk *walk, nib_str *word, nib_error *err) {
    for (;;) {
        nib_str piece;
        if (next_piece(walk, &piece, err)) {
            if (walk->depth + 1 == walk->pretok->n_passes) {
                *word = piece;
                return true;
            }
            walk->level[++walk->depth] = (struct nib_text_pretok_level){.piece = piece};
        } else if (walk->status != NIB_OK || walk->depth == 0) {
            return false;
        } else {
            walk->depth--;
        }
    }
}
