/* tests/conformance_chat.c - nib_chat_render over published chat templates: the same text as the template alone gives, and no
 * special token out of what a client wrote.
 *
 * usage: conformance_chat [FOLDER]      the folder is $NIB_CONFORMANCE_DATA/chat-templates when none is given
 * X.jinja is a template, X.renders.jsonl are cases, one JSON object a line, "context" and "expected" or "error". A context
 * becomes a request as OpenAI's API has it. Each template meets a vocabulary that knows everything in it that looks like a
 * token, and every case is rendered again with all these tokens in every string of its messages and tools. The clock stands at
 * 2024-07-26 12:34:56. Prints a line for each template. Exit 0: all well, 1: not, 77: no folder. */
#include "base/buf.h"
#include "nib.h"
#include "support/conformance.h"
#include "support/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHOWN = 3, NOW = 1721997296, MAX_TOKENS = 800 };
#define OPEN "QZ7"
#define CLOSE "7ZQ"

typedef struct tally {
    unsigned n_rows, n_equal, n_adapted, n_refused, n_better, n_injected, n_open, n_bad;
} tally;

static tally g_all;
static unsigned g_files;
static nib_template *g_template;
static nib_buf g_source;      /* the template */
static nib_buf g_marks;       /* what is injected: all tokens, between OPEN and CLOSE */
static bool g_spares_ids;     /* some templates count the characters of ids */

static bool read_file(const char *path, nib_buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char block[65536];
    out->len = 0;
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) nib_buf_append(out, block, n);
    fclose(f);
    return nib_buf_cstr(out) != NULL;
}

/* ---- a vocabulary for the template */

typedef struct vocabulary {
    const char *tokens[MAX_TOKENS + 1];
    char types[MAX_TOKENS + 1];
    size_t n;
} vocabulary;

static void add_token(vocabulary *v, const char *text, size_t len, char type) {
    for (size_t i = 0; i < v->n; i++)
        if (strlen(v->tokens[i]) == len && memcmp(v->tokens[i], text, len) == 0) return;
    if (v->n == MAX_TOKENS) return;
    char *copy = calloc(1, len + 1);
    memcpy(copy, text, len);
    v->tokens[v->n] = copy;
    v->types[v->n++] = type;
}

/* <…> and […] without blanks and quotes. One is a control token, the next user-defined: both must be safe. */
static void add_tags(vocabulary *v, const char *text) {
    bool is_control = false;
    for (const char *p = text; *p; p++) {
        if (*p != '<' && *p != '[') continue;
        size_t n = 1;
        while (n < 40 && p[n] && !strchr(" \t\r\n'\"<>[]{}()%\\", p[n])) n++;
        if (n < 3 || p[n] != (*p == '<' ? '>' : ']') || (*p == '[' && strchr("0123456789:-", p[1]))) continue;
        add_token(v, p, n + 1, is_control ? 'c' : 'u');
        is_control = !is_control;
    }
}

static void write_more(nib_gguf_writer *w) {
    nib_gguf_write_str(w, "tokenizer.chat_template", g_source.ptr);
    nib_gguf_write_uint(w, "tokenizer.ggml.bos_token_id", NIB_GGUF_U32, 1);
    nib_gguf_write_uint(w, "tokenizer.ggml.eos_token_id", NIB_GGUF_U32, 2);
}

static nib_tokenizer *make_tokenizer(void) {
    static const char *const usual[] = {"<|im_start|>", "<|im_end|>",     "<|eot_id|>",    "<|start_header_id|>",   "<|endoftext|>",
                                        "<end_of_turn>", "<start_of_turn>", "<|user|>",      "<|assistant|>",         "<|system|>",
                                        "<|end|>",       "<|return|>",      "[INST]",        "[/INST]",               "<think>",
                                        "</think>",      "<tool_call>",     "</tool_call>",  "<|END_OF_TURN_TOKEN|>", "[TOOL_CALLS]"};
    vocabulary *v = calloc(1, sizeof *v);
    add_token(v, "<unk>", 5, '?');
    add_token(v, "<s>", 3, 'c');
    add_token(v, "</s>", 4, 'c');
    for (unsigned b = 0; b < 256; b++) {
        char text[8];
        add_token(v, text, (size_t)snprintf(text, sizeof text, "<0x%02X>", b), 'b');
    }
    size_t first = v->n;
    add_tags(v, g_source.ptr);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) add_token(v, usual[i], strlen(usual[i]), 'c');
    g_marks.len = 0;
    nib_buf_str(&g_marks, OPEN);
    for (size_t i = first; i < v->n; i++) nib_buf_str(&g_marks, v->tokens[i]);
    nib_buf_str(&g_marks, "</s>" CLOSE);
    nib_buf_cstr(&g_marks);
    static float scores[MAX_TOKENS];
    nib_tokenizer *tok = tokenizer_must(&(tokenizer_spec){"llama", NULL, v->tokens, v->types, scores, NULL, write_more});
    for (size_t i = 0; i < v->n; i++) free((char *)v->tokens[i]);
    free(v);
    return tok;
}

