/* tests/test_jinja_template.c - chat templates: what they print, what of it is trusted, where they go wrong, and that their
 * limits hold. tests/jinja_oracle.py compares far more with jinja2. */
#include "nib.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char data[] = "{\"n\":7,\"s\":\"Hi <|x|>\",\"l\":[3,1,2],\"d\":{\"b\":1,\"a\":\"x\"},\"bos_token\":\"<s>\","
                           "\"u\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]}";

static nib_status render(const char *text, const nib_template_config *config, nib_rendered *out, nib_error *err) {
    nib_template *tmpl;
    nib_status status = nib_template_new(&tmpl, text, strlen(text), err);
    *out = (nib_rendered){0};
    if (status == NIB_OK) status = nib_template_render(tmpl, data, sizeof data - 1, config, out, err);
    nib_template_free(tmpl);
    return status;
}

static void prints(const char *text, const char *wanted) {
    nib_rendered out;
    nib_error err = {0};
    if (render(text, NULL, &out, &err) != NIB_OK) fail_msg("%s: %s", text, err.message);
    assert_string_equal(out.text ? out.text : "", wanted);
    nib_rendered_free(&out);
}

static void test_values(void **state) {
    (void)state;
    prints("{{ 0.1 + 0.2 }} {{ 1e16 }} {{ 7 // -2 }} {{ -7 % 3 }} {{ 2 ** 10 }} {{ 7 / 2 }}",
           "0.30000000000000004 1e+16 -4 2 1024 3.5");
    prints("{{ [1, 'a', none, true, (2,)] }} {{ {'k': 1.0} }}", "[1, 'a', None, True, (2,)] {'k': 1.0}");
    prints("{{ 'abc'[::-1] }}{{ l[-1] }}{{ 'é中x'[1:] }}{{ l[::2] }}", "cba2中x[3, 2]");
    prints("{{ 1 < 2 < 3 }} {{ 'b' in d }} {{ 2 not in l }} {{ not 1 == 2 }}", "True True False True");
    prints("{{ d.items()|list }} {{ d|dictsort }} {{ d|tojson }}",
           "[('b', 1), ('a', 'x')] [('a', 'x'), ('b', 1)] {\"b\": 1, \"a\": \"x\"}");
    prints("{{ 'a' if n > 5 else 'b' }}{{ nope|default('-') }}{{ nope }}{{ s is string }}", "a-True");
    prints("{{ u|selectattr('role', 'eq', 'user')|map(attribute='content')|join(',') }}", "a");
    prints("{{ 'a,b'.split(',') }}{{ ' x '.strip() }}{{ '%05.1f|%s' % (2.25, 'y') }}{{ '{:>3}'.format(1) }}",
           "['a', 'b']x002.2|y  1");
}

static void test_statements(void **state) {
    (void)state;
    prints("{% for x in l %}{{ loop.index }}{{ x }}{% if loop.last %}.{% else %},{% endif %}{% endfor %}", "13,21,32.");
    prints("{% for x in l if x > 1 %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}none{% endfor %}", "3");
    prints("{% set n = 1 %}{% for x in l %}{% set n = n + x %}{% endfor %}{{ n }}", "1");
    prints("{% set ns = namespace(n=1) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}", "7");
    prints("{% macro m(a, b=2) %}{{ a }}{{ b }}{{ kwargs }}{% endmacro %}{{ m(1) }}{{ m(b=3, a=1, c=4) }}", "12{}13{'c': 4}");
    prints("{% macro m() %}<{{ caller(5) }}>{% endmacro %}{% call(x) m() %}{{ x }}{% endcall %}", "<5>");
    prints("{% for x in [1, [2]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}", "12");
    prints("{% set x %}a{{ n }}{% endset %}{{ x|upper }}{% filter upper %}b{% endfilter %}", "A7B");
    prints("a\n  {% if 1 %}  \nb\n  {%- endif +%}\n{# c #}\n{% raw %}{{ x }}{% endraw %}\n", "a\n  \nb\n{{ x }}");
    prints("{% generation %}x{% endgeneration %}{% with y = 1 %}{{ y }}{% endwith %}", "x1");
}

