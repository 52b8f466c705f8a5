/* chat/request.c - the fields of a request around its messages, and the variables that templates know them by. */
#include "chat/request.h"

#include "base/buf.h"
#include "base/status.h"
#include "chat/build.h"
#include "chat/tools.h"
#include "jinja/json.h"
#include "jinja/template.h"

/* ---- reading */

/* Results of tools often come without the tool's name, which many templates want: that of the call with the same id. */
static void name_result(const nib_chat_request *q, nib_chat_message *result) {
    const jinja_value *id = nib_jinja_dict_get(result->fields, "tool_call_id");
    if (result->role != NIB_CHAT_TOOL || result->name.type == JINJA_STR || !id || id->type != JINJA_STR) return;
    for (uint32_t i = q->n_messages; i-- > 0;)
        for (uint32_t k = 0; k < q->messages[i].n_calls; k++) {
            const nib_chat_call *call = &q->messages[i].calls[k];
            if (!jinja_str_is(&call->id, id->as.ptr, id->len)) continue;
            result->name = call->name;
            return;
        }
}

static nib_status read_messages(nib_chat_reader *r, const jinja_dict *object, nib_chat_request *q) {
    const jinja_value *list = nib_jinja_dict_get(object, "messages");
    if (!list || list->type != JINJA_LIST) return nib_chat_field_wrong(r, "messages", list, "a list of messages");
    if (!list->as.list->n) return nib_chat_field_fail(r, "messages", "is empty, expected at least one message");
    q->messages = nib_arena_alloc(r->arena, list->as.list->n * sizeof *q->messages);
    if (!q->messages) return nib_chat_field_nomem(r);
    for (q->n_messages = 0; q->n_messages < list->as.list->n; q->n_messages++) {
        nib_chat_message *message = &q->messages[q->n_messages];
        size_t mark = nib_chat_field_enter(r, "messages[%u]", q->n_messages);
        NIB_TRY(nib_chat_message_read(r, &list->as.list->items[q->n_messages], message));
        nib_chat_field_leave(r, mark);
        name_result(q, message);
    }
    return NIB_OK;
}

static nib_status read_documents(nib_chat_reader *r, const jinja_dict *object, nib_chat_request *q) {
    const jinja_value *list;
    NIB_TRY(nib_chat_field_get(r, object, "documents", JINJA_LIST, &list));
    if (!list || !list->as.list->n) return NIB_OK;
    for (uint32_t i = 0; i < list->as.list->n; i++) {
        size_t mark = nib_chat_field_enter(r, "documents[%u]", i);
        const jinja_value *document = &list->as.list->items[i];
        if (document->type != JINJA_DICT) return nib_chat_field_wrong(r, "", document, "an object");
        nib_chat_field_leave(r, mark);
    }
    q->documents = *list;
    return NIB_OK;
}

static nib_status read_thinking(const nib_chat_reader *r, const jinja_dict *object, nib_chat_request *q) {
    const jinja_value *v;
    NIB_TRY(nib_chat_field_get(r, object, "enable_thinking", JINJA_BOOL, &v));
    if (v) q->thinks = *v;
    NIB_TRY(nib_chat_field_get(r, object, "reasoning_effort", JINJA_STR, &v));
    if (v) q->effort = *v;
    return NIB_OK;
}

/* More variables for the template; those that carry the conversation or trust have fields of their own, or none. */
static nib_status read_kwargs(nib_chat_reader *r, const jinja_dict *object, nib_chat_request *q) {
    static const char *const reserved[] = {"messages",  "tools",    "documents", "add_generation_prompt",
                                           "bos_token", "eos_token", "continue_final_message"};
    const jinja_value *kwargs;
    NIB_TRY(nib_chat_field_get(r, object, "chat_template_kwargs", JINJA_DICT, &kwargs));
    if (!kwargs) return NIB_OK;
    q->kwargs = kwargs->as.dict;
    size_t mark = nib_chat_field_enter(r, "chat_template_kwargs");
    for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
        if (nib_jinja_dict_get(q->kwargs, reserved[i])) return nib_chat_field_fail(r, reserved[i], "cannot be set here");
    NIB_TRY(read_thinking(r, q->kwargs, q));
    nib_chat_field_leave(r, mark);
    return NIB_OK;
}

