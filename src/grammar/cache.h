/* grammar/cache.h - compiled grammars kept by all that they were made of, for those who make them (cache.c, chat/shape). */
#ifndef NIB_GRAMMAR_CACHE_H
#define NIB_GRAMMAR_CACHE_H

#include "base/buf.h"

typedef nib_status (*nib_grammar_make_fn)(nib_grammar **out, const void *user, nib_error *err);

/* A reference to the grammar of this key, which is taken over; made by `make` if there is none. Others who want the same
 * meanwhile wait for it. */
nib_status nib_grammar_cache_take(nib_grammar_cache *cache, nib_buf *key, nib_grammar_make_fn make, const void *user,
                                  nib_grammar **out, nib_error *err);
/* Parts of a key. */
void nib_grammar_key_text(nib_buf *key, const char *text, size_t len); /* text NULL is another key than "" */
void nib_grammar_key_config(nib_buf *key, const nib_grammar_config *config, const nib_grammar_vocab *vocab);

#endif
