/* tests/test_model_pack_cache.c - packed weights on disk: what is read back is what packing makes, whatever was done to the
 * file, the folder, the model or the process in between. */
#include "base/mem.h"
#include "model/pack_cache.h"
#include "support/files.h"
#include "support/tiny.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct fixture {
    char *folder, *path, *cache; /* model file, folder of the cache */
    nib_gguf *file;
    nib_model *plain; /* loaded without the cache */
    nib_model_config config;
} fixture;

static nib_model *load(const fixture *f, const nib_model_config *config) {
    nib_error err;
    nib_model *model;
    if (nib_model_open(&model, f->file, config, &err) != NIB_OK) fail_msg("%s", err.message);
    return model;
}

static void reopen(fixture *f) {
    nib_error err;
    nib_gguf_close(f->file);
    assert_int_equal(nib_gguf_open(&f->file, f->path, NULL, &err), NIB_OK);
}

static fixture start(bool is_large) {
    fixture f = {.folder = files_folder(), .config = NIB_MODEL_CONFIG_INIT};
    tiny_model m = TINY_MODEL_INIT;
    nib_error err;
    if (is_large) m.type = "Q4_K", m.n_embd = m.n_ff = 512, m.n_vocab = 5000; /* a few pieces */
    f.path = files_path(f.folder, "m.gguf");
    f.cache = files_path(f.folder, "cache");
    assert_int_equal(tiny_write(&m, f.path, &err), NIB_OK);
    reopen(&f);
    f.plain = load(&f, NULL);
    f.config.n_threads = 2;
    f.config.pack_cache = f.cache;
    return f;
}

static void end(fixture *f) {
    nib_model_close(f->plain);
    nib_gguf_close(f->file);
    files_remove(f->cache);
    free(f->path);
    files_remove(f->folder);
}

/* Loads with the cache: the status, words of the sentence, and the weights. */
static void loads_as(const fixture *f, nib_status status, const char *says) {
    nib_model *model = load(f, &f->config);
    const char *what;
    nib_status found = nib_model_pack_cache(model, &what);
    if (found != status || !what || !strstr(what, says))
        fail_msg("%d \"%s\", expected %d \"%s\"", (int)found, what ? what : "", (int)status, says);
    assert_int_equal(model->n_bytes, f->plain->n_bytes);
    assert_memory_equal(model->memory, f->plain->memory, model->n_bytes);
    nib_model_close(model);
}

/* The files of the cache; the last name is given too, as a path: free(). */
static int count_files(const fixture *f, char **path) {
    DIR *dir = opendir(f->cache);
    int n = 0;
    if (path) *path = NULL;
    if (!dir) return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        if (e->d_name[0] == '.') continue;
        n++;
        if (path) free(*path), *path = files_path(f->cache, e->d_name);
    }
    closedir(dir);
    return n;
}

static char *only_file(const fixture *f) {
    char *path;
    assert_int_equal(count_files(f, &path), 1);
    return path;
}

static void test_written_then_read(void **state) {
    (void)state;
    for (int large = 0; large < 2; large++) {
        fixture f = start(large);
        const char *what = "";
        struct stat st;
        assert_int_equal(nib_model_pack_cache(f.plain, &what), NIB_OK);
        assert_null(what);
        loads_as(&f, NIB_OK, "packed weights written to ");
        for (f.config.n_threads = 1; f.config.n_threads <= 4; f.config.n_threads++) loads_as(&f, NIB_OK, "packed weights read from ");
        char *path = only_file(&f);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        free(path);
        end(&f);
    }
}

static void test_not_used(void **state) {
    (void)state;
    fixture f = start(false);
    const char *what;
    for (int i = 0; i < 3; i++) {
        nib_model_config c = f.config;
        c.check_tensors = i == 0, c.plan_only = i == 1;
        if (i == 2) c.pack_cache = "";
        nib_model *model = load(&f, &c);
        assert_int_equal(nib_model_pack_cache(model, &what), NIB_OK);
        assert_null(what);
        nib_model_close(model);
        assert_int_equal(access(f.cache, F_OK), -1);
    }
    loads_as(&f, NIB_OK, "written");
    end(&f);
}

