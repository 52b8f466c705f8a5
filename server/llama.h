/* server/llama.h - what other files take from llama-server's dialect. */
#ifndef NIB_SERVER_LLAMA_H
#define NIB_SERVER_LLAMA_H

#include "generation.h"

/* {"prompt_n": …, "prompt_ms": …, "predicted_per_second": …}: llama.cpp's figures of a choice. */
json_t *nib_server_llama_timings(const nib_server_choice *choice);

#endif
