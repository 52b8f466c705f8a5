/* tests/test_gguf_index.c - items by name, and names that occur twice. */
#include "gguf/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct item {
    nib_str name;
    int number;
} item;

static nib_str str(const char *s) {
    return (nib_str){s, strlen(s)};
}

static void finds(void **state) {
    (void)state;
    nib_error err;
    item items[] = {{str("b"), 0}, {str("a"), 1}, {str(""), 2}, {{"a\0b", 3}, 3}, {str("ab"), 4}};
    nib_gguf_index index = {0};
    assert_int_equal(nib_gguf_index_build(&index, items, 5, sizeof *items, &err), NIB_OK);
    for (int i = 0; i < 5; i++) assert_ptr_equal(nib_gguf_index_find(&index, items[i].name), &items[i]);
    assert_null(nib_gguf_index_find(&index, str("c")));
    assert_null(nib_gguf_index_find(&index, (nib_str){"a\0c", 3}));
    const void *earlier;
    assert_null(nib_gguf_index_duplicate(&index, &earlier));
    nib_gguf_index_free(&index);
    nib_gguf_index_free(&index);
}

static void empty(void **state) {
    (void)state;
    nib_gguf_index index = {0};
    const void *earlier;
    assert_null(nib_gguf_index_find(&index, str("a")));
    assert_int_equal(nib_gguf_index_build(&index, NULL, 0, sizeof(item), NULL), NIB_OK);
    assert_null(nib_gguf_index_find(&index, str("a")));
    assert_null(nib_gguf_index_duplicate(&index, &earlier));
    nib_gguf_index_free(&index);
}

/* The first in the order of the items is reported, with the one just before it of the same name. */
static void duplicates(void **state) {
    (void)state;
    item items[] = {{str("x"), 0}, {str("y"), 1}, {str("z"), 2}, {str("y"), 3}, {str("x"), 4}, {str("x"), 5}};
    nib_gguf_index index = {0};
    const void *earlier = NULL;
    assert_int_equal(nib_gguf_index_build(&index, items, 6, sizeof *items, NULL), NIB_OK);
    assert_ptr_equal(nib_gguf_index_duplicate(&index, &earlier), &items[3]);
    assert_ptr_equal(earlier, &items[1]);
    nib_gguf_index_free(&index);
}

static void many(void **state) {
    (void)state;
    enum { N = 100000, LEN = 24 };
    char *names = malloc(N * LEN);
    item *items = malloc(N * sizeof *items);
    assert_true(names && items);
    for (int i = 0; i < N; i++) {
        int len = snprintf(names + i * LEN, LEN, "blk.%d.weight", i);
        items[i] = (item){{names + i * LEN, (size_t)len}, i};
    }
    nib_gguf_index index = {0};
    const void *earlier = NULL;
    assert_int_equal(nib_gguf_index_build(&index, items, N, sizeof *items, NULL), NIB_OK);
    for (int i = 0; i < N; i++) assert_ptr_equal(nib_gguf_index_find(&index, items[i].name), &items[i]);
    assert_null(nib_gguf_index_duplicate(&index, &earlier));
    items[N - 1].name = items[17].name;
    assert_int_equal(nib_gguf_index_build(&index, items, N, sizeof *items, NULL), NIB_OK);
    assert_ptr_equal(nib_gguf_index_duplicate(&index, &earlier), &items[N - 1]);
    assert_ptr_equal(earlier, &items[17]);
    nib_gguf_index_free(&index);
    free(items);
    free(names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds),
        cmocka_unit_test(empty),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
