/* cli/workload.c - see workload.h. */
#include "workload.h"

#include "base/rng.h"
#include "list.h"

static const char *const words[64] = {
    "time",  "year",  "people", "way",   "day",   "man",   "thing",  "woman", "life",  "child", "world", "school", "state",
    "family", "student", "group", "country", "problem", "hand", "part", "place", "case",  "week",  "company", "system", "program",
    "question", "work", "government", "number", "night", "point", "home", "water", "room",  "mother", "area",  "money", "story",
    "fact",  "month", "lot",   "right", "study", "book",  "eye",   "job",    "word",  "business", "issue", "side",  "kind",
    "head",  "house", "service", "friend", "father", "power", "hour", "game", "line", "end", "member", "law",
};

/* Text number `place` of a conversation. */
static json_t *message(const nib_cli_workload *w, const char *role, uint32_t conversation, uint32_t place) {
    size_t n = place ? w->n_words : w->n_prefix_words;
    nib_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        uint32_t random[4], counter[4] = {conversation, place, (uint32_t)i, 0};
        nib_rng_philox(counter, w->salt, random);
        nib_buf_printf(&text, "%s%s", i ? " " : "", words[random[0] % 64]);
    }
    json_t *object = json_object();
    nib_cli_json_set_str(object, "role", role);
    json_object_set_new(object, "content", nib_cli_json_str(nib_cli_bytes(&text)));
    nib_buf_free(&text);
    return object;
}

json_t *nib_cli_workload_begin(const nib_cli_workload *w, uint32_t conversation) {
    json_t *messages = json_array();
    if (w->kind == NIB_CLI_WORKLOAD_SHARED_PREFIX) json_array_append_new(messages, message(w, "system", 0, 0));
    json_array_append_new(messages, message(w, "user", conversation, 1));
    return messages;
}

void nib_cli_workload_go_on(const nib_cli_workload *w, json_t *messages, uint32_t conversation, nib_str answer) {
    json_t *said = json_object();
    nib_cli_json_set_str(said, "role", "assistant");
    json_object_set_new(said, "content", nib_cli_json_str(answer));
    json_array_append_new(messages, said);
    json_array_append_new(messages, message(w, "user", conversation, (uint32_t)json_array_size(messages)));
}
