/* tests/test_kv_store.c - pages on disk: they are found again with their bits, the oldest go first, and whatever else lies in the
 * folder, or happens to it, costs nothing but a page. */
#include "kv/store.h"

#include "support/files.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 3000, FILE_BYTES = PAGE + sizeof(nib_kv_store_head), DEPTH = 6 };

static uint32_t n_logged;

static void count_line(void *user, const char *message) {
    (void)user;
    n_logged++;
    assert_true(strlen(message) > 10);
}

static nib_kv_store *open_store(const char *folder, uint32_t n_pages, uint64_t identity) {
    nib_kv_store *s;
    nib_error err;
    nib_kv_store_config c = {folder, (uint64_t)n_pages * FILE_BYTES, identity, PAGE, count_line, NULL};
    nib_status status = nib_kv_store_open(&s, &c, &err);
    if (status != NIB_OK) print_error("%s\n", err.message);
    assert_int_equal(status, NIB_OK);
    return s;
}

/* Tokens and bytes of the page at a depth of text number `text`: texts are alike in their first two pages. */
static void make_page(uint32_t text, uint32_t depth, nib_token *tokens, unsigned char *page) {
    uint32_t n = depth < 2 ? depth : text * 100 + depth;
    for (uint32_t i = 0; i < NIB_KV_PAGE; i++) tokens[i] = (nib_token)(n * 7 + i);
    for (uint32_t i = 0; i < PAGE; i++) page[i] = (unsigned char)(n * 31 + i * 7 + i / 256);
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* Until what was given is written, or was not. */
static void wait_written(nib_kv_store *s) {
    for (int i = 0; i < 5000 && !nib_kv_store_is_settled(s); i++) sleep_ms(1);
}

static uint32_t add_text(nib_kv_store *s, uint32_t text, uint64_t salt, uint32_t depth) {
    nib_token tokens[NIB_KV_PAGE];
    unsigned char page[PAGE];
    uint32_t at = NIB_KV_STORE_ROOT;
    for (uint32_t i = 0; i < depth; i++) {
        make_page(text, i, tokens, page);
        uint32_t next = nib_kv_store_add(s, at, salt, tokens, page);
        if (next == NIB_KV_STORE_NONE) return i;
        at = next;
    }
    nib_kv_store_touch(s, at);
    return depth;
}

/* How many pages of a text can be read; they are right. */
static uint32_t read_text(nib_kv_store *s, uint32_t text, uint64_t salt) {
    nib_token tokens[NIB_KV_PAGE];
    unsigned char page[PAGE], got[PAGE];
    uint32_t at = NIB_KV_STORE_ROOT, n = 0;
    for (; n < DEPTH; n++) {
        make_page(text, n, tokens, page);
        at = nib_kv_store_find(s, at, salt, tokens);
        if (at == NIB_KV_STORE_NONE || !nib_kv_store_read(s, at, got)) break;
        assert_memory_equal(got, page, PAGE);
    }
    return n;
}

/* Files of pages in a folder; the name of one of them. */
static uint32_t count_files(const char *folder, char *name) {
    uint32_t n = 0;
    DIR *dir = opendir(folder);
    const struct dirent *d;
    while ((d = readdir(dir)))
        if (strstr(d->d_name, ".page")) n++, name ? (void)strcpy(name, d->d_name) : (void)0;
    closedir(dir);
    return n;
}

static void test_survives(void **state) {
    (void)state;
    char *folder = files_folder();
    nib_kv_store *s = open_store(folder, 100, 1);
    for (uint32_t t = 0; t < 4; t++) {
        assert_int_equal(add_text(s, t, t == 3, DEPTH), DEPTH);
        wait_written(s);
        assert_int_equal(read_text(s, t, t == 3), DEPTH);
    }
    assert_int_equal(nib_kv_store_stats(s).n_pages, 2 + 3 * (DEPTH - 2) + DEPTH);
    assert_int_equal(nib_kv_store_stats(s).n_written, nib_kv_store_stats(s).n_pages);
    nib_kv_store_close(s);
    s = open_store(folder, 100, 1);
    assert_int_equal(nib_kv_store_stats(s).n_pages, 2 + 3 * (DEPTH - 2) + DEPTH);
    for (uint32_t t = 0; t < 4; t++) assert_int_equal(read_text(s, t, t == 3), DEPTH);
    assert_int_equal(read_text(s, 3, 2), 0); /* another salt */
    assert_int_equal(read_text(s, 9, 0), 2); /* another text with the same beginning */
    nib_kv_store_close(s);
    s = open_store(folder, 100, 2); /* another model */
    assert_int_equal(nib_kv_store_stats(s).n_pages, 0);
    assert_int_equal(read_text(s, 0, 0), 0);
    nib_kv_store_close(s);
    assert_int_equal(n_logged, 0);
    files_remove(folder);
}

static void test_limit(void **state) {
    (void)state;
    char *folder = files_folder();
    nib_kv_store *s = open_store(folder, 10, 1);
    add_text(s, 0, 0, DEPTH);
    wait_written(s);
    add_text(s, 1, 0, DEPTH); /* 2 + 4 + 4 */
    wait_written(s);
    assert_int_equal(read_text(s, 0, 0), DEPTH);
    add_text(s, 0, 0, DEPTH); /* used again: text 1 is the oldest now */
    assert_int_equal(add_text(s, 2, 0, 4), 4);
    wait_written(s);
    assert_int_equal(read_text(s, 0, 0), DEPTH);
    assert_int_equal(read_text(s, 1, 0), 4); /* its end has gone */
    assert_int_equal(nib_kv_store_stats(s).n_pages, 10);
    nib_kv_store_close(s);
    assert_int_equal(count_files(folder, NULL), 10);
    s = open_store(folder, 3, 1); /* less room than before: what was written last stays */
    assert_int_equal(nib_kv_store_stats(s).n_pages, 3);
    assert_int_equal(count_files(folder, NULL), 3);
    assert_int_equal(add_text(s, 5, 5, DEPTH), 3); /* longer than the store */
    wait_written(s);
    assert_int_equal(read_text(s, 5, 5), 3);
    nib_kv_store_close(s);
    files_remove(folder);
}

static void test_damage(void **state) {
    (void)state;
    static const char *const others[] = {"notes.txt", "nib-0000000000000001-zz.page", "nib-0000000000000002-0000000000000003.page"};
    char *folder = files_folder(), name[300];
    uint32_t n_bad = 0;
    for (size_t at = 0; at < FILE_BYTES; at += at < sizeof(nib_kv_store_head) ? 40 : 1000) {
        nib_kv_store *s = open_store(folder, 100, 1);
        add_text(s, 0, 0, DEPTH);
        nib_kv_store_close(s);
        for (int i = 0; i < 3; i++) {
            char *path = files_path(folder, others[i]);
            files_write(path, "x", 1);
            free(path);
        }
        assert_int_equal(count_files(folder, name) - 2, DEPTH);
        while (strncmp(name, "nib-0000000000000001-z", 22) == 0 || strncmp(name, "nib-0000000000000002", 20) == 0) {
            char *path = files_path(folder, name);
            remove(path);
            free(path);
            count_files(folder, name);
        }
        char *path = files_path(folder, name);
        size_t n;
        char *bytes = files_read(path, &n);
        assert_int_equal(n, FILE_BYTES);
        bytes[at] ^= 4;
        files_write(path, bytes, at % 80 ? n : at); /* damaged or torn */
        free(bytes);
        free(path);
        s = open_store(folder, 100, 1);
        uint32_t before = n_logged;
        assert_true(read_text(s, 0, 0) < DEPTH);
        n_bad += n_logged > before || nib_kv_store_stats(s).n_bad;
        assert_int_equal(add_text(s, 0, 0, DEPTH), DEPTH); /* written again */
        wait_written(s);
        assert_int_equal(read_text(s, 0, 0), DEPTH);
        nib_kv_store_close(s);
    }
    assert_true(n_bad > 5);
    files_remove(folder);
}

static void test_no_folder(void **state) {
    (void)state;
    char *folder = files_folder(), *path = files_path(folder, "file");
    nib_kv_store *s, *other;
    nib_error err;
    nib_kv_store_config c = {path, 100 * FILE_BYTES, 1, PAGE, count_line, NULL};
    files_write(path, "x", 1);
    assert_int_equal(nib_kv_store_open(&s, &c, &err), NIB_E_IO);
    c.folder = "/proc/nowhere";
    assert_int_equal(nib_kv_store_open(&s, &c, &err), NIB_E_IO);
    c.folder = folder, c.max_bytes = 10;
    assert_int_equal(nib_kv_store_open(&s, &c, &err), NIB_E_ARG);
    s = open_store(folder, 10, 1);
    c.max_bytes = 100000;
    assert_int_equal(nib_kv_store_open(&other, &c, &err), NIB_E_IO); /* in use */
    nib_kv_store_close(s);
    free(path);
    files_remove(folder);
}

/* The folder goes while it is used: reading and writing fail, and nothing else. */
static void test_folder_goes(void **state) {
    (void)state;
    char *folder = files_folder();
    nib_kv_store *s = open_store(folder, 100, 1);
    add_text(s, 0, 0, DEPTH);
    wait_written(s);
    files_remove(folder);
    n_logged = 0;
    assert_int_equal(read_text(s, 0, 0), 0);
    add_text(s, 1, 0, DEPTH);
    wait_written(s);
    assert_true(nib_kv_store_stats(s).is_full);
    assert_int_equal(n_logged, 2);
    add_text(s, 2, 0, DEPTH);
    assert_int_equal(n_logged, 2);
    nib_kv_store_close(s);
}

/* A process that is killed while it writes, at any time: what is found afterwards is right. */
static void test_killed(void **state) {
    (void)state;
    char *folder = files_folder();
    uint32_t n_found = 0;
    for (int round = 0; round < 12; round++) {
        pid_t child = fork();
        if (child == 0) {
            nib_kv_store *s = open_store(folder, 60, 1);
            for (uint32_t t = 0;; t++) {
                while (add_text(s, t % 20, 0, DEPTH) < DEPTH) nib_kv_store_settle(s);
                nib_kv_store_settle(s);
            }
        }
        assert_true(child > 0);
        sleep_ms(10 + 3 * round);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        n_logged = 0;
        nib_kv_store *s = open_store(folder, 60, 1);
        assert_int_equal(n_logged, 0);
        assert_int_equal(nib_kv_store_stats(s).n_bad, 0);
        for (uint32_t t = 0; t < 20; t++) n_found += read_text(s, t, 0);
        assert_int_equal(nib_kv_store_stats(s).n_bad, 0);
        nib_kv_store_close(s);
    }
    print_message("%u pages were found\n", n_found);
    assert_true(n_found > 0);
    files_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_survives), cmocka_unit_test(test_limit),       cmocka_unit_test(test_damage),
        cmocka_unit_test(test_no_folder), cmocka_unit_test(test_folder_goes), cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
