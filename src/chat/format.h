/* chat/format.h - the formats in which models answer (formats.def): finding the one that a chat template goes with, and
 * what else follows from it. All of it is constant. */
#ifndef NIB_CHAT_FORMAT_H
#define NIB_CHAT_FORMAT_H

#include "nib.h"

typedef struct nib_chat_format_row nib_chat_format_row;

/* The format that the text of a template speaks; never NULL: generic when it shows none. */
const nib_chat_format_row *nib_chat_format_detect(nib_str template_text);
/* NULL: no such name. */
const nib_chat_format_row *nib_chat_format_find(const char *name);
/* name NULL: generic. NIB_E_ARG names what there is. */
nib_status nib_chat_format_choose(const nib_chat_format_row **out, const char *name, nib_error *err);
const char *nib_chat_format_name(const nib_chat_format_row *format);
/* Tokens that end a turn besides the EOG tokens of the file, from 0 on; ptr NULL past the last. They are names of
 * control tokens: where the vocabulary has such a token it is better found by its id than in the text. */
nib_str nib_chat_format_stop(const nib_chat_format_row *format, size_t i);
/* Whether an answer to this prompt begins inside reasoning: the prompt ends with what opens it, blanks aside. */
bool nib_chat_format_starts_thinking(const nib_chat_format_row *format, nib_str prompt);
/* The same for a message that is to be continued: its last marker of reasoning is one that opens it. */
bool nib_chat_format_leaves_thinking(const nib_chat_format_row *format, nib_str message);
/* Whether the text of a token is a marker of the format or a part of one, so that the parser must see it. */
bool nib_chat_format_is_mark(const nib_chat_format_row *format, nib_str token_text);

/* Of a nib_chat. */
const nib_tokenizer *nib_chat_tokenizer(const nib_chat *chat);

#endif
