/* tests/test_engine_disk.c - an engine finds on disk what another one computed: the same bits, whatever lies in the folder. */
#include "support/engine.h"
#include "support/files.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void count_line(void *user, const char *message) {
    (void)message;
    ++*(uint32_t *)user;
}

/* All jobs, answered by an engine of its own; its figures. */
static nib_engine_figures run(const engine_fixture *f, const engine_job *jobs, const nib_engine_config *c, const char *what) {
    nib_engine *e = engine_start(f, c);
    nib_engine_figures figures;
    engine_run_all(e, jobs, ENGINE_JOBS, what);
    engine_assert_settled(e);
    nib_engine_stats(e, &figures);
    engine_end(e);
    return figures;
}

/* Flips a byte in the middle of every file of pages. */
static void damage(const char *folder) {
    DIR *dir = opendir(folder);
    const struct dirent *d;
    while ((d = readdir(dir))) {
        if (!strstr(d->d_name, ".page")) continue;
        size_t n;
        char *path = files_path(folder, d->d_name), *bytes = files_read(path, &n);
        bytes[n / 2] ^= 1;
        files_write(path, bytes, n);
        free(bytes);
        free(path);
    }
    closedir(dir);
}

static void test_restart(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "gemma3"};
    char *folder = files_folder();
    for (int a = 0; a < 2; a++) {
        engine_fixture f;
        engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
        uint32_t n_logged = 0;
        engine_open_model(&f, archs[a]);
        engine_make_jobs(&f, jobs, ENGINE_JOBS);
        nib_engine_config c = engine_config(4096, 8);
        c.kv_dir = folder, c.kv_disk = 50 << 20, c.log = count_line, c.user = &n_logged;
        nib_engine_figures figures = run(&f, jobs, &c, "the first time");
        assert_int_equal(figures.n_disk_read, 0);
        assert_true(figures.n_disk_pages > 10);
        figures = run(&f, jobs, &c, "after a restart");
        assert_true(figures.n_reused > 500);
        assert_true(figures.n_disk_read > 10);
        c = engine_config(320, 4); /* few pages: what the tree had to give up comes from the disk */
        c.kv_dir = folder, c.kv_disk = 50 << 20, c.log = count_line, c.user = &n_logged;
        figures = run(&f, jobs, &c, "few pages");
        assert_true(figures.n_disk_read > 10);
        c.context.k_type = "f32"; /* bits of another kind */
        nib_engine *e = engine_start(&f, &c);
        engine_answer answer;
        engine_finish(engine_submit_job(e, &jobs[10]), &answer);
        assert_int_equal(answer.usage.n_cached, 0);
        engine_end(e);
        c.context.k_type = NULL;
        assert_int_equal(n_logged, 0);
        damage(folder);
        figures = run(&f, jobs, &c, "damaged");
        assert_true(figures.n_disk_bad > 5);
        assert_int_equal(n_logged, figures.n_disk_bad);
        engine_close_model(&f);
        free(jobs);
    }
    files_remove(folder);
}

static void test_no_disk(void **state) {
    (void)state;
    engine_fixture f;
    engine_job *jobs = calloc(ENGINE_JOBS, sizeof *jobs);
    uint32_t n_logged = 0;
    nib_error err;
    nib_engine *e;
    engine_open_model(&f, "llama");
    engine_make_jobs(&f, jobs, ENGINE_JOBS);
    nib_engine_config c = engine_config(4096, 8);
    c.kv_dir = "/proc/nowhere", c.kv_disk = 1 << 20, c.log = count_line, c.user = &n_logged;
    assert_int_equal(run(&f, jobs, &c, "no folder").n_disk_pages, 0);
    assert_int_equal(n_logged, 1);
    c.kv_disk = 0;
    assert_int_equal(nib_engine_new(&e, f.model, f.tok, &c, &err), NIB_E_ARG);
    engine_close_model(&f);
    free(jobs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_no_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
