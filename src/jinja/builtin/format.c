/* jinja/builtin/format.c - "%s" % x and "{}".format(x): the fields that templates use, each with width, precision and
 * alignment. What a field is filled with keeps its marks. */
#include "jinja/builtin/internal.h"
#include "jinja/chars.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct field {
    jinja_value fill; /* one character */
    char align;       /* < > ^ =, 0: as the value has it */
    char sign;        /* + or blank, 0: only of negative numbers */
    bool is_alternate, has_commas;
    int64_t width, precision; /* precision -1: none */
    char type;        /* d f s …, 0: as the value has it */
} field;

enum { MAX_WIDTH = 1 << 20, MAX_PRECISION = 100 };

/* ---- one value */

static bool int_text(jinja *j, const field *f, int64_t x, char *text, size_t size) {
    uint64_t rest = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const char *digits = f->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    unsigned base = f->type == 'x' || f->type == 'X' ? 16 : f->type == 'o' ? 8 : f->type == 'b' ? 2 : 10;
    size_t at = size, n = 0;
    text[--at] = 0;
    for (; n == 0 || rest || (f->precision > 0 && n < (size_t)f->precision); n++, rest /= base) {
        if (f->has_commas && n && n % 3 == 0) text[--at] = ',';
        text[--at] = digits[rest % base];
    }
    if (f->is_alternate && base != 10) {
        text[--at] = f->type;
        text[--at] = '0';
    }
    if (x < 0 || f->sign) text[--at] = x < 0 ? '-' : f->sign;
    memmove(text, text + at, size - at);
    return nib_jinja_work(j, 0);
}

/* Commas between thousands of "-12345.6". */
static void add_commas(char *text, size_t size) {
    size_t from = text[0] == '-' || text[0] == '+' || text[0] == ' ', n = strspn(text + from, "0123456789");
    for (size_t i = 3; i < n; i += 3) {
        size_t at = from + n - i, len = strlen(text);
        if (len + 2 > size) return;
        memmove(text + at + 1, text + at, len - at + 1);
        text[at] = ',';
    }
}

static void float_text(const field *f, double x, char *text, size_t size) {
    char format[16] = "%", type = f->type == '%' ? 'f' : f->type;
    if (f->sign) strcat(format, f->sign == '+' ? "+" : " ");
    if (f->is_alternate) strcat(format, "#");
    strcat(format, ".*");
    size_t n = strlen(format);
    format[n] = type;
    format[n + 1] = 0;
    if (f->type == '%') x *= 100;
    snprintf(text, size, format, (int)(f->precision >= 0 ? f->precision : 6), x);
    if (f->has_commas) add_commas(text, size);
    if (f->type == '%' && strlen(text) + 1 < size) strcat(text, "%");
}

/* The bare text of the value, unpadded. */
static bool to_text(jinja *j, const field *f, const jinja_value *v, jinja_value *out) {
    char text[600];
    bool is_float = f->type && strchr("eEfFgG%", f->type);
    size_t mark = nib_jinja_mark(j);
    if (v->type == JINJA_UNDEFINED && f->type && f->type != 's') return nib_jinja_fail_undefined(j, v);
    if (is_float && jinja_is_number(v)) {
        float_text(f, jinja_as_float(v), text, sizeof text);
    } else if (f->type && strchr("dboxXn", f->type) && jinja_is_integer(v)) {
        if (!int_text(j, f, jinja_as_int(v), text, sizeof text)) return false;
    } else if (!f->type && v->type == JINJA_INT && (f->sign || f->has_commas)) {
        if (!int_text(j, f, v->as.i, text, sizeof text)) return false;
    } else if (!f->type && v->type == JINJA_FLOAT && (f->precision >= 0 || f->sign || f->has_commas)) {
        field general = *f;
        general.type = 'g';
        float_text(&general, v->as.f, text, sizeof text);
        bool is_whole = !strpbrk(text, ".en");
        if (is_whole) strcat(text, ".0");
    } else if (!f->type || f->type == 's') {
        if (!nib_jinja_to_str(j, v, out)) return false;
        if (f->precision >= 0) *out = jinja_part(*out, 0, nib_jinja_offset(out->as.ptr, out->len, (size_t)f->precision));
        return true;
    } else if (f->type == 'c' && jinja_is_integer(v) && jinja_as_int(v) >= 0 && jinja_as_int(v) <= 0x10FFFF) {
        text[nib_jinja_encode((uint32_t)jinja_as_int(v), text)] = 0;
    } else {
        return nib_jinja_fail(j, "ValueError: format '%c' for a %s", f->type, nib_jinja_type_name(v));
    }
    return nib_jinja_put(j, text, strlen(text), v->is_trusted) && nib_jinja_take(j, mark, out);
}

