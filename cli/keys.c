/* cli/keys.c - a line editor: libedit knows keys, words, history and search; this file draws, and adds keys.
 *
 * libedit draws into a sink: it loses combining characters and would show only the end of a text that is longer than the
 * screen. What its line holds is drawn by screen.c instead, before every wait for input. It reads through keyboard.c.
 * Called by edit.c. */
#include "keys.h"

#include "base/mem.h"
#include "glyph.h"
#include "keyboard.h"
#include "screen.h"
#include "signals.h"

#include <histedit.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

_Static_assert(sizeof(wchar_t) == sizeof(uint32_t), "wide characters are code points");

struct nib_cli_keys {
    nib_cli_edit_config config;
    EditLine *el;
    const nib_cli_history *entries;
    size_t back;        /* how far the text is back in the history; 0: the message that is typed */
    nib_buf typed;      /* that message, while it is not shown */
    HistoryW *search;   /* the history again, for libedit to search */
    FILE *sink;
    locale_t utf8;      /* of the thread while it edits: what is a letter, what can be printed */
    struct termios modes; /* of the terminal outside of this editor */
    nib_cli_screen screen;
    nib_cli_keyboard keyboard;
    wchar_t *initial;
    nib_cli_edit_result result;
    nib_buf *text;      /* of the caller, once the message is complete */
};

static nib_cli_keys *keys_of(EditLine *el) {
    void *k = NULL;
    el_wget(el, EL_CLIENTDATA, &k);
    return k;
}

/* The line. Some commands of libedit may leave the cursor before it. */
static const LineInfoW *line_of(EditLine *el) {
    const LineInfoW *line = el_wline(el);
    if (line->cursor < line->buffer) el_cursor(el, (int)(line->buffer - line->cursor));
    return el_wline(el);
}

/* ---- text */

static wchar_t *wide(nib_str text) {
    wchar_t *out = nib_alloc(text.len + 1, sizeof *out);
    size_t n = 0;
    for (size_t len; out && text.len; text.ptr += len, text.len -= len) {
        uint32_t c = nib_cli_glyph_decode(text, &len);
        out[n++] = c ? (wchar_t)c : (wchar_t)NIB_CLI_REPLACEMENT;
    }
    if (out) out[n] = 0;
    return out;
}

static void narrow(const wchar_t *from, const wchar_t *to, nib_buf *out) {
    for (; from < to; from++) nib_cli_glyph_put(out, (uint32_t)*from);
}

static bool insert(EditLine *el, nib_str text) {
    wchar_t *w = wide(text);
    bool ok = w && (!*w || el_winsertstr(el, w) == 0);
    nib_free(w);
    return ok;
}

/* ---- drawing */

static void send_str(const char *text) {
    nib_cli_out out = {0};
    nib_cli_out_puts(&out, text);
    nib_cli_out_flush(&out);
    nib_buf_free(&out.buf);
}

static nib_cli_text text_of(const nib_cli_keys *k) {
    const LineInfoW *line = line_of(k->el);
    return (nib_cli_text){k->config.prompt, k->config.color ? "\033[1;32m" : "", (const uint32_t *)line->buffer,
                          (size_t)(line->lastchar - line->buffer), (size_t)(line->cursor - line->buffer)};
}

static void draw(nib_cli_keys *k) {
    struct winsize size = {0};
    nib_cli_text text = text_of(k);
    nib_cli_out out = {0};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col) size = (struct winsize){24, 80, 0, 0};
    nib_cli_screen_draw(&k->screen, &text, size.ws_col, size.ws_row, &out.buf);
    nib_cli_out_flush(&out);
    nib_buf_free(&out.buf);
}

/* The text is done with: it stays on the screen as a whole. */
static void leave_text(nib_cli_keys *k) {
    nib_cli_text text = text_of(k);
    nib_cli_out out = {0};
    nib_cli_screen_finish(&k->screen, &text, &out.buf);
    nib_cli_out_flush(&out);
    nib_buf_free(&out.buf);
}