/* ---- requests */

/* A context of the template as a request: what the API has no field for is a variable of the template. */
static json_t *request_of(json_t *context) {
    static const char *const fields[] = {"messages", "tools", "documents", "add_generation_prompt", "enable_thinking", "reasoning_effort"};
    json_t *request = json_object(), *more = json_object(), *value;
    const char *name;
    json_object_foreach(context, name, value) {
        bool is_field = false;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) is_field |= strcmp(name, fields[i]) == 0;
        if (is_field) json_object_set(request, name, value);
        else if (strcmp(name, "bos_token") != 0 && strcmp(name, "eos_token") != 0) json_object_set(more, name, value);
    }
    json_object_set_new(request, "chat_template_kwargs", more);
    return request;
}

/* The marks in every string and key that a client chooses; arguments in JSON text stay JSON. */
static json_t *with_marks(json_t *value, const char *key, bool marks_keys) {
    json_t *out, *item;
    const char *name;
    size_t i;
    bool is_id = key && (strcmp(key, "id") == 0 || strcmp(key, "tool_call_id") == 0);
    bool is_word = key && (strcmp(key, "role") == 0 || strcmp(key, "type") == 0 || (is_id && g_spares_ids));
    if (json_is_string(value) && key && strcmp(key, "arguments") == 0) {
        json_t *arguments = json_loads(json_string_value(value), 0, NULL), *marked = with_marks(arguments, "arguments", true);
        char *text = json_dumps(marked, 0);
        out = json_string(text);
        free(text);
        json_decref(marked);
        json_decref(arguments);
        return out;
    }
    if (json_is_string(value) && !is_word) return json_sprintf("%s%s", json_string_value(value), g_marks.ptr);
    if (json_is_array(value)) {
        out = json_array();
        json_array_foreach(value, i, item) json_array_append_new(out, with_marks(item, is_word ? key : NULL, marks_keys));
        return out;
    }
    if (!json_is_object(value)) return json_incref(value);
    out = json_object();
    json_object_foreach(value, name, item) {
        bool is_inside = marks_keys || strcmp(name, "arguments") == 0;
        json_t *changed = with_marks(item, name, is_inside);
        if (marks_keys) {
            char *long_name = malloc(strlen(name) + g_marks.len + 1);
            sprintf(long_name, "%s%s", name, g_marks.ptr);
            json_object_set_new(out, long_name, changed);
            free(long_name);
        } else {
            json_object_set_new(out, name, changed);
        }
    }
    return out;
}

static json_t *marked_request(json_t *request) {
    json_t *marked = json_copy(request), *tools = json_object_get(request, "tools");
    json_object_set_new(marked, "messages", with_marks(json_object_get(request, "messages"), NULL, false));
    if (tools) json_object_set_new(marked, "tools", with_marks(tools, NULL, false));
    return marked;
}

static nib_status render(const nib_chat *chat, json_t *request, bool trust_all, nib_chat_prompt *out, nib_error *err) {
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    config.now = NOW;
    config.trust_all = trust_all;
    char *text = json_dumps(request, 0);
    nib_status status = nib_chat_render(chat, text, strlen(text), &config, out, err);
    free(text);
    return status;
}

/* ---- checks */

static bool is_special(const nib_tokenizer *tok, nib_token id) {
    return nib_tokenizer_attr(tok, id) & (NIB_TOKEN_CONTROL | NIB_TOKEN_USER | NIB_TOKEN_UNKNOWN);
}

