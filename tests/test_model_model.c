/* tests/test_model_model.c - opening models: what the getters say, overrides, progress and cancelling, NaN in weights, files
 * that shrink, locked memory. */
#include "model/model.h"

#include "base/sys.h"
#include "gguf/write.h"
#include "support/edit.h"
#include "support/files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static nib_gguf *tiny(const tiny_model *m) {
    return edit_open(edit_new(m));
}

static nib_model *open_good(const nib_gguf *file, const nib_model_config *config) {
    nib_error err;
    nib_model *model;
    if (nib_model_open(&model, file, config, &err) != NIB_OK) fail_msg("%s", err.message);
    return model;
}

static void refuses(const nib_gguf *file, const nib_model_config *config, nib_status code, const char *message) {
    nib_error err;
    nib_model *model = (nib_model *)&err;
    nib_status status = nib_model_open(&model, file, config, &err);
    if (status != code || !strstr(err.message, message))
        fail_msg("%d \"%s\", expected %d \"%s\"", (int)status, err.message, (int)code, message);
    assert_null(model);
    assert_int_equal(nib_model_open(&model, file, config, NULL), code);
}

static uint64_t count_elements(const nib_gguf *file) {
    uint64_t n = 0;
    for (size_t i = 0; i < nib_gguf_n_tensors(file); i++) n += nib_gguf_tensor_at(file, i)->n_elements;
    return n;
}

static void test_getters(void **state) {
    (void)state;
    static const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3"};
    for (size_t i = 0; i < 4; i++)
        for (int tied = 0; tied < 2; tied++) {
            tiny_model m = TINY_MODEL_INIT;
            m.arch = archs[i], m.is_tied = tied, m.head_dim = 32, m.sliding_window = 8;
            nib_gguf *file = tiny(&m);
            nib_model *model = open_good(file, NULL);
            assert_string_equal(nib_model_arch(model), archs[i]);
            assert_true(nib_isa_usable(nib_model_isa(model)));
            assert_int_equal(nib_model_n_vocab(model), 300);
            assert_int_equal(nib_model_n_ctx_train(model), 512);
            assert_int_equal(nib_model_n_embd(model), 64);
            assert_int_equal(nib_model_n_layer(model), 2);
            assert_int_equal(nib_model_n_params(model), count_elements(file));
            assert_int_equal(nib_model_kv_bytes_per_token(model, NULL, NULL), 2 * 2 * (32 + 32) * 2);
            assert_int_equal(nib_model_kv_bytes_per_token(model, "q16", "q16"), 2 * 2 * 2 * (32 * 2 + 4));
            assert_int_equal(nib_model_kv_bytes_per_token(model, "f32", "q8_0"), 2 * 2 * (32 * 4 + 34));
            assert_int_equal(nib_model_kv_bytes_per_token(model, "f32", "q9"), 0);
            uint64_t bytes = 0;
            nib_step_info s;
            for (size_t k = 0; k < nib_model_n_steps(model); k++) {
                assert_int_equal(nib_model_step(model, k, &s), NIB_OK);
                assert_true(*s.op && *s.name && (strcmp(s.rows, "TOK") == 0 || strcmp(s.rows, "OUT") == 0));
                bytes += s.bytes;
            }
            assert_int_equal(nib_model_bytes_per_token(model), bytes);
            assert_true(nib_model_weight_bytes(model) >= bytes - 300 * 68);
            assert_string_equal(s.type, "Q8_0"); /* the output */
            assert_int_equal(s.layer, -1);
            assert_int_equal(nib_model_step(model, nib_model_n_steps(model), &s), NIB_E_ARG);
            nib_model_close(model);
            nib_gguf_close(file);
        }
    nib_model_close(NULL);
}

static void test_levels(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    nib_gguf *file = tiny(&m);
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    for (const char *const *isa = nib_isa_names(); *isa; isa++) {
        c.isa = *isa;
        if (!nib_isa_usable(*isa)) {
            refuses(file, &c, NIB_E_UNSUPPORTED, *isa);
            continue;
        }
        nib_model *model = open_good(file, &c);
        assert_string_equal(nib_model_isa(model), *isa);
        nib_model_close(model);
    }
    c.isa = "mmx";
    refuses(file, &c, NIB_E_ARG, "mmx");
    nib_gguf_close(file);
}