/* Another time: packed anew in the same place. Other bytes: another file. */
static void test_model_that_changes(void **state) {
    (void)state;
    fixture f = start(false);
    loads_as(&f, NIB_OK, "written");
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000, .tv_nsec = 1}};
    assert_int_equal(utimensat(AT_FDCWD, f.path, times, 0), 0);
    loads_as(&f, NIB_OK, "the file there is older than the model file");
    loads_as(&f, NIB_OK, "read from");
    free(only_file(&f));
    size_t n, at = (size_t)nib_gguf_find_tensor(f.file, "blk.1.ffn_down.weight")->offset + 100;
    char *bytes = files_read(f.path, &n);
    bytes[at] ^= 1;
    files_write(f.path, bytes, n);
    assert_int_equal(utimensat(AT_FDCWD, f.path, times, 0), 0); /* the samples alone tell */
    reopen(&f);
    nib_model_close(f.plain);
    f.plain = load(&f, NULL);
    loads_as(&f, NIB_OK, "packed weights written to ");
    loads_as(&f, NIB_OK, "read from");
    assert_int_equal(count_files(&f, NULL), 2);
    free(bytes);
    end(&f);
}

/* Whatever byte is wrong: the file is not taken, and put right. */
static void test_damage(void **state) {
    (void)state;
    fixture f = start(true);
    size_t n, now, n_head = sizeof(nib_model_pack_head) + 8 * (1 + (f.plain->n_bytes + (1 << 20) - 1) / (1 << 20));
    loads_as(&f, NIB_OK, "written");
    char *path = only_file(&f), *good = files_read(path, &n), *bad = malloc(n + 1);
    assert_non_null(bad);
    for (size_t at = 0; at < n; at += at < 128 ? 1 : 100003) {
        memcpy(bad, good, n);
        bad[at] ^= (char)(1 << at % 8);
        files_write(path, bad, n);
        bool is_padding = at >= n_head && at < 4096;
        loads_as(&f, NIB_OK, is_padding ? "read from" : "the file there is ");
        if (is_padding) continue;
        char *after = files_read(path, &now);
        assert_int_equal(now, n);
        assert_memory_equal(after, good, n);
        free(after);
    }
    for (size_t length = 0; length < n; length += length < 72 ? 9 : n / 23) {
        files_write(path, good, length);
        loads_as(&f, NIB_OK, "the file there ");
        loads_as(&f, NIB_OK, "read from");
    }
    memcpy(bad, good, n);
    bad[n] = 0;
    files_write(path, bad, n + 1);
    loads_as(&f, NIB_OK, "the file there has ");
    bad[8]++;
    files_write(path, bad, n);
    loads_as(&f, NIB_OK, "the file there is of version ");
    files_write(path, "a text", 6);
    loads_as(&f, NIB_OK, "the file there ends at byte 6: packed weights written to");
    free(good), free(bad), free(path);
    end(&f);
}