/* The special tokens are those of the same text in which nothing untrusted can begin one. */
static bool tokens_are_safe(const nib_tokenizer *tok, const nib_rendered *r) {
    nib_token_list found = {0}, wanted = {0};
    char *harmless = malloc(r->len + 1);
    size_t n = 0, i = 0, k = 0;
    for (size_t s = 0; s < r->n_spans; s++)
        for (size_t left = r->spans[s].len; left > 0; left--, n++) {
            bool is_first = r->text[n] == '<' || r->text[n] == '[';
            harmless[n] = is_first && !r->spans[s].is_trusted ? 'x' : r->text[n];
        }
    bool ok = nib_tokenize_spans(tok, r, 0, &found, NULL) == NIB_OK &&
              nib_tokenize(tok, harmless, n, NIB_PARSE_SPECIAL, &wanted, NULL) == NIB_OK;
    for (;; i++, k++) {
        while (i < found.n && !is_special(tok, found.ids[i])) i++;
        while (k < wanted.n && !is_special(tok, wanted.ids[k])) k++;
        if (i >= found.n || k >= wanted.n) break;
        ok &= found.ids[i] == wanted.ids[k];
    }
    ok &= i >= found.n && k >= wanted.n;
    free(harmless);
    nib_token_list_free(&found);
    nib_token_list_free(&wanted);
    return ok;
}

static bool has(const char *p, size_t n, const char *word) {
    size_t len = strlen(word);
    for (size_t i = 0; i + len <= n; i++)
        if (memcmp(p + i, word, len) == 0) return true;
    return false;
}

/* Nothing that was injected is trusted. */
static bool spans_are_safe(const nib_rendered *r) {
    const char *p = r->text;
    for (size_t i = 0; i < r->n_spans; p += r->spans[i++].len) {
        size_t n = r->spans[i].len;
        if (r->spans[i].is_trusted && (has(p, n, OPEN) || has(p, n, CLOSE) || has(p, n, "qz7") || has(p, n, "7zq"))) return false;
    }
    return true;
}

/* The switch: as if a person had typed the prompt. */
static bool permissive_is_plain(const nib_chat *chat, const nib_tokenizer *tok, json_t *request) {
    nib_chat_prompt prompt;
    nib_token_list found = {0}, wanted = {0};
    bool ok = render(chat, request, true, &prompt, NULL) == NIB_OK &&
              nib_tokenize_spans(tok, &prompt.rendered, 0, &found, NULL) == NIB_OK &&
              nib_tokenize(tok, prompt.rendered.text, prompt.rendered.len, NIB_PARSE_SPECIAL, &wanted, NULL) == NIB_OK;
    ok = ok && found.n == wanted.n && memcmp(found.ids, wanted.ids, found.n * sizeof *found.ids) == 0;
    nib_token_list_free(&found);
    nib_token_list_free(&wanted);
    nib_chat_prompt_free(&prompt);
    return ok;
}

static const char *check_injection(const nib_chat *chat, const nib_tokenizer *tok, json_t *request, tally *t) {
    nib_chat_prompt prompt;
    nib_error err;
    const char *fault = NULL;
    g_spares_ids = false;
    json_t *marked = marked_request(request);
    nib_status status = render(chat, marked, false, &prompt, &err);
    if (status == NIB_E_FORMAT && strstr(err.message, "IDs")) {
        json_decref(marked);
        g_spares_ids = true;
        marked = marked_request(request);
        status = render(chat, marked, false, &prompt, &err);
    }
    if (status == NIB_OK) {
        t->n_injected++;
        if (!has(prompt.rendered.text, prompt.rendered.len, OPEN)) fault = "nothing was injected";
        else if (!spans_are_safe(&prompt.rendered)) fault = "what was injected is trusted";
        else if (!tokens_are_safe(tok, &prompt.rendered)) fault = "what was injected became special tokens";
        else if (!permissive_is_plain(chat, tok, marked)) fault = "trust_all gives other tokens than the plain text";
    } else {
        printf("  injected: %s\n", err.message);
        fault = "refused with tokens in it";
    }
    nib_chat_prompt_free(&prompt);
    json_decref(marked);
    return fault;
}

/* ---- what may be changed of a context without a note */

enum { ARGUMENTS = 1, PARTS = 2, NOTHING = 4, DEVELOPER = 8, THOUGHTS = 16, SWITCH = 32, LESS = 64, ALL = 128 };

/* Arguments of tool calls as an object, if they are JSON text. */
static void change_calls(json_t *message) {
    size_t i;
    json_t *call;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call) {
        json_t *function = json_object_get(call, "function"), *arguments = json_object_get(function, "arguments");
        json_t *object = json_is_string(arguments) ? json_loads(json_string_value(arguments), 0, NULL) : NULL;
        if (object) json_object_set_new(function, "arguments", object);
    }
}

