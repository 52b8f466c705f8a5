/* grammar/front.h - the front ends: text in -> rules in a build out. A failure sticks to the build. */
#ifndef NIB_GRAMMAR_FRONT_H
#define NIB_GRAMMAR_FRONT_H

#include "grammar/build.h"

typedef struct nib_grammar_source {
    nib_str text;
    const nib_grammar_config *config;
} nib_grammar_source;

/* Each returns the rule to begin with. */
#define SYNTAX(id, name) uint32_t nib_grammar_from_##name(nib_grammar_build *b, const nib_grammar_source *source);
#include "grammar/syntaxes.def"
#undef SYNTAX

/* By config->syntax. */
uint32_t nib_grammar_front(nib_grammar_build *b, const nib_grammar_source *source);

/* Draws rules and returns the one to begin with. */
typedef uint32_t (*nib_grammar_draw_fn)(nib_grammar_build *b, void *user);
/* Checks the config; what `draw` draws becomes a grammar. */
nib_status nib_grammar_compile(nib_grammar **out, const nib_grammar_config *config, const nib_grammar_vocab *vocab,
                               nib_grammar_draw_fn draw, void *user, nib_error *err);

#endif
