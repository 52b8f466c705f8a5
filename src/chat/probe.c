/* chat/probe.c - finds out what a template can do by rendering small conversations: which content it takes for whom, how it
 * wants arguments and thoughts. What it shows is found again by a word that no template contains. Looking at the program
 * instead would have to know every way to write it. */
#include "chat/chat.h"

#include "base/status.h"

#include <string.h>

#define WORD "qzNibProbe"
#define TEXT "\"" WORD "\""
#define PARTS "[{\"type\":\"text\",\"text\":\"qzNibFirst\"},{\"type\":\"text\",\"text\":" TEXT "}]"
#define SAYS(role, content) "{\"role\":\"" role "\",\"content\":" content "}"
#define USER SAYS("user", "\"Hi\"")
#define TOOLS                                                                                                          \
    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"qzNibTool\",\"description\":\"d\",\"parameters\":"      \
    "{\"type\":\"object\",\"properties\":{\"qzNibKey\":{\"type\":\"string\",\"description\":\"d\"}},"                  \
    "\"required\":[\"qzNibKey\"]}}}]"
#define CALLS(content, more)                                                                                           \
    "{\"role\":\"assistant\",\"content\":" content more ",\"tool_calls\":[{\"id\":\"callA1234\",\"type\":\"function\","   \
    "\"function\":{\"name\":\"qzNibTool\",\"arguments\":\"{\\\"qzNibKey\\\": \\\"qzNibValue\\\"}\"}}]}"
#define THOUGHT ",\"reasoning_content\":\"qzNibThought\""
#define RESULT(content)                                                                                                \
    "{\"role\":\"tool\",\"name\":\"qzNibTool\",\"tool_call_id\":\"callA1234\",\"content\":" content "}"
#define CHAT(messages) "{\"messages\":[" messages "]}"
#define CLOSED(messages, more) "{\"messages\":[" messages "],\"add_generation_prompt\":false" more "}"

typedef struct probe {
    const nib_chat *chat;
    nib_chat_template *t;
    nib_error *err;
    nib_status status;
} probe;

static bool contains(const nib_rendered *r, const char *word) {
    return r->text && strstr(r->text, word); /* what follows a NUL is none of ours */
}

static void try(probe *p, const char *json, nib_rendered *out) {
    *out = (nib_rendered){0};
    if (p->status == NIB_OK) p->status = nib_chat_try(p->chat, p->t, json, out, p->err);
}

/* The conversation is shown with the word and, if given, without the other. */
static bool shows(probe *p, const char *json, const char *word, const char *other) {
    nib_rendered r;
    try(p, json, &r);
    bool ok = contains(&r, word) && !(other && contains(&r, other));
    nib_rendered_free(&r);
    return ok;
}

/* Two renders that differ in more than a refusal. */
static bool differ(probe *p, const char *a, const char *b) {
    nib_rendered x, y;
    try(p, a, &x);
    try(p, b, &y);
    bool ok = x.len && y.len && (x.len != y.len || memcmp(x.text, y.text, x.len) != 0);
    nib_rendered_free(&x);
    nib_rendered_free(&y);
    return ok;
}

/* What holds for one role holds for a relative. */
static void copy_role(nib_chat_caps *caps, nib_chat_role from, nib_chat_role to) {
    if (caps->text_roles & NIB_CHAT_BIT(from)) caps->text_roles |= (uint16_t)NIB_CHAT_BIT(to);
    if (caps->part_roles & NIB_CHAT_BIT(from)) caps->part_roles |= (uint16_t)NIB_CHAT_BIT(to);
}

/* Whether the content of a role may be a string, and whether a list of parts. A list that was printed as such shows its
 * type. False: it is not shown at all. */
static bool find_content(probe *p, nib_chat_role role, const char *text, const char *parts) {
    nib_chat_caps *caps = &p->t->caps;
    uint16_t bit = (uint16_t)NIB_CHAT_BIT(role), others = (uint16_t)~bit;
    caps->text_roles |= bit;
    if (!shows(p, text, WORD, NULL)) caps->text_roles &= others;
    caps->part_roles |= bit;
    if (!shows(p, parts, WORD, "'type'") || !shows(p, parts, "qzNibFirst", "\"type\"")) caps->part_roles &= others;
    return (caps->text_roles | caps->part_roles) & bit;
}

/* Content of users; and templates that are only for requests with tools may go wrong without a list of them. */
static void find_needs(probe *p) {
    static const char text[] = CHAT(SAYS("user", TEXT)), parts[] = CHAT(SAYS("user", PARTS));
    nib_chat_caps *caps = &p->t->caps;
    if (find_content(p, NIB_CHAT_USER, text, parts)) return;
    caps->needs_tools = true;
    if (find_content(p, NIB_CHAT_USER, text, parts)) return;
    caps->needs_tools = false;
    caps->text_roles |= NIB_CHAT_BIT(NIB_CHAT_USER);
}

/* None of both: they are merged into messages of users. */
static void find_system(probe *p) {
    find_content(p, NIB_CHAT_SYSTEM, CHAT(SAYS("system", TEXT) "," USER), CHAT(SAYS("system", PARTS) "," USER));
}

