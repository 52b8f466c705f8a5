/* text/tokenizer.h - what a nib_tokenizer is made of: built by load.c, read by tokenize.c and detok.c, and by those in
 * engine/ who look at the whole vocabulary. */
#ifndef NIB_TEXT_TOKENIZER_H
#define NIB_TEXT_TOKENIZER_H

#include "base/mem.h"
#include "text/bpe.h"
#include "text/cut.h"
#include "text/pretok.h"
#include "text/special.h"
#include "text/spm.h"
#include "text/unigram.h"
#include "text/wordpiece.h"
#include "text/words.h"

typedef enum nib_text_role {
#define ROLE(id, name, key) NIB_TEXT_##id,
#include "text/roles.def"
    NIB_TEXT_N_ROLES
} nib_text_role;

/* What a file gives beside the tokens. */
typedef struct nib_text_source {
    nib_str merges; /* as in the file */
    uint64_t n_merges;
    nib_str charsmap;
    const nib_text_pre *pre;
} nib_text_source;

/* The buffers of one nib_tokenize. Set len, the rest is zero. */
typedef struct nib_text_work {
    size_t len;           /* of the whole text */
    bool is_continuation; /* text came before: no space is put in front */
    nib_text_words words;
    nib_text_bpe_work bpe;
    nib_text_pretok_walk walk;
    nib_text_spm_work spm;
    nib_text_unigram_work unigram;
    nib_buf well_formed, normal, escaped, word;
} nib_text_work;
void nib_text_work_free(nib_text_work *work);

typedef struct nib_text_kind { /* a row of kinds.def */
    const char *model, *name;
    const char *pre; /* the pre-tokenizer; "": as the file says, NULL: none */
    nib_token bos, eos, unk, sep, pad, mask;
    unsigned flags;
    bool ends_with_sep; /* NIB_ADD_SPECIAL ends a text with SEP, not EOS */
    nib_status (*build)(nib_tokenizer *tok, const nib_text_source *source, nib_error *err);
    void (*release)(nib_tokenizer *tok);
    /* Appends the tokens of plain text, which is all up to a special token or the end. */
    nib_status (*encode)(const nib_tokenizer *tok, nib_text_work *work, nib_str text, nib_token_list *out,
                         nib_error *err);
    /* Appends what a normal token stands for. */
    void (*decode)(const nib_tokenizer *tok, nib_str text, nib_buf *out);
} nib_text_kind;

/* NULL when there is none of that name / past the last. */
const nib_text_kind *nib_text_kind_find(nib_str model);
const nib_text_kind *nib_text_kind_at(size_t i);

struct nib_tokenizer {
    const nib_text_kind *kind;
    unsigned flags; /* text/flags.h */
    nib_text_vocab vocab;
    const nib_token *bytes; /* of 256: the token of each byte, so that a text that has one does not get lost; NULL: not of this kind */
    nib_token role[NIB_TEXT_N_ROLES]; /* NIB_TOKEN_NONE: none */
    nib_text_special special;
    nib_text_pretok pretok; /* bpe */
    nib_text_cut cut;       /* spm, unigram */
    union {
        nib_text_bpe bpe;
        nib_text_spm spm;
        nib_text_unigram unigram;
        nib_text_wordpiece wordpiece;
    } as;
    nib_arena notes;
    const char **warnings;
    size_t n_warnings, warnings_capacity;
};

/* Adds a warning; silently none when memory is out. */
void nib_text_warn(nib_tokenizer *tok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Roles and attributes that follow from the texts of tokens, and from the names of models. name, arch: of the model,
 * may be empty. */
void nib_text_roles_by_text(nib_tokenizer *tok);
void nib_text_strip_by_name(nib_tokenizer *tok, nib_str name, nib_str arch);
/* Marks the tags of a chat template that are user-defined tokens as NIB_TEXT_MARKUP. */
void nib_text_markup_of(nib_tokenizer *tok, nib_str chat_template);
const char *nib_text_role_name(nib_text_role role);
const char *nib_text_role_key(nib_text_role role);

/* Appends the tokens of plain text that continues other text: nothing is added, and special tokens are not parsed. */
nib_status nib_text_continue(const nib_tokenizer *tok, nib_str text, nib_token_list *out, nib_error *err);

/* Appends the bytes that a token (in range) stands for; control and unknown tokens only when asked. */
void nib_text_piece(const nib_tokenizer *tok, nib_token id, bool with_control, nib_buf *out);

#endif