static nib_status read_switches(nib_chat_reader *r, const jinja_dict *object, nib_chat_request *q) {
    NIB_TRY(read_thinking(r, object, q));
    NIB_TRY(nib_chat_field_bool(r, object, "continue_final_message", &q->continue_final_message));
    q->add_generation_prompt = !q->continue_final_message;
    NIB_TRY(nib_chat_field_bool(r, object, "add_generation_prompt", &q->add_generation_prompt));
    if (q->add_generation_prompt && q->continue_final_message)
        return nib_chat_field_fail(r, "continue_final_message", "cannot be true together with add_generation_prompt");
    return NIB_OK;
}

nib_status nib_chat_request_read(nib_chat_reader *r, nib_str json, nib_chat_request *out) {
    jinja_value v;
    *out = (nib_chat_request){.documents = jinja_none(), .thinks = jinja_none(), .effort = jinja_none()};
    NIB_TRY(nib_jinja_json_read(json, NIB_JINJA_MAX_NESTING, r->arena, &v, r->err));
    if (v.type != JINJA_DICT) return nib_fail(r->err, NIB_E_ARG, "a request must be a JSON object with messages");
    NIB_TRY(read_messages(r, v.as.dict, out));
    NIB_TRY(nib_chat_tools_read(r, v.as.dict, &out->tools));
    NIB_TRY(read_documents(r, v.as.dict, out));
    NIB_TRY(read_switches(r, v.as.dict, out));
    return read_kwargs(r, v.as.dict, out);
}

/* ---- writing */

/* Text of system messages that goes in front of a user message. */
typedef struct pending {
    nib_buf text;
    bool has_any;
} pending;

static nib_status take_system(const nib_chat_reader *r, pending *p, const nib_chat_message *m) {
    jinja_value text;
    NIB_TRY(nib_chat_message_text(r, &m->content, &text));
    if (p->has_any) nib_buf_str(&p->text, "\n\n");
    nib_buf_append(&p->text, text.as.ptr, text.len);
    p->has_any = true;
    return NIB_OK;
}

/* A user message that begins with what is pending; m: the one that follows, NULL: a message of its own. */
static nib_status give_system(const nib_chat_reader *r, pending *p, const nib_chat_message *m, nib_chat_message *out) {
    jinja_value text = jinja_str("", 0);
    *out = m ? *m : (nib_chat_message){.role = NIB_CHAT_USER, .role_name = nib_chat_role_name(NIB_CHAT_USER),
                                       .reasoning = jinja_none(), .name = jinja_none()};
    if (m) NIB_TRY(nib_chat_message_text(r, &m->content, &text));
    if (text.len) nib_buf_str(&p->text, "\n\n");
    nib_buf_append(&p->text, text.as.ptr, text.len);
    const char *all = nib_buf_cstr(&p->text);
    const char *copy = !all || p->text.len > UINT32_MAX ? NULL : nib_arena_copy(r->arena, all, p->text.len);
    if (!copy) return nib_chat_field_nomem(r);
    out->content = jinja_str(copy, p->text.len);
    out->content.is_trusted = false;
    p->text.len = 0;
    p->has_any = false;
    return NIB_OK;
}

/* Puts system messages where the template can show them: in front of the next user message, or in one of their own. */
static nib_status move_system(const nib_chat_reader *r, nib_chat_message *messages, uint32_t *n, pending *p) {
    uint32_t n_in = *n, n_out = 0;
    for (uint32_t i = 0; i < n_in; i++) {
        nib_chat_message *m = &messages[i];
        if (m->role == NIB_CHAT_SYSTEM) {
            NIB_TRY(take_system(r, p, m));
        } else if (p->has_any && m->role == NIB_CHAT_USER) {
            NIB_TRY(give_system(r, p, m, &messages[n_out++]));
        } else {
            nib_chat_message next = *m;
            if (p->has_any) NIB_TRY(give_system(r, p, NULL, &messages[n_out++])); /* in the place of one of them */
            messages[n_out++] = next;
        }
    }
    if (p->has_any) NIB_TRY(give_system(r, p, NULL, &messages[n_out++]));
    *n = n_out;
    return NIB_OK;
}

static bool has_role(const nib_chat_message *messages, uint32_t n, nib_chat_role role) {
    for (uint32_t i = 0; i < n; i++)
        if (messages[i].role == role) return true;
    return false;
}

