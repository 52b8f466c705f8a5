/* chat/output/track.h - where in JSON calls, {"name", "arguments"} or a list of these, the arguments begin, so that they can be
 * passed on before the call is complete. */
#ifndef NIB_CHAT_OUTPUT_TRACK_H
#define NIB_CHAT_OUTPUT_TRACK_H

#include "chat/output/json.h"

typedef struct nib_chat_range {
    size_t from, to;
} nib_chat_range;

typedef enum nib_chat_track_result {
    NIB_CHAT_TRACK_MORE,
    NIB_CHAT_TRACK_ARGUMENTS, /* they begin with this byte: an object, whose call has said its name */
    NIB_CHAT_TRACK_CALL,      /* this byte ends a call */
    NIB_CHAT_TRACK_BAD,       /* no JSON, or a list of something else */
} nib_chat_track_result;

/* Zero-initialise. Ranges are of raw JSON, in offsets of the answer. */
typedef struct nib_chat_track {
    nib_chat_json json;
    bool is_done; /* the value is complete */
    bool is_list, in_string, is_escaped, is_value, has_arguments, in_arguments;
    nib_chat_range call, key, name, id, arguments; /* of the current call; to: 0 before its end */
    size_t n_calls, string_from;
} nib_chat_track;

/* Takes byte c at offset `at`; window: a pointer to the byte at offset `from` of the answer, for keys. */
nib_chat_track_result nib_chat_track_byte(nib_chat_track *t, char c, size_t at, const char *window, size_t from);

#endif
