/* tests/test_cli_keyboard.c - bytes from a terminal, here a pipe, to keys: sequences, characters in pieces, pastes. */
#include "../cli/glyph.c" /* the program is no library */
#include "../cli/keyboard.c"
#include "../cli/signals.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static int ends[2];

static int setup(void **state) {
    (void)state;
    return pipe(ends);
}

static void type(const char *bytes, size_t n) {
    assert_int_equal(write(ends[1], bytes, n), (ssize_t)n);
}

/* More arrives when everything was read. */
static void type_more(void *user, nib_cli_wait what) {
    const char **more = user;
    assert_int_equal(what, NIB_CLI_WAIT_TIMEOUT);
    if (*more) type(*more, strlen(*more));
    *more = NULL;
}

static void test_keys(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        uint32_t keys[6];
    } cases[] = {
        {"ab", {'a', 'b'}},
        {"\xe4\xb8\xad\xf0\x9f\x98\x80", {0x4E2D, 0x1F600}},
        {"\xe4\xb8x\xffy\xc3", {0xFFFD, 'x', 0xFFFD, 'y', 0xFFFD}},
        {"\033[A\033OD\033[3~", {28, 'u', 28, 'l', 28, 'x'}},
        {"\033[15~x\033[1;9Ry\033Pz", {'x', 'y', 27, 'P', 'z'}}, /* sequences that nobody knows */
        {"\033bx", {27, 'b', 'x'}},                              /* a key of Emacs */
        {"\033", {27}},
        {"\033\rx\033\n", {28, 'n', 'x', 28, 'n'}},
        {"\034x", {'x'}}, /* keys of ours cannot be typed */
        {"\033[1111111111111111111111111111111111111111111111~x", {'x'}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_cli_keyboard k = {.fd = ends[0]};
        type(cases[i].bytes, strlen(cases[i].bytes));
        for (size_t j = 0; j < 6 && cases[i].keys[j]; j++) {
            uint32_t key = 0;
            assert_true(nib_cli_keyboard_key(&k, &key));
            assert_int_equal(key, cases[i].keys[j]);
        }
    }
}

static void test_waits_for_the_rest(void **state) {
    (void)state;
    const char *more = "\x80x";
    nib_cli_keyboard k = {.fd = ends[0], .idle = type_more, .user = &more};
    uint32_t key = 0;
    type("y", 1);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 'y' && more);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 0xFFFD && !more); /* drawn before the wait, once */
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 'x');
}

static void test_paste(void **state) {
    (void)state;
    static const char bytes[] = "\033[200~a\rb\r\nc\n\td\033[A\003\0e\033[201~!";
    nib_cli_keyboard k = {.fd = ends[0]};
    nib_buf text = {0};
    uint32_t key = 0;
    type(bytes, sizeof bytes - 1);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 28);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 'p');
    assert_true(nib_cli_keyboard_paste(&k, &text));
    assert_int_equal(text.len, 14);
    assert_memory_equal(text.ptr, "a\nb\nc\n\td\033[A\003\0e", 14);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == '!');
    nib_buf_free(&text);
}

/* Ctrl-C ends a paste that has no end; one with something behind it belongs to the paste. */
static void test_paste_without_an_end(void **state) {
    (void)state;
    nib_cli_keyboard k = {.fd = ends[0]};
    nib_buf text = {0};
    type("a\003b\003", 4);
    assert_true(nib_cli_keyboard_paste(&k, &text));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.ptr, "a\003b", 3);
    nib_buf_free(&text);
}

static void test_signals(void **state) {
    (void)state;
    nib_cli_keyboard k = {.fd = ends[0]};
    uint32_t key = 0;
    nib_cli_signals_terminal(ends[0]);
    raise(SIGINT);
    assert_true(nib_cli_keyboard_key(&k, &key) && key == 3);
    assert_int_equal(nib_cli_interrupted(), 0);
    raise(SIGTERM);
    assert_false(nib_cli_keyboard_key(&k, &key));
    assert_int_equal(nib_cli_interrupted(), SIGTERM);
    nib_cli_signals_forget();
}

static void test_end(void **state) {
    (void)state;
    nib_cli_keyboard k = {.fd = ends[0]};
    uint32_t key = 0;
    nib_buf text = {0};
    type("\xe4", 1);
    close(ends[1]);
    assert_false(nib_cli_keyboard_key(&k, &key));
    assert_false(nib_cli_keyboard_paste(&k, &text));
    nib_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_waits_for_the_rest),
                                       cmocka_unit_test(test_paste), cmocka_unit_test(test_paste_without_an_end),
                                       cmocka_unit_test(test_signals), cmocka_unit_test(test_end)};
    return cmocka_run_group_tests(tests, setup, NULL);
}
