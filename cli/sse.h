/* cli/sse.h - server-sent events: bytes in -> the data of each event out. No I/O. */
#ifndef NIB_CLI_SSE_H
#define NIB_CLI_SSE_H

#include "base/buf.h"

/* Zero-initialise. */
typedef struct nib_cli_sse {
    nib_buf line, data;
    bool after_cr; /* a \n that comes now belongs to the line before */
} nib_cli_sse;

/* Calls event with the data of each event that is complete; it ends in NUL and may be changed. False: event said so, memory is
 * out, or an event is longer than 64 MiB. */
bool nib_cli_sse_feed(nib_cli_sse *sse, nib_str bytes, bool (*event)(void *user, nib_str data), void *user);
void nib_cli_sse_free(nib_cli_sse *sse);

#endif
