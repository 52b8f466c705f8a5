/* cli/command.c - the table of commands and the search for the name that somebody meant. */
#include "command.h"

#include <string.h>

#define COMMAND(id, name, operand, summary)                                                                            \
    int nib_cli_cmd_##name(const struct nib_cli_options *opt, const nib_cli_term *term);
#include "commands.def"
#undef COMMAND

static const nib_cli_command commands[] = {
#define COMMAND(id, name, operand, summary) {#name, operand, summary, nib_cli_cmd_##name},
#include "commands.def"
#undef COMMAND
};
_Static_assert(sizeof commands / sizeof commands[0] == NIB_CLI_N_COMMANDS, "commands.def");

const nib_cli_command *nib_cli_command_at(int command) {
    return &commands[command];
}

int nib_cli_command_find(const char *name) {
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++)
        if (!strcmp(commands[i].name, name)) return i;
    return -1;
}

enum { WORD_MAX = 63 };

/* Insertions, deletions, replacements and swaps of neighbours that turn a into b. */
static unsigned distance(nib_str a, nib_str b) {
    unsigned rows[3][WORD_MAX + 1];
    size_t na = a.len < WORD_MAX ? a.len : WORD_MAX, nb = b.len < WORD_MAX ? b.len : WORD_MAX;
    for (size_t j = 0; j <= nb; j++) rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= na; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3], *older = rows[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= nb; j++) {
            unsigned best = last[j - 1] + (a.ptr[i - 1] != b.ptr[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1];
            if (swapped && older[j - 2] + 1 < best) best = older[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[na % 3][nb];
}

size_t nib_cli_nearest(nib_str word, const nib_str *names, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (distance(word, names[i]) < distance(word, names[best])) best = i;
    return best;
}
