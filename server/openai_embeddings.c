/* server/openai_embeddings.c - POST /v1/embeddings: texts or ids -> a vector for each. */
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

static nib_status read_ask(nib_server_ask *ask, nib_server_fault *fault) {
    static const nib_server_field *const tables[] = {fields, NULL};
    NIB_TRY(nib_server_fields_read(ask, tables, fault));
    if (!ask->n_prompts) return nib_server_refuse(fault, "input", "input is missing, expected a string or a list");
    if (!ask->pooling) ask->pooling = nib_model_pooling(ask->server->model.model);
    if (!ask->pooling) return nib_server_refuse(fault, "pooling", "the model's file asks for a kind of pooling that is not known here");
    return NIB_OK;
}

/* ---- the answer */

static json_t *list_json(const float *vector, uint32_t n) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++) json_array_append_new(list, nib_server_json_number((double)vector[i]));
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
        const float *vector = answer->choices[i].embedding;
        json_t *item = json_object();
        if (!vector) continue; /* the server shuts down */
        json_object_set_new(item, "object", json_string("embedding"));
        json_object_set_new(item, "index", json_integer((json_int_t)i));
        json_object_set_new(item, "embedding", is_base64 ? base64_json(vector, n_embd) : list_json(vector, n_embd));
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

static const nib_server_dialect dialect = {.read = read_ask, .whole = write_whole};

void nib_server_route_embeddings(nib_server *server, nib_server_exchange *x) {
    nib_server_generate(server, x, &dialect);
}