/* ---- the terminal */

static void enter_terminal(nib_cli_keys *k) {
    el_wset(k->el, EL_PREP_TERM, 0); /* whatever it believes: the modes may have been changed by others */
    tcsetattr(STDIN_FILENO, TCSADRAIN, &k->modes); /* libedit takes what it finds for the user's wish */
    el_wset(k->el, EL_PREP_TERM, 1);
    send_str("\033[?2004h");
}

static void leave_terminal(nib_cli_keys *k) {
    send_str("\033[?2004l");
    el_wset(k->el, EL_PREP_TERM, 0);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &k->modes);
}

/* What is typed while an answer is written appears when its turn comes, not in the middle of the answer. */
static void hide_typing(const nib_cli_keys *k) {
    struct termios quiet = k->modes;
    quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
}

/* ---- reading */

/* Nothing to read: time to draw. */
static void on_idle(void *user, nib_cli_wait what) {
    nib_cli_keys *k = user;
    if (what == NIB_CLI_WAIT_CONTINUED) { /* a shell has set modes of its own and written since */
        enter_terminal(k);
        nib_cli_screen_forget(&k->screen);
    }
    draw(k);
}

/* EL_GETCFN: 1 and a character, or -1. libedit draws what changed since it drew last, and writes behind its screen when a
 * long text is not quite what it remembers: it begins anew each time. */
static int read_key(EditLine *el, wchar_t *c) {
    uint32_t key;
    line_of(el);
    el_wset(el, EL_REFRESH);
    bool ok = nib_cli_keyboard_key(&keys_of(el)->keyboard, &key);
    *c = ok ? (wchar_t)key : 0;
    return ok ? 1 : -1;
}

/* ---- keys of ours */

typedef unsigned char key_fn(EditLine *el, int key);

