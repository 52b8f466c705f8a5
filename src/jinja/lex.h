/* jinja/lex.h - the source of a template -> tokens, with Hugging Face's whitespace rules: the newline after a block tag and
 * the blanks before it on its line are dropped, as is one newline at the end of the template. */
#ifndef NIB_JINJA_LEX_H
#define NIB_JINJA_LEX_H

#include "base/mem.h"
#include "jinja/value.h"

enum {
#define TOKEN(id, name) JINJA_TOKEN_##id,
#define OPERATOR(id, text) JINJA_TOKEN_##id,
#include "jinja/tokens.def"
#undef TOKEN
#undef OPERATOR
    JINJA_N_TOKENS
};

typedef struct jinja_token {
    uint8_t kind;    /* JINJA_TOKEN_NAME … */
    uint32_t offset; /* in the source */
    jinja_value value; /* STR of DATA, NAME and STRING (without quotes and escapes), INT, FLOAT */
} jinja_token;

typedef struct jinja_tokens {
    jinja_token *items; /* the last is END */
    size_t n, capacity;
} jinja_tokens;

/* Appends the tokens of the source, whose line ends are \n; they point into it and into the arena. Free *out (nib_free of
 * its items) in any case. Errors carry the offset. */
nib_status nib_jinja_lex(nib_str source, nib_arena *arena, jinja_tokens *out, nib_error *err);
const char *nib_jinja_token_name(int kind);

#endif
