/* jinja/lex.c - the source of a template -> tokens. Data between tags is cut as trim_blocks, lstrip_blocks and the signs in
 * the tags say, so that the parser sees only what is printed. Called by parse_stmt.c. */
#include "jinja/lex.h"

#include "base/status.h"
#include "jinja/chars.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct lexer {
    const char *src;
    size_t len, pos;
    bool at_line_start; /* the last tag ended with a newline, or there was none */
    nib_arena *arena;
    jinja_tokens *out;
    nib_error *err;
} lexer;

static const struct {
    uint8_t len;
    const char *text;
} names[] = {
#define TOKEN(id, name) [JINJA_TOKEN_##id] = {0, name},
#define OPERATOR(id, text) [JINJA_TOKEN_##id] = {sizeof text - 1, text},
#include "jinja/tokens.def"
#undef TOKEN
#undef OPERATOR
};

const char *nib_jinja_token_name(int kind) {
    return names[kind].text;
}

static bool looking_at(const lexer *l, size_t pos, const char *text) {
    size_t n = strlen(text);
    return l->len - pos >= n && memcmp(l->src + pos, text, n) == 0;
}

static size_t skip_space(const lexer *l, size_t pos) {
    for (size_t n; pos < l->len && (n = nib_jinja_space(l->src + pos, l->len - pos)) > 0;) pos += n;
    return pos;
}

static nib_status push(lexer *l, int kind, size_t offset, jinja_value value) {
    if (!nib_grow(&l->out->items, &l->out->capacity, l->out->n + 1, sizeof *l->out->items))
        return nib_fail_nomem(l->err, 0, "the tokens of a template");
    l->out->items[l->out->n++] = (jinja_token){(uint8_t)kind, (uint32_t)offset, value};
    return NIB_OK;
}

/* Data from … to, before a tag with this sign; is_block: a tag that lstrip_blocks applies to. */
static nib_status push_data(lexer *l, size_t from, size_t to, char sign, bool is_block) {
    if (sign == '-') {
        to = from + nib_jinja_rstrip(l->src + from, to - from);
    } else if (sign != '+' && is_block) {
        size_t line = to;
        while (line > from && l->src[line - 1] != '\n') line--;
        if ((line > from || l->at_line_start) && skip_space(l, line) >= to) to = line;
    }
    return to > from ? push(l, JINJA_TOKEN_DATA, from, jinja_str(l->src + from, to - from)) : NIB_OK;
}

/* At the end of a block or comment tag, "%}" or "#}" with a sign before it: steps over it and the blanks that go with it. */
static bool end_tag(lexer *l, char mark) {
    const char *p = l->src + l->pos;
    size_t left = l->len - l->pos;
    size_t sign = left > 0 && (*p == '-' || *p == '+');
    if (left < sign + 2 || p[sign] != mark || p[sign + 1] != '}') return false;
    l->pos += sign + 2;
    if (sign && *p == '-') l->pos = skip_space(l, l->pos);
    else if (!sign && mark != '}' && l->pos < l->len && l->src[l->pos] == '\n') l->pos++;
    l->at_line_start = l->src[l->pos - 1] == '\n';
    return true;
}

/* ---- inside tags */

static size_t name_length(const char *p, size_t n) {
    size_t i = 0;
    while (i < n && (nib_jinja_is_word(p[i]) || (unsigned char)p[i] >= 0x80)) i++;
    return i;
}

static nib_status lex_integer(lexer *l, size_t start, size_t end, int base) {
    int64_t x = 0;
    for (size_t i = start + (base == 10 ? 0 : 2); i < end; i++) {
        if (l->src[i] == '_') continue;
        int digit = nib_jinja_digit(l->src[i]);
        if (__builtin_mul_overflow(x, base, &x) || __builtin_add_overflow(x, digit, &x))
            return nib_fail_at(l->err, NIB_E_UNSUPPORTED, start, "an integer beyond 64 bits");
    }
    l->pos = end;
    return push(l, JINJA_TOKEN_INTEGER, start, jinja_int(x));
}

/* Digits with single underscores between them. */
static size_t digits(const lexer *l, size_t pos, int base) {
    while (pos < l->len) {
        size_t at = pos + (l->src[pos] == '_');
        int digit = at < l->len ? nib_jinja_digit(l->src[at]) : -1;
        if (digit < 0 || digit >= base) break;
        pos = at + 1;
    }
    return pos;
}