static void test_config(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    nib_gguf *file = tiny(&m);
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    c.size = 8;
    refuses(file, &c, NIB_E_ARG, "nib_model_config is 8 bytes, this library expects");
    c = (nib_model_config)NIB_MODEL_CONFIG_INIT, c.n_threads = -1;
    refuses(file, &c, NIB_E_ARG, "n_threads is -1, expected 0 to 1024");
    c.n_threads = 1025;
    refuses(file, &c, NIB_E_ARG, "n_threads is 1025, expected 0 to 1024");
    static const float bad_bases[] = {-1, 1, 1e13f, INFINITY}, bad_scales[] = {-1, 1e-7f, 2e3f, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        c = (nib_model_config)NIB_MODEL_CONFIG_INIT, c.rope_freq_base = bad_bases[i];
        refuses(file, &c, NIB_E_ARG, "rope_freq_base is ");
        c = (nib_model_config)NIB_MODEL_CONFIG_INIT, c.rope_freq_scale = bad_scales[i];
        refuses(file, &c, NIB_E_ARG, "rope_freq_scale is ");
    }
    nib_gguf_close(file);
}

static void test_rope_overrides(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    nib_gguf *file = tiny(&m);
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    c.rope_freq_base = NAN, c.rope_freq_scale = NAN; /* as in the file */
    nib_model *model = open_good(file, &c);
    assert_true(model->source.hp.rope_base == 10000 && model->plan.tables[0].inv_freq[0] == 1);
    nib_model_close(model);
    c.rope_freq_base = 500000, c.rope_freq_scale = 0.25f;
    model = open_good(file, &c);
    const float *f = model->plan.tables[0].inv_freq;
    for (uint32_t i = 0; i < 8; i++) assert_true(fabs((double)f[i] - 0.25 * pow(500000, -2.0 * i / 16)) < 1e-7 * (double)f[i]);
    nib_model_close(model);
    nib_gguf_close(file);
    m.rope_scaling = "yarn", m.rope_scaling_factor = 4;
    file = tiny(&m);
    c.rope_freq_base = 0, c.rope_freq_scale = 0.125f; /* YaRN stays YaRN, with another factor */
    model = open_good(file, &c);
    assert_true(model->source.hp.rope_factor == 8 && model->source.hp.scaling == NIB_ROPE_SCALE_YARN);
    assert_true(model->plan.tables[0].mscale > 1.2f);
    nib_model_close(model);
    nib_gguf_close(file);
}

typedef struct progress {
    uint64_t last, total, stop_at;
    int n_calls;
} progress;

static bool note(void *user, uint64_t done, uint64_t total) {
    progress *p = user;
    assert_true(done >= p->last && done <= total);
    assert_true(p->n_calls == 0 || total == p->total);
    p->last = done, p->total = total, p->n_calls++;
    return done < p->stop_at;
}

static void test_progress(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    nib_gguf *file = tiny(&m);
    uint64_t data = 0;
    for (size_t i = 0; i < nib_gguf_n_tensors(file); i++) data += nib_gguf_tensor_at(file, i)->n_bytes;
    for (int threads = 1; threads <= 4; threads++) {
        progress p = {.stop_at = UINT64_MAX};
        nib_model_config c = NIB_MODEL_CONFIG_INIT;
        c.n_threads = threads, c.progress = note, c.user = &p;
        nib_model_close(open_good(file, &c));
        assert_true(p.n_calls > 0 && p.last == p.total);
        assert_int_equal(p.total, data); /* all of it is loaded: the output is tied */
    }
    for (int step = 0; step < 10; step++) { /* stopped at once, or later */
        progress p = {.stop_at = data * (uint64_t)step / 10};
        nib_model_config c = NIB_MODEL_CONFIG_INIT;
        c.n_threads = 1, c.progress = note, c.user = &p;
        nib_model *model;
        nib_error err;
        assert_int_equal(nib_model_open(&model, file, &c, &err), NIB_E_CANCELLED);
        assert_null(model);
        assert_non_null(strstr(err.message, "loading was stopped by the caller"));
        assert_true(p.last >= p.stop_at);
    }
    nib_gguf_close(file);
}

