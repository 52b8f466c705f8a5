/* fuzz/fuzz_tokenize.c - tokenizers of any vocabulary on any text: an error with a message, or ids in range that are
 * the same each time, and whose text is that of the stream.
 *
 * Input: four bytes that choose the kind, the pre-tokenizer, the keys and the flags; then five parts with FE between,
 * whose items have FD between: tokens (the first byte of each is its type), merges, names of keys with a number each,
 * the precompiled map, the text. */
#include "text/pretok.h"
#include "vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes what is before the next `mark`, which is dropped, or all. */
static nib_str take(nib_str *left, char mark) {
    const char *end = left->len ? memchr(left->ptr, mark, left->len) : NULL;
    nib_str item = {left->ptr, end ? (size_t)(end - left->ptr) : left->len};
    size_t n = item.len + (end != NULL);
    *left = (nib_str){left->ptr + n, left->len - n};
    return item;
}

static void write_tokens(nib_gguf_writer *w, nib_str part, uint8_t keys, bool is_byte_level) {
    static vocab_list list;
    list.n = list.used = 0;
    if (keys & 1) vocab_add_bytes(&list, is_byte_level);
    while (part.len) {
        nib_str item = take(&part, (char)0xFD);
        if (item.len) vocab_add(&list, item.ptr + 1, item.len - 1, (unsigned char)item.ptr[0] % 8);
    }
    vocab_write(w, &list);
}

static void write_merges(nib_gguf_writer *w, nib_str part) {
    static nib_str rules[256];
    size_t n = 0;
    while (part.len && n < 256) rules[n++] = take(&part, (char)0xFD);
    nib_gguf_write_strings(w, "tokenizer.ggml.merges", rules, n);
}

static void write_keys(nib_gguf_writer *w, nib_str part) {
    static const char *const roles[] = {"bos", "eos", "unknown", "seperator", "padding", "mask", "cls", "eot"};
    static const char *const flags[] = {"add_bos_token", "add_eos_token", "add_space_prefix",
                                        "remove_extra_whitespaces", "normalizer.lowercase"};
    uint32_t seen = 0; /* no key twice: the parser would refuse the file */
    while (part.len) {
        nib_str item = take(&part, (char)0xFD);
        char name[64];
        if (item.len < 2) continue;
        unsigned which = (unsigned char)item.ptr[0] % 13;
        if (seen >> which & 1) continue;
        seen |= 1u << which;
        if (which < 8) {
            snprintf(name, sizeof name, "tokenizer.ggml.%s_token_id", roles[which]);
            nib_gguf_write_uint(w, name, NIB_GGUF_I32, (uint64_t)(int64_t)(signed char)item.ptr[1]);
        } else {
            snprintf(name, sizeof name, "tokenizer.ggml.%s", flags[which - 8]);
            nib_gguf_write_uint(w, name, NIB_GGUF_BOOL, item.ptr[1] & 1);
        }
    }
}

static nib_tokenizer *make(const uint8_t *head, nib_str *left) {
    static const char *const models[] = {"gpt2", "llama", "t5", "bert", "gemma4"};
    static const char *const names[] = {"", "My Phi-3", "modern-bert"};
    const char *model = models[head[0] % 5];
    nib_gguf_writer w = {0};
    size_t n_pre = 1;
    while (nib_text_pre_at(n_pre)) n_pre++;
    nib_gguf_write_str(&w, "general.name", names[head[2] >> 6 & 1 ? 1 : head[2] >> 7 ? 2 : 0]);
    nib_gguf_write_str(&w, "tokenizer.ggml.model", model);
    nib_gguf_write_str(&w, "tokenizer.ggml.pre", nib_text_pre_at(head[1] % n_pre)->name);
    write_tokens(&w, take(left, (char)0xFE), head[2], strcmp(model, "gpt2") == 0);
    write_merges(&w, take(left, (char)0xFE));
    write_keys(&w, take(left, (char)0xFE));
    nib_str map = take(left, (char)0xFE);
    if (map.len) nib_gguf_write_array(&w, "tokenizer.ggml.precompiled_charsmap", NIB_GGUF_U8, map.len, map);
    return vocab_tokenizer(&w);
}

static void check_text(const nib_tokenizer *tok, nib_str text, unsigned flags) {
    nib_token_list ids = {0}, again = {0};
    nib_error err;
    char *whole;
    size_t len;
    check(nib_tokenize(tok, text.ptr, text.len, flags, &ids, &err) == NIB_OK);
    for (size_t i = 0; i < ids.n; i++) check(ids.ids[i] >= 0 && (uint32_t)ids.ids[i] < nib_tokenizer_n_tokens(tok));
    check(nib_tokenize(tok, text.ptr, text.len, flags, &again, &err) == NIB_OK);
    check(again.n == ids.n && (ids.n == 0 || memcmp(again.ids, ids.ids, ids.n * sizeof *ids.ids) == 0));
    check(nib_detokenize(tok, ids.ids, ids.n, flags, &whole, &len, &err) == NIB_OK);
    free(whole);
    nib_token_list_free(&ids);
    nib_token_list_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 4) return 0;
    nib_str left = {(const char *)data + 4, size - 4};
    nib_tokenizer *tok = make(data, &left);
    if (!tok) return 0;
    for (size_t i = 0; nib_tokenizer_warning(tok, i); i++) check(strlen(nib_tokenizer_warning(tok, i)) > 0);
    check_text(tok, left, data[3] % 4);
    nib_tokenizer_free(tok);
    return 0;
}
