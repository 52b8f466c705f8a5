/* chat/chat.c - nib_chat: the template of a model is found, parsed and tried, and with it what ends an answer and the
 * format of answers. A template is the caller's, or one that nib brings along, or the file's own; nothing is guessed. */
#include "chat/chat.h"

#include "base/buf.h"
#include "base/status.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.chat_template"

static void free_template(nib_chat_template *t) {
    nib_template_free(t->parsed);
    nib_free(t->text);
    nib_free(t->source);
    *t = (nib_chat_template){0};
}

static char *copy(const char *text, size_t len) {
    char *p = nib_alloc(len + 1, 1);
    if (!p) return NULL;
    memcpy(p, text, len);
    p[len] = 0;
    return p;
}

/* source: how messages name it. */
static nib_status add_template(nib_chat *chat, nib_chat_template *t, nib_str text, const char *source, nib_error *err) {
    t->text = copy(text.ptr, text.len);
    t->source = copy(source, strlen(source));
    t->len = text.len;
    if (!t->text || !t->source) return nib_fail_nomem(err, text.len, "a template");
    nib_status status = nib_template_new(&t->parsed, text.ptr, text.len, err);
    if (status == NIB_E_FORMAT && err) {
        uint32_t line, column;
        nib_template_place(text.ptr, text.len, err->offset, &line, &column);
        nib_error_prefix(err, "%s:%u:%u", source, line, column);
    }
    return status == NIB_OK ? nib_chat_probe(chat, t, err) : status;
}

/* ptr NULL: there is none. */
static nib_str template_of(const nib_gguf *file, const char *variant) {
    char key[200];
    snprintf(key, sizeof key, KEY "%s%.150s", variant ? "." : "", variant ? variant : "");
    const nib_gguf_value *value = file ? nib_gguf_find(file, key) : NULL;
    return value && value->type == NIB_GGUF_STRING ? value->as.str : (nib_str){NULL, 0};
}

/* The names of the file's templates, for a message. */
static nib_status no_template(const nib_gguf *file, const char *variant, nib_error *err) {
    nib_buf names = {0};
    const nib_gguf_value *value;
    nib_str key;
    for (size_t i = 0; file && (key = nib_gguf_key_at(file, i, &value)).ptr; i++) {
        bool is_named = key.len > strlen(KEY) + 1 && memcmp(key.ptr, KEY ".", strlen(KEY) + 1) == 0;
        if (is_named && value->type == NIB_GGUF_STRING) nib_buf_printf(&names, " %.*s", NIB_STR_ARG(key));
    }
    const char *list = nib_buf_cstr(&names);
    if (variant)
        nib_fail(err, NIB_E_ARG, "the file has no template " KEY ".%.100s; named ones:%s", variant,
                 list && *list ? list : " none");
    else if (list && *list)
        nib_fail(err, NIB_E_ARG, "the file has no default chat template (" KEY "), only named ones; choose one of:%s", list);
    else
        nib_fail(err, NIB_E_ARG, "the file has no chat template (" KEY "), as models that were not made for conversations; "
                                 "give a template, or choose a built-in one that the model was trained with");
    nib_buf_free(&names);
    return NIB_E_ARG;
}

static nib_status find_in_file(nib_chat *chat, const nib_gguf *file, const char *variant, nib_error *err) {
    char source[200] = "the model's template";
    nib_str text = template_of(file, variant), tools = template_of(file, "tool_use");
    if (!text.ptr) return no_template(file, variant, err);
    if (variant) snprintf(source, sizeof source, "the model's template %.150s", variant);
    NIB_TRY(add_template(chat, &chat->main, text, source, err));
    return variant || !tools.ptr ? NIB_OK : add_template(chat, &chat->tool_use, tools, "the model's template tool_use", err);
}

static nib_status find_template(nib_chat *chat, const nib_gguf *file, const nib_chat_config *config, nib_error *err) {
    char source[200];
    nib_str text = {config->text, config->text_len};
    if (text.ptr) return add_template(chat, &chat->main, text, "the given template", err);
    if (!config->builtin) return find_in_file(chat, file, config->variant, err);
    text = nib_chat_builtin_find(config->builtin);
    if (!text.ptr) return nib_fail(err, NIB_E_ARG, "there is no built-in template \"%.100s\"", config->builtin);
    snprintf(source, sizeof source, "built-in template %.150s", config->builtin);
    return add_template(chat, &chat->main, text, source, err);
}

static nib_status build(nib_chat *chat, const nib_gguf *file, const nib_chat_config *config, nib_error *err) {
    NIB_TRY(nib_chat_format_choose(&chat->format, config->format, err));
    NIB_TRY(find_template(chat, file, config, err));
    const nib_chat_template *with_tools = chat->tool_use.parsed ? &chat->tool_use : &chat->main;
    if (!config->format) chat->format = nib_chat_format_detect((nib_str){with_tools->text, with_tools->len});
    return nib_chat_find_end(chat, err);
}

nib_status nib_chat_new(nib_chat **out, const nib_gguf *file, const nib_tokenizer *tok, const nib_chat_config *config,
                        nib_error *err) {
    static const nib_chat_config defaults = NIB_CHAT_CONFIG_INIT;
    *out = NULL;
    nib_chat *chat = nib_calloc(1, sizeof *chat);
    if (!chat) return nib_fail_nomem(err, sizeof *chat, "a chat");
    chat->tok = tok;
    chat->end = NIB_TOKEN_NONE;
    nib_status status = build(chat, file, config ? config : &defaults, err);
    if (status == NIB_OK) *out = chat;
    else nib_chat_free(chat);
    return status;
}

void nib_chat_free(nib_chat *chat) {
    if (!chat) return;
    free_template(&chat->main);
    free_template(&chat->tool_use);
    nib_free(chat);
}

const nib_tokenizer *nib_chat_tokenizer(const nib_chat *chat) {
    return chat->tok;
}

const char *nib_chat_source(const nib_chat *chat) {
    return chat->main.source;
}

const char *nib_chat_format(const nib_chat *chat) {
    return nib_chat_format_name(chat->format);
}

/* Control tokens that the format ends answers with; where the vocabulary lacks one its text is a stop string. */
static bool is_stop_token(const nib_chat *chat, nib_token id) {
    nib_str text = nib_tokenizer_text(chat->tok, id), stop;
    if (!(nib_tokenizer_attr(chat->tok, id) & (NIB_TOKEN_CONTROL | NIB_TOKEN_USER))) return false;
    for (size_t i = 0; (stop = nib_chat_format_stop(chat->format, i)).ptr; i++)
        if (stop.len == text.len && memcmp(stop.ptr, text.ptr, text.len) == 0) return true;
    return false;
}

bool nib_chat_ends_turn(const nib_chat *chat, nib_token id) {
    return nib_tokenizer_is_eog(chat->tok, id) || (id != NIB_TOKEN_NONE && id == chat->end) || is_stop_token(chat, id);
}

nib_str nib_chat_stop(const nib_chat *chat, size_t i) {
    nib_str stop;
    if (chat->stop[0] && i-- == 0) return (nib_str){chat->stop, strlen(chat->stop)};
    for (size_t k = 0; (stop = nib_chat_format_stop(chat->format, k)).ptr; k++) {
        bool is_token = nib_text_vocab_find(&chat->tok->vocab, stop.ptr, stop.len) != NIB_TOKEN_NONE;
        if (!is_token && i-- == 0) return stop;
    }
    return (nib_str){NULL, 0};
}

bool nib_chat_is_mark(const nib_chat *chat, nib_str token_text) {
    return nib_chat_format_is_mark(chat->format, token_text);
}
