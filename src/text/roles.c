/* text/roles.c - what follows from the texts of tokens: roles that no key gives, which tokens end a generation or are
 * markup, and the few attributes that GGUF cannot express. The rules are those of llama.cpp, so that the same file behaves the same. */
#include "text/flags.h"
#include "text/tokenizer.h"

#include <string.h>

static const char *const names[] = {
#define ROLE(id, name, key) name,
#include "text/roles.def"
};
static const char *const keys[] = {
#define ROLE(id, name, key) "tokenizer.ggml." key,
#include "text/roles.def"
};

static const struct {
    nib_text_role role;
    const char *text;
} texts[] = {
#define TEXT(id, text) {NIB_TEXT_##id, text},
#include "text/roles.def"
};

static const char *const eog_texts[] = {
#define EOG(text) text,
#include "text/roles.def"
};

const char *nib_text_role_name(nib_text_role role) {
    return names[role];
}

const char *nib_text_role_key(nib_text_role role) {
    return keys[role];
}

static nib_token find(const nib_tokenizer *tok, const char *text) {
    return nib_text_vocab_find(&tok->vocab, text, strlen(text));
}

static void set_eog(nib_tokenizer *tok, nib_token id) {
    if (id != NIB_TOKEN_NONE) tok->vocab.attr[id] |= NIB_TOKEN_EOG;
}

static bool is_eog(const nib_tokenizer *tok, const char *text) {
    nib_token id = find(tok, text);
    return id != NIB_TOKEN_NONE && (tok->vocab.attr[id] & NIB_TOKEN_EOG);
}

/* Takes a token out of those that end a generation. */
static void unset_eog(nib_tokenizer *tok, const char *text, nib_token_attr attr) {
    if (is_eog(tok, text)) tok->vocab.attr[find(tok, text)] = (uint16_t)attr;
}

static bool contains(nib_str s, const char *part) { /* ASCII letters in either case */
    size_t n = strlen(part);
    for (size_t i = 0, k = 0; i + n <= s.len; i++, k = 0) {
        for (; k < n; k++) {
            char c = s.ptr[i + k];
            if (c >= 'A' && c <= 'Z') c = (char)(c + 32);
            if (c != part[k]) break;
        }
        if (k == n) return true;
    }
    return false;
}

static bool is_enclosed(nib_str s, const char *open, const char *close) {
    size_t n = strlen(open), m = strlen(close);
    return s.len > n + m && memcmp(s.ptr, open, n) == 0 && memcmp(s.ptr + s.len - m, close, m) == 0;
}

/* User-defined tokens of this shape are control tokens that a converter took for text. */
static void find_markup(nib_tokenizer *tok) {
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        nib_str text = nib_text_vocab_text(&tok->vocab, (nib_token)id);
        bool is_markup = is_enclosed(text, "<|", "|>") || is_enclosed(text, "<\xEF\xBD\x9C", "\xEF\xBD\x9C>");
        if (is_markup && (tok->vocab.attr[id] & NIB_TOKEN_USER)) tok->vocab.attr[id] |= NIB_TEXT_MARKUP;
    }
}

void nib_text_markup_of(nib_tokenizer *tok, nib_str chat_template) {
    nib_span all = {chat_template.len, true};
    nib_text_special_walk walk = nib_text_special_begin(&tok->special, &tok->vocab, chat_template, &all, 0);
    nib_text_fragment fragment;
    while (nib_text_special_next(&walk, &fragment)) {
        if (fragment.id == NIB_TOKEN_NONE || !(tok->vocab.attr[fragment.id] & NIB_TOKEN_USER)) continue;
        nib_str text = nib_text_vocab_text(&tok->vocab, fragment.id);
        if (is_enclosed(text, "<", ">") || is_enclosed(text, "[", "]")) tok->vocab.attr[fragment.id] |= NIB_TEXT_MARKUP;
    }
}

