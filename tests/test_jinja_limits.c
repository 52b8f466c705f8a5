/* tests/test_jinja_limits.c - bombs: each template ends in an error that names the limit, in less than a second and 64 MB. */
#include "base/buf.h"
#include "nib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(NIB_EMULATED)
#define IS_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SLOW 1
#endif
#endif
#ifndef IS_SLOW
#define IS_SLOW 0
#endif

#define LOOP "{% for i in range(99999) %}"
#define END "{% endfor %}"
#define NS "{% set ns = namespace(s='a', l=[], d={}) %}"
#define REPEAT(what) LOOP "{% set x = " what " %}" END
#define FIVE(x) x x x x x
#define FIFTY(x) FIVE(FIVE(x)) FIVE(FIVE(x))
#define TUPLES "{% set ns = namespace(l=()) %}{% for i in range(30) %}{% set ns.l = (ns.l, ns.l) %}" END
#define TWICE "{% set ns.l = [ns.l, ns.l] %}"

static const char STEPS[] = "more than 4000000 steps", MEMORY[] = "more than 33554432 bytes of memory",
                  DEPTH[] = "more than 1000 levels of nesting", NESTED[] = "nested deeper than 200", RANGE[] = "ranges larger than 100000",
                  WIDTH[] = "wider than 1048576", DIGITS[] = "more than 100 digits", INT64[] = "beyond 64 bits";

/* head, n times part, tail; limit: what the message must say, a NULL one: the template is fine. s: a million "a", u: as many "é",
 * b: "a b a b …". */
typedef struct bomb {
    const char *limit, *head;
    uint32_t n;
    const char *part, *tail;
} bomb;

