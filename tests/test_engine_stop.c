/* tests/test_engine_stop.c - stop strings against the definition: whatever the cuts, the text up to the first stop
 * string comes out, and never more is held back than could become one. */
#include "base/buf.h"
#include "nib.h"
#include "support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_STOPS 4

typedef struct stops {
    nib_str list[MAX_STOPS];
    size_t n;
} stops;

static bool ends_with(const char *text, size_t len, nib_str s) {
    return len >= s.len && memcmp(text + len - s.len, s.ptr, s.len) == 0;
}

/* The stop string that is complete after len bytes, the longest of several, the first of equal ones; -1: none. */
static int complete_at(const stops *list, const char *text, size_t len) {
    int found = -1;
    for (size_t i = 0; i < list->n; i++) {
        if (!ends_with(text, len, list->list[i])) continue;
        if (found < 0 || list->list[i].len > list->list[found].len) found = (int)i;
    }
    return found;
}

/* Bytes at the end of text that begin a stop string. */
static size_t held_at(const stops *list, const char *text, size_t len) {
    size_t held = 0;
    for (size_t i = 0; i < list->n; i++)
        for (size_t n = 1; n < list->list[i].len; n++)
            if (n > held && ends_with(text, len, (nib_str){list->list[i].ptr, n})) held = n;
    return held;
}

/* Feeds the text in pieces of the given length (0: of random lengths) and checks every step. */
static void check(const stops *list, const char *text, size_t len, size_t piece, uint64_t *seed) {
    nib_stop *stop;
    nib_error err;
    nib_str show;
    size_t at = 0, shown = 0;
    assert_int_equal(nib_stop_new(&stop, list->list, list->n, &err), NIB_OK);
    while (at < len) {
        size_t n = piece ? piece : blocks_random(seed) % 6;
        if (n > len - at) n = len - at;
        int found = nib_stop_push(stop, (nib_str){text + at, n}, &show), wanted = -1;
        size_t end = at;
        while (end < at + n && wanted < 0) wanted = complete_at(list, text, ++end);
        at += n;
        assert_int_equal(found, wanted);
        assert_memory_equal(show.ptr, text + shown, show.len);
        shown += show.len;
        if (found >= 0) {
            assert_int_equal(shown, end - list->list[found].len);
            assert_int_equal(nib_stop_push(stop, (nib_str){"more", 4}, &show), found);
            assert_int_equal(show.len, 0);
            assert_int_equal(nib_stop_finish(stop).len, 0);
            nib_stop_free(stop);
            return;
        }
        assert_int_equal(shown, at - held_at(list, text, at));
    }
    nib_str rest = nib_stop_finish(stop);
    assert_int_equal(rest.len, len - shown);
    assert_memory_equal(rest.ptr, text + shown, rest.len);
    assert_int_equal(nib_stop_finish(stop).len, 0);
    nib_stop_free(stop);
}

static void test_all_cuts(void **state) {
    (void)state;
    static const char *const lists[][MAX_STOPS] = {
        {"DEFGHIJ"},    {"abab", "ba"},      {"aa"},               {"aab", "aaab"},
        {"\n\n", "\n"}, {"b", "abc", "bc"}, {"<|im_end|>", "<|"}, {NULL},
    };
    static const char text[] = "ABCDEFGHDEFGHIaababaaabc\n<\n<|im_\n\nDEFGHIJ<|im_end|>x";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        stops s = {.n = 0};
        for (; s.n < MAX_STOPS && lists[i][s.n]; s.n++) s.list[s.n] = (nib_str){lists[i][s.n], strlen(lists[i][s.n])};
        for (size_t piece = 1; piece <= sizeof text; piece++) check(&s, text, sizeof text - 1, piece, NULL);
    }
}

static void test_random(void **state) {
    (void)state;
    uint64_t seed = 2;
    for (int round = 0; round < 3000; round++) {
        char text[60], strings[MAX_STOPS][8];
        stops s = {.n = blocks_random(&seed) % (MAX_STOPS + 1)};
        for (size_t i = 0; i < s.n; i++) {
            s.list[i] = (nib_str){strings[i], 1 + blocks_random(&seed) % 7};
            for (size_t k = 0; k < s.list[i].len; k++) strings[i][k] = "ab"[blocks_random(&seed) % 2];
        }
        for (size_t k = 0; k < sizeof text; k++) text[k] = "aabc"[blocks_random(&seed) % 4];
        check(&s, text, sizeof text, 0, &seed);
    }
}

/* Half a megabyte that nearly matches everywhere: a search that starts anew at each byte would take hours. */
static void test_linear(void **state) {
    (void)state;
    enum { N = 1 << 19 };
    char *text = malloc(N);
    nib_stop *stop;
    nib_str show;
    assert_non_null(text);
    memset(text, 'a', N);
    text[N - 1] = 'b';
    nib_str string = {text, N};
    assert_int_equal(nib_stop_new(&stop, &string, 1, NULL), NIB_OK);
    for (int i = 0; i < 2; i++) { /* twice all but the last */
        assert_int_equal(nib_stop_push(stop, (nib_str){text, N - 1}, &show), -1);
        assert_int_equal(show.len, i ? N - 1 : 0);
    }
    assert_int_equal(nib_stop_push(stop, (nib_str){"b", 1}, &show), 0);
    assert_int_equal(show.len, 0);
    nib_stop_free(stop);
    free(text);
}

static void test_errors(void **state) {
    (void)state;
    nib_stop *stop;
    nib_error err;
    static const nib_str strings[] = {{"a", 1}, {"", 0}};
    assert_int_equal(nib_stop_new(&stop, strings, 2, &err), NIB_E_ARG);
    assert_null(stop);
    assert_non_null(strstr(err.message, "stop string 1 is empty"));
    nib_stop_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_cuts),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_linear),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
