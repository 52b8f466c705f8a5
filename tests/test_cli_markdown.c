/* tests/test_cli_markdown.c - Markdown on a terminal: what it shows, that cuts do not matter, that nothing in a text can
 * command the terminal. */
#include "../cli/glyph.c" /* the program is no library */
#include "../cli/markdown.c"
#include "../cli/span.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* The text in pieces that end at the given places (ascending); frees nothing: the caller frees *out. */
static void render_cut(nib_str text, nib_cli_markdown_mode mode, const size_t *cuts, size_t n_cuts, nib_buf *out) {
    nib_cli_markdown md;
    size_t at = 0;
    nib_cli_markdown_init(&md, mode, 80);
    for (size_t i = 0; i <= n_cuts; i++) {
        size_t end = i < n_cuts ? cuts[i] : text.len;
        nib_cli_markdown_push(&md, (nib_str){text.ptr + at, end - at}, out);
        at = end;
    }
    nib_cli_markdown_finish(&md, out);
    nib_cli_markdown_free(&md);
}

/* Escape sequences as <1;36>, lines of a frame cut to three columns: easier to read in a table of cases. */
static void readable(const nib_buf *in, nib_buf *out) {
    for (size_t i = 0; i < in->len; i++) {
        const char *p = in->ptr + i;
        if (*p == 27) {
            const char *end = memchr(p, 'm', in->len - i);
            nib_buf_printf(out, "<%.*s>", (int)(end - p - 2), p + 2);
            i += (size_t)(end - p);
        } else if (i + 3 <= in->len && !memcmp(p, "─", 3)) {
            while (i + 6 <= in->len && !memcmp(in->ptr + i + 3, "─", 3)) i += 3;
            nib_buf_char(out, '-');
            i += 2;
        } else {
            nib_buf_char(out, *p);
        }
    }
}

static const struct {
    const char *text, *full;
} cases[] = {
    {"plain", "plain"},
    {"", ""},
    {"a **bold** b", "a <0;1>bold<0> b"},
    {"*it* and _it_", "<0;3>it<0> and <0;3>it<0>"},
    {"***both***", "<0;1;3>both<0>"},
    {"**bold *it* bold**", "<0;1>bold <0;1;3>it<0;1> bold<0>"},
    {"*it **bold***", "<0;3>it <0;1;3>bold<0>"},
    {"~~gone~~ ~kept~", "<0;9>gone<0> ~kept~"},
    {"`code` x", "<0;36>code<0> x"},
    {"`` a ` b ``", "<0;36>a ` b<0>"},
    {"`**not bold**`", "<0;36>**not bold**<0>"},
    {"**a `b*` c**", "<0;1>a <0;1;36>b*<0;1> c<0>"},
    {"文字**粗体**文字", "文字<0;1>粗体<0>文字"},
    /* malformed, or no mark at all */
    {"**never closed", "**never closed"},
    {"**never\nclosed**", "**never\nclosed**"},
    {"2**3 = 8, a*b*c, snake_case_name", "2**3 = 8, a*b*c, snake_case_name"},
    {"2 * 3 * 4", "2 * 3 * 4"},
    {"*.c and *.h", "*.c and *.h"},
    {"f(*args, **kwargs)", "f(*args, **kwargs)"},
    {"`open", "`open"},
    {"x ****", "x ****"},
    {"** a **", "** a **"},
    {"\\*not it\\* \\(x\\)", "*not it* \\(x\\)"},
    {"\\", "\\"},
    /* blocks */
    {"# Title\ntext", "<0;1;4>Title<0>\ntext"},
    {"## A *b*\n", "<0;1>A <0;1;3>b<0>\n"},
    {"#hash\n####### seven", "#hash\n####### seven"},
    {"- one\n  * two\n+ three", "<0;2>•<0> one\n  <0;2>•<0> two\n<0;2>•<0> three"},
    {"1. **one**\n2) two", "1. <0;1>one<0>\n2) two"},
    {"-no item\n-", "-no item\n-"},
    {"> said\n>> twice\n\nx", "<0;2>│ <0>said\n<0;2>│ <0><0;2>│ <0>twice\n\nx"},
    {"a\n---\nb", "a\n<0;2>-<0>\nb"},
    {"* * *\n", "<0;2>-<0>\n"},
    {"--\n", "--\n"},
    {"```python\nx = **1**\n\n  # y\n```\nz", "<0;2>┌- python -<0>\nx = **1**\n\n  # y\n<0;2>└-<0>\nz"},
    {"~~~\na\n```\n~~~~\n", "<0;2>┌-<0>\na\n```\n<0;2>└-<0>\n"},
    {"- a\n  ```c\n  int x;\n    y\n  ```\n",
     "<0;2>•<0> a\n<0;2>┌- c -<0>\nint x;\n  y\n<0;2>└-<0>\n"},
    {"```\nno end", "<0;2>┌-<0>\nno end\n<0;2>└-<0>"},
    {"```\n", "<0;2>┌-<0>\n<0;2>└-<0>"},
    {"```inline``` x", "<0;36>inline<0> x"},
    {"a\r\nb\rc", "a\nb␍c"},
    {"\ttab\n\n\n  end  ", "\ttab\n\n\n  end  "},
    /* what a terminal would obey */
    {"\x1b[31mred\x1b]0;title\x07\x08\x7f", "␛[31mred␛]0;title␇␈␡"},
    {"**\x1b[2J**", "<0;1>␛[2J<0>"},
    {"`\x1b[2J`\n```\x1b[2J\n\x1b[2J\n", "<0;36>␛[2J<0>\n<0;2>┌- ␛[2J -<0>\n␛[2J\n<0;2>└-<0>"},
    {"\xc2\x9b" "31m \x9b" "31m \xe2\x28 \xc0\x9b", "�31m �31m �( ��"},
};

