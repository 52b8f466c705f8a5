/* chat/turn.c - what a template puts behind an answer: mostly a token that ends a generation anyway. Where it is not one, or
 * plain text, generation has to be stopped by it. */
#include "chat/build.h"
#include "chat/chat.h"

#include "base/status.h"
#include "text/tokenizer.h"


#define ANSWER "qzNibAnswer"
#define NEXT "qzNibNext"
#define TURNS "{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":\"" ANSWER "\"}"

/* Whether tokens tell the end: one that ends a generation, or another special token, which is taken. */
static nib_status end_by_token(nib_chat *chat, nib_str tail, bool *found, nib_error *err) {
    nib_token_list ids = {0};
    nib_token first = NIB_TOKEN_NONE;
    NIB_TRY(nib_tokenize(chat->tok, tail.ptr, tail.len, NIB_PARSE_SPECIAL, &ids, err));
    *found = false;
    for (size_t i = 0; i < ids.n && !*found; i++) {
        unsigned attr = chat->tok->vocab.attr[ids.ids[i]];
        *found = attr & NIB_TOKEN_EOG;
        if (first == NIB_TOKEN_NONE && (attr & NIB_TEXT_GUARD_ALL)) first = ids.ids[i];
    }
    nib_token_list_free(&ids);
    if (*found || first == NIB_TOKEN_NONE) return NIB_OK;
    chat->end = first;
    *found = true;
    return NIB_OK;
}

/* The first tag, or else the first line that is not blank with the line end before it. */
static bool end_by_text(nib_chat *chat, nib_str tail) {
    size_t from = 0, to;
    while (from < tail.len && nib_chat_is_blank(tail.ptr[from])) from++;
    for (to = from; to < tail.len && tail.ptr[to] != '\n';) to++;
    while (to > from && nib_chat_is_blank(tail.ptr[to - 1])) to--;
    const char *close = to > from && tail.ptr[from] == '<' ? memchr(tail.ptr + from, '>', to - from) : NULL;
    if (to - from < 2) return false;
    if (close) to = (size_t)(close + 1 - tail.ptr);
    else if (from > 0 && tail.ptr[from - 1] == '\n') from--;
    if (to - from >= sizeof chat->stop) to = from + sizeof chat->stop - 1;
    memcpy(chat->stop, tail.ptr + from, to - from);
    chat->stop[to - from] = 0;
    return true;
}

/* What stands behind the answer, up to the next message or the end. */
static nib_status find_in(nib_chat *chat, const char *json, bool *found, nib_error *err) {
    nib_rendered r;
    NIB_TRY(nib_chat_try(chat, &chat->main, json, &r, err));
    const char *tail = r.text ? strstr(r.text, ANSWER) : NULL;
    nib_status status = NIB_OK;
    *found = false;
    if (tail) {
        tail += strlen(ANSWER);
        const char *next = strstr(tail, NEXT);
        nib_str text = {tail, next ? (size_t)(next - tail) : strlen(tail)};
        status = end_by_token(chat, text, found, err);
        if (status == NIB_OK && !*found) *found = end_by_text(chat, text);
    }
    nib_rendered_free(&r);
    return status;
}

/* Behind the last answer stands what the model itself has to say; only where that is nothing the next message must do. */
nib_status nib_chat_find_end(nib_chat *chat, nib_error *err) {
    static const char last[] = "{\"messages\":[" TURNS "],\"add_generation_prompt\":false}";
    static const char inner[] = "{\"messages\":[" TURNS ",{\"role\":\"user\",\"content\":\"" NEXT "\"}],"
                                "\"add_generation_prompt\":false}";
    bool found;
    NIB_TRY(find_in(chat, last, &found, err));
    return found ? NIB_OK : find_in(chat, inner, &found, err);
}
