/* server/openai_embeddings.c - POST /v1/embeddings, and llama-server's /embedding: texts or ids -> a vector for each. */
#include "base/half.h"
#include "base/status.h"
#include "dialect.h"
#include "internal.h"
#include "openai.h"
#include "routes.h"

#include <string.h>

/* ---- the request */

static nib_status read_encoding(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *word;
    (void)ask;
    NIB_TRY(nib_server_fields_string(value, name, &word, fault));
    if (strcmp(word, "float") == 0 || strcmp(word, "base64") == 0) return NIB_OK;
    return nib_server_refuse(fault, name, "%s is \"%.40s\", expected float or base64", name, word);
}

/* Vectors can be cut only where a model was trained for that, which its file does not tell. */
static nib_status read_dimensions(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    uint32_t n_embd = nib_model_n_embd(ask->server->model.model);
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, 1, INT32_MAX, &n, fault));
    if (n == n_embd) return NIB_OK;
    return nib_server_refuse(fault, name, "vectors of this model have %u dimensions, and are not cut", n_embd);
}

static nib_status read_pooling(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    static const char *const words[] = {[NIB_POOLING_MEAN] = "mean", [NIB_POOLING_CLS] = "cls", [NIB_POOLING_LAST] = "last"};
    const char *word;
    NIB_TRY(nib_server_fields_string(value, name, &word, fault));
    for (int i = NIB_POOLING_MEAN; i <= NIB_POOLING_LAST; i++)
        if (strcmp(word, words[i]) == 0) ask->pooling = (nib_pooling)i;
    return ask->pooling ? NIB_OK : nib_server_refuse(fault, name, "%s is \"%.40s\", expected mean, cls or last", name, word);
}

/* Of llama-server: the norm by which vectors are divided, -1 for none. */
static nib_status read_norm(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, -1, INT32_MAX, &n, fault));
    ask->keeps_length = n == -1;
    return n == -1 || n == 2 ? NIB_OK : nib_server_refuse(fault, name, "%s is %d, expected -1 or 2, the Euclidean norm", name, (int)n);
}

static const nib_server_field llama_fields[] = {
    NIB_SERVER_FIELD_BY("content", nib_server_openai_prompts),
    NIB_SERVER_FIELD_BY("embd_normalize", read_norm),
    {0},
};

static const nib_server_field fields[] = {
    NIB_SERVER_FIELD("model", STRING, model, 0, 0),
    NIB_SERVER_FIELD_BY("input", nib_server_openai_prompts),
    NIB_SERVER_FIELD_BY("encoding_format", read_encoding),
    NIB_SERVER_FIELD_BY("dimensions", read_dimensions),
    NIB_SERVER_FIELD_BY("pooling", read_pooling),
    NIB_SERVER_FIELD("normalize", NOT, keeps_length, 0, 0),
    NIB_SERVER_FIELD("add_special_tokens", BOOL, add_special, 0, 0),
    NIB_SERVER_FIELD("priority", INT, priority, INT32_MIN, INT32_MAX),
    NIB_SERVER_FIELD_UNUSED("user"),
    NIB_SERVER_FIELD_ABSENT("messages", "use input"),
    NIB_SERVER_FIELD_ABSENT("truncate_prompt_tokens", "texts are never cut"),
    {0},
};

static nib_status read(nib_server_ask *ask, const nib_server_field *const *tables, const char *input, nib_server_fault *fault) {
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    if (!ask->n_prompts) return nib_server_refuse(fault, input, "%s is missing, expected a string or a list", input);
    if (!ask->pooling) ask->pooling = nib_model_pooling(ask->server->model.model);
    if (!ask->pooling) return nib_server_refuse(fault, "pooling", "the model's file asks for a kind of pooling that is not known here");
    return NIB_OK;
}

static nib_status read_ask(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {fields, NULL};
    return read(ask, tables, "input", fault);
}

static nib_status read_llama(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {llama_fields, fields, NULL};
    return read(ask, tables, "content", fault);
}

/* ---- the answer */

json_t *nib_server_openai_vector(const nib_server_choice *c) {
    json_t *list = json_array();
    for (uint32_t i = 0, n = nib_model_n_embd(c->answer->server->model.model); i < n; i++)
        json_array_append_new(list, nib_server_json_number((double)c->embedding[i]));
    return list;
}

/* The floats as bytes, little-endian, four letters for three of them. */
static json_t *base64_json(const float *vector, uint32_t n) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    nib_buf text = {0};
    uint32_t bits = 0, n_bits = 0;
    for (size_t i = 0; i < 4 * (size_t)n; i++) {
        bits = bits << 8 | (nib_f32_bits(vector[i / 4]) >> 8 * (i % 4) & 0xff);
        for (n_bits += 8; n_bits >= 6; n_bits -= 6) nib_buf_char(&text, letters[bits >> (n_bits - 6) & 63]);
    }
    if (n_bits) nib_buf_char(&text, letters[bits << (6 - n_bits) & 63]);
    while (text.len % 4) nib_buf_char(&text, '=');
    json_t *value = nib_server_json_str((nib_str){text.ptr, text.len});
    nib_buf_free(&text);
    return value;
}

static void write_whole(nib_server_answer *answer, nib_buf *out) {
    const char *encoding = json_string_value(json_object_get(answer->ask.body, "encoding_format"));
    bool is_base64 = encoding && strcmp(encoding, "base64") == 0;
    uint32_t n_embd = nib_model_n_embd(answer->server->model.model);
    json_t *o = json_object(), *data = json_array(), *usage = json_object();
    for (size_t i = 0; i < answer->n_choices; i++) {
        const nib_server_choice *c = &answer->choices[i];
        json_t *item = json_object();
        json_object_set_new(item, "object", json_string("embedding"));
        json_object_set_new(item, "index", json_integer((json_int_t)i));
        json_object_set_new(item, "embedding", is_base64 ? base64_json(c->embedding, n_embd) : nib_server_openai_vector(c));
        json_array_append_new(data, item);
    }
    json_int_t n_prompt = (json_int_t)nib_server_usage_of(answer).n_prompt;
    json_object_set_new(usage, "prompt_tokens", json_integer(n_prompt));
    json_object_set_new(usage, "total_tokens", json_integer(n_prompt));
    json_object_set_new(o, "object", json_string("list"));
    json_object_set_new(o, "data", data);
    json_object_set_new(o, "model", nib_server_json_str(nib_server_model_name(answer->server)));
    json_object_set_new(o, "usage", usage);
    nib_server_json_put(o, out);
}

static void write_llama(nib_server_answer *answer, nib_buf *out) {
    json_t *list = json_array();
    for (size_t i = 0; i < answer->n_choices; i++)
        json_array_append_new(list, json_pack("{s:i, s:[o]}", "index", (int)i, "embedding", nib_server_openai_vector(&answer->choices[i])));
    nib_server_json_put(list, out);
}

static const nib_server_dialect dialect = {.read = read_ask, .whole = write_whole}, llama = {.read = read_llama, .whole = write_llama};

void nib_server_route_embeddings(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}

void nib_server_route_llama_embedding(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &llama);
}
