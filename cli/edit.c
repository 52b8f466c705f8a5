/* cli/edit.c - one message from the terminal, by libedit where that is built in (keys.c), else line by line. Called by
 * chat_tui.c. */
#include "edit.h"

#include "base/mem.h"
#include "base/status.h"
#include "keys.h"
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

struct nib_cli_edit {
    nib_cli_edit_config config;
    nib_cli_history *history;
    nib_cli_keys *keys; /* NULL: line by line */
    nib_buf ahead;      /* bytes that were read after the line, line by line */
};

nib_status nib_cli_edit_new(nib_cli_edit **out, const nib_cli_edit_config *config, nib_cli_history *history,
                            nib_error *err) {
    nib_cli_edit *e = *out = nib_calloc(1, sizeof *e);
    if (!e) return nib_fail_nomem(err, sizeof *e, "the line editor");
    e->config = *config;
    e->history = history;
#ifdef NIB_EDIT
    e->keys = nib_cli_keys_new(config, history);
#endif
    return NIB_OK;
}

void nib_cli_edit_free(nib_cli_edit *e) {
    if (!e) return;
#ifdef NIB_EDIT
    nib_cli_keys_free(e->keys);
#endif
    nib_buf_free(&e->ahead);
    nib_free(e);
}

nib_status nib_cli_edit_remember(nib_cli_edit *e, nib_str entry, nib_error *err) {
    size_t n = e->history->entries.n;
    nib_status status = nib_cli_history_add(e->history, entry, err);
#ifdef NIB_EDIT
    if (e->keys && e->history->entries.n > n) nib_cli_keys_remember(e->keys, nib_cli_history_at(e->history, n));
#endif
    (void)n;
    return status;
}

/* ---- messages of many lines */

static const char quotes[] = "\"\"\"";
enum { N_QUOTES = sizeof quotes - 1 };

static size_t trimmed(const nib_buf *text) {
    size_t n = text->len;
    while (n && (text->ptr[n - 1] == ' ' || text->ptr[n - 1] == '\n' || text->ptr[n - 1] == '\t')) n--;
    return n;
}

static bool quoted_at(const nib_buf *text, size_t at) {
    return at + N_QUOTES <= text->len && !memcmp(text->ptr + at, quotes, N_QUOTES);
}

bool nib_cli_edit_continues(nib_buf *text) {
    if (quoted_at(text, 0)) {
        for (size_t i = N_QUOTES; i < text->len; i++)
            if (quoted_at(text, i)) return false;
        return true;
    }
    bool goes_on = text->len && text->ptr[text->len - 1] == '\\';
    text->len -= goes_on;
    return goes_on;
}

void nib_cli_edit_unquote(nib_buf *text) {
    size_t end = trimmed(text), start = N_QUOTES;
    if (end < 2 * N_QUOTES || !quoted_at(text, 0) || !quoted_at(text, end - N_QUOTES)) return;
    end -= N_QUOTES;
    if (text->ptr[start] == '\n') start++;
    if (end > start && text->ptr[end - 1] == '\n') end--;
    text->len = end > start ? end - start : 0;
    memmove(text->ptr, text->ptr + start, text->len);
}

/* ---- line by line */

static void say(const char *text) {
    ssize_t ignored = write(STDOUT_FILENO, text, strlen(text));
    (void)ignored;
}

/* Appends the next line without its newline. */
static nib_cli_edit_result read_line(nib_cli_edit *e, nib_buf *text) {
    char bytes[4096];
    for (;;) {
        const char *newline = e->ahead.len ? memchr(e->ahead.ptr, '\n', e->ahead.len) : NULL;
        if (newline) {
            size_t n = (size_t)(newline - e->ahead.ptr);
            nib_buf_append(text, e->ahead.ptr, n);
            e->ahead.len -= n + 1;
            memmove(e->ahead.ptr, newline + 1, e->ahead.len);
            return NIB_CLI_EDIT_TEXT;
        }
        nib_cli_wait what = nib_cli_signals_wait(STDIN_FILENO, -1);
        if (what == NIB_CLI_WAIT_SIGNAL) return NIB_CLI_EDIT_SIGNAL;
        if (what != NIB_CLI_WAIT_INPUT) continue;
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n > 0 && nib_buf_append(&e->ahead, bytes, (size_t)n)) continue;
        nib_buf_append(text, e->ahead.ptr, e->ahead.len); /* Ctrl-D, perhaps in the middle of a line */
        e->ahead.len = 0;
        return NIB_CLI_EDIT_END;
    }
}

static nib_cli_edit_result read_message(nib_cli_edit *e, nib_buf *text) {
    text->len = 0;
    say(e->config.prompt);
    for (;;) {
        nib_cli_edit_result result = read_line(e, text);
        if (result == NIB_CLI_EDIT_SIGNAL && nib_cli_interrupted() == SIGINT) {
            nib_cli_signals_forget();
            say("\n");
            return NIB_CLI_EDIT_CLEARED;
        }
        if (result == NIB_CLI_EDIT_END && text->len) result = NIB_CLI_EDIT_TEXT, say("\n");
        if (result != NIB_CLI_EDIT_TEXT || !nib_cli_edit_continues(text)) return result;
        nib_buf_char(text, '\n');
        say("  ");
    }
}

nib_cli_edit_result nib_cli_edit_read(nib_cli_edit *e, const char *initial, nib_buf *text) {
    nib_cli_edit_result result = NIB_CLI_EDIT_END;
#ifdef NIB_EDIT
    if (e->keys) result = nib_cli_keys_read(e->keys, initial, text);
#endif
    if (!e->keys) result = read_message(e, text);
    (void)initial;
    if (result == NIB_CLI_EDIT_TEXT) nib_cli_edit_unquote(text);
    return result;
}
