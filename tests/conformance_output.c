/* tests/conformance_output.c - what templates write for an assistant is what their models write: it is parsed back into
 * the same message, for every assistant message of every recorded case.
 *
 * usage: conformance_output [FOLDER]     the folder is $NIB_CONFORMANCE_DATA/chat-templates when none is given
 * The turn is what the render of the messages up to the assistant's has more than that of the messages before it with
 * the generation prompt, without the token that ends it. Calls, content and reasoning must come back, as far as the
 * template writes them, and the same when the text comes byte by byte. Each template must also be found to have the
 * format that the table says. Exit 0: all, 1: not, 77: no folder. */
#include "base/buf.h"
#include "chat/format.h"
#include "nib.h"
#include "support/answers.h"
#include "support/conformance.h"
#include "support/grammar.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHOWN = 6 };

static unsigned g_files, g_turns, g_calls, g_thoughts, g_bad;

static const char *const g_formats[][2] = {
    {"Apertus", "apertus"},
    {"Apriel", "apriel"},
    {"ByteDance-Seed", "seed-oss"},
    {"Cohere", "command-r7b"},
    {"GLM", "glm"},
    {"GigaChat", "gigachat"},
    {"HuggingFaceTB", "generic"},
    {"Kimi-K2", "kimi-k2"},
    {"LFM2", "lfm2"},
    {"MiniMax-M1", "minimax-m1"},
    {"MiniMax-M2", "minimax-m2"},
    {"MiniMax-M3", "minimax-m3"},
    {"MiroThinker", "mcp"},
    {"Mistral", "mistral"},
    {"NVIDIA-Nemotron", "nemotron-v2"},
    {"NousResearch-Hermes", "hermes"},
    {"Qwen-Qwen", "hermes"},
    {"Qwen3.5", "qwen3-coder"},
    {"Reka", "hermes"},
    {"Spark", "glm"},
    {"deepseek-ai-DeepSeek-R1", "deepseek"},
    {"deepseek-ai-DeepSeek-V", "deepseek-v3.2"},
    {"google-gemma", "gemma"},
    {"ibm-granite-granite-3", "granite"},
    {"ibm-granite-granite-4", "hermes"},
    {"inclusionai", "glm"},
    {"llama-cpp-deepseek-r1", "deepseek"},
    {"meetkai-functionary-medium-v3.1", "functionary-v3.1"},
    {"meetkai-functionary-medium-v3.2", "functionary-v3.2"},
    {"meta-llama", "llama3"},
    {"mistralai", "mistral"},
    {"muse", "atem"},
    {"openai-gpt-oss", "harmony"},
    {"poolside", "glm"},
    {"stepfun", "qwen3-coder"},
    {"tencent-Hy3", "hunyuan"},
    {"unsloth-mistral", "mistral"},
};

/* Tokens that end a turn in some template. */
static const char *const g_ends[] = {
    "</s>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<turn|>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
    "<seed:eos>",
    "[e~[",
    "<end_of_sentence>",
    "<|END_OF_TURN_TOKEN|>",
    "<SPECIAL_12>",
    "<|assistant_end|>",
    "<|end|>",
    "<sep>",
    "<|message_sep|>",
    "<|role_end|>",
    "<｜hy_eos:opensource｜>",
    "</assistant>",
    "<|eot|>",
    "<|return|>",
    "<|eos|>",
};

/* Of templates that go on behind the turn, whatever they are asked. */
static const char *const g_cuts[] = {"<|END_OF_TURN_TOKEN|>", "<｜end▁of▁sentence｜>", "\n<SPECIAL_12>"};

/* What a generation prompt may have behind the place where history goes on. */
static const char *const g_thinking[] = {
    "<think>",
    "</think>",
    "<mm:think>",
    "</mm:think>",
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    "<|channel>thought\n<channel|>",
    "Here are my reasoning steps:",
    "<think:opensource>",
    "</think:opensource>",
    "\n",
    " ",
};

static bool read_file(const char *path, nib_buf *out) {
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    char block[65536];
    for (size_t n; (n = fread(block, 1, sizeof block, f)) > 0;) nib_buf_append(out, block, n);
    fclose(f);
    return nib_buf_cstr(out) != NULL;
}

