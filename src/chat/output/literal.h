/* chat/output/literal.h - values that models write otherwise than in JSON -> JSON. Each function appends to *out;
 * false: the text is not of that kind (or memory is out: out->failed), and what was appended is to be thrown away. */
#ifndef NIB_CHAT_OUTPUT_LITERAL_H
#define NIB_CHAT_OUTPUT_LITERAL_H

#include "base/buf.h"
#include "chat/output/tools.h"

/* A value of Python: None, True, numbers, strings, lists, tuples, dicts. */
bool nib_chat_python_value(nib_str text, nib_buf *out);

/* Calls of Python: name(key=value, …). */
typedef struct nib_chat_python {
    const char *p, *end;
    uint32_t depth;
} nib_chat_python;
/* The next one, blanks before it aside: its name, and its arguments as an object, to *out. */
bool nib_chat_python_call(nib_chat_python *python, nib_str *name, nib_buf *out);
bool nib_chat_python_char(nib_chat_python *python, char c); /* skips blanks and c, when it follows */

/* {key:value}, strings between <|"|>; keys of inner objects may stand between these, too. */
bool nib_chat_gemma_object(nib_str text, nib_buf *out);

/* Nested tags, each with ]<]minimax[>[ before it: members, or <item>s. */
bool nib_chat_tree_object(nib_str text, const nib_chat_schema *schema, nib_buf *out);

/* Text as a value of the schema (param.c): a string where one is wanted, else JSON or Python when it is such, else a
 * string after all. */
bool nib_chat_param_put(nib_str text, const nib_chat_schema *schema, nib_buf *out);

#endif
