/* chat/output/tools.h - the tools of a request, OpenAI's JSON: which names there are, and of which types their
 * parameters. */
#ifndef NIB_CHAT_OUTPUT_TOOLS_H
#define NIB_CHAT_OUTPUT_TOOLS_H

#include "base/mem.h"
#include "nib.h"

/* What a JSON schema says of a value; NULL: nothing. */
typedef struct jinja_value nib_chat_schema;

typedef struct nib_chat_tools {
    nib_arena arena;
    const nib_chat_schema *list; /* NULL: no tools were given */
} nib_chat_tools;

nib_status nib_chat_tools_init(nib_chat_tools *tools, nib_str json, nib_error *err);
void nib_chat_tools_fini(nib_chat_tools *tools);
bool nib_chat_tools_has(const nib_chat_tools *tools, nib_str name);
/* The schema of all of its parameters. */
const nib_chat_schema *nib_chat_tools_find(const nib_chat_tools *tools, nib_str name);
const nib_chat_schema *nib_chat_schema_property(const nib_chat_schema *schema, nib_str key);
const nib_chat_schema *nib_chat_schema_items(const nib_chat_schema *schema);

enum {
    NIB_CHAT_STRING = 1,
    NIB_CHAT_NUMBER = 2,
    NIB_CHAT_BOOLEAN = 4,
    NIB_CHAT_NULL = 8,
    NIB_CHAT_ARRAY = 16,
    NIB_CHAT_OBJECT = 32,
};
/* The types that the schema allows; 0: it does not say. */
unsigned nib_chat_schema_types(const nib_chat_schema *schema);

#endif