static const bomb bombs[] = {
    /* loops and ranges */
    {STEPS, "", 6, "{% for i in l %}", "x" END END END END END END},
    {MEMORY, "", 6, LOOP, END END END END END END},
    {RANGE, "{{ range(10 ** 18) }}", 0, "", ""},
    {MEMORY, REPEAT("range(99999)|list"), 0, "", ""},
    {STEPS, LOOP "{{ 99998 in l }}" END, 0, "", ""},
    /* recursion */
    {DEPTH, "{% macro m(x) %}{{ m(x + 1) }}{% endmacro %}{{ m(1) }}", 0, "", ""},
    {MEMORY, "{% macro m(x) %}{% if x %}{{ m(x - 1) }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(150) }}", 0, "", ""},
    {DEPTH, "{% macro m() %}{{ caller() }}{% call m() %}x{% endcall %}{% endmacro %}{% call m() %}x{% endcall %}", 0, "", ""},
    {DEPTH, "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", 0, "", ""},
    {DEPTH, NS "{% set ns.s = ns %}{{ ns }}", 0, "", ""},
    {DEPTH, NS "{% set ns.l = [ns] %}{{ ns.l|string }}", 0, "", ""},
    {DEPTH, NS LOOP "{% set ns.l = [ns.l] %}" END "{{ ns.l }}", 0, "", ""},
    {DEPTH, NS LOOP "{% set ns.d = {'a': ns.d} %}" END "{{ ns.d|tojson }}", 0, "", ""},
    /* what shares its parts */
    {"the template needs more than", NS "{% for i in range(60) %}" TWICE END "{{ ns.l|string }}", 0, "", ""},
    {MEMORY, NS "{% for i in range(60) %}" TWICE END "{{ ns.l|tojson(indent=4) }}", 0, "", ""},
    {STEPS, NS "{% for i in range(60) %}" TWICE END "{% set a = ns.l %}{% set ns.l = [] %}", 1,
     "{% for i in range(60) %}" TWICE END, "{{ a == ns.l }}"},
    {STEPS, TUPLES "{{ {ns.l: 1} }}", 0, "", ""},
    {STEPS, TUPLES "{{ [ns.l, ns.l]|unique|list }}", 0, "", ""},
    /* strings */
    {STEPS, "{{ 'x' * 10 ** 9 }}", 0, "", ""},
    {STEPS, "{{ s * 10 ** 3 }}", 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.s = ns.s ~ ns.s %}" END, 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.s = ns.s + ns.s %}" END, 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.s %}{{ ns.s }}{{ ns.s }}{% endset %}" END, 0, "", ""},
    {NULL, NS LOOP "{% set ns.s = ns.s ~ '0123456789' %}" END, 0, "", ""}, /* a megabyte, made in linear time */
    {NULL, NS LOOP "{% set ns.s = ns.s + '0123456789' %}" END, 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.s = ns.s ~ '0123456789' * 99 %}" END, 0, "", ""},
    {MEMORY, "{{ s|replace('a', s) }}", 0, "", ""},
    {MEMORY, "{{ s.replace('', s) }}", 0, "", ""},
    {MEMORY, "{{ ([1] * 1000)|join(s) }}", 0, "", ""},
    {MEMORY, "{{ s.join('x' * 1000) }}", 0, "", ""},
    {STEPS, "{{ 'a'|center(10 ** 12) }}{{ 'a'.ljust(10 ** 12) }}", 0, "", ""},
    {STEPS, "{{ 'a'.zfill(10 ** 12) }}", 0, "", ""},
    {STEPS, "{{ 'a\nb'|indent(10 ** 12) }}", 0, "", ""},
    {MEMORY, "{{ ('a\n' * 1000)|indent(s) }}", 0, "", ""},
    {STEPS, "{{ [[1]]|tojson(indent=10 ** 12) }}", 0, "", ""},
    {MEMORY, LOOP "{{ s }}" END, 0, "", ""},
    {MEMORY, LOOP, 2000, "0123456789", END},
    /* formats and numbers */
    {WIDTH, "{{ '%1000000000d' % 1 }}", 0, "", ""},
    {WIDTH, "{{ '%*d' % (10 ** 9, 1) }}", 0, "", ""},
    {WIDTH, "{{ '{:1000000000}'.format(1) }}", 0, "", ""},
    {DIGITS, "{{ '%.1000f' % 1.5 }}", 0, "", ""},
    {STEPS, LOOP "{% set x = '%1000000d' % 1 %}" END, 0, "", ""},
    {MEMORY, "{{ ('{0}' * 1000).format(s) }}", 0, "", ""},
    {INT64, "{{ 10 ** (10 ** 18) }}", 0, "", ""},
    {STEPS, LOOP LOOP "{% set x = 1.0e300|round(2) ~ 0.1 %}" END END, 0, "", ""},
    {MEMORY, LOOP LOOP "{% set x = '%.50f' % 1e300 %}" END END, 0, "", ""},
    /* methods over long strings */
    {STEPS, REPEAT("s.count('ab')"), 0, "", ""},
    {STEPS, REPEAT("s.find('a' * 100 ~ 'b')"), 0, "", ""},
    {STEPS, REPEAT("s.rfind('b' ~ 'a' * 100)"), 0, "", ""},
    {STEPS, REPEAT("s.replace('a' * 1000 ~ 'b', '')"), 0, "", ""},
    {STEPS, REPEAT("('a' * 1000 ~ 'b') in s"), 0, "", ""},
    {STEPS, REPEAT("s.strip('bcdefgha')"), 0, "", ""},
    {STEPS, "{{ s.strip(u ~ 'a') }}", 0, "", ""},
    {STEPS, REPEAT("u.isalpha()"), 0, "", ""},
    {STEPS, REPEAT("u is lower"), 0, "", ""},
    {STEPS, REPEAT("u|upper"), 0, "", ""},
    {STEPS, REPEAT("u[i]"), 0, "", ""},
    {STEPS, REPEAT("u[::-1]"), 0, "", ""},
    {STEPS, REPEAT("u|length"), 0, "", ""},
    {STEPS, REPEAT("u|truncate(10)"), 0, "", ""},
    {STEPS, REPEAT("b|wordcount"), 0, "", ""},
    {STEPS, REPEAT("('<' * 9999)|striptags"), 0, "", ""},
    {STEPS, REPEAT("s == s"), 0, "", ""},
    {STEPS, REPEAT("{s: 1}"), 0, "", ""},
    {STEPS, REPEAT("s.startswith((s, s))"), 0, "", ""},
    {MEMORY, REPEAT("b.split()"), 0, "", ""},
    {MEMORY, REPEAT("s|list"), 0, "", ""},
    {MEMORY, REPEAT("u|tojson(ensure_ascii=true)"), 0, "", ""},
    {STEPS, REPEAT("s|urlencode"), 0, "", ""},
    /* lists and dicts */
    {STEPS, "{{ [1] * 10 ** 9 }}", 0, "", ""},
    {MEMORY, NS "{% set ns.l = [1] %}" LOOP "{% set ns.l = ns.l + ns.l %}" END, 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.l = ns.l + [1] %}" END, 0, "", ""},
    {MEMORY, NS LOOP "{% set ns.d = dict(ns.d, **{'k' ~ i: 1}) %}" END, 0, "", ""},
    {MEMORY, REPEAT("b|sort"), 0, "", ""},
    {STEPS, "{{ ([s] * 9999)|sort|length }}", 0, "", ""},
    {MEMORY, REPEAT("([{'a': 1}] * 9999)|groupby('a')"), 0, "", ""},
    {MEMORY, REPEAT("range(99999)|unique|list"), 0, "", ""},
    {MEMORY, REPEAT("range(99999)|batch(1)|list"), 0, "", ""},
    {MEMORY, "{{ [1]|batch(10 ** 12, 'x')|list }}", 0, "", ""},
    {MEMORY, "{{ [1]|slice(10 ** 12)|list }}", 0, "", ""},
    {MEMORY, "{{ ([[1] * 999] * 99999)|sum(start=[]) }}", 0, "", ""},
    {MEMORY, REPEAT("range(99999)|map('string')|list"), 0, "", ""},
    {MEMORY, "{% macro m() %}{% endmacro %}{% macro v() %}{{ varargs|length }}{% endmacro %}" LOOP "{{ v(*range(99999)) }}" END, 0, "", ""},
    /* long sources */
    {NESTED, "{{ ", 250, "(", "1" FIFTY(")") FIFTY(")") FIFTY(")") FIFTY(")") FIFTY(")") "}}"},
    {NESTED, "{{ ", 250, "[", FIFTY("]") FIFTY("]") FIFTY("]") FIFTY("]") FIFTY("]") "}}"},
    {NESTED, "{{ ", 9999, "not ", "1 }}"},
    {NESTED, "{{ ", 9999, "-", "1 }}"},
    {NESTED, "{{ 1", 9999, " if 0 else 1", " }}"},
    {NESTED, "", 9999, "{% if 1 %}", ""},
    {NESTED, "", 9999, LOOP, ""},
    {DEPTH, "{{ 1", 9999, "+1", " }}"},
    {DEPTH, "{{ 'a'", 9999, "|upper", " }}"},
    {DEPTH, "{{ s", 9999, ".upper()", " }}"},
    {DEPTH, "{{ 0", 9999, " or 0", " }}"},
    {NULL, "{{ 1", 30000, "~1", " }}"},
    {"more than 8388608 bytes", "{% if 0 %}{{ [", 100000, "[],", "] }}{% endif %}"},
    {"at most 524288 are read", "", 99999, "{{ x }}", ""},
};