static void test_cases(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_buf out = {0}, shown = {0};
        render_cut((nib_str){cases[i].text, strlen(cases[i].text)}, NIB_CLI_MARKDOWN_FULL, NULL, 0, &out);
        readable(&out, &shown);
        assert_string_equal(nib_buf_cstr(&shown), cases[i].full);
        nib_buf_free(&out);
        nib_buf_free(&shown);
    }
}

static void check_cut(nib_str text, nib_cli_markdown_mode mode, const size_t *cuts, size_t n_cuts, const nib_buf *whole) {
    nib_buf out = {0};
    render_cut(text, mode, cuts, n_cuts, &out);
    assert_int_equal(out.len, whole->len);
    assert_memory_equal(nib_buf_cstr(&out), whole->ptr ? whole->ptr : "", whole->len);
    nib_buf_free(&out);
}

/* Every cut in two, every cut in three of short texts, and byte by byte. */
static void check_cuts(nib_str text) {
    static size_t bytes[4096];
    for (int mode = NIB_CLI_MARKDOWN_RAW; mode <= NIB_CLI_MARKDOWN_FULL; mode++) {
        nib_buf whole = {0};
        render_cut(text, (nib_cli_markdown_mode)mode, NULL, 0, &whole);
        for (size_t i = 0; i < text.len; i++) {
            bytes[i] = i;
            check_cut(text, (nib_cli_markdown_mode)mode, &i, 1, &whole);
            for (size_t j = i; j < text.len && text.len < 48; j++)
                check_cut(text, (nib_cli_markdown_mode)mode, (size_t[]){i, j}, 2, &whole);
        }
        check_cut(text, (nib_cli_markdown_mode)mode, bytes, text.len, &whole);
        nib_buf_free(&whole);
    }
}

static void test_cuts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_cuts((nib_str){cases[i].text, strlen(cases[i].text)});
}

/* Lines around the lengths from which on marks and beginnings are given up. */
static void test_cuts_of_long_lines(void **state) {
    (void)state;
    static const char *const marks[] = {"**", "`", "-", "#", "```", "~~~x\n~", " ", "*a `", "\\"};
    for (size_t m = 0; m < sizeof marks / sizeof marks[0]; m++)
        for (size_t n = MAX_BEGIN - 4; n <= MAX_SPAN + 4; n += n == MAX_BEGIN + 4 ? MAX_SPAN - MAX_BEGIN - 8 : 1) {
            nib_buf text = {0};
            nib_buf_str(&text, marks[m]);
            while (text.len < n) nib_buf_char(&text, m % 2 ? 'x' : *marks[m]);
            nib_buf_str(&text, marks[m]);
            nib_buf_str(&text, "\nnext");
            size_t last = text.len - 8, bytes[1024];
            nib_buf whole = {0};
            render_cut((nib_str){text.ptr, text.len}, NIB_CLI_MARKDOWN_FULL, NULL, 0, &whole);
            for (size_t i = 0; i < text.len; i++) bytes[i] = i;
            check_cut((nib_str){text.ptr, text.len}, NIB_CLI_MARKDOWN_FULL, bytes, text.len, &whole);
            for (size_t cut = last; cut < text.len; cut++)
                check_cut((nib_str){text.ptr, text.len}, NIB_CLI_MARKDOWN_FULL, &cut, 1, &whole);
            nib_buf_free(&text);
            nib_buf_free(&whole);
        }
}

