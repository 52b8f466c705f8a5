/* cli/keyboard.c - bytes of a terminal in -> keys and pasted text out. Called by keys.c. */
#include "keyboard.h"

#include "glyph.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum {
    NONE = -2,
    GONE = -1,
    SEQUENCE_MS = 50, /* within a key; an escape that nothing follows is a key by itself */
    PASTE_MS = 500,   /* within a paste, after what may be Ctrl-C */
};

/* The next byte, GONE, or NONE when it does not come in ms milliseconds; -1: no limit. */
static int read_byte(nib_cli_keyboard *k, int ms) {
    bool is_idle = false;
    while (k->at == k->n_bytes) {
        nib_cli_wait what = nib_cli_signals_wait(k->fd, ms < 0 && !is_idle ? 0 : ms);
        if (what == NIB_CLI_WAIT_SIGNAL) {
            if (nib_cli_interrupted() != SIGINT) return GONE;
            nib_cli_signals_forget();
            return NIB_CLI_KEY_INTERRUPT;
        }
        if (what == NIB_CLI_WAIT_TIMEOUT && ms >= 0) return NONE;
        if (what != NIB_CLI_WAIT_INPUT) {
            k->idle(k->user, what);
            is_idle = true;
            continue;
        }
        ssize_t n = read(k->fd, k->bytes, sizeof k->bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return GONE;
        k->n_bytes = (size_t)n;
        k->at = 0;
    }
    return (unsigned char)k->bytes[k->at++];
}

/* What terminals send after an escape, and the letter of the key. The last ones are Alt and Enter. */
static const struct {
    const char *sequence;
    char letter;
} sequences[] = {
    {"[A", 'u'},    {"OA", 'u'},    {"[B", 'd'},    {"OB", 'd'},     {"[C", 'r'},    {"OC", 'r'},    {"[D", 'l'},
    {"OD", 'l'},    {"[H", 'h'},    {"OH", 'h'},    {"[1~", 'h'},    {"[7~", 'h'},   {"[F", 'e'},    {"OF", 'e'},
    {"[4~", 'e'},   {"[8~", 'e'},   {"[3~", 'x'},   {"[1;5C", 'w'},  {"[1;3C", 'w'}, {"[1;5D", 'b'}, {"[1;3D", 'b'},
    {"[200~", 'p'}, {"[13;2u", 'n'}, {"\r", 'n'},    {"\n", 'n'},
};

/* After an escape: a key of the table, or the escape itself. NONE: a sequence that is not there. */
static int read_sequence(nib_cli_keyboard *k, uint32_t *key) {
    char sequence[32];
    size_t n = 0;
    int byte = read_byte(k, SEQUENCE_MS);
    if (byte == GONE) return GONE;
    bool is_long = byte == '[' || byte == 'O';
    if (!is_long && byte != '\r' && byte != '\n') {
        if (byte != NONE) k->at--;
        *key = NIB_CLI_KEY_ESCAPE;
        return 1;
    }
    sequence[n++] = (char)byte;
    for (byte = 0; is_long && (byte < '@' || byte > '~');) {
        if ((byte = read_byte(k, SEQUENCE_MS)) < 0) return byte;
        if (n < sizeof sequence) sequence[n++] = (char)byte;
    }
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++)
        if (strlen(sequences[i].sequence) == n && !memcmp(sequences[i].sequence, sequence, n)) {
            *key = NIB_CLI_KEY_LEAD;
            k->letter = (unsigned char)sequences[i].letter;
            return 1;
        }
    return NONE;
}

/* A character that begins with this byte. */
static int read_character(nib_cli_keyboard *k, int byte, uint32_t *key) {
    char bytes[4] = {(char)byte};
    size_t len, want = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4, n = 1;
    for (; n < want; n++) {
        int more = read_byte(k, SEQUENCE_MS);
        if (more == GONE) return GONE;
        bool follows = more != NONE && (more & 0xC0) == 0x80;
        if (more != NONE && !follows) k->at--;
        if (!follows) break;
        bytes[n] = (char)more;
    }
    *key = nib_cli_glyph_decode((nib_str){bytes, n}, &len);
    return 1;
}

bool nib_cli_keyboard_key(nib_cli_keyboard *k, uint32_t *key) {
    *key = k->letter;
    k->letter = 0;
    for (int got = *key ? 1 : NONE; got != 1;) {
        int byte = read_byte(k, -1);
        if (byte < 0) return false;
        *key = (uint32_t)byte;
        got = byte == NIB_CLI_KEY_ESCAPE ? read_sequence(k, key) : byte < 0x80 ? 1 : read_character(k, byte, key);
        if (got == GONE) return false;
        if (byte == NIB_CLI_KEY_LEAD) got = NONE; /* it is ours */
    }
    return true;
}

/* Terminals send returns for newlines. */
static void make_newlines(nib_buf *text, size_t from) {
    size_t n = from;
    for (size_t i = from; i < text->len; i++) {
        bool is_pair = text->ptr[i] == '\r' && i + 1 < text->len && text->ptr[i + 1] == '\n';
        if (!is_pair) text->ptr[n++] = text->ptr[i] == '\r' ? '\n' : text->ptr[i];
    }
    text->len = n;
}

bool nib_cli_keyboard_paste(nib_cli_keyboard *k, nib_buf *text) {
    static const char end[] = "\033[201~";
    enum { N_END = sizeof end - 1 };
    size_t from = text->len, n_cut = 0;
    for (int byte = 0; !n_cut;) {
        bool may_end = byte == NIB_CLI_KEY_INTERRUPT; /* the end was lost, and somebody wants to get out */
        byte = read_byte(k, may_end ? PASTE_MS : -1);
        if (byte == GONE || (byte >= 0 && !nib_buf_char(text, (char)byte))) return false;
        if (byte == NONE)
            n_cut = 1;
        else if (text->len - from >= N_END && !memcmp(text->ptr + text->len - N_END, end, N_END))
            n_cut = N_END;
    }
    text->len -= n_cut;
    make_newlines(text, from);
    return true;
}
