/* tests/test_decode_batch.c - batches: limits, order, clearing. */
#include "decode/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void test_limits(void **state) {
    (void)state;
    nib_error err;
    nib_batch *b = (nib_batch *)&err;
    assert_int_equal(nib_batch_new(&b, 0, &err), NIB_E_ARG);
    assert_null(b);
    assert_string_equal(err.message, "a batch of 0 tokens: expected 1 to 16777216");
    assert_int_equal(nib_batch_new(&b, (1u << 24) + 1, NULL), NIB_E_ARG);
    assert_int_equal(nib_batch_new(&b, UINT32_MAX, NULL), NIB_E_ARG);
    nib_batch_free(NULL);
}

static void test_add(void **state) {
    (void)state;
    nib_error err;
    nib_batch *b;
    for (uint32_t capacity = 1; capacity < 2000; capacity = capacity * 3 + 1) {
        assert_int_equal(nib_batch_new(&b, capacity, &err), NIB_OK);
        for (int round = 0; round < 2; round++) {
            assert_int_equal(nib_batch_n(b), 0);
            for (uint32_t i = 0; i < capacity; i++)
                assert_int_equal(nib_batch_add(b, (nib_token)(i + 7), i % 2 ? NIB_POS_NEXT : (int32_t)i, i % 5, i % 3 == 0, &err), NIB_OK);
            assert_int_equal(nib_batch_n(b), capacity);
            assert_int_equal(nib_batch_add(b, 1, 0, 0, true, &err), NIB_E_LIMIT);
            char want[80];
            snprintf(want, sizeof want, "the batch is full: it holds %u tokens", capacity);
            assert_string_equal(err.message, want);
            assert_int_equal(nib_batch_n(b), capacity);
            for (uint32_t i = 0; i < capacity; i++) {
                const nib_batch_entry *e = &b->entries[i];
                assert_int_equal(e->token, i + 7);
                assert_int_equal(e->pos, i % 2 ? NIB_POS_NEXT : (int32_t)i);
                assert_int_equal(e->seq, i % 5);
                assert_int_equal(e->want_logits, i % 3 == 0);
            }
            nib_batch_clear(b);
        }
        nib_batch_free(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
