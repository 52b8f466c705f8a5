/* server/openai_fields.c - fields that OpenAI's requests have in common, those of vLLM, SGLang and llama.cpp among them.
 *
 * Every field that is known here either does what it says, does nothing by its nature, or is refused by name. */
#include "base/hash.h"
#include "base/status.h"
#include "internal.h"
#include "openai.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static nib_status read_seed(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t seed;
    NIB_TRY(nib_server_fields_integer(value, name, -9223372036854775808.0, 9223372036854775807.0, &seed, fault));
    ask->sampling.seed = (uint32_t)((uint64_t)seed ^ (uint64_t)seed >> 32);
    if (seed == -1) ask->sampling.seed = UINT32_MAX; /* a fresh one, as llama.cpp has it */
    else if (ask->sampling.seed == UINT32_MAX) ask->sampling.seed = 0;
    return NIB_OK;
}

static nib_status read_stop(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const json_t *item;
    size_t i;
    if (json_is_string(value)) return nib_server_ask_add_stop(ask, nib_server_json_text(value), fault);
    if (!json_is_array(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a string or a list of strings", name, nib_server_fields_kind_of(value));
    json_array_foreach(value, i, item) {
        if (!json_is_string(item))
            return nib_server_refuse(fault, name, "%s[%zu] is %s, expected a string", name, i, nib_server_fields_kind_of(item));
        NIB_TRY(nib_server_ask_add_stop(ask, nib_server_json_text(item), fault));
    }
    return NIB_OK;
}

static nib_status read_ids(nib_server_ask *ask, const char *name, const json_t *value,
                           nib_status (*add)(nib_server_ask *ask, nib_token id, nib_server_fault *fault), nib_server_fault *fault) {
    if (!json_is_array(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a list of token ids", name, nib_server_fields_kind_of(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        int64_t id;
        uint32_t last = nib_model_n_vocab(ask->server->model.model) - 1;
        NIB_TRY(nib_server_fields_integer(json_array_get(value, i), name, 0, last, &id, fault));
        NIB_TRY(add(ask, (nib_token)id, fault));
    }
    return NIB_OK;
}

static nib_status read_stop_ids(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    return read_ids(ask, name, value, nib_server_ask_add_stop_id, fault);
}

static nib_status read_allowed_ids(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    NIB_TRY(read_ids(ask, name, value, nib_server_ask_add_allowed_id, fault));
    return ask->n_allowed_ids ? NIB_OK : nib_server_refuse(fault, name, "%s is empty: nothing could be said", name);
}

/* -1: what a request may have. */
static nib_status read_truncate(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    NIB_TRY(nib_server_fields_integer(value, name, -1, INT32_MAX, &n, fault));
    if (n == 0) return nib_server_refuse(fault, name, "%s is 0, expected -1 or more than 0", name);
    ask->truncate = n < 0 ? ask->server->model.max_context : (uint32_t)n;
    return NIB_OK;
}

static nib_status read_side(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *side;
    NIB_TRY(nib_server_fields_string(value, name, &side, fault));
    ask->cuts_end = strcmp(side, "right") == 0;
    if (ask->cuts_end || strcmp(side, "left") == 0) return NIB_OK;
    return nib_server_refuse(fault, name, "%s is \"%.40s\", expected left or right", name, side);
}

static nib_status read_bias(nib_server_ask *ask, const char *name, json_t *value, nib_server_fault *fault) {
    const char *key;
    json_t *bias;
    uint32_t n_vocab = nib_model_n_vocab(ask->server->model.model);
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object of token ids", name, nib_server_fields_kind_of(value));
    json_object_foreach(value, key, bias) {
        char path[64], *end;
        double number;
        unsigned long id = strtoul(key, &end, 10);
        snprintf(path, sizeof path, "%s.%.40s", name, key);
        if (*end || end == key || *key < '0' || *key > '9' || id >= n_vocab)
            return nib_server_refuse(fault, name, "%s: \"%.40s\" is no token id, expected 0 to %u", name, key, n_vocab - 1);
        NIB_TRY(nib_server_fields_number(bias, path, -100, 100, &number, fault));
        float x = number <= -100 ? -INFINITY : (float)number; /* OpenAI: a ban */
        NIB_TRY(nib_server_ask_add_bias(ask, (nib_token)id, x, fault));
    }
    return NIB_OK;
}

nib_status nib_server_openai_bias(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    return read_bias(ask, name, (json_t *)(uintptr_t)value, fault); /* jansson walks objects that are not const only */
}

static nib_status read_stream_options(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const json_t *include = json_object_get(value, "include_usage"), *each = json_object_get(value, "continuous_usage_stats");
    bool is_each = false;
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object", name, nib_server_fields_kind_of(value));
    if (include && !json_is_null(include))
        NIB_TRY(nib_server_fields_bool(include, "stream_options.include_usage", &ask->include_usage, fault));
    if (each && !json_is_null(each)) NIB_TRY(nib_server_fields_bool(each, "stream_options.continuous_usage_stats", &is_each, fault));
    if (is_each)
        return nib_server_refuse(fault, "stream_options.continuous_usage_stats", "usage comes once, in the last event of a stream");
    return NIB_OK;
}

static nib_status read_salt(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *salt;
    NIB_TRY(nib_server_fields_string(value, name, &salt, fault));
    if (!salt[0] || strlen(salt) > 1024) return nib_server_refuse(fault, name, "%s has %zu bytes, expected 1 to 1024", name, strlen(salt));
    ask->salt = nib_hash64(ask->server->secret ^ ask->salt, salt, strlen(salt));
    return NIB_OK;
}

static nib_status read_best_of(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    int64_t n;
    const json_t *wanted = json_object_get(ask->body, "n");
    NIB_TRY(nib_server_fields_integer(value, name, 1, 128, &n, fault));
    if (n == (json_is_integer(wanted) ? json_integer_value(wanted) : 1)) return NIB_OK;
    return nib_server_refuse(fault, name, "%s must be n: answers are not compared", name);
}

/* ---- the form of the answer */

static nib_status read_response_format(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *type = json_string_value(json_object_get(value, "type"));
    const json_t *wrapped = json_object_get(value, "json_schema"), *schema = json_object_get(wrapped, "schema");
    if (!json_is_object(value) || !type) return nib_server_refuse(fault, name, "%s must be an object with a type", name);
    if (strcmp(type, "text") == 0) return NIB_OK;
    if (!schema) schema = json_object_get(value, "schema"); /* as llama.cpp takes it, with json_object too */
    if (strcmp(type, "json_object") == 0 && !schema)
        return nib_server_ask_set_grammar(ask, NIB_SYNTAX_JSON_OBJECT, (nib_str){0}, name, fault);
    if (strcmp(type, "json_object") != 0 && strcmp(type, "json_schema") != 0)
        return nib_server_refuse(fault, "response_format.type", "response_format.type is \"%.100s\", expected text, json_object or "
                                 "json_schema", type);
    if (!schema) return nib_server_refuse(fault, "response_format.json_schema.schema", "response_format.json_schema.schema is missing");
    return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_JSON_SCHEMA, schema, "response_format", fault);
}

/* A schema as JSON, or as a string that holds it. */
static nib_status read_schema(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (json_is_string(value)) return nib_server_ask_set_grammar(ask, NIB_SYNTAX_JSON_SCHEMA, nib_server_json_text(value), name, fault);
    return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_JSON_SCHEMA, value, name, fault);
}

static nib_status read_text_grammar(nib_server_ask *ask, nib_syntax syntax, const char *name, const json_t *value,
                                    nib_server_fault *fault) {
    if (!json_is_string(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a string", name, nib_server_fields_kind_of(value));
    return nib_server_ask_set_grammar(ask, syntax, nib_server_json_text(value), name, fault);
}

static nib_status read_regex(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    return read_text_grammar(ask, NIB_SYNTAX_REGEX, name, value, fault);
}

static nib_status read_gbnf(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    return read_text_grammar(ask, NIB_SYNTAX_GBNF, name, value, fault);
}

static nib_status read_choice(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    if (!json_is_array(value))
        return nib_server_refuse(fault, name, "%s is %s, expected a list of strings", name, nib_server_fields_kind_of(value));
    return nib_server_ask_set_grammar_json(ask, NIB_SYNTAX_CHOICES, value, name, fault);
}

static nib_status read_structured(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    static const struct {
        const char *name, *path;
        nib_server_field_fn read;
    } forms[] = {{"json", "structured_outputs.json", read_schema},   {"regex", "structured_outputs.regex", read_regex},
                 {"choice", "structured_outputs.choice", read_choice}, {"grammar", "structured_outputs.grammar", read_gbnf}};
    const json_t *object = json_object_get(value, "json_object");
    if (!json_is_object(value))
        return nib_server_refuse(fault, name, "%s is %s, expected an object", name, nib_server_fields_kind_of(value));
    if (json_object_get(value, "structural_tag"))
        return nib_server_refuse(fault, "structured_outputs.structural_tag", "structural_tag is not supported");
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const json_t *form = json_object_get(value, forms[i].name);
        if (form && !json_is_null(form)) NIB_TRY(forms[i].read(ask, forms[i].path, form, fault));
    }
    if (!json_is_true(object)) return NIB_OK;
    return nib_server_ask_set_grammar(ask, NIB_SYNTAX_JSON_OBJECT, (nib_str){0}, name, fault);
}

/* ---- samplers of llama.cpp */

static nib_status read_breakers(nib_server_ask *ask, const char *name, const json_t *value, nib_server_fault *fault) {
    const char *text;
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n > NIB_SERVER_MAX_BREAKERS)
        return nib_server_refuse(fault, name, "%s is %s of %zu, expected a list of at most %d strings", name,
                                 nib_server_fields_kind_of(value), n, NIB_SERVER_MAX_BREAKERS);
    for (size_t i = 0; i < n; i++) NIB_TRY(nib_server_fields_string(json_array_get(value, i), name, &text, fault));
    ask->breakers = value;
    return NIB_OK;
}

#define FIELD NIB_SERVER_FIELD
#define BY NIB_SERVER_FIELD_BY
#define UNUSED NIB_SERVER_FIELD_UNUSED
#define ABSENT NIB_SERVER_FIELD_ABSENT

const nib_server_field nib_server_openai_fields[] = {
    FIELD("model", STRING, model, 0, 0),
    FIELD("temperature", FLOAT, sampling.temp, 0, 100),
    FIELD("top_p", FLOAT, sampling.top_p, 0, 1),
    FIELD("top_k", INT, sampling.top_k, INT32_MIN, INT32_MAX),
    FIELD("min_p", FLOAT, sampling.min_p, 0, 1),
    FIELD("presence_penalty", FLOAT, sampling.penalty_presence, -2, 2),
    FIELD("frequency_penalty", FLOAT, sampling.penalty_frequency, -2, 2),
    FIELD("repetition_penalty", FLOAT, sampling.penalty_repeat, 0.01, 100),
    BY("seed", read_seed),
    BY("stop", read_stop),
    BY("stop_token_ids", read_stop_ids),
    FIELD("min_tokens", UINT, min_tokens, 0, INT32_MAX),
    BY("logit_bias", nib_server_openai_bias),
    BY("allowed_token_ids", read_allowed_ids),
    BY("truncate_prompt_tokens", read_truncate),
    BY("truncation_side", read_side),
    FIELD("n", UINT, n, 1, 128),
    BY("best_of", read_best_of),
    FIELD("stream", BOOL, stream, 0, 0),
    BY("stream_options", read_stream_options),
    FIELD("ignore_eos", BOOL, ignore_eos, 0, 0),
    FIELD("include_stop_str_in_output", BOOL, include_stop, 0, 0),
    FIELD("no_stop_trim", BOOL, include_stop, 0, 0),
    NIB_SERVER_FIELD("skip_special_tokens", NOT, special, 0, 0),
    FIELD("priority", INT, priority, INT32_MIN, INT32_MAX),
    BY("cache_salt", read_salt),
    BY("response_format", read_response_format),
    BY("structured_outputs", read_structured),
    BY("guided_json", read_schema),
    BY("guided_regex", read_regex),
    BY("guided_choice", read_choice),
    BY("guided_grammar", read_gbnf),
    BY("json_schema", read_schema),
    BY("regex", read_regex),
    BY("ebnf", read_gbnf),
    BY("grammar", read_gbnf),
    UNUSED("user"),
    UNUSED("metadata"),
    UNUSED("store"),
    UNUSED("service_tier"),
    UNUSED("safety_identifier"),
    UNUSED("prompt_cache_key"),
    UNUSED("prompt_cache_retention"),
    UNUSED("prediction"),
    UNUSED("request_id"),
    UNUSED("rid"),
    UNUSED("spaces_between_special_tokens"),
    UNUSED("stream_interval"),
    UNUSED("cache_prompt"),
    UNUSED("guided_decoding_backend"),
    UNUSED("return_cached_tokens_details"),
    ABSENT("stop_regex", "use stop"),
    ABSENT("bad_words", "use logit_bias"),
    ABSENT("thinking_token_budget", "thoughts are as long as they are: use max_tokens, or enable_thinking false"),
    ABSENT("use_beam_search", "answers are sampled"),
    ABSENT("length_penalty", "there is no beam search"),
    ABSENT("logprob_token_ids", "use top_logprobs"),
    ABSENT("return_tokens_as_token_ids", "tokens are text and bytes"),
    ABSENT("return_token_ids", "use /tokenize"),
    ABSENT("return_prompt_token_ids", "use /tokenize"),
    ABSENT("return_prompt_text", "use /apply-template"),
    ABSENT("return_hidden_states", "there is no such answer"),
    ABSENT("repetition_detection", "use the penalties"),
    ABSENT("custom_logit_processor", "no code of clients is run"),
    ABSENT("custom_params", "no code of clients is run"),
    ABSENT("kv_transfer_params", "keys and values stay here"),
    ABSENT("vllm_xargs", "these are for plugins of another server"),
    ABSENT("session_params", "every request stands alone"),
    ABSENT("lora_path", "there are no adapters"),
    ABSENT("watermarking", "answers are not marked"),
    {0},
};

const nib_server_field nib_server_llama_sampling_fields[] = {
    FIELD("typical_p", FLOAT, sampling.typical_p, 0, 1e9),
    FIELD("top_n_sigma", FLOAT, sampling.top_n_sigma, -1e9, 1e9),
    FIELD("xtc_probability", FLOAT, sampling.xtc_probability, 0, 1),
    FIELD("xtc_threshold", FLOAT, sampling.xtc_threshold, 0, 1e9),
    FIELD("repeat_penalty", FLOAT, sampling.penalty_repeat, 1e-9, 1e9),
    FIELD("repeat_last_n", INT, sampling.penalty_last_n, -1, INT32_MAX),
    FIELD("dynatemp_range", FLOAT, sampling.dynatemp_range, 0, 1e9),
    FIELD("dynatemp_exponent", FLOAT, sampling.dynatemp_exponent, 0, 1e9),
    FIELD("dry_multiplier", FLOAT, sampling.dry_multiplier, 0, 1e9),
    FIELD("dry_base", FLOAT, sampling.dry_base, 1, 1e9),
    FIELD("dry_allowed_length", INT, sampling.dry_allowed_length, 0, INT32_MAX),
    FIELD("dry_penalty_last_n", INT, sampling.dry_penalty_last_n, -1, INT32_MAX),
    BY("dry_sequence_breakers", read_breakers),
    FIELD("mirostat", INT, sampling.mirostat, 0, 2),
    FIELD("mirostat_tau", FLOAT, sampling.mirostat_tau, 0, 1e9),
    FIELD("mirostat_eta", FLOAT, sampling.mirostat_eta, 0, 1e9),
    FIELD("min_keep", UINT, sampling.min_keep, 0, UINT32_MAX),
    {0},
};
