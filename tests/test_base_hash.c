/* tests/test_base_hash.c - the checksum notices every flipped bit, lost zeros, swapped words and other lengths. */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void test_every_bit(void **state) {
    (void)state;
    unsigned char bytes[200] = {0};
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 37);
    for (size_t n = 0; n <= sizeof bytes; n++) {
        uint64_t whole = nib_hash64(7, bytes, n);
        assert_true(whole == nib_hash64(7, bytes, n) && whole != nib_hash64(8, bytes, n));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(nib_hash64(7, bytes, n) != whole);
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

/* The highest bits of two words of one lane: with multiplications alone they would cancel out. */
static void test_pairs_of_bits(void **state) {
    (void)state;
    unsigned char bytes[512] = {0};
    uint64_t whole = nib_hash64(0, bytes, sizeof bytes);
    for (size_t a = 7; a < sizeof bytes; a += 8)
        for (size_t b = a + 8; b < sizeof bytes; b += 8) {
            bytes[a] = bytes[b] = 0x80;
            assert_true(nib_hash64(0, bytes, sizeof bytes) != whole);
            bytes[a] = bytes[b] = 0;
        }
}

static void test_order_and_length(void **state) {
    (void)state;
    static const unsigned char zeros[300];
    uint64_t seen[301];
    for (size_t n = 0; n <= 300; n++) {
        seen[n] = nib_hash64(0, zeros, n);
        for (size_t k = 0; k < n; k++) assert_true(seen[k] != seen[n]);
    }
    uint64_t words[64];
    for (uint64_t i = 0; i < 64; i++) words[i] = i;
    uint64_t whole = nib_hash64(0, words, sizeof words);
    for (size_t i = 0; i < 64; i++)
        for (size_t k = i + 1; k < 64; k++) {
            words[i] = k, words[k] = i;
            assert_true(nib_hash64(0, words, sizeof words) != whole);
            words[i] = i, words[k] = k;
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_pairs_of_bits),
        cmocka_unit_test(test_order_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
