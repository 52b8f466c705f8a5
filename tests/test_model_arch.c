/* tests/test_model_arch.c - the table of architectures. */
#include "model/arch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const nib_arch *find(const char *name) {
    return nib_arch_find((nib_str){name, strlen(name)});
}

static void test_every_row(void **state) {
    (void)state;
    size_t n = 0;
#define X(id)                                                                                                          \
    {                                                                                                                  \
        const nib_arch *a = find(#id);                                                                                 \
        assert_ptr_equal(a, &nib_arch_##id);                                                                           \
        assert_string_equal(a->name, #id);                                                                             \
        assert_non_null(strstr(nib_arch_names(), #id));                                                                \
        n++;                                                                                                           \
    }
#include "model/archs.def"
#undef X
    assert_true(n >= 4);
}

static void test_names_are_whole(void **state) {
    (void)state;
    static const char *const wrong[] = {"", "llam", "llama2", "Llama", "qwen", "gemma", "llama ", "gemma3n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_null(find(wrong[i]));
    assert_null(nib_arch_find((nib_str){"llama\0", 6})); /* names come from files with their length */
    assert_ptr_equal(nib_arch_find((nib_str){"llama-and-more", 5}), &nib_arch_llama);
    assert_null(nib_arch_find((nib_str){0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_names_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