static unsigned char on_enter(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    (void)key;
    k->text->len = 0;
    narrow(line->buffer, line->lastchar, k->text);
    size_t before = k->text->len;
    if (nib_cli_edit_continues(k->text)) {
        el_cursor(el, (int)(line->lastchar - line->cursor));
        if (k->text->len < before) el_wdeletestr(el, 1);
        return el_winsertstr(el, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
    }
    k->result = NIB_CLI_EDIT_TEXT;
    leave_text(k);
    return CC_NEWLINE;
}

static unsigned char on_newline(EditLine *el, int key) {
    (void)key;
    return el_winsertstr(el, L"\n") == 0 ? CC_REFRESH : CC_ERROR;
}

static unsigned char on_interrupt(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    (void)key;
    k->result = NIB_CLI_EDIT_CLEARED;
    k->text->len = 0;
    narrow(line->buffer, line->lastchar, k->text);
    leave_text(k);
    return CC_NEWLINE;
}

/* Characters from the cursor to the end of its cluster: as many as a person takes for one. */
static int cluster_after(const LineInfoW *line) {
    int32_t state = 0;
    const wchar_t *p = line->cursor;
    if (p == line->lastchar) return 0;
    for (p++; p < line->lastchar && nib_cli_glyph_joins((uint32_t)p[-1], (uint32_t)*p, &state); p++) {
    }
    return (int)(p - line->cursor);
}

static int cluster_before(const LineInfoW *line) {
    enum { FAR = 64 };
    LineInfoW at = *line;
    int n = 0;
    if (line->cursor == line->buffer) return 0;
    if (line->cursor[-1] == '\n') return 1;
    while (at.cursor > line->buffer && at.cursor[-1] != '\n' && line->cursor - at.cursor < FAR) at.cursor--;
    for (; at.cursor < line->cursor; at.cursor += n) n = cluster_after(&at);
    return n;
}

static unsigned char on_left(EditLine *el, int key) {
    (void)key;
    el_cursor(el, -cluster_before(line_of(el)));
    return CC_CURSOR;
}

static unsigned char on_right(EditLine *el, int key) {
    (void)key;
    el_cursor(el, cluster_after(line_of(el)));
    return CC_CURSOR;
}

static unsigned char on_backspace(EditLine *el, int key) {
    (void)key;
    el_wdeletestr(el, cluster_before(line_of(el)));
    return CC_REFRESH;
}

static unsigned char on_delete(EditLine *el, int key) {
    int n = cluster_after(line_of(el));
    (void)key;
    el_cursor(el, n);
    el_wdeletestr(el, n);
    return CC_REFRESH;
}

static unsigned char on_eof(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    if (line->lastchar > line->buffer) return on_delete(el, key);
    k->result = NIB_CLI_EDIT_END;
    leave_text(k);
    return CC_EOF;
}

/* Where the line of p begins. */
static const wchar_t *line_start(const LineInfoW *line, const wchar_t *p) {
    while (p > line->buffer && p[-1] != '\n') p--;
    return p;
}

static const wchar_t *line_end(const LineInfoW *line, const wchar_t *p) {
    while (p < line->lastchar && *p != '\n') p++;
    return p;
}

/* Shows the entry of the history that is so far back. */
static unsigned char go_back_to(nib_cli_keys *k, size_t back) {
    const LineInfoW *line = line_of(k->el);
    size_t n = k->entries->entries.n;
    if (back > n) return CC_ERROR;
    if (k->back == 0) {
        k->typed.len = 0;
        narrow(line->buffer, line->lastchar, &k->typed);
    }
    nib_str text = nib_cli_bytes(&k->typed);
    if (back) text.ptr = nib_cli_history_at(k->entries, n - back), text.len = strlen(text.ptr);
    el_cursor(k->el, (int)(line->lastchar - line->cursor));
    el_wdeletestr(k->el, (int)(line->lastchar - line->buffer));
    k->back = back;
    return insert(k->el, text) ? CC_REFRESH : CC_ERROR;
}

/* Up and down go through the lines of a message, and beyond them through the history. */
static unsigned char on_up(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    const wchar_t *start = line_start(line, line->cursor);
    (void)key;
    if (start == line->buffer) return go_back_to(k, k->back + 1);
    const wchar_t *above = line_start(line, start - 1), *to = above + (line->cursor - start);
    el_cursor(el, (int)((to < start - 1 ? to : start - 1) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_down(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    const wchar_t *start = line_start(line, line->cursor), *end = line_end(line, line->cursor);
    (void)key;
    if (end == line->lastchar) return k->back ? go_back_to(k, k->back - 1) : CC_ERROR;
    const wchar_t *to = end + 1 + (line->cursor - start), *last = line_end(line, end + 1);
    el_cursor(el, (int)((to < last ? to : last) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_home(EditLine *el, int key) {
    const LineInfoW *line = line_of(el);
    (void)key;
    el_cursor(el, (int)(line_start(line, line->cursor) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_end(EditLine *el, int key) {
    const LineInfoW *line = line_of(el);
    (void)key;
    el_cursor(el, (int)(line_end(line, line->cursor) - line->cursor));
    return CC_CURSOR;
}

static unsigned char on_clear_screen(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    (void)key;
    send_str("\033[H\033[2J");
    nib_cli_screen_forget(&k->screen);
    return CC_REFRESH;
}

static unsigned char on_suspend(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    (void)key;
    leave_text(k);
    leave_terminal(k);
    kill(0, SIGTSTP); /* as the terminal does: everything in the pipeline */
    enter_terminal(k);
    return CC_REFRESH;
}

static unsigned char on_paste(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    nib_buf text = {0};
    (void)key;
    bool ok = nib_cli_keyboard_paste(&k->keyboard, &text) && insert(el, nib_cli_bytes(&text));
    nib_buf_free(&text);
    return ok ? CC_REFRESH : CC_ERROR;
}

/* The message that nib_cli_keys_read was given to begin with. */
static unsigned char on_initial(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    (void)key;
    return !k->initial || !*k->initial || el_winsertstr(el, k->initial) == 0 ? CC_REFRESH : CC_ERROR;
}

/* ---- completion */

/* Bytes that all words have in common. */
static size_t common(const nib_cli_words *words) {
    size_t n = strlen(words->text.ptr);
    for (const char *w = words->text.ptr; w < words->text.ptr + words->text.len; w += strlen(w) + 1)
        for (size_t i = 0; i < n; i++)
            if (w[i] != words->text.ptr[i]) n = i;
    while (n && (words->text.ptr[n] & 0xC0) == 0x80) n--; /* whole characters */
    return n;
}

static void list_words(nib_cli_keys *k, const nib_cli_words *words) {
    enum { MOST = 100 };
    nib_cli_out out = {0};
    size_t i = 0;
    for (const char *w = words->text.ptr; w < words->text.ptr + words->text.len; w += strlen(w) + 1)
        if (i++ < MOST) {
            const char *name = w; /* of a path the last part */
            for (const char *p = w; words->start && p[0] && p[1]; p++)
                if (*p == '/') name = p + 1;
            nib_cli_glyph_show(&out.buf, (nib_str){name, strlen(name)});
            nib_cli_out_puts(&out, "  ");
        }
    if (i > MOST) nib_cli_out_printf(&out, "… %zu more", i - MOST);
    nib_cli_out_puts(&out, "\r\n");
    leave_text(k);
    nib_cli_out_flush(&out);
    nib_buf_free(&out.buf);
}

static unsigned char on_complete(EditLine *el, int key) {
    nib_cli_keys *k = keys_of(el);
    const LineInfoW *line = line_of(el);
    nib_cli_words words = {0};
    nib_buf text = {0};
    unsigned char result = CC_REFRESH;
    (void)key;
    narrow(line->buffer, line->cursor, &text);
    if (k->config.complete && !text.failed) k->config.complete(k->config.user, (nib_str){text.ptr, text.len}, &words);
    if (words.text.failed || !words.n) {
        result = CC_ERROR;
    } else {
        size_t have = text.len - words.start, n = common(&words);
        if (n > have)
            insert(el, (nib_str){words.text.ptr + have, n - have});
        else if (words.n > 1)
            list_words(k, &words);
    }
    nib_buf_free(&text);
    nib_buf_free(&words.text);
    return result;
}

/* ---- set-up */

/* The first string is bound to the function of that name, and the others are more of its keys. */
static const struct {
    const wchar_t *name;
    key_fn *function; /* NULL: libedit's own */
    const wchar_t *keys[5];
} bindings[] = {
    {L"nib-enter", on_enter, {L"\r", L"\n"}},
    {L"nib-newline", on_newline, {L"\034n"}},
    {L"nib-interrupt", on_interrupt, {L"\003"}},
    {L"nib-eof", on_eof, {L"\004"}},
    {L"nib-suspend", on_suspend, {L"\032"}},
    {L"nib-clear-screen", on_clear_screen, {L"\014"}},
    {L"nib-complete", on_complete, {L"\t"}},
    {L"nib-paste", on_paste, {L"\034p"}},
    {L"nib-initial", on_initial, {L"\034i"}},
    {L"nib-left", on_left, {L"\034l", L"\002"}},
    {L"nib-right", on_right, {L"\034r", L"\006"}},
    {L"nib-up", on_up, {L"\034u", L"\020"}},
    {L"nib-down", on_down, {L"\034d", L"\016"}},
    {L"nib-home", on_home, {L"\034h", L"\001"}},
    {L"nib-end", on_end, {L"\034e", L"\005"}},
    {L"nib-backspace", on_backspace, {L"\177", L"\010"}},
    {L"nib-delete", on_delete, {L"\034x"}},
    {L"ed-prev-word", NULL, {L"\034b"}},
    {L"em-next-word", NULL, {L"\034w"}},
    {L"em-inc-search-prev", NULL, {L"\022"}},
    {L"ed-unassigned", NULL, {L"\033x", L"\033X"}}, /* libedit's commands: an empty one crashes it */
};

static void bind_keys(EditLine *el) {
    for (size_t i = 0; i < sizeof bindings / sizeof bindings[0]; i++) {
        if (bindings[i].function)
            el_wset(el, EL_ADDFN, bindings[i].name, L"a key of nib", bindings[i].function);
        for (const wchar_t *const *key = bindings[i].keys; *key; key++)
            el_wset(el, EL_BIND, *key, bindings[i].name, NULL);
    }
}

nib_cli_keys *nib_cli_keys_new(const nib_cli_edit_config *config, const nib_cli_history *history) {
    const char *kind = getenv("TERM");
    nib_cli_keys *k = NULL;
    if (!kind || !*kind || !strcmp(kind, "dumb") || !(k = nib_calloc(1, sizeof *k))) return NULL;
    k->config = *config;
    k->entries = history;
    k->keyboard = (nib_cli_keyboard){.fd = STDIN_FILENO, .idle = on_idle, .user = k};
    k->utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    locale_t old = k->utf8 ? uselocale(k->utf8) : (locale_t)0;
    HistEventW event;
    k->sink = fopen("/dev/null", "we");
    k->search = history_winit();
    bool ok = tcgetattr(STDIN_FILENO, &k->modes) == 0 && k->sink && k->search;
    if (ok) k->el = el_init_fd("nib", stdin, k->sink, k->sink, STDIN_FILENO, STDOUT_FILENO, STDOUT_FILENO);
    if (k->el) {
        el_wset(k->el, EL_CLIENTDATA, k);
        el_wset(k->el, EL_EDITOR, L"emacs"); /* no .editrc: what libedit does in vi's mode may crash or never end */
        el_wset(k->el, EL_EDITMODE, 1);
        el_wset(k->el, EL_SIGNAL, 0);
        el_wset(k->el, EL_SETTY, L"-d", L"-isig", L"-ixon", NULL); /* Ctrl-C, Ctrl-Z, Ctrl-S are keys */
        el_wset(k->el, EL_GETCFN, read_key);
        bind_keys(k->el);
        history_w(k->search, &event, H_SETSIZE, NIB_CLI_HISTORY_ENTRIES);
        el_wset(k->el, EL_HIST, history_w, k->search);
        for (size_t i = 0; i < history->entries.n; i++) nib_cli_keys_remember(k, nib_cli_history_at(history, i));
    }
    if (old) uselocale(old);
    if (k->el) return k;
    nib_cli_keys_free(k);
    return NULL;
}

void nib_cli_keys_remember(nib_cli_keys *k, const char *entry) {
    HistEventW event;
    wchar_t *text = wide((nib_str){entry, strlen(entry)});
    if (text) history_w(k->search, &event, H_ENTER, text);
    nib_free(text);
}

void nib_cli_keys_free(nib_cli_keys *k) {
    if (!k) return;
    if (k->el) {
        el_end(k->el);
        tcsetattr(STDIN_FILENO, TCSADRAIN, &k->modes);
    }
    if (k->search) history_wend(k->search);
    if (k->sink) fclose(k->sink);
    if (k->utf8) freelocale(k->utf8);
    nib_cli_screen_free(&k->screen);
    nib_buf_free(&k->typed);
    nib_free(k);
}

/* ---- a message */

nib_cli_edit_result nib_cli_keys_read(nib_cli_keys *k, const char *initial, nib_buf *text) {
    locale_t old = k->utf8 ? uselocale(k->utf8) : (locale_t)0;
    int n;
    text->len = 0;
    k->text = text;
    k->initial = initial ? wide((nib_str){initial, strlen(initial)}) : NULL;
    k->result = NIB_CLI_EDIT_END;
    k->back = 0;
    nib_cli_screen_forget(&k->screen);
    enter_terminal(k);
    el_wpush(k->el, L"\034i");
    el_wgets(k->el, &n);
    leave_terminal(k);
    hide_typing(k);
    nib_free(k->initial);
    k->initial = NULL;
    if (old) uselocale(old);
    return k->result == NIB_CLI_EDIT_END && nib_cli_interrupted() ? NIB_CLI_EDIT_SIGNAL : k->result;
}
