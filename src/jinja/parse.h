/* jinja/parse.h - the source of a template -> nodes in an arena. */
#ifndef NIB_JINJA_PARSE_H
#define NIB_JINJA_PARSE_H

#include "base/mem.h"
#include "jinja/ast.h"

/* *out is a BODY; it points into source, whose line ends are \n, and into the arena. max_depth bounds what is nested in
 * what. Errors carry the offset of the token. */
nib_status nib_jinja_parse(nib_str source, uint32_t max_depth, nib_arena *arena, jinja_node **out, nib_error *err);

#endif
