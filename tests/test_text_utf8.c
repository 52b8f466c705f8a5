/* tests/test_text_utf8.c - every character there and back, and what counts as malformed. */
#include "text/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void test_round_trip(void **state) {
    (void)state;
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char bytes[4];
        uint32_t back = 0;
        size_t n = nib_text_utf8_put(c, bytes);
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        assert_int_equal(nib_text_utf8_len(bytes[0]), n);
        assert_int_equal(nib_text_utf8_get(bytes, n, &back), n);
        assert_int_equal(back, c);
        for (size_t cut = 1; cut < n; cut++) assert_int_equal(nib_text_utf8_get(bytes, cut, &back), 0);
    }
}

static void test_malformed(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t len;
        uint32_t c;
    } cases[] = {
        {"\x80", 0, 0},         {"\xBF\x80", 0, 0},         {"\xC3", 0, 0},   {"\xC3(", 0, 0},
        {"\xE2\x82", 0, 0},     {"\xF4\x90\x80\x80", 0, 0}, {"\xF8\x88\x80\x80\x80", 0, 0},
        {"\xFF", 0, 0},         {"\xC0\xAF", 2, '/'}, /* overlong */
        {"\xED\xA0\x80", 3, 0xD800}, /* a surrogate */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t c = 0;
        assert_int_equal(nib_text_utf8_get(cases[i].bytes, strlen(cases[i].bytes), &c), cases[i].len);
        if (cases[i].len) assert_int_equal(c, cases[i].c);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