/* However many threads load: the same bytes in memory. */
static void test_threads_load_the_same(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    m.type = "Q4_K", m.n_embd = m.n_ff = 512, m.n_vocab = 5000, m.is_tied = false, m.sliding_window = 0;
    nib_gguf *file = tiny(&m);
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    c.n_threads = 1;
    nib_model *one = open_good(file, &c);
    for (c.n_threads = 2; c.n_threads <= 5; c.n_threads++) {
        nib_model *many = open_good(file, &c);
        assert_int_equal(many->n_bytes, one->n_bytes);
        assert_memory_equal(many->memory, one->memory, one->n_bytes);
        nib_model_close(many);
    }
    nib_model_close(one);
    nib_gguf_close(file);
}

typedef struct faults {
    int n;
    char text[2000];
} faults;

static void collect(void *user, const nib_error *fault) {
    faults *f = user;
    assert_int_equal(fault->code, NIB_E_NUMERIC);
    f->n++;
    strncat(f->text, fault->message, sizeof f->text - strlen(f->text) - 1);
}

static void test_not_a_number(void **state) {
    (void)state;
    static const uint16_t nan16 = 0x7e01, inf16 = 0x7c00;
    static const float nan32 = NAN;
    static const struct {
        const char *tensor;
        size_t at;
        const void *bytes;
        size_t n;
    } cases[] = {
        {"blk.1.ffn_down.weight", 34 * 100, &nan16, 2}, {"blk.0.attn_q.weight", 0, &inf16, 2},
        {"blk.0.attn_norm.weight", 63 * 4, &nan32, 4},  {"token_embd.weight", 299 * 68 + 34, &nan16, 2},
        {"output.weight", 0, &inf16, 2},
    };
    tiny_model m = TINY_MODEL_INIT;
    m.is_tied = false; /* rows of the embedding stay in the file: they are checked all the same */
    edit *all = edit_new(&m);
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        edit *e = edit_new(&m);
        edit_data(e, cases[i].tensor, cases[i].at, cases[i].bytes, cases[i].n);
        edit_data(all, cases[i].tensor, cases[i].at, cases[i].bytes, cases[i].n);
        nib_gguf *file = edit_open(e);
        char want[120];
        snprintf(want, sizeof want, "tensor %s holds NaN or infinity", cases[i].tensor);
        c.check_tensors = true;
        refuses(file, &c, NIB_E_NUMERIC, want);
        c.check_tensors = false;
        nib_model_close(open_good(file, &c)); /* the logits will say */
        faults f = {0};
        assert_int_equal(nib_model_check(file, false, collect, &f, NULL), NIB_OK);
        assert_int_equal(nib_model_check(file, true, collect, &f, NULL), NIB_E_NUMERIC);
        assert_int_equal(f.n, 1);
        assert_non_null(strstr(f.text, want));
        nib_gguf_close(file);
    }
    faults f = {0};
    nib_gguf *file = edit_open(all);
    assert_int_equal(nib_model_check(file, true, collect, &f, NULL), NIB_E_NUMERIC);
    assert_int_equal(f.n, sizeof cases / sizeof *cases);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) assert_non_null(strstr(f.text, cases[i].tensor));
    nib_gguf_close(file);
}