static nib_status lex_float(lexer *l, size_t start, size_t end) {
    char text[64];
    size_t n = 0;
    for (size_t i = start; i < end; i++) {
        if (l->src[i] == '_') continue;
        if (n == sizeof text - 1) return nib_fail_at(l->err, NIB_E_UNSUPPORTED, start, "a number of more than 63 digits");
        text[n++] = l->src[i];
    }
    text[n] = 0;
    l->pos = end;
    return push(l, JINJA_TOKEN_FLOAT, start, jinja_float(strtod(text, NULL)));
}

static nib_status lex_number(lexer *l) {
    size_t start = l->pos;
    if (l->src[start] == '0' && start + 1 < l->len) {
        char c = l->src[start + 1] | 0x20;
        int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
        if (base != 10) {
            size_t end = digits(l, start + 2, base);
            if (end > start + 2) return lex_integer(l, start, end, base);
        }
    }
    size_t whole = digits(l, start, 10), end = whole;
    bool after_dot = start > 0 && l->src[start - 1] == '.'; /* x.1.2 are two items, not x[1.2] */
    if (!after_dot && end + 1 < l->len && l->src[end] == '.' && nib_jinja_is_digit(l->src[end + 1]))
        end = digits(l, end + 1, 10);
    if (!after_dot && end < l->len && (l->src[end] | 0x20) == 'e') {
        size_t power = end + 1;
        if (power < l->len && (l->src[power] == '+' || l->src[power] == '-')) power++;
        if (power < l->len && nib_jinja_is_digit(l->src[power])) end = digits(l, power, 10);
    }
    return end > whole ? lex_float(l, start, end) : lex_integer(l, start, whole, 10);
}

static nib_status lex_string(lexer *l) {
    size_t start = l->pos, end = start + 1;
    char quote = l->src[start];
    bool has_escape = false;
    while (end < l->len && l->src[end] != quote) {
        has_escape |= l->src[end] == '\\';
        end += l->src[end] == '\\' ? 2 : 1;
    }
    if (end >= l->len) return nib_fail_at(l->err, NIB_E_FORMAT, start, "a string that does not end");
    jinja_value value = jinja_str(l->src + start + 1, end - start - 1);
    if (has_escape) {
        char *copy = nib_arena_copy(l->arena, value.as.ptr, value.len);
        if (!copy) return nib_fail(l->err, NIB_E_LIMIT, "the strings of the template need more than %zu bytes", l->arena->limit);
        value = jinja_str(copy, nib_jinja_unescape(copy, value.len));
    }
    l->pos = end + 1;
    return push(l, JINJA_TOKEN_STRING, start, value);
}

/* Keeps the brackets that are open in `stack`, so that "}}" in them ends no tag. */
static nib_status balance(lexer *l, int kind, nib_buf *stack) {
    static const char opening[] = "({[", closing[] = ")}]";
    char c = names[kind].text[0];
    if (names[kind].len != 1) return NIB_OK;
    if (strchr(opening, c)) {
        if (!nib_buf_char(stack, closing[strchr(opening, c) - opening])) return nib_fail_nomem(l->err, 0, "a template");
    } else if (strchr(closing, c)) {
        if (stack->len == 0) return nib_fail_at(l->err, NIB_E_FORMAT, l->pos, "unexpected '%c'", c);
        if (stack->ptr[--stack->len] != c)
            return nib_fail_at(l->err, NIB_E_FORMAT, l->pos, "unexpected '%c', expected '%c'", c, stack->ptr[stack->len]);
    }
    return NIB_OK;
}

static nib_status lex_operator(lexer *l, nib_buf *stack) {
    for (int kind = 0; kind < JINJA_N_TOKENS; kind++) {
        if (names[kind].len == 0 || !looking_at(l, l->pos, names[kind].text)) continue;
        NIB_TRY(balance(l, kind, stack));
        l->pos += names[kind].len;
        return push(l, kind, l->pos - names[kind].len, jinja_none());
    }
    return nib_fail_at(l->err, NIB_E_FORMAT, l->pos, "unexpected character '%.1s'", l->src + l->pos);
}

static nib_status lex_one(lexer *l, nib_buf *stack) {
    char c = l->src[l->pos];
    if (nib_jinja_is_digit(c)) return lex_number(l);
    if (c == '\'' || c == '"') return lex_string(l);
    size_t n = name_length(l->src + l->pos, l->len - l->pos);
    if (n == 0) return lex_operator(l, stack);
    l->pos += n;
    return push(l, JINJA_TOKEN_NAME, l->pos - n, jinja_str(l->src + l->pos - n, n));
}

