/* tests/support/vocab.c - small vocabularies of the two common kinds, as GGUF keys. */
#include "support/vocab.h"

#include "base/mem.h"
#include "base/status.h"

#include <stdio.h>
#include <string.h>

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, UNUSED = 5, BYTE = 6 }; /* as tokenizer.ggml.token_type counts */

/* "Ġ" stands for a space in byte-level vocabularies, "▁" in SentencePiece ones. */
static const char *const merges[] = {"Ġ t", "h e", "i n", "r e", "o n", "Ġt he", "e r", "Ġ a", "a t", "e n", "o r",
                                     "Ġ s", "Ġ w", "e s", "i s", "Ġ o", "n d", "i t", "a n", "o u", "in g", "Ġ b",
                                     "e d", "a l", "Ġ c", "Ġ f", "l l", "s t", "o f", "Ġ of", "Ġa nd"};
static const char *const pieces[] = {"▁", "e", "t", "a", "o", "n", "i", "s", "r", "h", "l", "d", "u", "c", "m",
                                     "f", "w", "g", "y", "p", "b", "v", "k", "x", ".", "H", "▁t", "he", "▁the", "in",
                                     "re", "an", "er", "on", "▁a", "▁s", "nd", "▁and", "ing", "▁of", "▁H"};
#define N_MERGES (sizeof merges / sizeof merges[0])
#define N_PIECES (sizeof pieces / sizeof pieces[0])

typedef struct tokens {
    nib_arena arena;
    nib_str *text;
    int32_t *type;
    float *score;
    uint32_t n, capacity;
    bool failed;
} tokens;

static void add(tokens *t, const char *text, size_t len, int32_t type) {
    if (t->n == t->capacity) return;
    char *copy = nib_arena_copy(&t->arena, text, len);
    if (!copy) t->failed = true;
    t->text[t->n] = (nib_str){copy, copy ? len : 0};
    t->type[t->n] = type;
    t->score[t->n] = type == NORMAL ? -(float)t->n : 0.0f;
    t->n++;
}

/* Code point of the printable character that stands for a byte: the bytes that print as themselves in Latin-1 stay,
 * the others follow from 256 on. */
static unsigned byte_char(unsigned byte) {
    unsigned n = 256;
    for (unsigned b = 0; b <= byte; b++) {
        bool prints = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) return prints ? b : n;
        n += !prints;
    }
    return n;
}

static void add_bpe(tokens *t) {
    static const char *const special[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    for (int i = 0; i < 3; i++) add(t, special[i], strlen(special[i]), CONTROL);
    for (unsigned b = 0; b < 256; b++) {
        unsigned c = byte_char(b);
        char utf8[2] = {(char)(c < 128 ? c : 0xc0 | c >> 6), (char)(0x80 | (c & 63))};
        add(t, utf8, c < 128 ? 1 : 2, NORMAL);
    }
    for (size_t i = 0; i < N_MERGES; i++) {
        char joined[16];
        const char *space = strchr(merges[i], ' ');
        int len = snprintf(joined, sizeof joined, "%.*s%s", (int)(space - merges[i]), merges[i], space + 1);
        add(t, joined, (size_t)len, NORMAL);
    }
}

static void add_spm(tokens *t) {
    add(t, "<unk>", 5, UNKNOWN);
    add(t, "<s>", 3, CONTROL);
    add(t, "</s>", 4, CONTROL);
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        add(t, text, (size_t)snprintf(text, sizeof text, "<0x%02X>", b), BYTE);
    }
    for (size_t i = 0; i < N_PIECES; i++) add(t, pieces[i], strlen(pieces[i]), NORMAL);
}

static void write_keys(nib_gguf_writer *w, const tokens *t, bool is_bpe) {
    nib_gguf_write_str(w, "tokenizer.ggml.model", is_bpe ? "gpt2" : "llama");
    if (is_bpe) nib_gguf_write_str(w, "tokenizer.ggml.pre", "gpt-2");
    nib_gguf_write_strings(w, "tokenizer.ggml.tokens", t->text, t->n);
    nib_gguf_write_array(w, "tokenizer.ggml.token_type", NIB_GGUF_I32, t->n,
                         (nib_str){(const char *)t->type, t->n * sizeof *t->type});
    if (is_bpe) {
        size_t n = t->n - VOCAB_MIN < N_MERGES ? t->n - VOCAB_MIN : N_MERGES; /* those whose result is a token */
        nib_str list[N_MERGES];
        for (size_t i = 0; i < n; i++) list[i] = (nib_str){merges[i], strlen(merges[i])};
        nib_gguf_write_strings(w, "tokenizer.ggml.merges", list, n);
    } else {
        nib_gguf_write_array(w, "tokenizer.ggml.scores", NIB_GGUF_F32, t->n,
                             (nib_str){(const char *)t->score, t->n * sizeof *t->score});
        nib_gguf_write_uint(w, "tokenizer.ggml.unknown_token_id", NIB_GGUF_U32, 0);
    }
    nib_gguf_write_uint(w, "tokenizer.ggml.bos_token_id", NIB_GGUF_U32, is_bpe ? 0 : 1);
    nib_gguf_write_uint(w, "tokenizer.ggml.eos_token_id", NIB_GGUF_U32, 2);
    nib_gguf_write_uint(w, "tokenizer.ggml.add_bos_token", NIB_GGUF_BOOL, !is_bpe);
}

nib_status vocab_write(nib_gguf_writer *w, const char *kind, uint32_t n_vocab, nib_error *err) {
    if (!kind) return NIB_OK;
    bool is_bpe = strcmp(kind, "bpe") == 0;
    if (!is_bpe && strcmp(kind, "spm") != 0) return nib_fail(err, NIB_E_ARG, "vocabulary '%s': bpe or spm", kind);
    if (n_vocab < VOCAB_MIN)
        return nib_fail(err, NIB_E_ARG, "a vocabulary of %u tokens, at least %d", (unsigned)n_vocab, VOCAB_MIN);
    tokens t = {.capacity = n_vocab};
    t.text = nib_calloc(n_vocab, sizeof *t.text);
    t.type = nib_calloc(n_vocab, sizeof *t.type);
    t.score = nib_calloc(n_vocab, sizeof *t.score);
    bool ok = t.text && t.type && t.score;
    if (ok) {
        is_bpe ? add_bpe(&t) : add_spm(&t);
        for (uint32_t i = 0; t.n < n_vocab; i++) {
            char text[24];
            add(&t, text, (size_t)snprintf(text, sizeof text, "<|pad%u|>", (unsigned)i), UNUSED);
        }
        write_keys(w, &t, is_bpe);
        ok = !t.failed;
    }
    nib_arena_free(&t.arena);
    nib_free(t.text);
    nib_free(t.type);
    nib_free(t.score);
    return ok ? NIB_OK : nib_fail_nomem(err, n_vocab, "a vocabulary");
}