/* A file that is shorter when its weights are read: at load, and in nib_decode when embedding rows come from the file. */
static void shrink(nib_load_mode mode, bool before_load) {
    nib_error err;
    nib_gguf *file;
    nib_model *model;
    tiny_model m = TINY_MODEL_INIT;
    m.is_tied = false;
    char *folder = files_folder(), *path = files_path(folder, "m.gguf"), want[400];
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    nib_gguf_config gc = NIB_GGUF_CONFIG_INIT;
    gc.mode = mode;
    assert_int_equal(nib_gguf_open(&file, path, &gc, &err), NIB_OK);
    off_t length = (off_t)nib_gguf_find_tensor(file, "token_embd.weight")->offset + 68 * 100; /* the first 100 tokens stay */
    snprintf(want, sizeof want, "%s: the file changed while in use: it has %lld bytes, expected at least ", path, (long long)length);
    if (before_load) {
        assert_int_equal(truncate(path, length), 0);
        assert_int_equal(nib_model_open(&model, file, NULL, &err), NIB_E_CHANGED);
        assert_memory_equal(err.message, want, strlen(want));
        assert_int_equal(nib_model_check(file, true, NULL, NULL, &err), NIB_E_CHANGED);
    } else {
        nib_context *ctx;
        nib_batch *batch;
        model = open_good(file, NULL);
        assert_int_equal(nib_context_new(&ctx, model, NULL, &err), NIB_OK);
        assert_int_equal(nib_batch_new(&batch, 8, &err), NIB_OK);
        assert_int_equal(truncate(path, length), 0);
        for (nib_token id = 97; id < 103; id++) {
            nib_batch_clear(batch);
            assert_int_equal(nib_batch_add(batch, 5, NIB_POS_NEXT, 0, false, &err), NIB_OK);
            assert_int_equal(nib_batch_add(batch, id, NIB_POS_NEXT, 0, true, &err), NIB_OK);
            uint32_t before = nib_seq_length(ctx, 0);
            assert_int_equal(nib_decode(ctx, batch, &err), id < 100 ? NIB_OK : NIB_E_CHANGED);
            assert_int_equal(nib_seq_length(ctx, 0), before + (id < 100 ? 2 : 0));
            if (id >= 100) assert_memory_equal(err.message, want, strlen(want));
        }
        nib_batch_free(batch);
        nib_context_free(ctx);
        nib_model_close(model);
    }
    nib_gguf_close(file);
    free(path);
    files_remove(folder);
}

static void test_file_that_shrinks(void **state) {
    (void)state;
    shrink(NIB_LOAD_READ, true);
    shrink(NIB_LOAD_READ, false);
    shrink(NIB_LOAD_MMAP, true);
    shrink(NIB_LOAD_MMAP, false);
}

/* A file that was replaced under its name is another file: the open one goes on. */
static void test_file_that_is_replaced(void **state) {
    (void)state;
    nib_error err;
    nib_gguf *file;
    tiny_model m = TINY_MODEL_INIT;
    char *folder = files_folder(), *path = files_path(folder, "m.gguf"), *other = files_path(folder, "o.gguf");
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    assert_int_equal(nib_gguf_open(&file, path, NULL, &err), NIB_OK);
    files_write(other, "not a model", 11);
    assert_int_equal(rename(other, path), 0);
    nib_model_close(open_good(file, NULL));
    nib_gguf_close(file);
    free(path), free(other);
    files_remove(folder);
}

/* In a child without privileges and with a limit of no locked memory. Exit status: what went wrong; 0: nothing; 77: memory
 * can be locked all the same (sanitizers make mlock do nothing). */
static int try_mlock(const nib_gguf *file, bool is_allowed) {
    nib_error err = {0};
    nib_model *model;
    nib_model_config c = NIB_MODEL_CONFIG_INIT;
    c.mlock = true, c.n_threads = 1;
    struct rlimit none = {0, 0};
    if (!is_allowed) {
        if (setrlimit(RLIMIT_MEMLOCK, &none) != 0 || (geteuid() == 0 && seteuid(65534) != 0)) return 77;
        if (mlock(&c, sizeof c) == 0) return 77;
    }
    nib_status status = nib_model_open(&model, file, &c, &err);
    if (is_allowed) {
        nib_model_close(model);
        return status == NIB_OK || status == NIB_E_NOMEM ? 0 : 1; /* the limit of this machine may be low */
    }
    if (status != NIB_E_NOMEM || model) return 2;
    return strstr(err.message, "mlock of ") && strstr(err.message, "ulimit -l") ? 0 : 3;
}

static void test_mlock(void **state) {
    (void)state;
    tiny_model m = TINY_MODEL_INIT;
    nib_gguf *file = tiny(&m);
    for (int allowed = 0; allowed < 2; allowed++) {
        int status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(try_mlock(file, allowed));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77) print_message("skipped: mlock cannot be made to fail here\n");
        else assert_int_equal(WEXITSTATUS(status), 0);
    }
    nib_gguf_close(file);
}

