/* server/engine_view.h - GET /engine/events: pictures of the engine to those who look at it, as server-sent events.
 *
 * Each event is {full, page, n_pages, pages: [i, state, users, link, …], requests, turns: [{number, ms, parts: [request, tokens,
 * is_prompt, …]}], missed, figures}, as in nib_engine_view; `pages` has those that changed, in the first event all that are
 * not free. No texts and no tokens are in them. */
#ifndef NIB_SERVER_ENGINE_VIEW_H
#define NIB_SERVER_ENGINE_VIEW_H

struct nib_server;
typedef struct nib_server_engine_view nib_server_engine_view;

/* After the loop, before the engine goes. */
void nib_server_engine_view_free(nib_server_engine_view *view);

#endif