static void find_eog(nib_tokenizer *tok) {
    uint16_t *attr = tok->vocab.attr;
    for (size_t i = 0; i < sizeof eog_texts / sizeof eog_texts[0]; i++) {
        nib_token id = find(tok, eog_texts[i]);
        if (id != NIB_TOKEN_NONE) attr[id] |= NIB_TOKEN_EOG | NIB_TOKEN_CONTROL;
    }
    /* gpt-oss marks the channels of its answers with these: they are text to its users. */
    static const char *const shown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (find(tok, shown[i]) != NIB_TOKEN_NONE) attr[find(tok, shown[i])] = NIB_TOKEN_USER;
    static const nib_text_role ending[] = {NIB_TEXT_EOS,     NIB_TEXT_EOT,     NIB_TEXT_EOM,
                                           NIB_TEXT_FIM_PAD, NIB_TEXT_FIM_REP, NIB_TEXT_FIM_SEP};
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++) set_eog(tok, tok->role[ending[i]]);
    /* Where messages end with <|end|> and turns with another token, <|end|> does not end the generation. */
    bool has_call = is_eog(tok, "<|call|>") || is_eog(tok, "<|calls|>");
    if (has_call && (is_eog(tok, "<|return|>") || is_eog(tok, "<|flush|>"))) unset_eog(tok, "<|end|>", NIB_TOKEN_USER);
    if (is_eog(tok, "<|tool_response>")) unset_eog(tok, "</s>", NIB_TOKEN_NORMAL); /* HTML in Gemma 4 */
}

void nib_text_roles_by_text(nib_tokenizer *tok) {
    bool has_key[NIB_TEXT_N_ROLES];
    for (size_t i = 0; i < NIB_TEXT_N_ROLES; i++) has_key[i] = tok->role[i] != NIB_TOKEN_NONE;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        nib_token id = find(tok, texts[i].text);
        if (has_key[texts[i].role] || id == NIB_TOKEN_NONE) continue;
        has_key[texts[i].role] = true;
        tok->role[texts[i].role] = id;
        tok->vocab.attr[id] |= NIB_TOKEN_CONTROL;
    }
    for (uint32_t id = 0; id < tok->vocab.n; id++) {
        if (!(tok->vocab.attr[id] & NIB_TOKEN_CONTROL)) continue;
        nib_str text = nib_text_vocab_text(&tok->vocab, (nib_token)id);
        if (contains(text, "unused")) tok->vocab.attr[id] |= NIB_TOKEN_UNUSED;
    }
    find_eog(tok);
    find_markup(tok);
}

static void strip(nib_tokenizer *tok, const char *text, unsigned side, bool on) {
    nib_token id = find(tok, text);
    if (id == NIB_TOKEN_NONE) return;
    uint16_t *attr = &tok->vocab.attr[id];
    *attr = (uint16_t)(on ? *attr | side : *attr & ~side);
}

/* Which added tokens swallow white space is in tokenizer.json, and lost in GGUF. */
void nib_text_strip_by_name(nib_tokenizer *tok, nib_str name, nib_str arch) {
    nib_str pre = {NULL, 0};
    if (tok->pretok.row) pre = (nib_str){tok->pretok.row->name, strlen(tok->pretok.row->name)};
    if (contains(pre, "jina-v2-de") || contains(pre, "jina-v2-es") || contains(pre, "jina-v2-code") ||
        contains(arch, "nomic-bert-moe") || contains(arch, "jina-bert-v3")) {
        strip(tok, "<mask>", NIB_TEXT_STRIP_LEFT, true);
    } else if (contains(name, "phi-3") || contains(name, "phi3")) {
        for (uint32_t id = 0; id < tok->vocab.n; id++)
            if (tok->vocab.attr[id] & (NIB_TOKEN_CONTROL | NIB_TOKEN_USER | NIB_TOKEN_UNKNOWN))
                tok->vocab.attr[id] |= NIB_TEXT_STRIP_RIGHT;
        strip(tok, "</s>", NIB_TEXT_STRIP_RIGHT, true);
        strip(tok, "<unk>", NIB_TEXT_STRIP_RIGHT, false);
        strip(tok, "<s>", NIB_TEXT_STRIP_RIGHT, false);
        strip(tok, "<|endoftext|>", NIB_TEXT_STRIP_RIGHT, false);
    } else if (contains(name, "modern-bert")) {
        strip(tok, "[MASK]", NIB_TEXT_STRIP_LEFT, true);
    }
}
