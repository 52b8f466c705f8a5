/* tests/support/vocab.h - small vocabularies of the two common kinds, as GGUF keys. */
#ifndef NIB_TESTS_SUPPORT_VOCAB_H
#define NIB_TESTS_SUPPORT_VOCAB_H

#include "gguf/write.h"

#define VOCAB_MIN 259 /* three special tokens and 256 bytes */

/* Adds tokenizer.ggml.* keys with n_vocab tokens: specials, bytes, some merged pieces, then "<|pad0|>" and on.
 * "bpe": byte-level, ids 0 <|endoftext|> (bos), 1 <|im_start|>, 2 <|im_end|> (eos); pre-tokenizer "gpt-2".
 * "spm": ids 0 <unk>, 1 <s>, 2 </s>, then <0x00> to <0xFF>. NULL adds nothing. NIB_E_ARG for other kinds, or when
 * n_vocab is less than VOCAB_MIN. */
nib_status vocab_write(nib_gguf_writer *w, const char *kind, uint32_t n_vocab, nib_error *err);

#endif