/* Strings that are appended to share their beginning, and nothing else. */
static void test_long_strings(void **state) {
    (void)state;
    prints("{% set a = 'x' * 2000 %}{% set b = a ~ '1' %}{% set c = a ~ '2' %}{% set e = b + '3' %}{% set f = b ~ '4' %}"
           "{{ a[-2:] }} {{ b[-2:] }} {{ c[-2:] }} {{ e[-3:] }} {{ f[-3:] }} {{ a|length }} {{ f|length }} {{ f == a ~ '14' }}",
           "xx x1 x2 x13 x14 2000 2002 True");
    prints("{% set ns = namespace(a='a' * 1500, b='b' * 1500) %}{% for x in range(2000) %}{% set ns.a = ns.a ~ s[0] ~ x %}"
           "{% set ns.b = ns.b + '-' %}{% endfor %}{{ ns.a[-11:] }}{{ ns.b[1498:1502] }} {{ ns.a|length }} {{ ns.b|length }}",
           "7H1998H1999bb-- 10390 3500");
    prints("{% set a = 'x' * 2000 ~ '' %}{{ (a ~ a)|length }}{{ a ~ '' == a }}", "4000True");
}

/* A byte of a mark for each byte of the text: t trusted, u not. */
static void is_marked(const char *text, const char *trusted, const char *wanted) {
    nib_template_config config = NIB_TEMPLATE_CONFIG_INIT;
    nib_rendered out;
    nib_error err;
    char marks[200];
    size_t n = 0;
    if (trusted) config.trusted = trusted;
    if (render(text, &config, &out, &err) != NIB_OK) fail_msg("%s: %s", text, err.message);
    for (size_t i = 0; i < out.n_spans; n += out.spans[i++].len)
        memset(marks + n, out.spans[i].is_trusted ? 't' : 'u', out.spans[i].len);
    marks[n] = 0;
    assert_string_equal(marks, wanted);
    nib_rendered_free(&out);
}

static void test_spans(void **state) {
    (void)state;
    is_marked("<|x|>{{ s }}<|y|>", NULL, "tttttuuuuuuuuttttt");
    is_marked("{{ bos_token }}{{ n }}{{ n + 1 }}", NULL, "tttuu");
    is_marked("{{ bos_token }}", "", "uuu");
    is_marked("{{ ('<' + s[:2] + '>')|upper }}", NULL, "tuut");
    is_marked("{{ (s ~ '!')[::-1] }}", NULL, "tuuuuuuuu");
    is_marked("{{ ('x' * 2000 ~ s[:2] ~ 'y')[-5:] }}{{ ('x' * 2000 + s[:2])[-3:] }}", NULL, "ttuuttuu");
    is_marked("{{ (s * 200 ~ 'y' ~ s[0])[-4:] }}", NULL, "uutu");
    is_marked("{{ [s[0], 'b']|join('--') }}", NULL, "uttt");
    is_marked("{{ s[:2].replace('i', 'iii') }}", NULL, "uttt");
    is_marked("{{ ('  ' ~ s[:2] ~ ' ')|trim }}{{ ('a,' ~ s[:2]).split(',')|last }}", NULL, "uuuu");
    is_marked("{{ '%s=%s' % ('k', s[:2]) }}{{ '{}:'.format(s[0]) }}", NULL, "ttuuut");
    is_marked("{{ s[0].center(3) }}{{ s[:2]|indent(1, true) }}", NULL, "tuttuu");
    is_marked("{% set x %}a{{ s[0] }}{% endset %}{% macro m(y) %}{{ y }}b{% endmacro %}{{ m(x) }}", NULL, "tut");
    is_marked("{{ d.a|tojson }}{{ {'k': d.a} }}{{ 'k'|tojson }}", NULL, "uuuttttttuuutttt");
    is_marked("{% for k in d %}{{ k }}{% endfor %}{{ l }}", NULL, "uuuuuuuuuuu");
}

