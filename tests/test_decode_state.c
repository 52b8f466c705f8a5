/* tests/test_decode_state.c - a sequence that was saved and loaded goes on with the same bits; a state that was damaged, cut
 * or made by another model, another cache or another context is refused, and the sequence is empty then. */
#include "nib.h"

#include "base/buf.h"
#include "base/status.h"
#include "support/files.h"
#include "support/tiny.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_TOK 70 /* two pages and a part */

typedef struct fixture {
    nib_gguf *file;
    nib_model *model;
    nib_context *ctx;
} fixture;

static void open_fixture(fixture *f, uint64_t seed, const char *kv_type, uint32_t n_ctx) {
    nib_error err;
    char *folder = files_folder(), *path = files_path(folder, "tiny.gguf");
    tiny_model m = TINY_MODEL_INIT;
    m.seed = seed;
    m.head_dim = 32; /* q8_0 pages want it */
    m.n_embd = 128;
    assert_int_equal(tiny_write(&m, path, &err), NIB_OK);
    assert_int_equal(nib_gguf_open(&f->file, path, NULL, &err), NIB_OK);
    assert_int_equal(nib_model_open(&f->model, f->file, NULL, &err), NIB_OK);
    nib_context_config config = NIB_CONTEXT_CONFIG_INIT;
    config.n_ctx = n_ctx;
    config.n_seq = 2;
    config.k_type = config.v_type = kv_type;
    assert_int_equal(nib_context_new(&f->ctx, f->model, &config, &err), NIB_OK);
    free(path);
    files_remove(folder);
}

static void close_fixture(fixture *f) {
    nib_context_free(f->ctx);
    nib_model_close(f->model);
    nib_gguf_close(f->file);
}

static nib_token token(const fixture *f, uint32_t i) {
    return (nib_token)((i * 7919u + i * i) % nib_model_n_vocab(f->model));
}

/* Tokens from … to-1 of sequence seq; the hash of the last row. */
static uint64_t feed(const fixture *f, uint32_t seq, uint32_t from, uint32_t to) {
    nib_error err;
    nib_batch *batch;
    assert_int_equal(nib_batch_new(&batch, to - from, &err), NIB_OK);
    for (uint32_t i = from; i < to; i++)
        assert_int_equal(nib_batch_add(batch, token(f, i), NIB_POS_NEXT, seq, i + 1 == to, &err), NIB_OK);
    assert_int_equal(nib_decode(f->ctx, batch, &err), NIB_OK);
    nib_batch_free(batch);
    return nib_logits_hash(f->ctx, 0);
}

static nib_status put(void *user, const void *data, size_t n, nib_error *err) {
    return nib_buf_append(user, data, n) ? NIB_OK : nib_fail_nomem(err, n, "a state");
}

static nib_status put_until(void *user, const void *data, size_t n, nib_error *err) {
    size_t *left = user;
    (void)data;
    if (n > *left) return nib_fail(err, NIB_E_IO, "the disk is full");
    *left -= n;
    return NIB_OK;
}

static nib_status take(void *user, void *data, size_t n, nib_error *err) {
    nib_str *left = user;
    if (n > left->len) return nib_fail(err, NIB_E_FORMAT, "the file ends too early");
    memcpy(data, left->ptr, n);
    *left = (nib_str){left->ptr + n, left->len - n};
    return NIB_OK;
}

static nib_status load(const fixture *f, uint32_t seq, nib_str state, nib_token_list *ids, nib_error *err) {
    return nib_seq_load(f->ctx, seq, take, &state, ids, err);
}

/* Of the first n tokens. */
static void save(const fixture *f, uint32_t seq, uint32_t n, nib_buf *out) {
    nib_error err;
    nib_token ids[N_TOK];
    for (uint32_t i = 0; i < n; i++) ids[i] = token(f, i);
    assert_int_equal(nib_seq_save(f->ctx, seq, ids, put, out, &err), NIB_OK);
}