/* What is not shown gets a string, whatever becomes of it. */
static void find_contents(probe *p) {
    static const char answer[] = CLOSED(USER "," SAYS("assistant", TEXT), "");
    static const char answer_parts[] = CLOSED(USER "," SAYS("assistant", PARTS), "");
    static const char result[] = CHAT(USER "," CALLS("\"\"", "") "," RESULT(TEXT));
    static const char result_parts[] = CHAT(USER "," CALLS("\"\"", "") "," RESULT(PARTS));
    nib_chat_caps *caps = &p->t->caps;
    bool shows_answers = find_content(p, NIB_CHAT_ASSISTANT, answer, answer_parts);
    if (!shows_answers) caps->text_roles |= NIB_CHAT_BIT(NIB_CHAT_ASSISTANT);
    caps->hides_results = !find_content(p, NIB_CHAT_TOOL, result, result_parts);
    if (caps->hides_results) caps->text_roles |= NIB_CHAT_BIT(NIB_CHAT_TOOL);
    copy_role(caps, NIB_CHAT_SYSTEM, NIB_CHAT_DEVELOPER);
    copy_role(caps, NIB_CHAT_TOOL, NIB_CHAT_FUNCTION);
    copy_role(caps, NIB_CHAT_TOOL, NIB_CHAT_IPYTHON);
}

/* Whether content that is null goes wrong, or is printed as Python prints it, where "" would do. */
static void find_null(probe *p, const char *json) {
    nib_rendered null, empty;
    nib_chat_caps *caps = &p->t->caps;
    try(p, json, &null);
    caps->empty_for_null = true;
    try(p, json, &empty);
    caps->empty_for_null = empty.len && (!null.len || (contains(&null, "None") && !contains(&empty, "None")));
    nib_rendered_free(&null);
    nib_rendered_free(&empty);
}

static void find_tools(probe *p) {
    static const char with_user[] = CLOSED(USER, TOOLS), with_system[] = CLOSED(SAYS("system", "\"S\"") "," USER, TOOLS);
    static const char call[] = CLOSED(USER "," CALLS("\"\"", ""), TOOLS);
    static const char null_call[] = CLOSED(USER "," CALLS("null", ""), TOOLS);
    nib_chat_caps *caps = &p->t->caps;
    for (caps->tools = 0; caps->tools < NIB_CHAT_TOOLS_UNSEEN; caps->tools++)
        if (shows(p, with_user, "qzNibTool", NULL) || shows(p, with_system, "qzNibTool", NULL)) break;
    bool takes_object = shows(p, call, "qzNibValue", "'qzNibKey'"); /* that is how Python prints a dict */
    caps->arguments_as_text = true;
    caps->arguments_as_text = !takes_object && shows(p, call, "qzNibValue", "\\\"qzNibKey");
    find_null(p, null_call);
}

/* A list that is printed as such shows its type. */
static bool shows_thought(probe *p, const char *json, bool as_part) {
    if (!as_part) return shows(p, json, "qzNibThought", NULL);
    return shows(p, json, "qzNibThought", "'thinking'") && shows(p, json, "qzNibThought", "\"thinking\"");
}

static void find_reasoning(probe *p) {
    static const char *const fields[] = {"reasoning_content", "reasoning", "thinking", ""};
    static const char talk[] = CLOSED(USER "," SAYS("assistant", "\"Yes\"" THOUGHT), "");
    static const char call[] = CLOSED(USER "," CALLS("null", THOUGHT) "," RESULT("\"ok\""), TOOLS);
    static const char both[] = CLOSED(USER "," CALLS("\"Yes\"", THOUGHT) "," RESULT("\"ok\""), TOOLS);
    nib_chat_caps *caps = &p->t->caps;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        caps->reasoning = fields[i];
        bool calls = shows_thought(p, call, i == 3), talks = shows_thought(p, talk, i == 3);
        caps->thinks_or_talks = calls && !shows_thought(p, both, false);
        if (calls || talks) return;
    }
    caps->reasoning = NULL;
}

static void find_toggle(probe *p) {
    static const char *const names[] = {"enable_thinking", "thinking"};
    static const char on[] = "{\"messages\":[" USER "],\"enable_thinking\":true}";
    static const char off[] = "{\"messages\":[" USER "],\"enable_thinking\":false}";
    nib_chat_caps *caps = &p->t->caps;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        caps->toggle = names[i];
        if (differ(p, on, off)) return;
    }
    caps->toggle = NULL;
}

#define THINKS(more) "{\"messages\":[" USER "]" more "}"

/* Other ways to have less of it, where there is none to turn it off. An effort that is shown as it stands may be any word, and
 * models know "low". */
static void find_least(probe *p) {
    static const char plain[] = THINKS(""), budget[] = THINKS(",\"chat_template_kwargs\":{\"thinking_budget\":0}");
    static const char any[] = THINKS(",\"reasoning_effort\":" TEXT), high[] = THINKS(",\"reasoning_effort\":\"high\"");
    static const char none[] = THINKS(",\"reasoning_effort\":\"none\""), low[] = THINKS(",\"reasoning_effort\":\"low\"");
    nib_chat_caps *caps = &p->t->caps;
    if (caps->toggle) return;
    caps->has_budget = differ(p, plain, budget);
    if (caps->has_budget) return;
    if (!shows(p, any, WORD, NULL) && differ(p, high, none)) caps->least = "none";
    else if (differ(p, high, low)) caps->least = "low";
}

nib_status nib_chat_probe(const nib_chat *chat, nib_chat_template *t, nib_error *err) {
    probe p = {chat, t, err, NIB_OK};
    t->caps = (nib_chat_caps){.knows_developer = strstr(t->text, "developer") != NULL};
    find_needs(&p);
    find_system(&p);
    find_tools(&p);
    find_contents(&p);
    find_reasoning(&p);
    find_toggle(&p);
    find_least(&p);
    return p.status;
}
