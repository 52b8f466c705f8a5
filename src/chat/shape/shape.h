/* chat/shape/shape.h - a grammar of whole answers in a format: thoughts first where the format has them, then content of a
 * given grammar, or calls of tools with arguments by their schemas, or free text between them. Private to chat/shape.
 *
 * The grammar is drawn from the same rules as the parser reads answers by (formats.def). Places of the parser are nodes; what
 * a rule leads to is what it does to the parser. Free text is an automaton of its own (scan.c), which knows at each byte
 * whether the opening of a rule is complete, so it holds none that is not meant. The pattern of a rule is drawn element by
 * element (rule.c), with the schemas of the tools where arguments stand (value.c).
 *
 * Where the vocabulary has a control token for (a part of) a marker, that token is asked for, and not its text. */
#ifndef NIB_CHAT_SHAPE_SHAPE_H
#define NIB_CHAT_SHAPE_SHAPE_H

#include "chat/format.h"
#include "chat/output/tools.h"
#include "chat/pattern.h"
#include "grammar/schema.h"
#include "grammar/vocab.h"

#define NIB_CHAT_NO SIZE_MAX /* no tool, no rule */

enum { NIB_CHAT_MAX_TEXTS = 16, NIB_CHAT_MAX_BODIES = 4 };

/* A rule of all texts that may stand for a parameter of some types: drawn once. */
typedef struct nib_chat_shape_text {
    nib_str closing;
    unsigned types;
    char kind;
    bool has_lines;
    uint32_t rule;
} nib_chat_shape_text;

/* A rule of all parameters of a tool, by the text of the group. */
typedef struct nib_chat_shape_body {
    const char *ip;
    uint32_t rule;
} nib_chat_shape_body;

typedef struct nib_chat_shape_tool {
    nib_str name;
    const nib_grammar_json *node, *parameters; /* parameters NULL: none */
    nib_grammar_schema by[4]; /* nib_grammar_writing */
    uint32_t arguments[4];    /* rules: the whole object; NIB_GRAMMAR_NO: not made yet */
    nib_chat_shape_body bodies[NIB_CHAT_MAX_BODIES];
    size_t n_bodies;
} nib_chat_shape_tool;

typedef struct nib_chat_shape {
    nib_grammar_build *b;
    const nib_chat_grammar_config *config;
    const nib_chat_format_row *format;
    nib_arena arena;
    nib_chat_tools types; /* the same tools, as the parser sees them */
    nib_chat_shape_tool *tools;
    size_t n_tools;
    const nib_grammar_json *closed, *object; /* schemas: the empty object; any object */
    const nib_grammar_json *no_string;       /* any value but a string */
    nib_chat_shape_text texts[NIB_CHAT_MAX_TEXTS];
    size_t n_texts;
    nib_token *marks; /* control tokens that are markers or parts of one */
    size_t n_marks, marks_capacity;
    bool is_free, has_calls, must_call; /* text, calls, nothing but calls */
    uint32_t content;                   /* rule; NIB_GRAMMAR_NO: none */
    uint32_t blanks;                    /* rule */
    uint32_t fresh, thinking, called, end; /* nodes: content would begin; reasoning would; behind a call; the end */
    uint32_t opened[NIB_CHAT_MAX_RULES];   /* nodes: behind the opening of a rule */
} nib_chat_shape;

static inline bool nib_chat_shape_failed(const nib_chat_shape *d) {
    return d->b->status != NIB_OK;
}

/* tools.c. Reads the tools and keeps those that may be called. Fails with the JSON pointer of the place. */
void nib_chat_shape_read_tools(nib_chat_shape *d);
void nib_chat_shape_free_tools(nib_chat_shape *d);
/* All rules that the schemas asked for. */
void nib_chat_shape_fill(nib_chat_shape *d);

/* rule.c. Draws what follows the opening of rule i, which is behind the node d->opened[i]. */
void nib_chat_shape_draw_rule(nib_chat_shape *d, size_t i);
/* Text of a marker; returns the node behind it. */
uint32_t nib_chat_shape_marker(nib_chat_shape *d, uint32_t from, nib_str text);
uint32_t nib_chat_shape_blanks(nib_chat_shape *d, uint32_t from);
/* Behind the group that begins at `open`. */
const char *nib_chat_shape_skip_group(const char *open);
/* Bytes of the literal that a pattern begins with. */
size_t nib_chat_shape_literal_len(const char *pattern);

/* scan.c. Free text from a node on: `inner` and `outer` are bits of rules; the openings of inner ones end it anywhere, those
 * of outer ones only where it begins, blanks aside. Calls leave(user, node) for all nodes where the text may stop. */
void nib_chat_shape_scan(nib_chat_shape *d, uint32_t from, unsigned inner, unsigned outer,
                         void (*leave)(nib_chat_shape *d, uint32_t node));

/* value.c. Arguments of a tool as an object. */
uint32_t nib_chat_shape_arguments(nib_chat_shape *d, size_t tool, nib_grammar_writing writing);
/* Parameters of a tool, each by the body of a MANY group, from `ip` on; or as Python's key=value; or as a tree of tags. */
uint32_t nib_chat_shape_params(nib_chat_shape *d, size_t tool, const char *ip);
uint32_t nib_chat_shape_keywords(nib_chat_shape *d, size_t tool);
uint32_t nib_chat_shape_tree(nib_chat_shape *d, size_t tool);

#endif
