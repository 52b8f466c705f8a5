/* text/load.c - nib_tokenizer_new: the keys tokenizer.* of a GGUF file in, a tokenizer out. Every type, count and id is
 * checked; what can be done without is dropped with a warning, the rest is an error that names the key, what it holds
 * and what was expected. */
#include "base/half.h"
#include "base/status.h"
#include "text/flags.h"
#include "text/tokenizer.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define TEMPLATES "tokenizer.chat_template"

void nib_text_warn(nib_tokenizer *tok, const char *format, ...) {
    char text[sizeof((nib_error *)0)->message];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *note = nib_arena_copy(&tok->notes, text, strlen(text));
    if (!note || !nib_grow(&tok->warnings, &tok->warnings_capacity, tok->n_warnings + 1, sizeof *tok->warnings)) return;
    for (char *p = note; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = '?'; /* texts of tokens, on their way to a terminal */
    tok->warnings[tok->n_warnings++] = note;
}

static nib_status wrong_type(const char *key, const nib_gguf_value *v, const char *expected, nib_error *err) {
    if (v->type == NIB_GGUF_ARRAY)
        return nib_fail(err, NIB_E_FORMAT, "%s is an array of %s, expected %s", key, nib_gguf_type_name(v->elem),
                        expected);
    return nib_fail(err, NIB_E_FORMAT, "%s is of type %s, expected %s", key, nib_gguf_type_name(v->type), expected);
}

/* *out stays as it is when the key is absent. */
static nib_status get_str(const nib_gguf *file, const char *key, nib_str *out, nib_error *err) {
    const nib_gguf_value *v = nib_gguf_find(file, key);
    if (!v) return NIB_OK;
    if (v->type != NIB_GGUF_STRING) return wrong_type(key, v, "a string", err);
    *out = v->as.str;
    return NIB_OK;
}

static nib_status get_flag(const nib_gguf *file, const char *key, unsigned flag, unsigned *flags, nib_error *err) {
    const nib_gguf_value *v = nib_gguf_find(file, key);
    if (!v) return NIB_OK;
    if (v->type != NIB_GGUF_BOOL) return wrong_type(key, v, "a bool", err);
    *flags = v->as.b ? *flags | flag : *flags & ~flag;
    return NIB_OK;
}

/* An array with n elements of a type; *out is NULL when the key is absent. */
static nib_status get_array(const nib_gguf *file, const char *key, nib_gguf_type elem, uint64_t n,
                            const nib_gguf_value **out, nib_error *err) {
    const nib_gguf_value *v = nib_gguf_find(file, key);
    char expected[64];
    snprintf(expected, sizeof expected, "an array of %s", nib_gguf_type_name(elem));
    *out = v;
    if (!v) return NIB_OK;
    /* The sign of a small number and that of a byte do not matter. */
    bool is_same = v->elem == elem || (v->elem == NIB_GGUF_U32 && elem == NIB_GGUF_I32) ||
                   (v->elem == NIB_GGUF_I8 && elem == NIB_GGUF_U8) || (v->elem == NIB_GGUF_I32 && elem == NIB_GGUF_F32);
    if (v->type != NIB_GGUF_ARRAY || !is_same) return wrong_type(key, v, expected, err);
    if (n != UINT64_MAX && v->n != n)
        return nib_fail(err, NIB_E_FORMAT, "%s has %llu elements, expected %llu as there are tokens", key,
                        (unsigned long long)v->n, (unsigned long long)n);
    return NIB_OK;
}

static nib_status unknown_kind(nib_str model, nib_error *err) {
    nib_buf known = {0};
    const nib_text_kind *kind;
    for (size_t i = 0; (kind = nib_text_kind_at(i)) != NULL; i++)
        nib_buf_printf(&known, "%s%s", i ? " " : "", kind->model);
    const char *list = nib_buf_cstr(&known);
    nib_fail(err, NIB_E_UNSUPPORTED, KEY("model") " is \"%.*s\", expected one of: %s", NIB_STR_ARG(model),
             list ? list : "");
    nib_buf_free(&known);
    return NIB_E_UNSUPPORTED;
}

static nib_status unknown_pre(const char *where, nib_status status, nib_str name, nib_error *err) {
    nib_buf known = {0};
    nib_text_pre_list(&known);
    const char *list = nib_buf_cstr(&known);
    nib_fail(err, status,
             "%s is \"%.*s\", no known pre-tokenizer; choose one yourself with `pre` in nib_tokenizer_config. "
             "Known, and their relatives: %s",
             where, name.len > 40 ? 40 : (int)name.len, name.ptr ? name.ptr : "", list ? list : "");
    nib_buf_free(&known);
    return status;
}

static nib_status choose_pre(nib_tokenizer *tok, const nib_gguf *file, const char *wanted, nib_text_source *source,
                             nib_error *err) {
    nib_str name = {NULL, 0};
    NIB_TRY(get_str(file, KEY("pre"), &name, err));
    if (!tok->kind->pre) {
        if (wanted)
            nib_text_warn(tok, "pre-tokenizer \"%s\" is not used: tokenizers of kind %s have none", wanted,
                          tok->kind->name);
        return NIB_OK;
    }
    const char *where = KEY("pre");
    if (wanted) name = (nib_str){wanted, strlen(wanted)}, where = "config.pre";
    else if (tok->kind->pre[0]) name = (nib_str){tok->kind->pre, strlen(tok->kind->pre)};
    if (!name.len) {
        nib_text_warn(tok, "the file names no pre-tokenizer (" KEY("pre") "): text is cut by a general rule that may "
                           "differ from the model's own, which makes its answers worse; choose one with `pre`");
        name = (nib_str){"default", 7};
    }
    source->pre = nib_text_pre_find(name);
    if (!source->pre) return unknown_pre(where, wanted ? NIB_E_ARG : NIB_E_UNSUPPORTED, name, err);
    tok->flags |= source->pre->flags;
    return NIB_OK;
}

static nib_status get_flags(nib_tokenizer *tok, const nib_gguf *file, nib_error *err) {
    unsigned *flags = &tok->flags;
    bool is_sentencepiece = !tok->kind->pre && !tok->kind->ends_with_sep; /* the others do nothing to spaces */
    NIB_TRY(get_flag(file, KEY("add_space_prefix"), is_sentencepiece ? NIB_TEXT_SPACE_PREFIX : 0, flags, err));
    NIB_TRY(get_flag(file, KEY("remove_extra_whitespaces"), is_sentencepiece ? NIB_TEXT_MERGE_SPACES : 0, flags, err));
    NIB_TRY(get_flag(file, KEY("add_bos_token"), NIB_TEXT_ADD_BOS, flags, err));
    NIB_TRY(get_flag(file, KEY("add_eos_token"), NIB_TEXT_ADD_EOS, flags, err));
    NIB_TRY(get_flag(file, KEY("add_sep_token"), NIB_TEXT_ADD_SEP, flags, err));
    if (*flags & NIB_TEXT_ALWAYS_BOS) *flags |= NIB_TEXT_ADD_BOS;
    NIB_TRY(get_flag(file, KEY("normalizer.lowercase"), NIB_TEXT_LOWERCASE | NIB_TEXT_STRIP_ACCENTS, flags, err));
    return get_flag(file, KEY("normalizer.strip_accents"), NIB_TEXT_STRIP_ACCENTS, flags, err);
}

static nib_status get_texts(nib_tokenizer *tok, const nib_gguf *file, nib_error *err) {
    const nib_gguf_value *v;
    NIB_TRY(get_array(file, KEY("tokens"), NIB_GGUF_STRING, UINT64_MAX, &v, err));
    if (!v) return nib_fail(err, NIB_E_FORMAT, KEY("tokens") " is missing, expected an array of strings");
    if (v->n == 0 || v->n > NIB_TEXT_MAX_TOKENS)
        return nib_fail(err, NIB_E_FORMAT, KEY("tokens") " has %llu elements, expected 1 to %u",
                        (unsigned long long)v->n, NIB_TEXT_MAX_TOKENS);
    NIB_TRY(nib_text_vocab_init(&tok->vocab, (uint32_t)v->n, v->as.raw.len, err));
    nib_str left = v->as.raw, text;
    while (nib_gguf_next_string(&left, &text))
        if (!nib_text_vocab_add(&tok->vocab, text)) break;
    if (tok->vocab.n != v->n)
        return nib_fail(err, NIB_E_FORMAT, KEY("tokens") " ends after %u of its strings", tok->vocab.n);
    if (tok->vocab.n_duplicates)
        nib_text_warn(tok, KEY("tokens") " has %u texts twice; the first id of each is used", tok->vocab.n_duplicates);
    return NIB_OK;
}

/* Element i of an array of four-byte numbers. */
static uint32_t bits_at(const nib_gguf_value *array, uint32_t i) {
    const unsigned char *p = (const unsigned char *)array->as.raw.ptr + 4 * (size_t)i;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static nib_status get_scores(nib_tokenizer *tok, const nib_gguf *file, nib_error *err) {
    const nib_gguf_value *v;
    NIB_TRY(get_array(file, KEY("scores"), NIB_GGUF_F32, tok->vocab.n, &v, err));
    for (uint32_t id = 0; v && id < tok->vocab.n; id++) {
        uint32_t bits = bits_at(v, id);
        float score = v->elem == NIB_GGUF_I32 ? (float)(int32_t)bits : nib_f32_from_bits(bits);
        if (!isfinite(score))
            return nib_fail(err, NIB_E_FORMAT, KEY("scores") "[%u] is %g, expected a finite number", id, (double)score);
        tok->vocab.score[id] = score;
    }
    return NIB_OK;
}

static bool is_byte_text(nib_str text) { /* <0x0A> */
    if (text.len != 6 || memcmp(text.ptr, "<0x", 3) != 0 || text.ptr[5] != '>') return false;
    for (size_t i = 3; i < 5; i++)
        if (!strchr("0123456789ABCDEFabcdef", text.ptr[i]) || !text.ptr[i]) return false;
    return true;
}

/* The numbers of token types in the file. */
static const uint16_t attr_of_type[] = {0, NIB_TOKEN_NORMAL, NIB_TOKEN_UNKNOWN, NIB_TOKEN_CONTROL,
                                        NIB_TOKEN_USER, NIB_TOKEN_UNUSED, NIB_TOKEN_BYTE};
#define N_TYPES (sizeof attr_of_type / sizeof attr_of_type[0])

static nib_status get_types(nib_tokenizer *tok, const nib_gguf *file, nib_error *err) {
    const nib_gguf_value *v;
    NIB_TRY(get_array(file, KEY("token_type"), NIB_GGUF_I32, tok->vocab.n, &v, err));
    for (uint32_t id = 0; v && id < tok->vocab.n; id++) {
        uint32_t type = bits_at(v, id);
        if (type >= N_TYPES)
            return nib_fail(err, NIB_E_FORMAT, KEY("token_type") "[%u] is %d, expected 0 to %zu", id, (int32_t)type,
                            N_TYPES - 1);
        tok->vocab.attr[id] = attr_of_type[type];
        if (!(tok->vocab.attr[id] & NIB_TOKEN_BYTE)) continue;
        nib_str text = nib_text_vocab_text(&tok->vocab, (nib_token)id);
        if (!is_byte_text(text))
            return nib_fail(err, NIB_E_FORMAT,
                            KEY("tokens") "[%u] is a byte and called \"%.*s\", expected <0x00> to <0xFF>", id,
                            NIB_STR_ARG(text));
    }
    return NIB_OK;
}

static bool is_one_of(nib_gguf_type type, nib_gguf_type a, nib_gguf_type b, nib_gguf_type c, nib_gguf_type d) {
    return type == a || type == b || type == c || type == d;
}

static nib_status get_role(nib_tokenizer *tok, const nib_gguf *file, nib_text_role role, const char *key,
                           nib_error *err) {
    const nib_gguf_value *v = nib_gguf_find(file, key);
    if (!v) return NIB_OK;
    bool is_unsigned = is_one_of(v->type, NIB_GGUF_U8, NIB_GGUF_U16, NIB_GGUF_U32, NIB_GGUF_U64);
    bool is_signed = is_one_of(v->type, NIB_GGUF_I8, NIB_GGUF_I16, NIB_GGUF_I32, NIB_GGUF_I64);
    if (!is_unsigned && !is_signed) return wrong_type(key, v, "an integer", err);
    if (is_unsigned ? v->as.u64 < tok->vocab.n : v->as.i64 >= 0 && v->as.i64 < (int64_t)tok->vocab.n) {
        tok->role[role] = is_unsigned ? (nib_token)v->as.u64 : (nib_token)v->as.i64;
        return NIB_OK;
    }
    if (is_signed && v->as.i64 == -1) { /* how some files say that there is none */
        tok->role[role] = NIB_TOKEN_NONE;
        return NIB_OK;
    }
    char found[32];
    if (is_unsigned) snprintf(found, sizeof found, "%llu", (unsigned long long)v->as.u64);
    else snprintf(found, sizeof found, "%lld", (long long)v->as.i64);
    nib_text_warn(tok, "%s is %s, expected 0 to %u; it is ignored", key, found, tok->vocab.n - 1);
    return NIB_OK;
}

static const struct {
    nib_text_role role;
    const char *key;
} old_keys[] = {
#define OLD_KEY(id, key) {NIB_TEXT_##id, KEY(key)},
#include "text/roles.def"
};

static nib_status get_roles(nib_tokenizer *tok, const nib_gguf *file, nib_error *err) {
    const nib_text_kind *kind = tok->kind;
    for (size_t i = 0; i < NIB_TEXT_N_ROLES; i++) tok->role[i] = NIB_TOKEN_NONE;
    tok->role[NIB_TEXT_BOS] = kind->bos;
    tok->role[NIB_TEXT_EOS] = kind->eos;
    tok->role[NIB_TEXT_UNK] = kind->unk;
    tok->role[NIB_TEXT_SEP] = kind->sep;
    tok->role[NIB_TEXT_PAD] = kind->pad;
    tok->role[NIB_TEXT_MASK] = kind->mask;
    for (size_t i = 0; i < NIB_TEXT_N_ROLES; i++)
        if (tok->role[i] >= (nib_token)tok->vocab.n) tok->role[i] = NIB_TOKEN_NONE;
    for (size_t i = 0; i < sizeof old_keys / sizeof old_keys[0]; i++)
        NIB_TRY(get_role(tok, file, old_keys[i].role, old_keys[i].key, err));
    for (size_t i = 0; i < NIB_TEXT_N_ROLES; i++)
        NIB_TRY(get_role(tok, file, (nib_text_role)i, nib_text_role_key((nib_text_role)i), err));
    nib_token *bos = &tok->role[NIB_TEXT_BOS], *cls = &tok->role[NIB_TEXT_CLS];
    if (kind->ends_with_sep && *cls != NIB_TOKEN_NONE && !nib_gguf_find(file, KEY("bos_token_id"))) *bos = *cls;
    if (kind->ends_with_sep && *cls == NIB_TOKEN_NONE) *cls = *bos;
    return NIB_OK;
}

/* A token that is to be added must exist. */
static void check_added(nib_tokenizer *tok, unsigned flag, nib_text_role role) {
    if (!(tok->flags & flag) || tok->role[role] != NIB_TOKEN_NONE) return;
    nib_text_warn(tok, "the model wants a %s token added to texts, but has none (%s): none is added",
                  nib_text_role_name(role), nib_text_role_key(role));
    tok->flags &= ~flag;
}

static nib_status get_source(nib_tokenizer *tok, const nib_gguf *file, nib_text_source *source, nib_error *err) {
    const nib_gguf_value *v;
    NIB_TRY(get_array(file, KEY("merges"), NIB_GGUF_STRING, UINT64_MAX, &v, err));
    if (!v && tok->kind->pre)
        return nib_fail(err, NIB_E_FORMAT,
                        KEY("merges") " is missing, expected an array of strings as " KEY("model") " is \"%s\"",
                        tok->kind->model);
    if (v) source->merges = v->as.raw, source->n_merges = v->n;
    NIB_TRY(get_array(file, KEY("precompiled_charsmap"), NIB_GGUF_U8, UINT64_MAX, &v, err));
    if (v) source->charsmap = v->as.raw;
    return NIB_OK;
}

/* User-defined tokens that a template of the file is written with are its markup. */
static void mark_markup(nib_tokenizer *tok, const nib_gguf *file) {
    const nib_gguf_value *value;
    nib_str key;
    for (size_t i = 0; (key = nib_gguf_key_at(file, i, &value)).ptr; i++) {
        if (key.len < strlen(TEMPLATES) || memcmp(key.ptr, TEMPLATES, strlen(TEMPLATES)) != 0) continue;
        if (value->type == NIB_GGUF_STRING) nib_text_markup_of(tok, value->as.str);
    }
}

static nib_status load(nib_tokenizer *tok, const nib_gguf *file, const char *pre, nib_error *err) {
    nib_str model = {NULL, 0}, name = {NULL, 0}, arch = {NULL, 0};
    nib_text_source source = {0};
    if (!nib_gguf_find(file, KEY("model")))
        return nib_fail(err, NIB_E_FORMAT, KEY("model") " is missing: the file has no tokenizer");
    NIB_TRY(get_str(file, KEY("model"), &model, err));
    tok->kind = nib_text_kind_find(model);
    if (!tok->kind) return unknown_kind(model, err);
    tok->flags = tok->kind->flags;
    NIB_TRY(choose_pre(tok, file, pre, &source, err));
    NIB_TRY(get_flags(tok, file, err));
    NIB_TRY(get_texts(tok, file, err));
    NIB_TRY(get_scores(tok, file, err));
    NIB_TRY(get_types(tok, file, err));
    NIB_TRY(get_roles(tok, file, err));
    NIB_TRY(get_source(tok, file, &source, err));
    nib_text_roles_by_text(tok);
    check_added(tok, NIB_TEXT_ADD_BOS, NIB_TEXT_BOS);
    check_added(tok, NIB_TEXT_ADD_EOS, NIB_TEXT_EOS);
    if (tok->kind->ends_with_sep) check_added(tok, NIB_TEXT_ADD_SEP, NIB_TEXT_SEP);
    NIB_TRY(tok->kind->build(tok, &source, err));
    NIB_TRY(get_str(file, "general.name", &name, err));
    NIB_TRY(get_str(file, "general.architecture", &arch, err));
    nib_text_strip_by_name(tok, name, arch);
    NIB_TRY(nib_text_special_init(&tok->special, &tok->vocab, err));
    mark_markup(tok, file);
    return NIB_OK;
}

nib_status nib_tokenizer_new(nib_tokenizer **out, const nib_gguf *file, const nib_tokenizer_config *config,
                             nib_error *err) {
    *out = NULL;
    nib_tokenizer *tok = nib_calloc(1, sizeof *tok);
    if (!tok) return nib_fail_nomem(err, sizeof *tok, "a tokenizer");
    nib_status status = load(tok, file, config ? config->pre : NULL, err);
    if (status == NIB_OK) *out = tok;
    else nib_tokenizer_free(tok);
    return status;
}

void nib_tokenizer_free(nib_tokenizer *tok) {
    if (!tok) return;
    if (tok->kind) tok->kind->release(tok);
    nib_text_special_free(&tok->special);
    nib_text_vocab_free(&tok->vocab);
    nib_free(tok->warnings);
    nib_arena_free(&tok->notes);
    nib_free(tok);
}
