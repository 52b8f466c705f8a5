/* cli/term.h - the two streams: text on stdout, everything else on stderr.
 *
 * stdout goes through nib_cli_out, which knows when its reader went away and when the disk is full. Colours and the
 * progress bar appear on terminals only. */
#ifndef NIB_CLI_TERM_H
#define NIB_CLI_TERM_H

#include "base/buf.h"
#include "nib.h"

typedef struct nib_cli_term {
    bool out_is_terminal, err_is_terminal;
    bool out_color, err_color;
} nib_cli_term;

/* color: NIB_CLI_AUTO, NIB_CLI_ON, NIB_CLI_OFF. */
nib_cli_term nib_cli_term_new(int color);

/* One line on stderr each: "nib: error: …", "nib: warning: …", "nib: note: …", and the bare line. */
void nib_cli_error(const nib_cli_term *term, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nib_cli_warning(const nib_cli_term *term, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nib_cli_note(const nib_cli_term *term, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nib_cli_line(const nib_cli_term *term, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints the error and returns the exit status that belongs to it. */
int nib_cli_fail(const nib_cli_term *term, const nib_error *err);

/* A bar on stderr when that is a terminal. Zero-initialise; last_ms is of the monotonic clock. */
typedef struct nib_cli_bar {
    const nib_cli_term *term;
    const char *label;
    double last_ms;
    bool shown;
} nib_cli_bar;
void nib_cli_bar_draw(nib_cli_bar *bar, uint64_t done, uint64_t total);
void nib_cli_bar_clear(nib_cli_bar *bar);

/* stdout, buffered. After a failed write everything else is dropped; nib_cli_out_close tells what happened. */
typedef struct nib_cli_out {
    nib_buf buf;
    bool is_live; /* a terminal, pipe or socket: somebody may be reading along */
    int error;    /* errno of the write that failed; 0: none */
} nib_cli_out;
void nib_cli_out_open(nib_cli_out *out);
void nib_cli_out_write(nib_cli_out *out, nib_str text);
void nib_cli_out_puts(nib_cli_out *out, const char *text);
void nib_cli_out_printf(nib_cli_out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void nib_cli_out_flush(nib_cli_out *out);
/* Flushes and frees. Returns `status`, or NIB_CLI_FAILED after a message when output was lost. A reader that went away
 * is no failure: it had enough. */
int nib_cli_out_close(nib_cli_out *out, const nib_cli_term *term, int status);

double nib_cli_now_ms(void); /* monotonic */

#endif