/* n definitions "{% set a0=1 %}…" or parameters. */
static void numbered(nib_buf *out, const char *format, int n) {
    for (int i = 0; i < n; i++) nib_buf_printf(out, format, i);
}

static void render(const bomb *b, const nib_buf *text, const nib_buf *data) {
    nib_template *tmpl = NULL;
    nib_rendered out = {0};
    nib_error err = {0};
    clock_t start = clock();
    nib_status status = nib_template_new(&tmpl, text->ptr, text->len, &err);
    if (status == NIB_OK) status = nib_template_render(tmpl, data->ptr, data->len, NULL, &out, &err);
    double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if ((status == NIB_OK) != !b->limit) fail_msg("%.100s: %s", text->ptr, status == NIB_OK ? "no limit was reached" : err.message);
    if (b->limit && !strstr(err.message, b->limit)) fail_msg("%.100s: %s, expected %s", text->ptr, err.message, b->limit);
    if (seconds > 1 && !IS_SLOW) fail_msg("%.100s: %.2f seconds", text->ptr, seconds);
    nib_rendered_free(&out);
    nib_template_free(tmpl);
}

static void make_data(nib_buf *data) {
    nib_buf_str(data, "{\"l\":[");
    for (int i = 0; i < 9999; i++) nib_buf_printf(data, "%d,", i);
    nib_buf_str(data, "0],\"s\":\"");
    for (int i = 0; i < 1000000; i++) nib_buf_char(data, 'a');
    nib_buf_str(data, "\",\"u\":\"");
    for (int i = 0; i < 1000000; i++) nib_buf_str(data, "é");
    nib_buf_str(data, "\",\"b\":\"");
    for (int i = 0; i < 500000; i++) nib_buf_str(data, i % 2 ? "b " : "a ");
    nib_buf_str(data, "\"}");
}

static void test_bombs(void **state) {
    (void)state;
    nib_buf data = {0};
    make_data(&data);
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        nib_buf text = {0};
        nib_buf_str(&text, bombs[i].head);
        for (uint32_t k = 0; k < bombs[i].n; k++) nib_buf_str(&text, bombs[i].part);
        nib_buf_str(&text, bombs[i].tail);
        nib_buf_cstr(&text);
        assert_false(text.failed);
        render(&bombs[i], &text, &data);
        nib_buf_free(&text);
    }
    nib_buf_free(&data);
}

/* Names are looked for one by one. */
static void test_many_names(void **state) {
    (void)state;
    static const struct {
        const char *head, *part, *tail;
        int n;
    } rows[] = {
        {"", "{%% set a%d=1 %%}", "", 12000},
        {"", "{%% macro a%d() %%}{%% endmacro %%}", "", 12000},
        {"{% with z=1", ",a%d=1", " %}{% endwith %}", 12000},
        {"{% macro m(z", ",a%d", ") %}{% endmacro %}{{ m() }}", 12000},
        {"{% for z", ",a%d", " in [range(12001)] %}{% endfor %}", 12000},
    };
    bomb b = {STEPS, "", 0, "", ""};
    nib_buf data = {0};
    nib_buf_str(&data, "{}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        nib_buf text = {0};
        nib_buf_str(&text, rows[i].head);
        numbered(&text, rows[i].part, rows[i].n);
        nib_buf_str(&text, rows[i].tail);
        nib_buf_cstr(&text);
        render(&b, &text, &data);
        nib_buf_free(&text);
    }
    nib_buf_free(&data);
}

static void test_memory(void **state) {
    (void)state;
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    if (usage.ru_maxrss > 64 * 1024 && !IS_SLOW) fail_msg("%ld KiB at most", usage.ru_maxrss);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_many_names),
        cmocka_unit_test(test_memory), /* of all before */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