/* Things that are no files of ours, where they should be. */
static void test_strange_places(void **state) {
    (void)state;
    fixture f = start(false);
    loads_as(&f, NIB_OK, "written");
    char *path = only_file(&f), *part = malloc(strlen(path) + 6), *victim = files_path(f.folder, "victim");
    assert_non_null(part);
    sprintf(part, "%s.part", path);
    remove(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    loads_as(&f, NIB_OK, "the file there is not a regular file");
    loads_as(&f, NIB_OK, "read from");
    remove(path);
    assert_int_equal(mkdir(path, 0700), 0);
    loads_as(&f, NIB_E_IO, "cannot rename the file");
    assert_int_equal(count_files(&f, NULL), 1);
    rmdir(path);
    files_write(victim, "mine", 4);
    assert_int_equal(symlink(victim, part), 0);
    loads_as(&f, NIB_E_IO, "cannot create a file there");
    remove(part);
    files_write(part, "of a process that was killed", 28);
    loads_as(&f, NIB_OK, "written");
    free(only_file(&f));
    size_t n;
    char *kept = files_read(victim, &n);
    assert_int_equal(n, 4);
    remove(path);
    int fd = open(part, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    loads_as(&f, NIB_OK, "another process is writing it");
    assert_int_equal(count_files(&f, NULL), 1); /* its half-made file stays */
    close(fd);
    f.config.pack_cache = victim;
    loads_as(&f, NIB_E_IO, "Not a directory");
    char *deep = files_path(f.cache, "a/b");
    f.config.pack_cache = deep;
    loads_as(&f, NIB_E_IO, "cannot make the folder: No such file or directory");
    free(deep), free(kept), free(victim), free(part), free(path);
    end(&f);
}

static void test_limit_of_file_size(void **state) {
    (void)state;
    fixture f = start(false);
    struct rlimit old, low = {1000, 0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    low.rlim_max = old.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    loads_as(&f, NIB_E_IO, "the limit is 1000: File too large"); /* and no SIGXFSZ */
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(count_files(&f, NULL), 0);
    loads_as(&f, NIB_OK, "written");
    end(&f);
}

typedef struct progress {
    uint64_t last, total, stop_at;
} progress;

static bool note(void *user, uint64_t done, uint64_t total) {
    progress *p = user;
    assert_true(done >= p->last && done <= total && (!p->total || total == p->total));
    p->last = done, p->total = total;
    return done < p->stop_at;
}

static void test_progress_and_cancelling(void **state) {
    (void)state;
    fixture f = start(true);
    f.config.progress = note;
    f.config.n_threads = 1;
    uint64_t n_packed = f.plain->n_bytes, n_both = 0;
    for (int is_there = 0; is_there < 2; is_there++) {
        for (int step = 0; step < 16 && (is_there || n_both || step == 0); step++) {
            progress p = {.stop_at = is_there ? n_packed * (uint64_t)step / 17 : n_both * (uint64_t)step / 17};
            nib_model *model;
            nib_error err;
            f.config.user = &p;
            assert_int_equal(nib_model_open(&model, f.file, &f.config, &err), NIB_E_CANCELLED);
            assert_null(model);
            assert_int_equal(count_files(&f, NULL), is_there);
            n_both = p.total;
        }
        progress p = {.stop_at = UINT64_MAX};
        f.config.user = &p;
        loads_as(&f, NIB_OK, is_there ? "read from" : "written");
        assert_int_equal(p.last, p.total);
        assert_true(is_there ? p.total == n_packed : p.total == n_both);
    }
    end(&f);
}

/* Processes that write at once, some of which are killed: all others load, and the file is whole in the end. */
static void test_many_processes(void **state) {
    (void)state;
    enum { N = 6 };
    fixture f = start(true);
    for (int round = 0; round < 5; round++) {
        pid_t child[N];
        for (int i = 0; i < N; i++) {
            child[i] = fork();
            assert_true(child[i] >= 0);
            if (child[i]) continue;
            nib_model *model;
            nib_gguf *file;
            bool ok = nib_gguf_open(&file, f.path, NULL, NULL) == NIB_OK &&
                      nib_model_open(&model, file, &f.config, NULL) == NIB_OK && nib_model_pack_cache(model, NULL) == NIB_OK &&
                      memcmp(model->memory, f.plain->memory, model->n_bytes) == 0;
            _exit(ok ? 0 : 1);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000 * round}, NULL);
        if (round) kill(child[0], SIGKILL);
        for (int i = 0; i < N; i++) {
            int status;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            if (i || !round) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
        nib_model_close(load(&f, &f.config)); /* written by now, if all who tried were killed */
        loads_as(&f, NIB_OK, "read from");
        for (char *path; count_files(&f, &path); free(path)) remove(path);
    }
    end(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written_then_read),       cmocka_unit_test(test_not_used),
        cmocka_unit_test(test_model_that_changes),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_strange_places),          cmocka_unit_test(test_limit_of_file_size),
        cmocka_unit_test(test_progress_and_cancelling), cmocka_unit_test(test_many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
