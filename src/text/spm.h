/* text/spm.h - SentencePiece's byte-pair kind ("llama"): words in, tokens out, by joining the neighbours that make the
 * token with the highest score. */
#ifndef NIB_TEXT_SPM_H
#define NIB_TEXT_SPM_H

#include "text/merge.h"
#include "text/vocab.h"

typedef struct nib_text_spm { /* immutable once built */
    const nib_text_vocab *vocab; /* borrowed */
    nib_token byte[256];         /* for characters that are no token; NIB_TOKEN_NONE: lost */
} nib_text_spm;

void nib_text_spm_init(nib_text_spm *spm, const nib_text_vocab *vocab, nib_token unknown);

typedef struct nib_text_spm_work { /* buffers of one thread; zero-initialise */
    nib_text_merge merge;
    const nib_text_spm *spm;
    nib_str word; /* being merged */
} nib_text_spm_work;
void nib_text_spm_work_free(nib_text_spm_work *work);

/* Appends the tokens of a word, in which U+2581 stands for spaces. False when memory is out. */
bool nib_text_spm_word(const nib_text_spm *spm, nib_text_spm_work *work, nib_str word, nib_token_list *out);

#endif