/* Arguments of all calls as objects, or as text: templates want one or the other. */
static void set_arguments(json_t *messages, bool is_text) {
    json_t *message, *call, *arguments;
    size_t i, k;
    json_array_foreach(messages, i, message) json_array_foreach(json_object_get(message, "tool_calls"), k, call) {
        json_t *function = json_object_get(call, "function");
        arguments = json_object_get(function, "arguments");
        if (json_is_string(arguments) == is_text) continue;
        char *text = json_dumps(arguments, 0);
        json_object_set_new(function, "arguments",
                            is_text ? json_string(text) : json_loads(json_string_value(arguments), 0, NULL));
        free(text);
    }
}

static char *render_as(const nib_template *tmpl, json_t *context, bool is_text) {
    nib_rendered out;
    json_t *changed = json_deep_copy(context);
    set_arguments(json_object_get(changed, "messages"), is_text);
    char *text = json_dumps(changed, 0), *copy = NULL;
    if (nib_template_render(tmpl, text, strlen(text), NULL, &out, NULL) == NIB_OK) {
        copy = strdup(out.text ? out.text : "");
        nib_rendered_free(&out);
    }
    free(text);
    json_decref(changed);
    return copy;
}

/* The render of the first n messages; NULL when the template refuses. */
static char *render(const nib_template *tmpl, json_t *context, size_t n, bool prompt) {
    json_t *some = json_array(), *changed = json_copy(context);
    for (size_t i = 0; i < n; i++) json_array_append(some, json_array_get(json_object_get(context, "messages"), i));
    json_object_set_new(changed, "messages", some);
    json_object_set_new(changed, "add_generation_prompt", json_boolean(prompt));
    char *text = render_as(tmpl, changed, false);
    if (!text) text = render_as(tmpl, changed, true);
    json_decref(changed);
    return text;
}

static bool ends_with(const char *text, size_t len, const char *end) {
    return len >= strlen(end) && memcmp(text + len - strlen(end), end, strlen(end)) == 0;
}

static size_t without(const char *text, size_t len, const char *const *ends, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (ends_with(text, len, ends[i])) return len - strlen(ends[i]);
    return len;
}

/* How much of the prompt the render begins with, when what it lacks is thinking only; 0: it goes another way. */
static size_t shared(const char *prompt, const char *text) {
    size_t len = strlen(prompt), less;
    while (len && strncmp(prompt, text, len) != 0) {
        less = without(prompt, len, g_thinking, sizeof g_thinking / sizeof *g_thinking);
        if (less == len) return 0;
        len = less;
    }
    return len;
}

static size_t trim_end(const char *text, size_t len) {
    while (len && strchr(" \n", text[len - 1])) len--;
    return len;
}

/* ---- comparison */

static char *trimmed(const char *text) {
    while (*text && strchr(" \n\t\r", *text)) text++;
    char *copy = strdup(text);
    copy[trim_end(copy, strlen(copy))] = 0;
    return copy;
}

static bool is_same_text(const char *found, const char *wanted) {
    char *a = trimmed(found ? found : ""), *b = trimmed(wanted ? wanted : "");
    bool same = strcmp(a, b) == 0;
    free(a);
    free(b);
    return same;
}

static json_t *arguments_of(json_t *call) {
    json_t *arguments = json_object_get(json_object_get(call, "function"), "arguments");
    return json_is_string(arguments) ? json_loads(json_string_value(arguments), JSON_DECODE_ANY, NULL)
                                     : json_incref(arguments);
}

static bool is_same_call(json_t *found, json_t *wanted, const char *turn) {
    json_t *arguments = arguments_of(wanted), *read = json_loads(json_string_value(json_array_get(found, 4)), 0, NULL);
    const char *id = json_string_value(json_object_get(wanted, "id"));
    bool ok = read && json_equal(read, arguments) &&
              json_equal(json_array_get(found, 3), json_object_get(json_object_get(wanted, "function"), "name"));
    if (id && strstr(turn, id)) ok = ok && strcmp(json_string_value(json_array_get(found, 2)), id) == 0;
    json_decref(arguments);
    json_decref(read);
    return ok;
}

