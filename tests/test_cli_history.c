/* tests/test_cli_history.c - the file of what was typed: there and back, for its user alone, never too long, and what is
 * wrong with it is an error that leaves the program going. */
#define _XOPEN_SOURCE 700 /* replace.c */
#include "../cli/history.c" /* the program is no library */
#include "../cli/list.c"
#include "../cli/replace.c"
#include "../cli/xdg.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static char folder[] = "/tmp/nib-history-XXXXXX";
static char path[64];

static int setup(void **state) {
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/history", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void add(nib_cli_history *h, const char *entry) {
    assert_int_equal(nib_cli_history_add(h, (nib_str){entry, strlen(entry)}, NULL), NIB_OK);
}

static nib_cli_history opened(void) {
    nib_cli_history h = {0};
    nib_error err;
    assert_int_equal(nib_cli_history_open_path(&h, path, &err), NIB_OK);
    return h;
}

static void test_there_and_back(void **state) {
    (void)state;
    static const char *const entries[] = {"one", "two\nlines", "back\\slash \\n", "中文 \xff\t", "\\", "x\n"};
    enum { N = sizeof entries / sizeof entries[0] };
    nib_cli_history h = opened();
    struct stat st;
    for (size_t i = 0; i < N; i++) add(&h, entries[i]);
    add(&h, entries[N - 1]); /* the same again is not kept */
    add(&h, "");
    assert_int_equal(nib_cli_history_add(&h, (nib_str){"a\0b", 3}, NULL), NIB_OK); /* no line of text */
    assert_int_equal(h.entries.n, N);
    nib_cli_history_free(&h);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    h = opened();
    assert_int_equal(h.entries.n, N);
    for (size_t i = 0; i < N; i++) assert_string_equal(nib_cli_history_at(&h, i), entries[i]);
    nib_cli_history_free(&h);
    unlink(path);
}

static void test_others_are_kept_out(void **state) {
    (void)state;
    struct stat st;
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_true(fd >= 0 && write(fd, "old\nno newline", 14) == 14 && fchmod(fd, 0644) == 0);
    close(fd);
    nib_cli_history h = opened();
    assert_int_equal(h.entries.n, 2);
    assert_string_equal(nib_cli_history_at(&h, 1), "no newline");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    nib_cli_history_free(&h);
    unlink(path);
}

static void test_sessions_share_it(void **state) {
    (void)state;
    nib_cli_history a = opened(), b = opened();
    add(&a, "from a");
    add(&b, "from b");
    add(&a, "from a again");
    nib_cli_history_free(&a);
    nib_cli_history_free(&b);
    a = opened();
    assert_int_equal(a.entries.n, 3);
    assert_string_equal(nib_cli_history_at(&a, 1), "from b");
    nib_cli_history_free(&a);
    unlink(path);
}

static void test_it_is_cut(void **state) {
    (void)state;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < CUT_AT + 5; i++) fprintf(f, "entry %d\n", i);
    fclose(f);
    nib_cli_history h = opened();
    assert_int_equal(h.entries.n, NIB_CLI_HISTORY_ENTRIES);
    assert_string_equal(nib_cli_history_at(&h, h.entries.n - 1), "entry 2004");
    nib_cli_history_free(&h);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_true(st.st_size < NIB_CLI_HISTORY_ENTRIES * 12);
    h = opened();
    assert_int_equal(h.entries.n, NIB_CLI_HISTORY_ENTRIES);
    assert_string_equal(nib_cli_history_at(&h, 0), "entry 1005");
    char *text = calloc(1, NIB_CLI_HISTORY_BYTES + 2);
    memset(text, 'x', NIB_CLI_HISTORY_BYTES + 1);
    add(&h, text); /* too long to be kept */
    assert_int_equal(h.entries.n, NIB_CLI_HISTORY_ENTRIES);
    free(text);
    nib_cli_history_free(&h);
    unlink(path);
}

static void test_a_broken_one(void **state) {
    (void)state;
    nib_cli_history h = {0};
    nib_error err;
    assert_int_equal(nib_cli_history_open_path(&h, folder, &err), NIB_E_IO); /* a folder */
    add(&h, "kept in memory");
    assert_int_equal(h.entries.n, 1);
    nib_cli_history_free(&h);
    h = opened();
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0); /* it is replaced while it is used */
    assert_int_equal(nib_cli_history_add(&h, (nib_str){"x", 1}, &err), NIB_E_IO);
    assert_non_null(strstr(err.message, path));
    add(&h, "no second message");
    assert_int_equal(h.entries.n, 2);
    nib_cli_history_free(&h);
    rmdir(path);
}

static void test_where_it_is(void **state) {
    (void)state;
    char out[128];
    setenv("HOME", "/home/me", 1);
    setenv("XDG_STATE_HOME", "relative", 1);
    assert_true(nib_cli_xdg_folder("STATE", out, sizeof out));
    assert_string_equal(out, "/home/me/.local/state/nib");
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_true(nib_cli_xdg_folder("STATE", out, sizeof out));
    assert_string_equal(out, "/state/nib");
    unsetenv("XDG_CACHE_HOME");
    assert_true(nib_cli_xdg_folder("CACHE", out, sizeof out));
    assert_string_equal(out, "/home/me/.cache/nib");
    assert_false(nib_cli_xdg_folder("STATE", out, 8));
    unsetenv("HOME");
    unsetenv("XDG_STATE_HOME");
    assert_false(nib_cli_xdg_folder("STATE", out, sizeof out));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_others_are_kept_out),
        cmocka_unit_test(test_sessions_share_it), cmocka_unit_test(test_it_is_cut),
        cmocka_unit_test(test_a_broken_one), cmocka_unit_test(test_where_it_is),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