static bool fail_width(jinja *j) {
    return nib_jinja_fail(j, "ValueError: a format wider than %d", MAX_WIDTH);
}

static bool put_field(jinja *j, const field *f, const jinja_value *v) {
    jinja_value text = {0};
    bool is_number = jinja_is_number(v) && f->type != 's';
    if (f->width > MAX_WIDTH) return fail_width(j);
    if (f->precision > MAX_PRECISION) return nib_jinja_fail(j, "ValueError: a format with more than %d digits", MAX_PRECISION);
    if (!nib_jinja_work(j, JINJA_FLOAT_WORK)) return false;
    if (!to_text(j, f, v, &text)) return false;
    char align = f->align ? f->align : is_number ? '>' : '<';
    bool has_sign = align == '=' && text.len && (text.as.ptr[0] == '-' || text.as.ptr[0] == '+' || text.as.ptr[0] == ' ');
    jinja_value sign = jinja_part(text, 0, has_sign);
    text = jinja_part(text, has_sign, text.len);
    if (align == '^') { /* the odd one to the right, other than str.center */
        int64_t missing = f->width - (int64_t)nib_jinja_count(text.as.ptr, text.len);
        int64_t width = missing > 0 ? f->width - missing + missing / 2 : 0;
        if (!nib_jinja_pad(j, &text, width, &f->fill, JINJA_LEFT, &text)) return false;
        align = '<';
    }
    return nib_jinja_pad(j, &text, f->width - has_sign, &f->fill, align == '<' ? JINJA_RIGHT : JINJA_LEFT, &text) &&
           nib_jinja_put_str(j, &sign) && nib_jinja_put_str(j, &text);
}

static bool read_number(jinja *j, const char **p, const char *end, int64_t *out) {
    for (*out = 0; *p < end && nib_jinja_is_digit(**p); ++*p) {
        *out = *out * 10 + (**p - '0');
        if (*out > MAX_WIDTH) return fail_width(j);
    }
    return true;
}

/* ---- "%…" % args */

typedef struct percent_args {
    const jinja_value *items;
    uint32_t n, used;
    const jinja_dict *named;
} percent_args;

static bool next_arg(jinja *j, percent_args *args, jinja_value *out) {
    if (args->used >= args->n) return nib_jinja_fail(j, "TypeError: not enough arguments for format string");
    *out = args->items[args->used++];
    return true;
}

/* Width or precision: digits or *. */
static bool read_size(jinja *j, const char **p, const char *end, percent_args *args, int64_t *out) {
    jinja_value v;
    if (*p >= end || **p != '*') return read_number(j, p, end, out);
    ++*p;
    return next_arg(j, args, &v) && nib_jinja_want_int(j, &v, 0, out);
}

/* Behind the percent sign, up to the type. */
static bool read_percent(jinja *j, const char **at, const char *end, percent_args *args, field *f, jinja_value *named) {
    const char *p = *at;
    *f = (field){.fill = jinja_str(" ", 1), .align = '>', .precision = -1};
    *named = (jinja_value){.type = JINJA_MISSING};
    if (p < end && *p == '(') {
        const char *close = memchr(p, ')', (size_t)(end - p));
        if (!close || !args->named) return nib_jinja_fail(j, "TypeError: format requires a mapping");
        jinja_value name = jinja_str(p + 1, (size_t)(close - p - 1));
        const jinja_pair *pair;
        if (!nib_jinja_find_key(j, args->named, &name, &pair)) return false;
        if (!pair) return nib_jinja_fail(j, "KeyError: '%.*s'", (int)(name.len < 100 ? name.len : 100), name.as.ptr);
        *named = pair->value;
        p = close + 1;
    }
    for (; p < end && *p && strchr("-+ #0", *p); p++) {
        if (*p == '-') f->align = '<';
        else if (*p == '#') f->is_alternate = true;
        else if (*p != '0') f->sign = f->sign == '+' ? '+' : *p;
        else if (f->align != '<') f->align = '=';
    }
    if (!read_size(j, &p, end, args, &f->width)) return false;
    if (f->width < 0) {
        f->align = '<';
        f->width = -f->width;
    }
    if (p < end && *p == '.') {
        p++;
        if (!read_size(j, &p, end, args, &f->precision)) return false;
    }
    while (p < end && *p && strchr("hlL", *p)) p++;
    if (p >= end) return nib_jinja_fail(j, "ValueError: incomplete format");
    f->type = *p++;
    *at = p;
    return true;
}

