/* fuzz/fuzz_detok.c - any ids of a byte-complete vocabulary: the stream gives well-formed text, the same as
 * nib_detokenize gives apart from U+FFFD, and stop strings let through a beginning of it.
 *
 * Input: a byte that chooses vocabulary and flags, a byte with the length of a stop string, the stop string, then the
 * ids, two bytes each. */
#include "text/utf8.h"
#include "vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const words[] = {"▁",  "▁the", "the", "ing",      "▁.",   "'s",
                                    "▁'", "中",   "é",   "\xE4\xBD", "\xA0", "\xF0\x9F"};

static nib_tokenizer *make(bool is_bpe) {
    static vocab_list list;
    nib_gguf_writer w = {0};
    list.n = list.used = 0;
    vocab_add(&list, "<unk>", 5, 2);
    vocab_add(&list, "<s>", 3, 3);
    vocab_add(&list, "</s>", 4, 3);
    vocab_add(&list, "<tool>", 6, 4);
    vocab_add_bytes(&list, is_bpe);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) vocab_add(&list, words[i], strlen(words[i]), 1);
    nib_gguf_write_str(&w, "tokenizer.ggml.model", is_bpe ? "gpt2" : "llama");
    nib_gguf_write_str(&w, "tokenizer.ggml.pre", "gpt-2");
    nib_gguf_write_strings(&w, "tokenizer.ggml.merges", NULL, 0);
    nib_gguf_write_uint(&w, "tokenizer.ggml.bos_token_id", NIB_GGUF_U32, 1);
    nib_gguf_write_uint(&w, "tokenizer.ggml.eos_token_id", NIB_GGUF_U32, 2);
    nib_gguf_write_uint(&w, "tokenizer.ggml.add_bos_token", NIB_GGUF_BOOL, 1);
    nib_gguf_write_uint(&w, "tokenizer.ggml.add_eos_token", NIB_GGUF_BOOL, 1);
    vocab_write(&w, &list);
    nib_tokenizer *tok = vocab_tokenizer(&w);
    check(tok != NULL);
    return tok;
}

/* Well-formed in the strict sense; U+FFFD are left out, of `from` too where the bytes are malformed. */
static void check_same(nib_str stream, nib_str from) {
    uint32_t c, d;
    size_t at = 0;
    for (size_t i = 0, len; i < stream.len; i += len) {
        len = nib_text_utf8_get(stream.ptr + i, stream.len - i, &c);
        check(len && !(c >= 0xD800 && c < 0xE000) && len == (c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3u : 4u));
        if (c == 0xFFFD) continue;
        for (;; at++) { /* the next place of `from` where the same character stands */
            check(at < from.len);
            size_t n = nib_text_utf8_get(from.ptr + at, from.len - at, &d);
            if (n == len && d == c) break;
            check(n != 1); /* an ASCII character is never skipped */
        }
        at += len;
    }
}

static void check_stop(nib_str string, nib_str text, size_t piece) {
    nib_stop *stop;
    nib_str show;
    size_t shown = 0;
    int found = -1;
    check(nib_stop_new(&stop, &string, string.len > 0, NULL) == NIB_OK);
    for (size_t at = 0; at < text.len && found < 0; at += piece) {
        found = nib_stop_push(stop, (nib_str){text.ptr + at, text.len - at < piece ? text.len - at : piece}, &show);
        check(show.len <= text.len - shown && (!show.len || memcmp(show.ptr, text.ptr + shown, show.len) == 0));
        shown += show.len;
    }
    nib_str rest = nib_stop_finish(stop);
    nib_str next = found < 0 ? rest : string; /* what stands behind the text shown */
    check(found >= 0 || shown + rest.len == text.len);
    check(next.len <= text.len - shown && (!next.len || memcmp(text.ptr + shown, next.ptr, next.len) == 0));
    nib_stop_free(stop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static nib_tokenizer *toks[2];
    for (int i = 0; i < 2; i++)
        if (!toks[i]) toks[i] = make(i);
    if (size < 2 || (size_t)data[1] + 2 > size) return 0;
    const nib_tokenizer *tok = toks[data[0] & 1];
    unsigned flags = data[0] >> 1 & 3;
    nib_str stop = {(const char *)data + 2, data[1]};
    const uint8_t *p = data + 2 + data[1];
    size_t n = (size - 2 - data[1]) / 2;
    nib_token *ids = malloc((n + 1) * sizeof *ids);
    nib_buf stream = {0};
    nib_detok *detok;
    nib_str piece;
    char *whole;
    size_t len;
    check(ids && nib_detok_new(&detok, tok, flags, data[0] >> 3 & 1, NULL) == NIB_OK);
    for (size_t i = 0; i < n; i++) {
        ids[i] = (nib_token)((unsigned)(p[2 * i] | p[2 * i + 1] << 8) % nib_tokenizer_n_tokens(tok));
        check(nib_detok_push(detok, ids[i], &piece, NULL) == NIB_OK);
        nib_buf_append(&stream, piece.ptr, piece.len);
    }
    piece = nib_detok_finish(detok);
    nib_buf_append(&stream, piece.ptr, piece.len);
    check(nib_detokenize(tok, ids, n, flags | NIB_KEEP_SPACES, &whole, &len, NULL) == NIB_OK);
    nib_str text = {nib_buf_cstr(&stream), stream.len};
    if (!(data[0] >> 3 & 1)) check_same(text, (nib_str){whole, len});
    check_stop(stop, text, 1 + data[0] / 32);
    nib_detok_free(detok);
    nib_buf_free(&stream);
    free(whole);
    free(ids);
    return 0;
}
