/* chat/caps.h - what a chat template can do, as found by trying it (chat/probe.c), and the roles of messages. */
#ifndef NIB_CHAT_CAPS_H
#define NIB_CHAT_CAPS_H

#include "jinja/value.h"

typedef enum nib_chat_role {
#define ROLE(id, name) NIB_CHAT_##id,
#include "chat/roles.def"
    NIB_CHAT_N_ROLES,
    NIB_CHAT_OTHER = NIB_CHAT_N_ROLES
} nib_chat_role;

/* How a template wants tools. */
typedef enum nib_chat_tool_shape {
    NIB_CHAT_TOOLS_OPENAI,  /* {"type": "function", "function": {…}} */
    NIB_CHAT_TOOLS_BARE,    /* the function alone */
    NIB_CHAT_TOOLS_DEFINED, /* the function with parameter_definitions instead of a schema, as Command R had it */
    NIB_CHAT_TOOLS_UNSEEN,  /* it does not show them */
} nib_chat_tool_shape;

#define NIB_CHAT_BIT(role) (1u << (role))

typedef struct nib_chat_caps {
    uint16_t text_roles;    /* bits: whose content it shows when that is a string */
    uint16_t part_roles;    /* bits: whose content it shows when that is a list of parts */
    bool knows_developer;
    nib_chat_tool_shape tools;
    bool hides_results;     /* does not show what tools answered */
    bool needs_tools;       /* wants a list of tools even where it is empty */
    bool arguments_as_text; /* of tool calls, as JSON; otherwise as an object */
    bool empty_for_null;    /* content of an answer must be "" where there is none */
    bool thinks_or_talks;   /* refuses thoughts together with content where tools are called */
    const char *reasoning;  /* the field of an answer that it takes thoughts from; "": parts of type thinking; NULL: none */
    const char *toggle;     /* the variable that turns thinking on and off; NULL: none */
    bool has_budget;        /* thinking_budget 0 turns it off */
    const char *least;      /* the reasoning_effort that asks for least; NULL: it knows none */
} nib_chat_caps;

#endif
