/* chat/format.c - the table of formats: found by name or by the words of a template, and what its rules say of tokens
 * and prompts. */
#include "chat/format.h"

#include "base/status.h"
#include "chat/pattern.h"

#include <stdio.h>
#include <string.h>

static const nib_chat_format_row g_formats[] = {
#define FORMAT(name, ...) {name, __VA_ARGS__},
#include "chat/formats.def"
};
enum { N_FORMATS = sizeof g_formats / sizeof *g_formats };

static const char *const g_names[] = {
#define FORMAT(name, ...) name,
#include "chat/formats.def"
    NULL,
};

static const char *const g_found[][4] = {
#define FOUND(name, ...) {name, __VA_ARGS__},
#include "chat/formats.def"
};

const char *const *nib_chat_format_names(void) {
    return g_names;
}

const nib_chat_format_row *nib_chat_format_find(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(g_formats[i].name, name) == 0) return &g_formats[i];
    return NULL;
}

nib_status nib_chat_format_choose(const nib_chat_format_row **out, const char *name, nib_error *err) {
    char names[400] = "";
    size_t n = 0;
    *out = nib_chat_format_find(name ? name : "generic");
    if (*out) return NIB_OK;
    for (const char *const *p = nib_chat_format_names(); *p && n < sizeof names; p++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? " " : "", *p);
    return nib_fail(err, NIB_E_ARG, "no format of answers is called '%.40s'; there are: %s", name, names);
}

const char *nib_chat_format_name(const nib_chat_format_row *format) {
    return format->name;
}

static bool contains(nib_str text, const char *word, size_t len) {
    for (const char *p = text.ptr, *end = text.ptr + text.len; len && (size_t)(end - p) >= len; p++) {
        p = memchr(p, word[0], (size_t)(end - p) - len + 1);
        if (!p) return false;
        if (memcmp(p, word, len) == 0) return true;
    }
    return false;
}

const nib_chat_format_row *nib_chat_format_detect(nib_str template_text) {
    for (size_t i = 0; i < sizeof g_found / sizeof *g_found; i++) {
        size_t k = 1;
        while (k < 4 && g_found[i][k] && contains(template_text, g_found[i][k], strlen(g_found[i][k]))) k++;
        if (k == 4 || !g_found[i][k]) return nib_chat_format_find(g_found[i][0]);
    }
    return nib_chat_format_find("generic");
}

nib_str nib_chat_format_stop(const nib_chat_format_row *format, size_t i) {
    if (i >= NIB_CHAT_MAX_STOPS || !format->stops[i]) return (nib_str){NULL, 0};
    return (nib_str){format->stops[i], strlen(format->stops[i])};
}

/* ---- markers of reasoning */

typedef struct marker {
    char text[96]; /* the literals of a pattern, without what may be absent and blanks around */
    size_t len;
    bool opens, closes;
} marker;

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static marker marker_of(const nib_chat_rule *rule) {
    marker m = {.len = 0};
    int depth = 0;
    for (const char *p = rule->pattern; *p; p++) {
        if (*p == NIB_CHAT_OPT || *p == NIB_CHAT_MANY) depth++;
        else if (*p == NIB_CHAT_END_OPT || *p == NIB_CHAT_END_MANY) depth--;
        else if (depth) continue;
        else if (*p == NIB_CHAT_THINK) m.opens = true;
        else if (*p == NIB_CHAT_TEXT) m.closes = true;
        else if (!NIB_CHAT_IS_ELEMENT(*p) && m.len < sizeof m.text) m.text[m.len++] = *p;
    }
    m.closes = m.closes && rule->where & NIB_CHAT_IN_THINKING;
    return m;
}

bool nib_chat_format_starts_thinking(const nib_chat_format_row *format, nib_str prompt) {
    while (prompt.len && is_blank(prompt.ptr[prompt.len - 1])) prompt.len--;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++) {
        marker m = marker_of(&format->rules[i]);
        if (m.opens && prompt.len >= m.len && memcmp(prompt.ptr + prompt.len - m.len, m.text, m.len) == 0) return true;
    }
    return false;
}

bool nib_chat_format_leaves_thinking(const nib_chat_format_row *format, nib_str message) {
    marker markers[NIB_CHAT_MAX_RULES];
    size_t n = 0;
    bool thinks = false;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++) {
        markers[n] = marker_of(&format->rules[i]);
        if (markers[n].opens || markers[n].closes) n++;
    }
    for (size_t at = 0; at < message.len; at++)
        for (size_t i = 0; i < n; i++)
            if (message.len - at >= markers[i].len && memcmp(message.ptr + at, markers[i].text, markers[i].len) == 0)
                thinks = markers[i].opens;
    return thinks;
}

bool nib_chat_format_is_mark(const nib_chat_format_row *format, nib_str token_text) {
    if (!token_text.len || token_text.len >= sizeof((marker){0}).text) return false;
    for (size_t i = 0; i < NIB_CHAT_MAX_RULES && format->rules[i].pattern; i++) {
        const char *pattern = format->rules[i].pattern;
        nib_str text = {pattern, strlen(pattern)};
        if (contains(text, token_text.ptr, token_text.len)) return true;
    }
    return false;
}