/* The messages with roles that the template knows. */
static nib_status adapt_roles(const nib_chat_reader *r, const nib_chat_caps *caps, nib_chat_message *messages, uint32_t *n,
                              unsigned *notes) {
    if (!caps->knows_developer && has_role(messages, *n, NIB_CHAT_DEVELOPER)) {
        *notes |= 1u << NIB_CHAT_NOTE_DEVELOPER;
        for (uint32_t i = 0; i < *n; i++) {
            if (messages[i].role != NIB_CHAT_DEVELOPER) continue;
            messages[i].role = NIB_CHAT_SYSTEM;
            messages[i].role_name = nib_chat_role_name(NIB_CHAT_SYSTEM);
        }
    }
    bool has_place = (caps->text_roles | caps->part_roles) & NIB_CHAT_BIT(NIB_CHAT_SYSTEM);
    if (has_place || !has_role(messages, *n, NIB_CHAT_SYSTEM)) return NIB_OK;
    *notes |= 1u << NIB_CHAT_NOTE_SYSTEM;
    pending p = {0};
    nib_status status = move_system(r, messages, n, &p);
    nib_buf_free(&p.text);
    return status;
}

static nib_status write_messages(nib_chat_reader *r, const nib_chat_request *q, const nib_chat_caps *caps, unsigned *notes,
                                 jinja_value *out) {
    uint32_t n = q->n_messages;
    nib_chat_message *messages = nib_arena_alloc(r->arena, n * sizeof *messages);
    if (!messages) return nib_chat_field_nomem(r);
    memcpy(messages, q->messages, n * sizeof *messages);
    NIB_TRY(adapt_roles(r, caps, messages, &n, notes));
    if (!nib_chat_list(r->arena, n, out)) return nib_chat_field_nomem(r);
    for (uint32_t i = 0; i < n; i++) NIB_TRY(nib_chat_message_write(r, &messages[i], caps, notes, &out->as.list->items[i]));
    return NIB_OK;
}

static bool no_thoughts(const nib_chat_request *q) {
    return q->thinks.type == JINJA_BOOL && !q->thinks.as.b;
}

/* Variables that are only there when they were asked for, as templates tell by "is defined". */
static bool write_options(nib_arena *arena, const nib_chat_request *q, const nib_chat_caps *caps, const jinja_value *out) {
    jinja_value yes = jinja_bool(true), zero = jinja_int(0), least = nib_chat_str(caps->least ? caps->least : "");
    bool ok = true;
    if (no_thoughts(q) && caps->has_budget) ok = nib_chat_set(arena, out, "thinking_budget", &zero);
    if (no_thoughts(q) && caps->least) ok = nib_chat_set(arena, out, "reasoning_effort", &least);
    for (uint32_t i = 0; ok && q->kwargs && i < q->kwargs->n; i++)
        ok = nib_jinja_dict_set(arena, out->as.dict, &q->kwargs->pairs[i].key, &q->kwargs->pairs[i].value);
    if (ok && q->thinks.type == JINJA_BOOL) ok = nib_chat_set(arena, out, "enable_thinking", &q->thinks);
    if (ok && q->thinks.type == JINJA_BOOL && caps->toggle) ok = nib_chat_set(arena, out, caps->toggle, &q->thinks);
    if (ok && q->effort.type == JINJA_STR) ok = nib_chat_set(arena, out, "reasoning_effort", &q->effort);
    if (ok && q->continue_final_message) ok = nib_chat_set(arena, out, "continue_final_message", &yes);
    return ok;
}

nib_status nib_chat_request_write(nib_chat_reader *r, const nib_chat_request *q, const nib_chat_caps *caps, unsigned *notes,
                                  jinja_value *out) {
    jinja_value messages, tools, prompt = jinja_bool(q->add_generation_prompt);
    NIB_TRY(nib_chat_tools_write(r, &q->tools, caps, &tools));
    NIB_TRY(write_messages(r, q, caps, notes, &messages));
    bool has_results = has_role(q->messages, q->n_messages, NIB_CHAT_TOOL);
    bool may_think = !caps->toggle && !caps->has_budget && !(caps->least && strcmp(caps->least, "none") == 0);
    if (q->tools.type != JINJA_NONE && caps->tools == NIB_CHAT_TOOLS_UNSEEN) *notes |= 1u << NIB_CHAT_NOTE_TOOLS;
    if (has_results && caps->hides_results) *notes |= 1u << NIB_CHAT_NOTE_RESULTS;
    if (no_thoughts(q) && caps->reasoning && may_think) *notes |= 1u << NIB_CHAT_NOTE_THINKING;
    bool ok = nib_chat_dict(r->arena, out) && nib_chat_set(r->arena, out, "messages", &messages) &&
              nib_chat_set(r->arena, out, "tools", &tools) && nib_chat_set(r->arena, out, "documents", &q->documents) &&
              nib_chat_set(r->arena, out, "add_generation_prompt", &prompt) && write_options(r->arena, q, caps, out);
    return ok ? NIB_OK : nib_chat_field_nomem(r);
}
