/* cli/keyboard.h - bytes from a terminal -> keys.
 *
 * A key is a character, or for those that have none (arrows, Home …) NIB_CLI_KEY_LEAD and a letter after it. Sequences
 * that nobody knows are dropped whole: no half of them becomes text. */
#ifndef NIB_CLI_KEYBOARD_H
#define NIB_CLI_KEYBOARD_H

#include "base/buf.h"
#include "signals.h"

enum { NIB_CLI_KEY_INTERRUPT = 3, NIB_CLI_KEY_ESCAPE = 27, NIB_CLI_KEY_LEAD = 28 };

/* Set the first three, zero the rest. */
typedef struct nib_cli_keyboard {
    int fd;
    void (*idle)(void *user, nib_cli_wait what); /* there is nothing to read now; or the window changed, … */
    void *user;
    char bytes[4096];
    size_t n_bytes, at; /* read, and how many of them are used up */
    uint32_t letter;    /* that comes next; 0: none */
} nib_cli_keyboard;

/* The next key. False when the terminal is gone, or a signal came; SIGINT of another program is the key. */
bool nib_cli_keyboard_key(nib_cli_keyboard *k, uint32_t *key);
/* After the key 'p', which begins a paste: appends everything up to its end, whatever characters there are in it. */
bool nib_cli_keyboard_paste(nib_cli_keyboard *k, nib_buf *text);

#endif
