/* tests/test_text_special.c - text cut at added tokens. */
#include "base/buf.h"
#include "text/special.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    const char *text;
    unsigned attr;
} tokens[] = {
    {"<s>", NIB_TOKEN_CONTROL},
    {"<s><s>", NIB_TOKEN_CONTROL},
    {"<unk>", NIB_TOKEN_UNKNOWN},
    {"\n", NIB_TOKEN_USER},
    {"\n\n\n", NIB_TOKEN_USER},
    {"<left>", NIB_TOKEN_CONTROL | NIB_TEXT_STRIP_LEFT},
    {"<right>", NIB_TOKEN_CONTROL | NIB_TEXT_STRIP_RIGHT},
    {"word", NIB_TOKEN_NORMAL},
    {"abcd", NIB_TOKEN_USER},
    {"cdefgh", NIB_TOKEN_USER},
    {"abc", NIB_TOKEN_CONTROL | NIB_TOKEN_USER},
    {"<call>", NIB_TOKEN_USER | NIB_TEXT_MARKUP},
};
#define N_TOKENS (sizeof tokens / sizeof tokens[0])

typedef struct fixture {
    nib_text_vocab vocab;
    nib_text_special special;
} fixture;

static int setup(void **state) {
    static fixture f;
    if (nib_text_vocab_init(&f.vocab, N_TOKENS + 1, 256, NULL) != NIB_OK) return -1;
    for (size_t i = 0; i < N_TOKENS; i++) {
        nib_text_vocab_add(&f.vocab, (nib_str){tokens[i].text, strlen(tokens[i].text)});
        f.vocab.attr[i] = (uint16_t)tokens[i].attr;
    }
    nib_text_vocab_add(&f.vocab, (nib_str){"", 0}); /* a control token without a text */
    f.vocab.attr[N_TOKENS] = NIB_TOKEN_CONTROL;
    *state = &f;
    return nib_text_special_init(&f.special, &f.vocab, NULL) == NIB_OK ? 0 : -1;
}

static int teardown(void **state) {
    fixture *f = *state;
    nib_text_special_free(&f->special);
    nib_text_vocab_free(&f->vocab);
    return 0;
}

/* Plain pieces as they are, ids in brackets. */
static void expect_spans(const fixture *f, const char *text, const nib_span *spans, unsigned guarded, const char *pieces) {
    nib_buf out = {0};
    nib_text_fragment fragment;
    nib_str all = {text, strlen(text)};
    nib_text_special_walk walk = nib_text_special_begin(&f->special, &f->vocab, all, spans, guarded);
    while (nib_text_special_next(&walk, &fragment)) {
        if (out.len) nib_buf_char(&out, '|');
        if (fragment.id != NIB_TOKEN_NONE) nib_buf_printf(&out, "[%d]", fragment.id);
        else nib_buf_append(&out, fragment.text.ptr, fragment.text.len);
        assert_true(fragment.id != NIB_TOKEN_NONE || fragment.text.len > 0);
    }
    assert_string_equal(nib_buf_cstr(&out), pieces);
    assert_false(nib_text_special_next(&walk, &fragment));
    nib_buf_free(&out);
}

static void expect(const fixture *f, const char *text, bool parse_control, const char *pieces) {
    nib_span all = {strlen(text), parse_control};
    expect_spans(f, text, &all, NIB_TEXT_GUARD_CONTROL, pieces);
}

static void test_cut(void **state) {
    const fixture *f = *state;
    expect(f, "", true, "");
    expect(f, "a word", true, "a word"); /* normal tokens are plain text */
    expect(f, "<s>", true, "[0]");
    expect(f, "a<s>b<unk>", true, "a|[0]|b|[2]");
    expect(f, "<s><s><s>", true, "[1]|[0]"); /* the longest at each place */
    expect(f, "<<s><", true, "<|[0]|<");
    expect(f, "a\n\n\n\n\nb", true, "a|[4]|[3]|[3]|b");
    expect(f, "abcdefgh", true, "[8]|efgh"); /* the leftmost, though the other is longer */
    expect(f, "abcx", true, "[10]|x");
}

static void test_control_off(void **state) {
    const fixture *f = *state;
    expect(f, "a<s>\n<unk>", false, "a<s>|[3]|<unk>");
    expect(f, "abcdx abc", false, "[8]|x abc"); /* a token that is control and user-defined is control */
}

static void test_strip(void **state) {
    const fixture *f = *state;
    expect(f, "a \t<left> b", true, "a|[5]| b");
    expect(f, " <left><left> ", true, "[5]|[5]| ");
    expect(f, "a <right> \v b", true, "a |[6]|b");
    expect(f, "<right>  ", true, "[6]");
    expect(f, "<right> <left>", true, "[6]|[5]");
}

/* Spans that begin trusted and take turns. */
static void test_spans(void **state) {
    const fixture *f = *state;
    static const nib_span first[] = {{3, true}, {3, false}, {3, true}}, inside[] = {{1, true}, {1, false}, {1, true}};
    static const nib_span cut[] = {{0, true}, {2, false}, {1, true}, {0, false}}, empty[] = {{0, false}};
    static const nib_span call[] = {{6, true}, {6, false}}, pair[] = {{2, true}, {1, true}, {3, false}};
    expect_spans(f, "<s><s><s>", first, NIB_TEXT_GUARD_ALL, "[0]|<s>|[0]"); /* no longer match across the border */
    expect_spans(f, "<s>", inside, NIB_TEXT_GUARD_ALL, "<s>");
    expect_spans(f, "<s>", cut, NIB_TEXT_GUARD_ALL, "<s>");
    expect_spans(f, "\n\n\n", cut, NIB_TEXT_GUARD_ALL, "[4]"); /* tokens that are text go across */
    expect_spans(f, "", empty, NIB_TEXT_GUARD_ALL, "");
    expect_spans(f, "<call><call>", call, NIB_TEXT_GUARD_ALL, "[11]|<call>");
    expect_spans(f, "<call><call>", call, NIB_TEXT_GUARD_CONTROL, "[11]|[11]");
    expect_spans(f, "<s><s>", pair, NIB_TEXT_GUARD_ALL, "[0]|<s>"); /* neighbours that are both trusted */
}

/* White space that a token swallows may lie in other spans, and the walk goes on behind it. */
static void test_spans_strip(void **state) {
    const fixture *f = *state;
    static const nib_span spans[] = {{7, true}, {1, false}, {1, true}, {4, false}, {7, true}};
    expect_spans(f, "<right>  <s> <right>", spans, NIB_TEXT_GUARD_ALL, "[6]|<s> |[6]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_control_off),
        cmocka_unit_test(test_strip),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_spans_strip),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