/* No byte of a text gets through as a control character; our own sequences are of styles only. */
static void check_is_tame(const nib_buf *out, bool styles) {
    for (size_t i = 0; i < out->len; i++) {
        unsigned char c = (unsigned char)out->ptr[i];
        uint32_t cp = 0;
        size_t n = nib_utf8_char(out->ptr + i, out->len - i, &cp);
        assert_true(n > 0);
        if (c == 27) {
            assert_true(styles && out->ptr[i + 1] == '[');
            for (i += 2; out->ptr[i] != 'm'; i++) assert_true(strchr("0123456789;", out->ptr[i]) != NULL);
            continue;
        }
        assert_true(c == '\n' || c == '\t' || !nib_utf8_is_control(cp));
        i += n - 1;
    }
}

static void test_random_texts(void **state) {
    (void)state;
    static const char *const words[] = {"*",  "**", "_",  "__", "`",  "```", "~~", "\n", " ",    "a",  "b c", "# ",       "- ",
                                        "> ", "1.", "\\", "-",  "\r", "\t",  "é",  "中", "\x1b", "[m", "\x9b", "\xc2\x9b", "\xe2"};
    enum { N_WORDS = sizeof words / sizeof words[0] };
    uint64_t random = 1;
    for (size_t round = 0; round < 400; round++) {
        nib_buf text = {0}, whole = {0};
        for (size_t i = 0; i < 4 + round % 40; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            nib_buf_str(&text, words[(random >> 33) % N_WORDS]);
        }
        nib_str all = {text.ptr, text.len};
        for (int mode = NIB_CLI_MARKDOWN_RAW; mode <= NIB_CLI_MARKDOWN_FULL; mode++) {
            whole.len = 0;
            render_cut(all, (nib_cli_markdown_mode)mode, NULL, 0, &whole);
            check_is_tame(&whole, mode == NIB_CLI_MARKDOWN_FULL);
            for (size_t cut = 0; cut < text.len; cut++)
                check_cut(all, (nib_cli_markdown_mode)mode, &cut, 1, &whole);
        }
        nib_buf_free(&text);
        nib_buf_free(&whole);
    }
}

static void test_modes(void **state) {
    (void)state;
    static const char text[] = "# T\n- **b** `c`\n> q\n```c\nx\n```\n\x1b[m";
    static const struct {
        nib_cli_markdown_mode mode;
        const char *shown;
    } modes[] = {{NIB_CLI_MARKDOWN_RAW, "# T\n- **b** `c`\n> q\n```c\nx\n```\n␛[m"},
                 {NIB_CLI_MARKDOWN_BLOCKS, "# T\n• **b** `c`\n│ q\n┌- c -\nx\n└-\n␛[m"}};
    for (size_t i = 0; i < 2; i++) {
        nib_buf out = {0}, shown = {0};
        render_cut((nib_str){text, sizeof text - 1}, modes[i].mode, NULL, 0, &out);
        readable(&out, &shown);
        assert_string_equal(nib_buf_cstr(&shown), modes[i].shown);
        nib_buf_free(&out);
        nib_buf_free(&shown);
    }
}

/* Words are shown as they come; marks wait for their partner only. */
static void test_held_back(void **state) {
    (void)state;
    static const struct {
        const char *piece, *shown;
    } pieces[] = {{"Hel", "Hel"},        {"lo **wor", "lo "}, {"ld", ""}, {"**!", "<0;1>world<0>!"}, {" 中", " 中"},
                  {" \xe4\xb8", " "}, {"\xad\n", "中\n"},  {"- a", "<0;2>•<0> a"}};
    nib_cli_markdown md;
    nib_cli_markdown_init(&md, NIB_CLI_MARKDOWN_FULL, 80);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        nib_buf out = {0}, shown = {0};
        nib_cli_markdown_push(&md, (nib_str){pieces[i].piece, strlen(pieces[i].piece)}, &out);
        readable(&out, &shown);
        assert_string_equal(nib_buf_cstr(&shown), pieces[i].shown);
        nib_buf_free(&out);
        nib_buf_free(&shown);
    }
    nib_cli_markdown_free(&md);
}

/* A megabyte of marks that never close is no matter of seconds. */
static void test_speed(void **state) {
    (void)state;
    static const char *const parts[] = {"*a _b ", "`", "**a", "> ", "word ", "*a **b ***c _d __e "};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        nib_buf text = {0}, out = {0};
        while (text.len < 1 << 16) nib_buf_str(&text, parts[i]);
        render_cut((nib_str){text.ptr, text.len}, NIB_CLI_MARKDOWN_FULL, NULL, 0, &out);
        nib_buf_free(&text);
        nib_buf_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),        cmocka_unit_test(test_cuts), cmocka_unit_test(test_cuts_of_long_lines),
        cmocka_unit_test(test_random_texts), cmocka_unit_test(test_modes), cmocka_unit_test(test_held_back),
        cmocka_unit_test(test_speed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