static bool put_percent(jinja *j, field *f, const jinja_value *value) {
    jinja_value v = *value;
    if (f->type == 'r' || f->type == 'a') {
        size_t mark = nib_jinja_mark(j);
        if (!nib_jinja_put_repr(j, value) || !nib_jinja_take(j, mark, &v)) return false;
        f->type = 's';
    }
    if (f->type == 'i' || f->type == 'u') f->type = 'd';
    if (!f->type || !strchr("sdoxXeEfFgGc", f->type)) return nib_jinja_fail(j, "ValueError: unsupported format character");
    if (f->type == 'd' && v.type == JINJA_FLOAT) {
        if (!(fabs(v.as.f) < 9e18)) return nib_jinja_fail(j, "OverflowError: an integer beyond 64 bits");
        v = jinja_int((int64_t)v.as.f);
    }
    if (f->type == 'c' && v.type == JINJA_STR && nib_jinja_count(v.as.ptr, v.len) == 1) f->type = 's';
    bool is_text = f->type == 's' || f->type == 'c';
    if (f->align == '=' && is_text) f->align = '>';
    if (f->align == '=') f->fill = jinja_str("0", 1);
    if (!is_text && !jinja_is_number(&v)) {
        if (v.type == JINJA_UNDEFINED) return nib_jinja_fail_undefined(j, &v);
        return nib_jinja_fail(j, "TypeError: %%%c format: a real number is required, not %s", f->type, nib_jinja_type_name(&v));
    }
    return put_field(j, f, &v);
}

bool nib_jinja_percent(jinja *j, const jinja_value *format, const jinja_value *args, const jinja_dict *named, jinja_value *out) {
    jinja_value s = *format, self = *args;
    bool is_tuple = self.type == JINJA_LIST && self.as.list->flavor == JINJA_AS_TUPLE;
    percent_args given = {is_tuple ? self.as.list->items : &self, is_tuple ? self.as.list->n : 1, 0,
                          named ? named : self.type == JINJA_DICT ? self.as.dict : NULL};
    size_t mark = nib_jinja_mark(j), done = 0;
    const char *end = s.as.ptr + s.len;
    for (const char *p = s.as.ptr; s.len && (p = memchr(p, '%', (size_t)(end - p))) != NULL;) {
        field f;
        jinja_value v, before = jinja_part(s, done, (size_t)(p - s.as.ptr));
        p++;
        if (!nib_jinja_put_str(j, &before) || !read_percent(j, &p, end, &given, &f, &v)) return false;
        done = (size_t)(p - s.as.ptr);
        jinja_value sign = jinja_part(s, done - 1, done);
        if (f.type == '%') {
            if (!nib_jinja_put_str(j, &sign)) return false;
        } else if ((!jinja_is_given(&v) && !next_arg(j, &given, &v)) || !put_percent(j, &f, &v)) {
            return false;
        }
    }
    jinja_value rest = jinja_part(s, done, s.len);
    bool takes_all = given.used == given.n || given.named || (!is_tuple && self.type == JINJA_LIST);
    if (!takes_all) return nib_jinja_fail(j, "TypeError: not all arguments converted during string formatting");
    return nib_jinja_put_str(j, &rest) && nib_jinja_take(j, mark, out);
}

/* ---- "{…}".format(args) */

typedef struct brace_args {
    const jinja_list *items;
    const jinja_dict *named;
    int64_t next; /* the number of the next field without a name */
    bool has_numbers; /* in fields: then none may lack one */
} brace_args;