static void join_parts(json_t *message) {
    nib_buf text = {0};
    size_t i;
    json_t *part, *content = json_object_get(message, "content");
    if (!json_is_array(content)) return;
    json_array_foreach(content, i, part) {
        if (i) nib_buf_char(&text, '\n');
        nib_buf_str(&text, json_string_value(json_object_get(part, "text")));
    }
    json_object_set_new(message, "content", json_string(nib_buf_cstr(&text)));
    nib_buf_free(&text);
}

static void change_message(json_t *message, unsigned changes) {
    json_t *content = json_object_get(message, "content"), *thoughts = json_object_get(message, "reasoning_content");
    if (changes & ARGUMENTS) change_calls(message);
    if (changes & PARTS) join_parts(message);
    if ((changes & NOTHING) && json_is_null(content)) json_object_set_new(message, "content", json_string(""));
    if ((changes & DEVELOPER) && strcmp(json_string_value(json_object_get(message, "role")), "developer") == 0)
        json_object_set_new(message, "role", json_string("system"));
    if ((changes & THOUGHTS) && thoughts)
        json_object_set_new(message, "content", json_pack("[{ssss},{ssss}]", "type", "thinking", "thinking", json_string_value(thoughts),
                                                          "type", "text", "text", json_string_value(content)));
}

/* The text is what the template alone makes of a context that differs in some of these. */
static bool is_explained(const nib_template *tmpl, json_t *context, const nib_rendered *found) {
    bool ok = false;
    for (unsigned changes = 1; changes < ALL && !ok; changes++) {
        nib_template_config config = NIB_TEMPLATE_CONFIG_INIT;
        nib_rendered r;
        json_t *changed = json_deep_copy(context), *message;
        size_t i;
        config.now = NOW;
        json_array_foreach(json_object_get(changed, "messages"), i, message) change_message(message, changes);
        json_t *thinks = json_object_get(changed, "enable_thinking");
        if ((changes & SWITCH) && thinks) json_object_set(changed, "thinking", thinks);
        if ((changes & LESS) && json_is_false(thinks)) json_object_set_new(changed, "thinking_budget", json_integer(0));
        if ((changes & LESS) && json_is_false(thinks)) json_object_set_new(changed, "reasoning_effort", json_string("none"));
        char *text = json_dumps(changed, 0);
        ok = nib_template_render(tmpl, text, strlen(text), &config, &r, NULL) == NIB_OK && r.len == found->len &&
             memcmp(r.text, found->text, r.len) == 0;
        nib_rendered_free(&r);
        free(text);
        json_decref(changed);
    }
    return ok;
}

/* ---- messages that are left open */

/* Where the text of the last message ends, as Hugging Face finds it: at the last place of its stripped text, and with its blanks
 * if they are there. 0: nowhere. */
static size_t end_of_last(const nib_rendered *r, const char *content) {
    const char *start = content + strspn(content, " \t\r\n"), *found = NULL;
    size_t len = strlen(start), kept = len;
    while (len && strchr(" \t\r\n", start[len - 1])) len--;
    for (size_t i = 0; i + len <= r->len; i++)
        if (memcmp(r->text + i, start, len) == 0) found = r->text + i;
    if (!found || !len) return 0;
    bool is_whole = (size_t)(r->text + r->len - found) >= kept && memcmp(found, start, kept) == 0;
    return (size_t)(found - r->text) + (is_whole ? kept : len);
}

/* Rows that end with an answer: left open, the prompt is what the template writes up to the end of that text. */
static const char *check_open(const nib_chat *chat, json_t *request, tally *t) {
    json_t *messages = json_object_get(request, "messages"), *last = json_array_get(messages, json_array_size(messages) - 1);
    const char *role = json_string_value(json_object_get(last, "role")), *content = json_string_value(json_object_get(last, "content"));
    nib_chat_prompt closed, open;
    if (!role || strcmp(role, "assistant") != 0 || !content || json_object_get(last, "tool_calls")) return NULL;
    json_object_set_new(request, "add_generation_prompt", json_false());
    nib_status status = render(chat, request, false, &closed, NULL);
    json_object_set_new(request, "continue_final_message", json_true());
    nib_status open_status = render(chat, request, false, &open, NULL);
    size_t end = status == NIB_OK ? end_of_last(&closed.rendered, content) : 0;
    bool ok = end ? open_status == NIB_OK && open.rendered.len == end && memcmp(open.rendered.text, closed.rendered.text, end) == 0
                  : open_status != NIB_OK;
    t->n_open += open_status == NIB_OK;
    nib_chat_prompt_free(&closed);
    nib_chat_prompt_free(&open);
    return ok ? NULL : "left open, it is another text";
}

