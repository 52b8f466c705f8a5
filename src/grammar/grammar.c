/* grammar/grammar.c - the text of a grammar in -> a nib_grammar out, by the front end of its notation. */
#include "base/mem.h"
#include "base/status.h"
#include "grammar/explain.h"
#include "grammar/front.h"
#include "grammar/mask.h"

typedef uint32_t (*front_fn)(nib_grammar_build *b, const nib_grammar_source *source);

static const front_fn FRONTS[] = {
#define SYNTAX(id, name) [NIB_SYNTAX_##id] = nib_grammar_from_##name,
#include "grammar/syntaxes.def"
#undef SYNTAX
};

uint32_t nib_grammar_front(nib_grammar_build *b, const nib_grammar_source *source) {
    return FRONTS[source->config->syntax](b, source);
}

static nib_status check(const nib_grammar_config *c, nib_error *err) {
    if (c->size == sizeof *c && (unsigned)c->syntax < sizeof FRONTS / sizeof *FRONTS && (unsigned)c->space <= NIB_JSON_SPACE_PRETTY)
        return NIB_OK;
    return nib_fail(err, NIB_E_ARG, "a nib_grammar_config that was not made by NIB_GRAMMAR_CONFIG_INIT");
}

nib_status nib_grammar_compile(nib_grammar **out, const nib_grammar_config *c, const nib_grammar_vocab *vocab,
                               nib_grammar_draw_fn draw, void *user, nib_error *err) {
    *out = NULL;
    NIB_TRY(check(c, err));
    nib_grammar_limits limits = {c->max_states, c->max_edges, c->max_depth, nib_grammar_clock_ms() + c->max_ms};
    nib_grammar_build b = {.limits = &limits, .vocab = vocab};
    uint32_t root = draw(&b, user);
    nib_status status = nib_grammar_finish(&b, root, out, err);
    nib_grammar_build_free(&b);
    if (status != NIB_OK) return status;
    nib_grammar *g = *out;
    g->max_items = c->max_items;
    g->max_run_bytes = c->max_cache_bytes;
    g->run = nib_grammar_run_new(g);
    if (g->run && (!c->keep_rules || nib_grammar_explain(g))) return NIB_OK;
    nib_grammar_free(g);
    *out = NULL;
    return nib_fail_nomem(err, 0, "a grammar");
}

static uint32_t draw_text(nib_grammar_build *b, void *user) {
    return nib_grammar_front(b, user);
}

nib_status nib_grammar_new(nib_grammar **out, const char *text, size_t len, const nib_grammar_vocab *vocab,
                           const nib_grammar_config *config, nib_error *err) {
    nib_grammar_config defaults = NIB_GRAMMAR_CONFIG_INIT;
    nib_grammar_source source = {{text ? text : "", len}, config ? config : &defaults};
    *out = NULL;
    NIB_TRY(check(source.config, err));
    if (len > source.config->max_text_bytes)
        return nib_fail(err, NIB_E_LIMIT, "a grammar of %zu bytes, at most %u are allowed (max_text_bytes)", len,
                        source.config->max_text_bytes);
    return nib_grammar_compile(out, source.config, vocab, draw_text, &source, err);
}

nib_grammar *nib_grammar_share(nib_grammar *g) {
    atomic_fetch_add(&g->n_users, 1);
    return g;
}

void nib_grammar_free(nib_grammar *g) {
    if (!g || atomic_fetch_sub(&g->n_users, 1) > 1) return;
    nib_grammar_run_release(g->run);
    nib_grammar_destroy(g);
}

nib_str nib_grammar_rules(const nib_grammar *g) {
    return (nib_str){g->text.ptr ? g->text.ptr : "", g->text.len};
}

size_t nib_grammar_n_states(const nib_grammar *g) {
    return g->n_states;
}
