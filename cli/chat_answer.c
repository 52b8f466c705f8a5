/* cli/chat_answer.c - an answer in events -> the next message. Who gives the events: answerer.h. */
#include "answerer.h"

#include "base/status.h"

#include <string.h>

bool nib_cli_answer_event(void *answer, const nib_chat_event *event) {
    nib_cli_answer *a = answer;
    a->is_reasoning = event->kind == NIB_CHAT_REASONING;
    if (event->kind == NIB_CHAT_CONTENT) nib_buf_append(&a->content, event->text.ptr, event->text.len);
    if (event->kind == NIB_CHAT_REASONING) nib_buf_append(&a->reasoning, event->text.ptr, event->text.len);
    if (event->kind == NIB_CHAT_TOOL_CALL) {
        json_t *call = json_object(), *function = json_object();
        json_object_set_new(call, "id", nib_cli_json_str(event->id));
        nib_cli_json_set_str(call, "type", "function");
        json_object_set_new(function, "name", nib_cli_json_str(event->name));
        json_object_set_new(function, "arguments", nib_cli_json_str(event->text));
        json_object_set_new(call, "function", function);
        json_array_append_new(a->calls, call);
    }
    return a->event(a->user, event);
}

/* The answer becomes a message, if there was any. */
static nib_status keep(nib_cli_answer *a, nib_error *err) {
    if (a->content.failed || a->reasoning.failed) return nib_fail_nomem(err, a->content.len, "the answer");
    bool has_calls = json_array_size(a->calls) > 0;
    if (!a->content.len && !a->reasoning.len && !has_calls) return NIB_OK;
    json_t *message = json_object();
    nib_cli_json_set_str(message, "role", "assistant");
    json_object_set_new(message, "content", has_calls && !a->content.len ? json_null() : nib_cli_json_str(nib_cli_bytes(&a->content)));
    if (a->reasoning.len) json_object_set_new(message, "reasoning_content", nib_cli_json_str(nib_cli_bytes(&a->reasoning)));
    if (has_calls) json_object_set(message, "tool_calls", a->calls);
    json_array_append_new(a->c->messages, message);
    return NIB_OK;
}

nib_status nib_cli_chat_answer(nib_cli_chat *c, nib_chat_event_fn event, void *user, nib_error *err) {
    nib_cli_answer a = {.c = c, .event = event, .user = user, .calls = json_array()};
    c->last = (nib_cli_figures){0};
    nib_status status = c->who->answer(&a, err);
    if (json_array_size(a.calls) && c->last.finish_reason && strcmp(c->last.finish_reason, "stop") == 0)
        c->last.finish_reason = "tool_calls";
    nib_status kept = keep(&a, status == NIB_OK ? err : NULL);
    nib_buf_free(&a.content);
    nib_buf_free(&a.reasoning);
    json_decref(a.calls);
    return status == NIB_OK ? kept : status;
}