static const char *check_row(const nib_chat *chat, const nib_tokenizer *tok, json_t *row, nib_chat_prompt *found, nib_error *err,
                             tally *t) {
    json_t *expected = json_object_get(row, "expected"), *request = request_of(json_object_get(row, "context"));
    nib_status status = render(chat, request, false, found, err);
    const char *fault = NULL;
    if (status == NIB_E_ARG || status == NIB_E_UNSUPPORTED) t->n_refused++;
    else if (status != NIB_OK && expected) fault = "refused";
    else if (status != NIB_OK) t->n_equal++;
    else if (!expected) t->n_better++; /* what nib changed the template could show */
    else if (found->rendered.len == json_string_length(expected) &&
             memcmp(found->rendered.text, json_string_value(expected), found->rendered.len) == 0)
        t->n_equal++;
    else if (found->notes[0] || is_explained(g_template, json_object_get(row, "context"), &found->rendered)) t->n_adapted++;
    else fault = "another text";
    if (!fault && status == NIB_OK) fault = check_injection(chat, tok, request, t);
    if (!fault && status == NIB_OK) fault = check_open(chat, request, t);
    json_decref(request);
    return fault;
}

static void run_row(const nib_chat *chat, const nib_tokenizer *tok, json_t *row, tally *t) {
    nib_chat_prompt found;
    nib_error err = {0};
    const char *fault = check_row(chat, tok, row, &found, &err, t);
    t->n_rows++;
    if (fault && ++t->n_bad <= MAX_SHOWN) {
        json_t *expected = json_object_get(row, "expected");
        printf("  %s: %s\n    found:  %s\n    wanted: %s\n", json_string_value(json_object_get(row, "name")), fault,
               found.rendered.text ? found.rendered.text : err.message,
               json_string_value(expected ? expected : json_object_get(row, "error")));
    }
    nib_chat_prompt_free(&found);
}

static void run_cases(const char *name, const nib_chat *chat, const nib_tokenizer *tok, char *cases) {
    tally t = {0};
    for (char *line = cases, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end) break;
        *end = 0;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        const char *name_of_row = json_string_value(json_object_get(row, "name"));
        if (!row) t.n_bad++;
        else if (strncmp(name_of_row, "bos_eos", 7) != 0) run_row(chat, tok, row, &t); /* they are the vocabulary's here */
        json_decref(row);
    }
    printf("%-52s %2u rows: %2u equal, %u adapted, %u no request, %u better; %u injected, %u open; %u bad\n", name, t.n_rows,
           t.n_equal, t.n_adapted, t.n_refused, t.n_better, t.n_injected, t.n_open, t.n_bad);
    g_all.n_rows += t.n_rows;
    g_all.n_injected += t.n_injected;
    g_all.n_bad += t.n_bad + (t.n_injected == 0);
}

static void run_template(const char *folder, const char *file_name) {
    char path[4096], name[256];
    nib_buf cases = {0};
    nib_chat *chat = NULL;
    nib_error err = {0};
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file_name) - strlen(".jinja")), file_name);
    snprintf(path, sizeof path, "%s/%s", folder, file_name);
    bool ok = read_file(path, &g_source);
    snprintf(path, sizeof path, "%s/%s.renders.jsonl", folder, name);
    ok = ok && read_file(path, &cases);
    nib_tokenizer *tok = ok ? make_tokenizer() : NULL;
    nib_chat_config config = NIB_CHAT_CONFIG_INIT;
    config.text = g_source.ptr;
    config.text_len = g_source.len;
    g_files++;
    if (ok && nib_template_new(&g_template, g_source.ptr, g_source.len, &err) == NIB_OK &&
        nib_chat_new(&chat, NULL, tok, &config, &err) == NIB_OK) {
        run_cases(name, chat, tok, cases.ptr);
    } else {
        printf("%s: %s\n", name, ok ? err.message : "cannot be read");
        g_all.n_bad++;
    }
    nib_chat_free(chat);
    nib_template_free(g_template);
    g_template = NULL;
    nib_tokenizer_free(tok);
    nib_buf_free(&cases);
}

int main(int argc, char **argv) {
    int n = conformance_each(argc, argv, "chat-templates", ".jinja", run_template);
    if (n < 0) return 77;
    printf("%u templates, %u renders, %u with tokens injected, %u bad\n", g_files, g_all.n_rows, g_all.n_injected, g_all.n_bad);
    nib_buf_free(&g_source);
    nib_buf_free(&g_marks);
    return n > 0 && g_all.n_bad == 0 ? 0 : 1;
}