static void refuses(const char *text, const char *message, uint32_t wanted_line, uint32_t wanted_column) {
    nib_rendered out;
    nib_error err = {0};
    uint32_t line, column;
    assert_int_equal(render(text, NULL, &out, &err), NIB_E_FORMAT);
    if (!strstr(err.message, message)) fail_msg("%s: %s", text, err.message);
    nib_template_place(text, strlen(text), err.offset, &line, &column);
    assert_int_equal(line, wanted_line);
    assert_int_equal(column, wanted_column);
}

static void test_errors(void **state) {
    (void)state;
    refuses("a\n{{ nope.x }}", "'nope' is undefined", 2, 8);
    refuses("{{ raise_exception('no ' ~ n) }}", "no 7", 1, 19);
    refuses("{{ l|random }}", "must not depend on chance", 1, 6);
    refuses("{% autoescape true %}", "a prompt is no HTML", 1, 15);
    refuses("{{ raise_exception('\\0x') }}", "without a message", 1, 19);
    refuses("\r\n\r\n é{{ l.append(1) }}", "unsafe", 3, 14);
    refuses("{% if %}", "expected an expression", 1, 7);
    refuses("{% for x in l %}", "expected 'endfor'", 1, 17);
    refuses("{{ 'a }}", "does not end", 1, 4);
    refuses("{{ 9223372036854775807 + 1 }}", "beyond 64 bits", 1, 24);
    refuses("{{ 1|nofilter }}", "No filter named 'nofilter'", 1, 6);
    prints("{% if 0 %}{{ 1|nofilter }}{% endif %}", "");
    refuses("{% include 'x' %}", "not supported", 1, 12);
    nib_template *tmpl;
    nib_rendered out;
    nib_error err;
    assert_int_equal(nib_template_new(&tmpl, "\xFF", 1, &err), NIB_E_FORMAT);
    assert_int_equal(nib_template_new(&tmpl, "", 0, &err), NIB_OK);
    static const char *const bad[] = {"", "[]", "{", "{\"a\":01}", "{\"a\":1.}", "{\"a\":\"\\ud800\"}", "{} x",
                                      "{\"a\":99999999999999999999}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(nib_template_render(tmpl, bad[i], strlen(bad[i]), NULL, &out, &err), NIB_E_ARG);
    nib_template_free(tmpl);
}

/* Each ends with NIB_E_LIMIT and names its limit. */
static void test_limits(void **state) {
    (void)state;
    static const char *const bombs[][2] = {
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
        {"{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}", "memory"},
        {"{{ 'x' * 999999999999 }}", "memory"},
        {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nesting"},
        {"{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}{{ ns.x }}", "nesting"},
        {"{% for i in range(99999) %}{{ 'y' * 9999 }}{% endfor %}", "memory"},
        {"{{ 'x'.center(99999999999) }}", "memory"},
        {"{% set x = range(99999)|list %}{% for i in x %}{{ x == i }}{{ x|sort }}{% endfor %}", "memory"},
    };
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        nib_rendered out;
        nib_error err = {0};
        assert_int_equal(render(bombs[i][0], NULL, &out, &err), NIB_E_LIMIT);
        if (!strstr(err.message, bombs[i][1]) && !strstr(err.message, "steps")) fail_msg("%s: %s", bombs[i][0], err.message);
    }
    char deep[2001];
    memset(deep, '(', 2000);
    memcpy(deep, "{{", 2);
    deep[2000] = 0;
    nib_rendered out;
    nib_error err;
    assert_int_equal(render(deep, NULL, &out, &err), NIB_E_FORMAT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_statements), cmocka_unit_test(test_long_strings),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