/* The value that "0", "name", "" names, and its ".attribute" and "[key]" parts. */
static bool read_path(jinja *j, const char **at, const char *end, brace_args *args, jinja_value *out) {
    const char *p = *at, *from = p;
    int64_t number;
    while (p < end && !strchr(".[:!}", *p)) p++;
    jinja_value name = jinja_str(from, (size_t)(p - from));
    if (name.len == 0 || nib_jinja_is_digit(*from)) {
        if (!read_number(j, &from, p, &number)) return false;
        args->has_numbers |= name.len > 0;
        if (name.len == 0) number = args->next++;
        if (args->has_numbers && args->next > 0)
            return nib_jinja_fail(j, "ValueError: fields with numbers and without them in one format");
        if (number >= args->items->n) return nib_jinja_fail(j, "IndexError: Replacement index %lld out of range", (long long)number);
        *out = args->items->items[number];
    } else {
        const jinja_pair *pair;
        if (!nib_jinja_find_key(j, args->named, &name, &pair)) return false;
        if (!pair) return nib_jinja_fail(j, "KeyError: '%.*s'", (int)(name.len < 100 ? name.len : 100), name.as.ptr);
        *out = pair->value;
    }
    while (p < end && (*p == '.' || *p == '[')) {
        bool is_item = *p++ == '[';
        from = p;
        while (p < end && (is_item ? *p != ']' : !strchr(".[:!}", *p))) p++;
        name = jinja_str(from, (size_t)(p - from));
        if (is_item && from < p && nib_jinja_is_digit(*from)) {
            if (!read_number(j, &from, p, &number)) return false;
            name = jinja_int(number);
        }
        if (!(is_item ? nib_jinja_get_item(j, out, &name, out) : nib_jinja_get_attr(j, out, &name, out))) return false;
        if (is_item && p < end) p++;
    }
    *at = p;
    return true;
}

/* [[fill]align][sign][#][0][width][,][.precision][type] */
static bool read_spec(jinja *j, const char **at, const char *end, field *f) {
    const char *p = *at;
    uint32_t cp;
    size_t n = p < end ? nib_jinja_char(p, (size_t)(end - p), &cp) : 0;
    if (n && p + n < end && p[n] && strchr("<>^=", p[n])) {
        f->fill = jinja_str(p, n);
        f->align = p[n];
        p += n + 1;
    } else if (n && *p && strchr("<>^=", *p)) {
        f->align = *p++;
    }
    if (p < end && *p && strchr("+- ", *p)) f->sign = *p == '-' ? 0 : *p, p++;
    if (p < end && *p == '#') f->is_alternate = true, p++;
    if (p < end && *p == '0') {
        p++;
        if (!f->align) {
            f->fill = jinja_str("0", 1);
            f->align = '=';
        }
    }
    if (!read_number(j, &p, end, &f->width)) return false;
    if (p < end && *p == ',') f->has_commas = true, p++;
    if (p < end && *p == '.') {
        p++;
        if (!read_number(j, &p, end, &f->precision)) return false;
    }
    if (p < end && *p != '}') f->type = *p++;
    if (f->type && !strchr("sdboxXneEfFgG%c", f->type)) return nib_jinja_fail(j, "ValueError: unknown format code '%c'", f->type);
    *at = p;
    return true;
}

/* Behind the opening brace, up to the closing one. */
static bool put_replacement(jinja *j, const char **at, const char *end, brace_args *args) {
    field f = {.fill = jinja_str(" ", 1), .precision = -1};
    const char *p = *at;
    jinja_value v = {0};
    if (!read_path(j, &p, end, args, &v)) return false;
    if (end - p > 1 && *p == '!') {
        size_t mark = nib_jinja_mark(j);
        bool is_repr = p[1] != 's';
        if (!(is_repr ? nib_jinja_put_repr(j, &v) : nib_jinja_put_value(j, &v)) || !nib_jinja_take(j, mark, &v)) return false;
        p += 2;
    }
    if (p < end && *p == ':') {
        p++;
        if (!read_spec(j, &p, end, &f)) return false;
    }
    if (p >= end || *p != '}') return nib_jinja_fail(j, "ValueError: expected '}' before end of string");
    *at = p + 1;
    return put_field(j, &f, &v);
}

bool nib_jinja_brace_format(jinja *j, const jinja_value *format, const jinja_value *args, const jinja_dict *named,
                            jinja_value *out) {
    jinja_value s = *format;
    brace_args given = {args->as.list, named, 0, false};
    size_t mark = nib_jinja_mark(j), at = 0;
    while (at < s.len) {
        size_t from = at;
        while (at < s.len && s.as.ptr[at] != '{' && s.as.ptr[at] != '}') at++;
        bool is_double = at + 1 < s.len && s.as.ptr[at] == s.as.ptr[at + 1];
        jinja_value before = jinja_part(s, from, at + is_double);
        if (!nib_jinja_put_str(j, &before)) return false;
        if (at >= s.len) break;
        const char *p = s.as.ptr + at + 1;
        if (!is_double && s.as.ptr[at] == '}') return nib_jinja_fail(j, "ValueError: Single '}' encountered in format string");
        if (is_double) p++;
        else if (!put_replacement(j, &p, s.as.ptr + s.len, &given)) return false;
        at = (size_t)(p - s.as.ptr);
    }
    return nib_jinja_take(j, mark, out);
}
