/* bench/bench_grammar.c - the time of grammars: compiling, the mask of each token of a text, and taking it.
 *
 * usage: bench_grammar [N_VOCAB] [GGUF] [--print]      without a file the vocabulary is made up of words of JSON and
 * prose;
 * --print writes the schema and the text that grammar_peer.py compares with
 * For each schema a text that it allows is tokenized greedily and followed, with a fresh grammar and then again. Times
 * are microseconds of the processor per token, with caches that other data went through in between as in decoding; of
 * several runs each token has its least, as other work disturbs. */
#include "base/mem.h"
#include "base/sys.h"
#include "grammar/vocab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t g_seed = 1;

static uint32_t random_below(uint32_t n) {
    g_seed = g_seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(g_seed >> 33) % n;
}

/* Bytes, then words: prose with a blank in front, capitals, digits, punctuation as in JSON, other scripts. */
static nib_grammar_vocab *make_vocab(uint32_t n) {
    static const char *const signs[] = {"\"", "\",", "\":", "\": \"", "{\"", "\"}",  "[\"", "\"]",
                                        "},", "],",  "\n",  "\n  ",   "\\n", "\\\"", ", ",  ": "};
    nib_grammar_vocab *v;
    if (nib_grammar_vocab_begin(&v, n, NULL) != NIB_OK) exit(1);
    for (uint32_t id = 0; id < n; id++) {
        char text[32] = {0};
        size_t len = 0;
        if (id >= 1 && id <= 256) text[len++] = (char)(id - 1);
        if (id > 256) {
            uint32_t kind = random_below(100), letters = 1 + random_below(9);
            if (kind < 50) text[len++] = ' ';
            for (uint32_t i = 0; i < letters && kind < 75; i++)
                text[len++] = (char)((i == 0 && kind % 5 == 0 ? 'A' : 'a') + random_below(26));
            for (uint32_t i = 0; i < letters && kind >= 75 && kind < 92; i++) {
                text[len++] = (char)(0xD0 + random_below(2));
                text[len++] = (char)(0x80 + random_below(64));
            }
            if (kind >= 97) len += (size_t)snprintf(text + len, 4, "%u", random_below(1000));
            if (kind >= 92 && kind < 97) {
                for (uint32_t i = 0; i < letters % 4; i++) text[len++] = (char)('a' + random_below(26));
                len += (size_t)snprintf(text + len, 8, "%s", signs[random_below(sizeof signs / sizeof *signs)]);
            }
        }
        if (!nib_grammar_vocab_add(v, (nib_str){text, len}, (nib_str){"", 0}, id == 0)) exit(1);
    }
    if (nib_grammar_vocab_finish(v, NULL) != NIB_OK) exit(1);
    return v;
}

