/* server/ollama.h - Ollama's API: how requests are read. */
#ifndef NIB_SERVER_OLLAMA_H
#define NIB_SERVER_OLLAMA_H

#include "dialect.h"

extern const nib_server_dialect nib_server_ollama; /* of /api/chat */

/* ask->body -> the rest of the ask; of embeddings ask->pooling is set. */
nib_status nib_server_ollama_chat(nib_server_ask *ask, nib_server_fault *fault);
nib_status nib_server_ollama_generate(nib_server_ask *ask, nib_server_fault *fault);
nib_status nib_server_ollama_show(nib_server_ask *ask, nib_server_fault *fault);
nib_status nib_server_ollama_embed(nib_server_ask *ask, nib_server_fault *fault);
nib_status nib_server_ollama_embeddings(nib_server_ask *ask, nib_server_fault *fault); /* as it was called once */

#endif
