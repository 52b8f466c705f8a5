/* cli/view.c - events of an answer in -> text, thoughts and calls on the terminal out. Called by chat_tui.c. */
#include "view.h"

#include "chat.h"
#include "glyph.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { REDRAW_MS = 100 };

static int columns(void) {
    struct winsize size = {0};
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

void nib_cli_view_begin(nib_cli_view *view, const nib_cli_term *term, const nib_cli_options *opt, const size_t *n_thoughts) {
    *view = (nib_cli_view){.term = term, .n_thoughts = n_thoughts};
    view->shows_thoughts = opt->reasoning == NIB_CLI_REASONING_SHOW;
    view->mode = opt->plain ? NIB_CLI_MARKDOWN_RAW : term->out_color ? NIB_CLI_MARKDOWN_FULL : NIB_CLI_MARKDOWN_BLOCKS;
    nib_cli_out_open(&view->out);
}

static void dim(nib_cli_view *view, bool on) {
    if (view->term->out_color) nib_cli_out_puts(&view->out, on ? "\033[2m" : "\033[0m");
}

/* ---- parts */

static void put_markdown(nib_cli_view *view, nib_str text) {
    nib_cli_markdown_push(&view->markdown, text, &view->out.buf);
}

/* Newlines wait until text follows. */
static void put_text(nib_cli_view *view, nib_str text) {
    while (text.len) {
        const char *newline = memchr(text.ptr, '\n', text.len);
        size_t n = newline ? (size_t)(newline - text.ptr) : text.len;
        for (; n && view->n_newlines; view->n_newlines--) put_markdown(view, (nib_str){"\n", 1});
        if (n) put_markdown(view, (nib_str){text.ptr, n});
        view->has_text |= n > 0;
        view->n_newlines += newline && view->has_text;
        text.ptr += n + (newline != NULL);
        text.len -= n + (newline != NULL);
    }
}

static void draw_thinking(nib_cli_view *view, const char *what) {
    double now = nib_cli_now_ms();
    nib_cli_out_puts(&view->out, "\r\033[K");
    dim(view, true);
    nib_cli_out_printf(&view->out, "%s %.1f s, %zu token%s", what, (now - view->since_ms) / 1e3, *view->n_thoughts,
                       *view->n_thoughts == 1 ? "" : "s");
    dim(view, false);
    view->drawn_ms = now;
}

static void end_part(nib_cli_view *view) {
    if (view->part == NIB_CLI_VIEW_NOTHING) return;
    if (view->part == NIB_CLI_VIEW_THOUGHTS && !view->shows_thoughts) {
        draw_thinking(view, "thought for");
        nib_cli_out_puts(&view->out, "\n");
    } else {
        nib_cli_markdown_finish(&view->markdown, &view->out.buf);
        if (view->part == NIB_CLI_VIEW_THOUGHTS) dim(view, false);
        if (view->has_text) nib_cli_out_puts(&view->out, view->part == NIB_CLI_VIEW_THOUGHTS ? "\n\n" : "\n");
    }
    nib_cli_markdown_free(&view->markdown);
    view->part = NIB_CLI_VIEW_NOTHING;
}

static void begin_part(nib_cli_view *view, int part) {
    if ((int)view->part == part) return;
    end_part(view);
    nib_cli_markdown_init(&view->markdown, part == NIB_CLI_VIEW_CONTENT ? view->mode : NIB_CLI_MARKDOWN_RAW,
                          columns());
    view->part = part;
    view->has_text = false;
    view->n_newlines = 0;
    if (part != NIB_CLI_VIEW_THOUGHTS) return;
    view->since_ms = nib_cli_now_ms();
    if (view->shows_thoughts) dim(view, true);
}

/* ---- events */

static void show_call(nib_cli_view *view, const nib_chat_event *event) {
    nib_buf line = {0};
    end_part(view);
    nib_buf_append(&line, event->name.ptr, event->name.len);
    nib_buf_char(&line, ' ');
    nib_buf_append(&line, event->text.ptr, event->text.len);
    dim(view, true);
    nib_cli_out_puts(&view->out, "→ ");
    nib_cli_glyph_show(&view->out.buf, nib_cli_bytes(&line));
    dim(view, false);
    nib_cli_out_puts(&view->out, "\n");
    nib_buf_free(&line);
}

bool nib_cli_view_event(void *user, const nib_chat_event *event) {
    nib_cli_view *view = user;
    switch (event->kind) {
    case NIB_CHAT_CONTENT:
        begin_part(view, NIB_CLI_VIEW_CONTENT);
        put_text(view, event->text);
        break;
    case NIB_CHAT_REASONING:
        begin_part(view, NIB_CLI_VIEW_THOUGHTS);
        if (view->shows_thoughts)
            put_text(view, event->text);
        else if (nib_cli_now_ms() - view->drawn_ms >= REDRAW_MS)
            draw_thinking(view, "thinking …");
        break;
    case NIB_CHAT_TOOL_CALL:
        show_call(view, event);
        break;
    case NIB_CHAT_WARNING:
        end_part(view);
        nib_cli_out_flush(&view->out);
        nib_cli_warning(view->term, "%.*s", (int)event->text.len, event->text.ptr);
        break;
    default: /* calls come as a whole */
        break;
    }
    nib_cli_out_flush(&view->out);
    return !view->out.error;
}

void nib_cli_view_end(nib_cli_view *view) {
    end_part(view);
    nib_cli_out_flush(&view->out);
    nib_buf_free(&view->out.buf);
}