static nib_grammar_vocab *read_vocab(const char *path) {
    nib_gguf *file;
    nib_tokenizer *tok;
    nib_grammar_vocab *v;
    nib_error err;
    if (nib_gguf_open(&file, path, NULL, &err) != NIB_OK || nib_tokenizer_new(&tok, file, NULL, &err) != NIB_OK ||
        nib_grammar_vocab_new(&v, tok, &err) != NIB_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    nib_tokenizer_free(tok);
    nib_gguf_close(file);
    return v;
}

/* Time of this thread: others run, too. */
static double cpu_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Between two masks a model reads its weights, and little stays in the caches near the core. */
static void evict(void) {
    static volatile uint8_t bytes[8 << 20];
    for (size_t i = 0; i < sizeof bytes; i += 64) bytes[i]++;
}

/* The longest token that begins the text. */
static nib_token longest(const nib_grammar_vocab *v, const char *text, size_t left) {
    nib_token best = NIB_TOKEN_NONE;
    size_t len = 0;
    for (uint32_t id = 0; id < v->n_tokens; id++)
        if (v->bytes[id].len > len && v->bytes[id].len <= left && memcmp(v->bytes[id].ptr, text, v->bytes[id].len) == 0)
            best = (nib_token)id, len = v->bytes[id].len;
    return best;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void print_times(const char *name, double *us, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += us[i];
    qsort(us, n, sizeof *us, by_value);
    printf("  %s: median %8.2f  p99 %8.2f  most %8.2f  mean %8.2f us\n", name, us[n / 2], us[n * 99 / 100], us[n - 1],
           sum / (double)n);
}

/* Lowers the times of each token to what this run needs. */
static void follow(nib_grammar *g, const nib_token *ids, size_t n, double *mask_us, double *take_us) {
    nib_matcher *m;
    nib_error err;
    uint32_t n_vocab = g->vocab->n_tokens, *mask = malloc((n_vocab / 32 + 1) * sizeof *mask);
    if (!mask || nib_matcher_new(&m, g, &err) != NIB_OK) exit(1);
    for (size_t i = 0; i < n; i++) {
        evict();
        double start = cpu_us();
        nib_status status = nib_matcher_mask(m, mask, n_vocab, &err);
        double between = cpu_us();
        if (status == NIB_OK) status = nib_matcher_accept(m, ids[i], &err);
        double end = cpu_us();
        if (between - start < mask_us[i]) mask_us[i] = between - start;
        if (end - between < take_us[i]) take_us[i] = end - between;
        if (status != NIB_OK) {
            fprintf(stderr, "token %zu: %s\n", i, err.message);
            exit(1);
        }
    }
    nib_matcher_free(m);
    free(mask);
}

/* A list is one of tools, of which one has to be called. */
static nib_grammar *compile(const nib_grammar_vocab *v, const char *schema, double *ms) {
    nib_chat_grammar_config config = NIB_CHAT_GRAMMAR_CONFIG_INIT;
    nib_grammar *g;
    nib_error err;
    config.format = "hermes";
    config.tools = schema;
    config.tools_len = strlen(schema);
    config.tool_choice = "required";
    config.grammar.syntax = NIB_SYNTAX_JSON_SCHEMA;
    double start = cpu_us();
    nib_status status = *schema == '[' ? nib_chat_grammar_new(&g, &config, v, &err)
                                       : nib_grammar_new(&g, schema, strlen(schema), v, &config.grammar, &err);
    if (status != NIB_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    double took = (cpu_us() - start) * 1e-3;
    if (took < *ms) *ms = took;
    return g;
}

enum { MOST = 4096, N_RUNS = 9 };

static void bench(const nib_grammar_vocab *v, const char *name, const char *schema, const char *text) {
    nib_token ids[MOST];
    static double us[4][MOST];
    double compile_ms = HUGE_VAL;
    size_t n = 0, len = strlen(text), n_states = 0;
    for (size_t at = 0; at < len && n < MOST; at += v->bytes[ids[n++]].len) ids[n] = longest(v, text + at, len - at);
    for (size_t i = 0; i < 4 * MOST; i++) us[i / MOST][i % MOST] = HUGE_VAL;
    for (int run = 0; run < N_RUNS; run++) {
        nib_grammar *g = compile(v, schema, &compile_ms);
        follow(g, ids, n, us[0], us[1]);
        follow(g, ids, n, us[2], us[3]);
        n_states = nib_grammar_n_states(g);
        nib_grammar_free(g);
    }
    printf("%s: schema of %zu bytes, %zu states, compiled in %.2f ms, %zu tokens\n", name, strlen(schema), n_states,
           compile_ms, n);
    print_times("first text, mask", us[0], n);
    print_times("first text, take", us[1], n);
    print_times("again, mask     ", us[2], n);
    print_times("again, take     ", us[3], n);
}

static const char g_person[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\",\"email\",\"address\",\"orders\"]"
    ",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":80},\"email\":{\"type\":\"strin"
    "g\",\"format\":\"email\"},\"born\":{\"type\":\"string\",\"format\":\"date\"},\"phone\":{\"type\":\"string\","
    "\"pattern\":\"^\\\\+?[0-9 ]{5,20}$\"},\"notes\":{\"type\":\"string\",\"maxLength\":2000},\"address\":{\"type"
    "\":\"object\",\"additionalProperties\":false,\"required\":[\"street\",\"city\"],\"properties\":{\"street\":{"
    "\"type\":\"string\"},\"city\":{\"type\":\"string\"},\"zip\":{\"type\":\"string\",\"pattern\":\"^[0-9]{5}$\"}"
    ",\"country\":{\"type\":\"string\",\"enum\":[\"DE\",\"FR\",\"IT\",\"ES\",\"PL\"]}}},\"orders\":{\"type\":\"ar"
    "ray\",\"minItems\":1,\"maxItems\":20,\"items\":{\"type\":\"object\",\"additionalProperties\":false,\"require"
    "d\":[\"id\",\"items\",\"total\"],\"properties\":{\"id\":{\"type\":\"string\",\"format\":\"uuid\"},\"total\":"
    "{\"type\":\"number\",\"minimum\":0},\"status\":{\"type\":\"string\",\"enum\":[\"open\",\"paid\",\"sent\",\"b"
    "ack\"]},\"items\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,\"requir"
    "ed\":[\"sku\",\"count\"],\"properties\":{\"sku\":{\"type\":\"string\",\"maxLength\":12},\"count\":{\"type\":"
    "\"integer\",\"minimum\":1,\"maximum\":999},\"title\":{\"type\":\"string\"}}}}}}},\"tags\":{\"type\":\"array"
    "\",\"items\":{\"type\":\"string\",\"maxLength\":20}},\"score\":{\"type\":\"number\",\"minimum\":-1.5,\"maxim"
    "um\":99.5},\"active\":{\"type\":\"boolean\"},\"parent\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}}}";
static const char g_person_text[] =
    "{\"name\": \"Maria Lopez\", \"email\": \"maria.lopez@example.org\", \"born\": \"1988-02-29\", \"phone\": \"+"
    "49 30 123456\", \"notes\": \"Prefers a call in the morning; said \\\"thank you\\\" twice and asked about the"
    " colour of the second parcel.\", \"address\": {\"street\": \"Long Street 12\", \"city\": \"Berlin\", \"zip\""
    ": \"10115\", \"country\": \"DE\"}, \"orders\": [{\"id\": \"12345678-1234-1234-1234-1234567890ab\", \"items\""
    ": [{\"sku\": \"AB-12\", \"count\": 3, \"title\": \"Blue lamp\"}, {\"sku\": \"ZX-9\", \"count\": 120}], \"tot"
    "al\": 129.95, \"status\": \"paid\"}], \"tags\": [\"new\", \"good customer\"], \"score\": 42.25, \"active\": "
    "true, \"parent\": null}";
static const char g_service[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\",\"image\",\"ports\"],\"proper"
    "ties\":{\"name\":{\"$ref\":\"#/$defs/name\"},\"image\":{\"type\":\"string\",\"pattern\":\"^[a-z0-9./-]{1"
    ",100}:[A-Za-z0-9_.-]{1,60}$\"},\"ports\":{\"type\":\"array\",\"minItems\":1,\"maxItems\":10,\"items\":{"
    "\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"port\",\"protocol\"],\"properties\":{"
    "\"port\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":65535},\"protocol\":{\"enum\":[\"TCP\",\"UDP\","
    "\"SCTP\"]},\"name\":{\"$ref\":\"#/$defs/name\"},\"address\":{\"type\":\"string\",\"format\":\"ipv4\"}}}}"
    ",\"namespace\":{\"$ref\":\"#/$defs/name\"},\"summary\":{\"type\":\"string\",\"pattern\":\"^.{1,120}$\"},"
    "\"version\":{\"type\":\"string\",\"pattern\":\"^v?[0-9]+\\\\.[0-9]+\\\\.[0-9]+$\"},\"created\":{\"type\""
    ":\"string\",\"format\":\"date-time\"},\"contact\":{\"anyOf\":[{\"type\":\"string\",\"format\":\"email\"}"
    ",{\"type\":\"null\"}]},\"homepage\":{\"type\":\"string\",\"format\":\"uri\"},\"replicas\":{\"type\":\"in"
    "teger\",\"minimum\":0,\"maximum\":500},\"labels\":{\"type\":\"object\",\"propertyNames\":{\"pattern\":\""
    "^[a-z][a-z0-9_]{0,30}$\"},\"additionalProperties\":{\"type\":\"string\",\"maxLength\":63},\"maxPropertie"
    "s\":8},\"env\":{\"type\":\"array\",\"maxItems\":50,\"items\":{\"type\":\"object\",\"additionalProperties"
    "\":false,\"required\":[\"key\"],\"properties\":{\"key\":{\"type\":\"string\",\"pattern\":\"^[A-Z_][A-Z0-"
    "9_]{0,99}$\"},\"value\":{\"type\":\"string\",\"maxLength\":1000},\"secret\":{\"type\":\"boolean\"}}}},\""
    "resources\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"cpu\",\"memory\"],\"prop"
    "erties\":{\"cpu\":{\"type\":\"number\",\"exclusiveMinimum\":0,\"maximum\":64},\"memory\":{\"type\":\"str"
    "ing\",\"pattern\":\"^[1-9][0-9]{0,5}(Ki|Mi|Gi)$\"},\"gpu\":{\"type\":\"integer\",\"multipleOf\":2,\"mini"
    "mum\":0,\"maximum\":16}}},\"steps\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/step\"}}},\"$defs"
    "\":{\"name\":{\"type\":\"string\",\"pattern\":\"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$\",\"maxLength\":63}"
    ",\"step\":{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"run\"],\"properties\":{\"r"
    "un\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":200},\"timeout\":{\"type\":\"integer\",\"minimum"
    "\":1},\"then\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/step\"}}}}}}";
static const char g_service_text[] =
    "{\"name\": \"shop-front-2\", \"image\": \"registry.example.org/shop/front-end:2024.10_rc1\", \"ports\": "
    "[{\"port\": 8080, \"protocol\": \"TCP\", \"name\": \"http\"}, {\"port\": 53, \"protocol\": \"UDP\", \"ad"
    "dress\": \"10.0.12.255\"}], \"namespace\": \"prod\", \"summary\": \"Serves the pages of the shop (with a"
    " cache of 5 minutes) & answers the search.\", \"version\": \"v2.10.3\", \"created\": \"2024-10-01T08:15:"
    "30Z\", \"contact\": \"shop.team@example.org\", \"homepage\": \"https://example.org/shop/front?lang=en#to"
    "p\", \"replicas\": 12, \"labels\": {\"app\": \"shop\", \"cost_center\": \"Sales & Marketing\"}, \"env\":"
    " [{\"key\": \"LOG_LEVEL\", \"value\": \"debug\"}, {\"key\": \"DATABASE_URL\", \"value\": \"postgres://sh"
    "op:secret@db.internal:5432/shop?sslmode=require\", \"secret\": true}], \"resources\": {\"cpu\": 2.5, \"m"
    "emory\": \"512Mi\", \"gpu\": 4}, \"steps\": [{\"run\": \"apt-get update && apt-get install -y curl\", \""
    "timeout\": 300, \"then\": [{\"run\": \"curl -fsS http://localhost:8080/health | grep \\\"ok\\\"\"}]}]}";
static const char g_any_text[] =
    "{\"a\": [1, 2.5, {\"deep\": [[[\"text with some words in it\", null]]], \"other\": \"more text\"}], \"b\": {"
    "\"c\": {\"d\": {\"e\": false}}}}";

enum { N_TOOLS = 20 };

static const char g_tool[] =
    "%s{\"type\":\"function\",\"function\":{\"name\":\"search_%d\",\"parameters\":{\"type\":\"object\",\"required\""
    ":[\"text\"],\"properties\":{\"text\":{\"type\":\"string\"},\"order\":{\"enum\":[\"date\",\"size\"]},\"limit\":{\""
    "type\":\"integer\"},\"above\":{\"type\":\"number\"},\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"more\":{\"type\":\"object\",\"properties\":{\"deep\":{\"type\":\"boolean\"}}}}}}}";
static const char g_tools_text[] =
    "<tool_call>\n{\"name\": \"search_7\", \"arguments\": {\"text\": \"the blue lamp\", \"order\": \"date\", \"limit"
    "\": 12, \"above\": 0.5, \"tags\": [\"new\", \"good customer\"], \"more\": {\"deep\": true}, \"other\": null}}\n<"
    "/tool_call>";

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[argc - 1], "--print") == 0) {
        printf("%s\n%s\n", g_service, g_service_text);
        return 0;
    }
    uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 152064;
    double start = nib_sys_now();
    nib_grammar_vocab *v = argc > 2 ? read_vocab(argv[2]) : make_vocab(n);
    printf("vocabulary of %u tokens, %zu plain and %zu other nodes, made in %.0f ms\n", v->n_tokens, v->plain.n_nodes,
           v->rest.n_nodes, (nib_sys_now() - start) * 1e3);
    bench(v, "person", g_person, g_person_text);
    bench(v, "service", g_service, g_service_text);
    bench(v, "any object", "{\"type\":\"object\"}", g_any_text);
    static char tools[N_TOOLS * (sizeof g_tool + 8)] = "[";
    for (int i = 0; i < N_TOOLS; i++) {
        size_t len = strlen(tools);
        snprintf(tools + len, sizeof tools - len, g_tool, i ? "," : "", i);
    }
    strcat(tools, "]");
    bench(v, "20 tools", tools, g_tools_text);
    nib_grammar_vocab_free(v);
    return 0;
}