/* Whether the turn has these calls at all, and which; some templates write only the first. */
static bool are_same_calls(json_t *events, json_t *wanted, const char *turn, const char *format) {
    json_t *event, *name = json_object_get(json_object_get(json_array_get(wanted, 0), "function"), "name");
    size_t i, n = 0, n_wanted = json_array_size(wanted);
    bool is_first_only = strcmp(format, "harmony") == 0 || strcmp(format, "gigachat") == 0;
    if (n_wanted && !strstr(turn, json_string_value(name))) n_wanted = 0;
    if (n_wanted && is_first_only) n_wanted = 1;
    json_array_foreach(events, i, event) {
        const char *kind = json_string_value(json_array_get(event, 0));
        if (strcmp(kind, "warning") == 0) return false;
        if (strcmp(kind, "call") != 0) continue;
        if (n >= n_wanted || !is_same_call(event, json_array_get(wanted, n), turn)) return false;
        n++;
    }
    g_calls += (unsigned)n;
    return n == n_wanted;
}

/* The text of a message: a string, or the text of its parts. */
static char *content_of(json_t *message) {
    json_t *content = json_object_get(message, "content");
    if (json_is_array(content)) content = json_object_get(json_array_get(content, 0), "text");
    return trimmed(json_string_value(content) ? json_string_value(content) : "");
}

static bool are_same_texts(json_t *events, json_t *message, const char *turn, const char *format) {
    const char *reasoning = json_string_value(json_object_get(message, "reasoning_content"));
    char *said = answers_joined(events, "content"), *thought = answers_joined(events, "reasoning"),
         *own = content_of(message);
    const char *content = strstr(turn, own) ? own : NULL;
    if (reasoning && !strstr(turn, reasoning)) reasoning = NULL;
    /* Templates that put content where reasoning is: before calls; before the last answer, which has none. */
    bool swapped = strcmp(format, "harmony") == 0 && json_object_get(message, "tool_calls");
    if (strcmp(format, "nemotron-v2") == 0) swapped = !strstr(turn, "<TOOLCALL>") && thought && *thought;
    bool ok = is_same_text(thought, swapped ? content : reasoning) && is_same_text(said, swapped ? reasoning : content);
    if (!ok && !*own && said)
        ok = is_same_text(said, "None") || is_same_text(said, "null"); /* of templates without a case for null */
    g_thoughts += reasoning != NULL;
    free(own);
    free(said);
    free(thought);
    return ok;
}

static size_t one(void *user) {
    (void)user;
    return 1;
}

/* The prompt up to len is what the turn was written behind; with what stands behind that, when the turn has the end of
 * reasoning but not the beginning. */
static bool starts_thinking(const nib_chat_format_row *format, json_t *message, const char *prompt, size_t len,
                            const char *turn) {
    const char *reasoning = json_string_value(json_object_get(message, "reasoning_content"));
    if (nib_chat_format_starts_thinking(format, (nib_str){prompt, len})) return true;
    return reasoning && strncmp(turn, reasoning, strlen(reasoning)) == 0 &&
           nib_chat_format_starts_thinking(format, (nib_str){prompt, strlen(prompt)});
}

/* Whether the grammar of answers with these tools permits the turn. Lists as Python shows them, which some templates make of
 * those that they are given, it does not. */
static bool is_permitted(const nib_chat_parser_config *parser, const char *turn) {
    nib_chat_grammar_config config = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    size_t dead = 0;
    if (strstr(turn, ">['")) return true;
    config.format = parser->format;
    config.starts_thinking = parser->starts_thinking;
    config.tools = parser->tools;
    config.tools_len = parser->tools_len;
    config.strict = true;
    if (nib_chat_grammar_new(&g, &config, NULL, &err) != NIB_OK) {
        printf("  %s: %s\n", parser->format, err.message);
        return false;
    }
    grammar_verdict verdict = grammar_match(g, (nib_str){turn, strlen(turn)}, &dead);
    if (verdict != GRAMMAR_MATCH) printf("  %s does not permit, from byte %zu on: %s\n", parser->format, dead, turn);
    nib_grammar_free(g);
    return verdict == GRAMMAR_MATCH;
}

static bool check_turn(const nib_chat_format_row *format, json_t *context, json_t *message, const char *prompt,
                       size_t len, const char *turn) {
    json_t *tools = json_object_get(context, "tools");
    char *tools_text = json_is_array(tools) ? json_dumps(tools, 0) : NULL;
    const char *name = nib_chat_format_name(format);
    nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
    config.format = name;
    config.starts_thinking = starts_thinking(format, message, prompt, len, turn);
    config.tools = tools_text;
    config.tools_len = tools_text ? strlen(tools_text) : 0;
    json_t *events = answers_parse(&config, (nib_str){turn, strlen(turn)}, NULL, NULL);
    json_t *bytewise = answers_parse(&config, (nib_str){turn, strlen(turn)}, one, NULL);
    bool ok = events && json_equal(events, bytewise) &&
              are_same_calls(events, json_object_get(message, "tool_calls"), turn, name) &&
              are_same_texts(events, message, turn, name);
    if (ok && tools_text && json_object_get(message, "tool_calls")) ok = is_permitted(&config, turn);
    if (!ok && g_bad < MAX_SHOWN * g_files) {
        char *found = json_dumps(events, 0), *wanted = json_dumps(message, 0);
        printf("  turn:   %s\n  wanted: %s\n  found:  %s\n", turn, wanted, found);
        free(found);
        free(wanted);
    }
    json_decref(events);
    json_decref(bytewise);
    free(tools_text);
    return ok;
}

