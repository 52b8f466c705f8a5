/* fuzz/fuzz_chat.c - any bytes as a request of messages: a prompt whose spans cover it and whose control tokens are all the
 * template's, or an error with a message.
 *
 * The first byte chooses the template and the switch trust_all, the rest is the request in JSON. */
#include "vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { N_TEMPLATES = 8, START = 1, END = 2 };

static nib_tokenizer *g_tok;
static nib_chat *g_chats[N_TEMPLATES];

static const char everything[] =
    "{% for m in messages %}<|im_start|>{{ m.role }} {{ m.name }}\n"
    "{% if m.content is string %}{{ m.content|trim }}{% elif m.content %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}{% for k, v in c.function.arguments.items() %}{{ k }}={{ v|tojson }}"
    "{% endfor %}{% endfor %}{{ m.thinking }}<|im_end|>{% endfor %}"
    "{% if tools %}{{ tools|tojson }}{% endif %}{% if documents %}{{ documents|tojson }}{% endif %}{{ reasoning_effort }}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% endif %}{% endif %}";
static const char as_text[] =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
    "{{ '<|im_' + m.role + '|>' + m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name + c.function.arguments }}{% endfor %}"
    "<|im_end|>{% endfor %}{{ tools|length }}";
static const char parts_only[] = "{% for m in messages %}<|im_start|>{% for p in m.content %}"
                                 "{{ p.thinking if p.type == 'thinking' else p.text }}{% endfor %}<|im_end|>{% endfor %}";

static void make_chats(void) {
    static const struct {
        const char *builtin, *text;
    } rows[N_TEMPLATES] = {{"chatml", NULL}, {"gemma", NULL}, {"llama3", NULL}, {"mistral-v7", NULL},
                           {"phi3", NULL},   {NULL, everything}, {NULL, as_text}, {NULL, parts_only}};
    static const char *const special[] = {"<unk>", "<|im_start|>", "<|im_end|>"};
    static vocab_list list;
    nib_gguf_writer w = {0};
    nib_error err;
    for (int i = 0; i < 3; i++) vocab_add(&list, special[i], strlen(special[i]), i ? 3 : 2);
    vocab_add_bytes(&list, false);
    nib_gguf_write_str(&w, "general.architecture", "llama");
    nib_gguf_write_str(&w, "tokenizer.ggml.model", "llama");
    vocab_write(&w, &list);
    check((g_tok = vocab_tokenizer(&w)) != NULL);
    for (int i = 0; i < N_TEMPLATES; i++) {
        nib_chat_config config = NIB_CHAT_CONFIG_INIT;
        config.builtin = rows[i].builtin;
        config.text = rows[i].text;
        config.text_len = rows[i].text ? strlen(rows[i].text) : 0;
        check(nib_chat_new(&g_chats[i], NULL, g_tok, &config, &err) == NIB_OK);
    }
}

static size_t next_control(const nib_token_list *ids, size_t i) {
    while (i < ids->n && ids->ids[i] != START && ids->ids[i] != END) i++;
    return i;
}

/* The control tokens are those of the same text in which nothing untrusted can begin one. */
static void check_tokens(const nib_rendered *r) {
    nib_token_list found = {0}, wanted = {0};
    char *harmless = malloc(r->len + 1);
    size_t n = 0;
    for (size_t s = 0; s < r->n_spans; s++)
        for (size_t left = r->spans[s].len; left > 0; left--, n++)
            harmless[n] = r->text[n] == '<' && !r->spans[s].is_trusted ? 'x' : r->text[n];
    check(nib_tokenize_spans(g_tok, r, 0, &found, NULL) == NIB_OK);
    check(nib_tokenize(g_tok, harmless, n, NIB_PARSE_SPECIAL, &wanted, NULL) == NIB_OK);
    size_t i = next_control(&found, 0), k = next_control(&wanted, 0);
    for (; i < found.n && k < wanted.n; i = next_control(&found, i + 1), k = next_control(&wanted, k + 1))
        check(found.ids[i] == wanted.ids[k]);
    check(i >= found.n && k >= wanted.n);
    free(harmless);
    nib_token_list_free(&found);
    nib_token_list_free(&wanted);
}

static void check_prompt(const nib_chat_prompt *prompt, bool trust_all) {
    const nib_rendered *r = &prompt->rendered;
    size_t n = 0;
    for (size_t i = 0; i < r->n_spans; i++) {
        check(r->spans[i].len > 0 && (i == 0 || r->spans[i].is_trusted != r->spans[i - 1].is_trusted));
        n += r->spans[i].len;
    }
    check(n == r->len && (n == 0 || r->text[n] == 0));
    check(!trust_all || r->n_spans <= 1);
    check_tokens(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    nib_chat_render_config config = NIB_CHAT_RENDER_CONFIG_INIT;
    nib_chat_prompt prompt;
    nib_error err = {0};
    if (!g_tok) make_chats();
    if (!size) return 0;
    config.max_steps = 200000;
    config.max_bytes = 1 << 20;
    config.trust_all = data[0] & 8;
    nib_status status = nib_chat_render(g_chats[data[0] % N_TEMPLATES], (const char *)data + 1, size - 1, &config,
        &prompt, &err);
    if (status == NIB_OK) check_prompt(&prompt, config.trust_all);
    else check(err.code == status && err.message[0] && !prompt.rendered.text && !prompt.rendered.spans && !prompt.notes[0]);
    nib_chat_prompt_free(&prompt);
    return 0;
}