/* A file of zeros on disk, most of them holes: one layer, and an embedding larger than the machine. */
static bool write_huge(const char *path, uint32_t n_embd) {
    nib_gguf_writer w = {0};
    static const char *const numbers[] = {"block_count", "context_length", "feed_forward_length", "attention.head_count"};
    const struct {
        const char *name;
        uint64_t d0, d1;
    } tensors[] = {
        {"blk.0.attn_norm.weight", n_embd, 0},   {"blk.0.attn_q.weight", n_embd, 32},   {"blk.0.attn_k.weight", n_embd, 32},
        {"blk.0.attn_v.weight", n_embd, 32},     {"blk.0.attn_output.weight", 32, n_embd}, {"blk.0.ffn_norm.weight", n_embd, 0},
        {"blk.0.ffn_gate.weight", n_embd, 1},    {"blk.0.ffn_up.weight", n_embd, 1},    {"blk.0.ffn_down.weight", 1, n_embd},
        {"output_norm.weight", n_embd, 0},       {"token_embd.weight", n_embd, 1 << 24},
    };
    char key[60];
    nib_buf header = {0};
    nib_gguf_write_str(&w, "general.architecture", "llama");
    for (size_t i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "llama.%s", numbers[i]);
        nib_gguf_write_uint(&w, key, NIB_GGUF_U32, 1);
    }
    nib_gguf_write_uint(&w, "llama.embedding_length", NIB_GGUF_U32, n_embd);
    nib_gguf_write_uint(&w, "llama.attention.key_length", NIB_GGUF_U32, 32);
    nib_gguf_write_uint(&w, "llama.attention.value_length", NIB_GGUF_U32, 32);
    nib_gguf_write_float(&w, "llama.attention.layer_norm_rms_epsilon", NIB_GGUF_F32, 1e-5);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        uint64_t n = tensors[i].d0 * (tensors[i].d1 ? tensors[i].d1 : 1);
        nib_gguf_tensor t = {.name = {tensors[i].name, strlen(tensors[i].name)}, .n_dims = tensors[i].d1 ? 2 : 1,
                             .dims = {tensors[i].d0, tensors[i].d1}, .n_bytes = 4 * n};
        nib_gguf_write_tensor(&w, &t, NULL);
    }
    assert_int_equal(nib_gguf_write_header(&w, &header, NULL), NIB_OK);
    files_write(path, header.ptr, header.len);
    bool done = truncate(path, (off_t)(header.len + w.data_bytes)) == 0;
    nib_buf_free(&header);
    nib_gguf_write_free(&w);
    return done;
}

static void test_more_than_the_memory(void **state) {
    (void)state;
    nib_error err;
    nib_gguf *file;
    char *folder = files_folder(), *path = files_path(folder, "m.gguf"), want[100];
    uint64_t total = nib_sys_total_memory(), n_embd = ((total >> 26) + 64) / 32 * 32; /* 2^24 rows of floats */
    if (n_embd > 1 << 20 || !write_huge(path, (uint32_t)n_embd)) {
        print_message("skipped: no file system for a file larger than the memory\n");
    } else {
        assert_int_equal(nib_gguf_open(&file, path, NULL, &err), NIB_OK);
        refuses(file, NULL, NIB_E_NOMEM, "the weights need ");
        snprintf(want, sizeof want, "this machine has %llu MiB of memory", (unsigned long long)total >> 20);
        refuses(file, NULL, NIB_E_NOMEM, want);
        nib_gguf_close(file);
    }
    free(path);
    files_remove(folder);
}

static void test_no_weights(void **state) {
    (void)state;
    edit *e = edit_new(&(tiny_model)TINY_MODEL_INIT);
    static const char *const layer[] = {"attn_norm.weight", "attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_output.weight",
                                        "ffn_norm.weight", "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight"};
    char name[60];
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
            snprintf(name, sizeof name, "blk.%d.%s", i, layer[k]);
            edit_drop(e, name);
        }
    edit_drop(e, "token_embd.weight");
    edit_drop(e, "output_norm.weight");
    nib_gguf *file = edit_open(e);
    refuses(file, NULL, NIB_E_FORMAT, "the tensor token_embd.weight is missing: the file has no tensors, only a vocabulary");
    nib_gguf_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_getters),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_rope_overrides),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_threads_load_the_same),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_file_that_shrinks),
        cmocka_unit_test(test_file_that_is_replaced),
        cmocka_unit_test(test_mlock),
        cmocka_unit_test(test_more_than_the_memory),
        cmocka_unit_test(test_no_weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
