/* tests/support/tiny_main.c - tiny_main OUT.gguf [NAME=VALUE ...]: writes a tiny random model for tests in Python.
 *
 * Names are the fields of tiny_model (tests/support/tiny.h); rope_factors takes numbers joined by
 * commas, of which the last goes for all that follow. */
#include "support/tiny.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FACTORS 256

static const struct field {
    const char *name;
    enum { TEXT, U32, U64, REAL, BOOL } kind;
    size_t at;
} fields[] = {
#define F(name, kind) {#name, kind, offsetof(tiny_model, name)}
    F(arch, TEXT),          F(n_layer, U32),      F(n_embd, U32),       F(n_ff, U32),
    F(n_head, U32),         F(n_kv, U32),         F(head_dim, U32),     F(n_vocab, U32),
    F(n_ctx, U32),          F(type, TEXT),        F(embd_type, TEXT),   F(is_tied, BOOL),
    F(has_biases, BOOL),    F(rms_eps, REAL),     F(rope_base, REAL),   F(vocab, TEXT),
    F(sliding_window, U32), F(seed, U64),         F(rope_scaling, TEXT), F(rope_scaling_factor, REAL),
    F(rope_original_ctx, U32),
#undef F
};

static void set(tiny_model *m, const struct field *f, const char *value) {
    char *p = (char *)m + f->at;
    switch (f->kind) {
    case TEXT: *(const char **)(void *)p = *value ? value : NULL; break;
    case U32: *(uint32_t *)(void *)p = (uint32_t)strtoul(value, NULL, 10); break;
    case U64: *(uint64_t *)(void *)p = strtoull(value, NULL, 10); break;
    case REAL: *(float *)(void *)p = strtof(value, NULL); break;
    case BOOL: *(bool *)(void *)p = strtoul(value, NULL, 10) != 0; break;
    }
}

static bool set_named(tiny_model *m, float *factors, const char *arg) {
    size_t n = strcspn(arg, "=");
    if (arg[n] != '=') return false;
    if (n == strlen("rope_factors") && strncmp(arg, "rope_factors", n) == 0) {
        const char *p = arg + n;
        for (int i = 0; i < MAX_FACTORS; i++) {
            char *end = NULL;
            factors[i] = *p ? strtof(p + 1, &end) : factors[i - 1]; /* the last one goes for the rest */
            if (*p) p = end;
        }
        m->rope_factors = factors;
        return true;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strlen(fields[i].name) != n || strncmp(fields[i].name, arg, n) != 0) continue;
        set(m, &fields[i], arg + n + 1);
        return true;
    }
    return false;
}

int main(int argc, char **argv) {
    static float factors[MAX_FACTORS];
    tiny_model m = TINY_MODEL_INIT;
    if (argc < 2) {
        fprintf(stderr, "usage: tiny_main OUT.gguf [NAME=VALUE ...]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (set_named(&m, factors, argv[i])) continue;
        fprintf(stderr, "tiny_main: %s is not NAME=VALUE with a known name\n", argv[i]);
        return 2;
    }
    nib_error err;
    if (tiny_write(&m, argv[1], &err) == NIB_OK) return 0;
    fprintf(stderr, "tiny_main: %s\n", err.message);
    return 1;
}