/* mark: '%' or '}', what ends the tag before its brace. */
static nib_status lex_tag(lexer *l, char mark, size_t start) {
    nib_buf stack = {0};
    nib_status status = NIB_OK;
    bool is_block = mark == '%';
    NIB_TRY_OUT(push(l, is_block ? JINJA_TOKEN_BLOCK_BEGIN : JINJA_TOKEN_VAR_BEGIN, start, jinja_none()));
    for (;;) {
        l->pos = skip_space(l, l->pos);
        if (l->pos >= l->len) {
            status = nib_fail_at(l->err, NIB_E_FORMAT, start, "a tag that does not end: expected '%s'", is_block ? "%}" : "}}");
            goto out;
        }
        size_t end = l->pos;
        bool has_plus = l->src[end] == '+' && !is_block; /* "+}}" is no end of a print statement */
        if (stack.len == 0 && !has_plus && end_tag(l, mark)) {
            status = push(l, is_block ? JINJA_TOKEN_BLOCK_END : JINJA_TOKEN_VAR_END, end, jinja_none());
            goto out;
        }
        NIB_TRY_OUT(lex_one(l, &stack));
    }
out:
    nib_buf_free(&stack);
    return status;
}

/* ---- between tags */

static nib_status skip_comment(lexer *l, size_t start) {
    for (; l->pos < l->len; l->pos++)
        if (end_tag(l, '#')) return NIB_OK;
    return nib_fail_at(l->err, NIB_E_FORMAT, start, "a comment that does not end: expected '#}'");
}

/* After "{%" and a sign: the position behind "raw %}", 0 when it is another tag. */
static size_t raw_begin(const lexer *l, size_t pos) {
    pos = skip_space(l, pos);
    if (!looking_at(l, pos, "raw")) return 0;
    pos = skip_space(l, pos + 3);
    if (looking_at(l, pos, "-%}")) return skip_space(l, pos + 3);
    return looking_at(l, pos, "%}") ? pos + 2 : 0;
}

static nib_status lex_raw(lexer *l, size_t start) {
    size_t from = l->pos;
    l->at_line_start = l->src[from - 1] == '\n';
    for (size_t to = from; to + 1 < l->len; to++) {
        if (!looking_at(l, to, "{%")) continue;
        size_t pos = to + 2;
        char sign = pos < l->len && (l->src[pos] == '-' || l->src[pos] == '+') ? l->src[pos] : 0;
        pos = skip_space(l, pos + (sign != 0));
        if (!looking_at(l, pos, "endraw")) continue;
        l->pos = skip_space(l, pos + 6);
        bool was_at_line_start = l->at_line_start;
        if (!end_tag(l, '%')) continue;
        bool is_at_line_start = l->at_line_start;
        l->at_line_start = was_at_line_start;
        NIB_TRY(push_data(l, from, to, sign, true));
        l->at_line_start = is_at_line_start;
        return NIB_OK;
    }
    return nib_fail_at(l->err, NIB_E_FORMAT, start, "a raw block that does not end: expected '{%% endraw %%}'");
}

static nib_status lex_after_data(lexer *l, size_t from, size_t start) {
    char what = l->src[start + 1];
    char sign = start + 2 < l->len && (l->src[start + 2] == '-' || l->src[start + 2] == '+') ? l->src[start + 2] : 0;
    NIB_TRY(push_data(l, from, start, sign, what != '{'));
    l->pos = start + 2 + (sign != 0);
    if (what == '#') return skip_comment(l, start);
    size_t raw = what == '%' ? raw_begin(l, l->pos) : 0;
    if (raw) {
        l->pos = raw;
        return lex_raw(l, start);
    }
    return lex_tag(l, what == '{' ? '}' : '%', start);
}

nib_status nib_jinja_lex(nib_str source, nib_arena *arena, jinja_tokens *out, nib_error *err) {
    lexer l = {source.ptr, source.len, 0, true, arena, out, err};
    if (l.len > 0 && l.src[l.len - 1] == '\n') l.len--;
    while (l.pos < l.len) {
        size_t from = l.pos, start = from;
        while (start < l.len && !(l.src[start] == '{' && start + 1 < l.len && strchr("{%#", l.src[start + 1]) &&
                                  l.src[start + 1]))
            start++;
        if (start >= l.len) {
            NIB_TRY(push(&l, JINJA_TOKEN_DATA, from, jinja_str(l.src + from, l.len - from)));
            break;
        }
        NIB_TRY(lex_after_data(&l, from, start));
    }
    return push(&l, JINJA_TOKEN_END, l.len, jinja_none());
}
