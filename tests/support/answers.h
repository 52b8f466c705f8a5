/* tests/support/answers.h - an answer through nib_chat_parser, in pieces of any length -> its events as one JSON list, with
 * neighbours of the same text merged, so that two ways to cut it can be compared. */
#ifndef NIB_TESTS_SUPPORT_ANSWERS_H
#define NIB_TESTS_SUPPORT_ANSWERS_H

#include "nib.h"

#include <jansson.h>

/* The length of the next piece. */
typedef size_t (*answers_cut)(void *user);

/* ["content", text], ["reasoning", text], ["call", index, id, name, arguments], ["warning", text]; with stream_calls the same,
 * and "broken" for "call" when a warning came before its end. NULL when the parser
 * fails. cut NULL: all at once. The config's event and user are set here. Bytes that are not UTF-8 come out as
 * characters of their own. */
json_t *answers_parse(const nib_chat_parser_config *config, nib_str answer, answers_cut cut, void *user);
/* The texts of one kind, joined. */
char *answers_joined(json_t *events, const char *kind);

#endif