static void goes_on_with_the_same_bits(void **state) {
    static const char *const types[] = {"q16", "f16", "f32", "q8_0"};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        fixture f, other;
        nib_buf saved = {0};
        nib_token_list ids = {0};
        nib_error err;
        open_fixture(&f, 1, types[t], 160);
        open_fixture(&other, 1, types[t], 160); /* the same model, in another file */
        feed(&f, 0, 0, N_TOK - 1);
        save(&f, 0, N_TOK - 1, &saved);
        uint64_t want = feed(&f, 0, N_TOK - 1, N_TOK);
        feed(&other, 1, 3, 20); /* is replaced */
        assert_int_equal(load(&other, 1, (nib_str){saved.ptr, saved.len}, &ids, &err), NIB_OK);
        assert_int_equal(nib_seq_length(other.ctx, 1), 64);
        assert_int_equal(ids.n, 64);
        for (uint32_t i = 0; i < ids.n; i++) assert_int_equal(ids.ids[i], token(&f, i));
        assert_true(feed(&other, 1, 64, N_TOK) == want);
        close_fixture(&f);
        close_fixture(&other);
        nib_token_list_free(&ids);
        nib_buf_free(&saved);
    }
}

static void saves_less_than_a_page_as_nothing(void **state) {
    fixture f;
    nib_buf saved = {0};
    nib_token_list ids = {0};
    nib_error err;
    (void)state;
    open_fixture(&f, 1, "f16", 160);
    feed(&f, 0, 0, 31);
    save(&f, 0, 31, &saved);
    assert_int_equal(load(&f, 0, (nib_str){saved.ptr, saved.len}, &ids, &err), NIB_OK);
    assert_int_equal(nib_seq_length(f.ctx, 0), 0);
    close_fixture(&f);
    nib_token_list_free(&ids);
    nib_buf_free(&saved);
}

static void refuses_what_does_not_fit(void **state) {
    fixture f, others[3];
    nib_buf saved = {0};
    nib_token_list ids = {0};
    nib_error err;
    static const char *const words[] = {"another model", "q8_0", "has room for"};
    (void)state;
    open_fixture(&f, 1, "f16", 160);
    open_fixture(&others[0], 2, "f16", 160);
    open_fixture(&others[1], 1, "q8_0", 160);
    open_fixture(&others[2], 1, "f16", 40);
    feed(&f, 0, 0, N_TOK);
    save(&f, 0, N_TOK, &saved);
    for (size_t i = 0; i < 3; i++) {
        feed(&others[i], 0, 0, 5);
        nib_status want = i == 2 ? NIB_E_KV_FULL : NIB_E_FORMAT;
        assert_int_equal(load(&others[i], 0, (nib_str){saved.ptr, saved.len}, &ids, &err), want);
        assert_non_null(strstr(err.message, words[i]));
        assert_int_equal(nib_seq_length(others[i].ctx, 0), 0);
        assert_int_equal(nib_context_pages_used(others[i].ctx), 0);
        close_fixture(&others[i]);
    }
    assert_int_equal(load(&f, 7, (nib_str){saved.ptr, saved.len}, &ids, &err), NIB_E_ARG);
    close_fixture(&f);
    nib_token_list_free(&ids);
    nib_buf_free(&saved);
}

/* A flipped bit at any of many places, and an end at any of them. */
static void notices_damage(void **state) {
    fixture f;
    nib_buf saved = {0};
    nib_token_list ids = {0};
    nib_error err;
    (void)state;
    open_fixture(&f, 1, "f16", 160);
    feed(&f, 0, 0, N_TOK);
    save(&f, 0, N_TOK, &saved);
    for (size_t at = 0; at < saved.len; at += at < 400 ? 1 : 997) {
        saved.ptr[at] ^= 0x10;
        assert_int_equal(load(&f, 0, (nib_str){saved.ptr, saved.len}, &ids, &err), NIB_E_FORMAT);
        saved.ptr[at] ^= 0x10;
        assert_int_equal(load(&f, 0, (nib_str){saved.ptr, at}, &ids, &err), NIB_E_FORMAT);
        assert_int_equal(ids.n, 0);
        assert_int_equal(nib_context_pages_used(f.ctx), 0);
    }
    close_fixture(&f);
    nib_token_list_free(&ids);
    nib_buf_free(&saved);
}

static void passes_on_what_writing_says(void **state) {
    fixture f;
    nib_error err;
    (void)state;
    open_fixture(&f, 1, "f16", 160);
    feed(&f, 0, 0, N_TOK);
    nib_token ids[N_TOK] = {0};
    for (size_t room = 0; room < 800; room += 60) {
        size_t left = room;
        assert_int_equal(nib_seq_save(f.ctx, 0, ids, put_until, &left, &err), NIB_E_IO);
        assert_string_equal(err.message, "the disk is full");
    }
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_on_with_the_same_bits), cmocka_unit_test(saves_less_than_a_page_as_nothing),
        cmocka_unit_test(refuses_what_does_not_fit),  cmocka_unit_test(notices_damage),
        cmocka_unit_test(passes_on_what_writing_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
