/* chat/message.h - one message of a conversation: JSON in, checked; a value as the template wants it out. */
#ifndef NIB_CHAT_MESSAGE_H
#define NIB_CHAT_MESSAGE_H

#include "chat/caps.h"
#include "chat/field.h"

typedef struct nib_chat_call {
    const jinja_dict *fields, *function; /* as given */
    jinja_value id;        /* NONE: not given */
    jinja_value name;
    jinja_value text;      /* arguments as they were given as JSON text; NONE: as an object */
    jinja_value arguments; /* as an object */
} nib_chat_call;

typedef struct nib_chat_message {
    const jinja_dict *fields; /* as given; NULL: made here */
    nib_chat_role role;
    jinja_value role_name;
    jinja_value content;   /* a string, a list of text parts, or NONE */
    jinja_value reasoning; /* a string or NONE */
    jinja_value name;      /* likewise */
    nib_chat_call *calls;
    uint32_t n_calls;
} nib_chat_message;

enum {
#define NOTE(id, text) NIB_CHAT_NOTE_##id,
#include "chat/notes.def"
    NIB_CHAT_N_NOTES
};

/* The role's name as a trusted string. */
jinja_value nib_chat_role_name(nib_chat_role role);

/* Checks a message and takes it apart; r->path names it. */
nib_status nib_chat_message_read(nib_chat_reader *r, const jinja_value *message, nib_chat_message *out);
/* The content as one string: parts are joined by line ends. */
nib_status nib_chat_message_text(const nib_chat_reader *r, const jinja_value *content, jinja_value *out);
/* Puts it together for a template; notes: bits of what was changed. */
nib_status nib_chat_message_write(const nib_chat_reader *r, const nib_chat_message *message, const nib_chat_caps *caps,
                                  unsigned *notes, jinja_value *out);

#endif