static bool run_message(const nib_template *tmpl, const nib_chat_format_row *format, json_t *context, size_t i) {
    json_t *message = json_array_get(json_object_get(context, "messages"), i);
    const char *content = json_string_value(json_object_get(message, "content"));
    if (i == 0 || strcmp(json_string_value(json_object_get(message, "role")), "assistant") != 0) return true;
    if (content && strstr(content, "<think>")) return true; /* what it becomes is the template's affair */
    bool has_parts = json_is_array(json_object_get(message, "content"));
    char *prompt = render(tmpl, context, i, true), *text = render(tmpl, context, i + 1, false);
    size_t len = prompt && text ? shared(prompt, text) : 0;
    bool ok = true;
    if (len) {
        char *turn = text + len, *cut;
        for (size_t k = 0; k < sizeof g_cuts / sizeof *g_cuts; k++)
            if ((cut = strstr(turn, g_cuts[k]))) *cut = 0;
        size_t n = trim_end(turn, strlen(turn));
        n = without(turn, n, g_ends, sizeof g_ends / sizeof *g_ends);
        turn[trim_end(turn, n)] = 0;
        if (has_parts && strstr(turn, "[{")) turn = NULL; /* written as Python or JSON shows a list */
        ok = !turn || check_turn(format, context, message, prompt, len, turn);
        g_turns += turn != NULL;
    }
    free(prompt);
    free(text);
    return ok;
}

static void run_rows(const char *name, const nib_template *tmpl, const nib_chat_format_row *format, char *line) {
    for (char *end; *line && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL), *context = json_object_get(row, "context");
        size_t n = json_array_size(json_object_get(context, "messages"));
        for (size_t i = 0; i < n; i++)
            if (!run_message(tmpl, format, context, i)) {
                printf("%s, %s, message %zu differs\n", name, json_string_value(json_object_get(row, "name")), i);
                g_bad++;
            }
        json_decref(row);
    }
}

static void run_template(const char *folder, const char *file_name) {
    char path[4096], name[256];
    nib_buf source = {0}, cases = {0};
    nib_template *tmpl = NULL;
    const char *wanted = "?";
    snprintf(name, sizeof name, "%.*s", (int)(strlen(file_name) - strlen(".jinja")), file_name);
    snprintf(path, sizeof path, "%s/%s", folder, file_name);
    bool ok = read_file(path, &source);
    snprintf(path, sizeof path, "%s/%s.renders.jsonl", folder, name);
    ok = ok && read_file(path, &cases);
    const nib_chat_format_row *format = nib_chat_format_detect((nib_str){source.ptr, source.len});
    for (size_t i = 0; i < sizeof g_formats / sizeof *g_formats; i++)
        if (strncmp(name, g_formats[i][0], strlen(g_formats[i][0])) == 0) wanted = g_formats[i][1];
    if (strcmp(wanted, nib_chat_format_name(format)) != 0) {
        printf("%s: format %s, not %s\n", name, nib_chat_format_name(format), wanted);
        g_bad++;
    }
    g_files++;
    if (ok && nib_template_new(&tmpl, source.ptr, source.len, NULL) == NIB_OK) run_rows(name, tmpl, format, cases.ptr);
    else g_bad++;
    nib_template_free(tmpl);
    nib_buf_free(&source);
    nib_buf_free(&cases);
}

int main(int argc, char **argv) {
    int n = conformance_each(argc, argv, "chat-templates", ".jinja", run_template);
    if (n < 0) return 77;
    printf("%u templates, %u turns with %u calls and %u thoughts parsed back, %u faults\n", g_files, g_turns, g_calls,
           g_thoughts, g_bad);
    return n > 0 && g_calls > 0 && g_bad == 0 ? 0 : 1;
}
