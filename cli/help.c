/* cli/help.c - tables of commands and options in -> help on the terminal, and the generated part of the manual page,
 * out. Called by main.c and cmd_help.c. */
#include "help.h"

#include "options.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, TEXT_AT = 26 };

static const char *const group_titles[] = {
#define GROUP(id, title) title,
#include "groups.def"
#undef GROUP
};

static void bold(nib_cli_out *out, const nib_cli_term *term, const char *text) {
    nib_cli_out_printf(out, "%s%s%s", term->out_color ? "\033[1m" : "", text, term->out_color ? "\033[0m" : "");
}

/* Words of text in lines up to WIDTH; `column` is where the cursor stands, further lines begin at `indent`. A line may
 * also end after a ';', for chains of samplers. */
static void wrap(nib_cli_out *out, const char *text, size_t column, size_t indent) {
    bool space = false;
    while (*text) {
        size_t n = strcspn(text, " ;");
        n += text[n] == ';';
        if (column > indent && column + space + n > WIDTH) {
            nib_cli_out_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent && space) {
            nib_cli_out_puts(out, " ");
            column++;
        }
        nib_cli_out_write(out, (nib_str){text, n});
        column += n;
        text += n;
        space = *text == ' ';
        text += space;
    }
    nib_cli_out_puts(out, "\n");
}

/* "-n, --predict, --n-predict N" */
static void spellings(nib_buf *text, const nib_cli_option *option) {
    nib_str left = {0}, spelling;
    bool negated;
    while (nib_cli_spelling_next(option, &left, &spelling, &negated))
        nib_buf_printf(text, "%s%.*s", text->len ? ", " : "", (int)spelling.len, spelling.ptr);
    if (option->arg[0]) nib_buf_printf(text, " %s", option->arg);
}

static bool shows_default(const nib_cli_option *option) {
    if (option->kind == NIB_CLI_KIND_FLAG) return !strcmp(option->default_text, "on");
    return option->default_text[0] != 0;
}

static void print_option(nib_cli_out *out, const nib_cli_term *term, const nib_cli_option *option) {
    nib_buf names = {0}, help = {0};
    spellings(&names, option);
    nib_buf_str(&help, option->help);
    if (shows_default(option)) nib_buf_printf(&help, " (default: %s)", option->default_text);
    nib_cli_out_puts(out, "  ");
    if (names.len + 2 > WIDTH) { /* too many spellings for a line */
        wrap(out, nib_buf_cstr(&names), 2, 2);
        nib_cli_out_printf(out, "%*s", TEXT_AT, "");
    } else {
        bold(out, term, nib_buf_cstr(&names));
        if (names.len + 4 > TEXT_AT)
            nib_cli_out_printf(out, "\n%*s", TEXT_AT, "");
        else
            nib_cli_out_printf(out, "%*s", TEXT_AT - 2 - (int)names.len, "");
    }
    wrap(out, nib_buf_cstr(&help), TEXT_AT, TEXT_AT);
    nib_buf_free(&names);
    nib_buf_free(&help);
}

/* Ignored options have no effect to explain: their names are enough. */
static void print_ignored(nib_cli_out *out, int command) {
    nib_buf names = {0};
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        const nib_cli_option *option = nib_cli_option_at(i);
        nib_str left = {0}, spelling;
        bool negated;
        while (option->kind == NIB_CLI_KIND_IGNORED && nib_cli_option_belongs(option, command) &&
               nib_cli_spelling_next(option, &left, &spelling, &negated))
            nib_buf_printf(&names, "%s%.*s", names.len ? " " : "", (int)spelling.len, spelling.ptr);
    }
    nib_cli_out_puts(out, "  ");
    wrap(out, nib_buf_cstr(&names), 2, 2);
    nib_buf_free(&names);
}

static bool group_is_used(int group, int command) {
    for (size_t i = 0; i < nib_cli_n_options(); i++)
        if (nib_cli_option_at(i)->group == group && nib_cli_option_belongs(nib_cli_option_at(i), command)) return true;
    return false;
}

static void print_commands(nib_cli_out *out, const nib_cli_term *term) {
    bold(out, term, "Commands\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        const nib_cli_command *command = nib_cli_command_at(i);
        nib_cli_out_printf(out, "  %-12s", command->name);
        wrap(out, command->summary, 14, 14);
    }
}

static void print_statuses(nib_cli_out *out, const nib_cli_term *term, bool is_server) {
    bold(out, term, "\nExit status\n");
    nib_cli_out_puts(out, is_server ? "  0 done, also by Ctrl-C or SIGTERM, 1 failure, 2 wrong usage\n"
                                    : "  0 done, 1 failure, 2 wrong usage, 130 interrupted (143 by SIGTERM)\n");
}

void nib_cli_help_overview(nib_cli_out *out, const nib_cli_term *term) {
    nib_cli_out_puts(out, "usage: nib [COMMAND] [options]\n"
                          "       nib -m MODEL.gguf -p TEXT [options]     continues the text\n\n");
    print_commands(out, term);
    nib_cli_out_puts(out, "\n'nib help COMMAND' or 'nib COMMAND --help' lists the options of a command.\n");
    print_statuses(out, term, false);
}

void nib_cli_help_command(nib_cli_out *out, const nib_cli_term *term, int command) {
    const nib_cli_command *c = nib_cli_command_at(command);
    bool is_default = command == NIB_CLI_RUN;
    nib_cli_out_printf(out, is_default ? "usage: nib [%s] [options]" : "usage: nib %s [options]", c->name);
    nib_cli_out_printf(out, "%s%s\n\n", c->operand[0] ? " " : "", c->operand);
    wrap(out, c->summary, 0, 0);
    if (is_default) {
        nib_cli_out_puts(out, "\n");
        print_commands(out, term);
    }
    for (int group = 0; group < NIB_CLI_N_GROUPS; group++) {
        if (!group_is_used(group, command)) continue;
        nib_cli_out_puts(out, "\n");
        bold(out, term, group_titles[group]);
        nib_cli_out_puts(out, "\n");
        for (size_t i = 0; i < nib_cli_n_options(); i++) {
            const nib_cli_option *option = nib_cli_option_at(i);
            if (option->group == group && group != NIB_CLI_GROUP_IGNORED && nib_cli_option_belongs(option, command))
                print_option(out, term, option);
        }
        if (group == NIB_CLI_GROUP_IGNORED) print_ignored(out, command);
    }
    print_statuses(out, term, command == NIB_CLI_SERVE);
}

/* ---- the manual page */

/* scdoc gives meaning to some characters: each gets a backslash. */
static void escaped(nib_cli_out *out, const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (strchr("_*\\`<>#[]", text[i]) && text[i]) nib_cli_out_puts(out, "\\");
        nib_cli_out_write(out, (nib_str){text + i, 1});
    }
}

static void scdoc_option(nib_cli_out *out, const nib_cli_option *option) {
    nib_str left = {0}, spelling;
    bool negated, first = true;
    while (nib_cli_spelling_next(option, &left, &spelling, &negated)) {
        nib_cli_out_puts(out, first ? "*" : ", *");
        escaped(out, spelling.ptr, spelling.len);
        nib_cli_out_puts(out, "*");
        first = false;
    }
    if (option->arg[0]) {
        nib_cli_out_puts(out, " _");
        escaped(out, option->arg, strlen(option->arg));
        nib_cli_out_puts(out, "_");
    }
    nib_cli_out_puts(out, "\n\t");
    escaped(out, option->help, strlen(option->help));
    if (shows_default(option)) {
        nib_cli_out_puts(out, " (default: ");
        escaped(out, option->default_text, strlen(option->default_text));
        nib_cli_out_puts(out, ")");
    }
    nib_cli_out_puts(out, ".");
    if (option->kind != NIB_CLI_KIND_IGNORED) {
        const char *separator = " Commands: ";
        bool all = true;
        for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) all = all && nib_cli_option_belongs(option, i);
        for (int i = 0; i < NIB_CLI_N_COMMANDS && !all; i++) {
            if (!nib_cli_option_belongs(option, i)) continue;
            nib_cli_out_printf(out, "%s%s", separator, nib_cli_command_at(i)->name);
            separator = ", ";
        }
        nib_cli_out_puts(out, all ? " All commands." : ".");
    }
    nib_cli_out_puts(out, "\n\n");
}

void nib_cli_help_scdoc(nib_cli_out *out) {
    nib_cli_out_puts(out, "# COMMANDS\n\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        const nib_cli_command *command = nib_cli_command_at(i);
        nib_cli_out_printf(out, "*%s*", command->name);
        if (command->operand[0]) nib_cli_out_printf(out, " _%s_", command->operand);
        nib_cli_out_puts(out, "\n\t");
        escaped(out, command->summary, strlen(command->summary));
        nib_cli_out_puts(out, ".\n\n");
    }
    nib_cli_out_puts(out, "# OPTIONS\n\n");
    for (int group = 0; group < NIB_CLI_N_GROUPS; group++) {
        nib_cli_out_printf(out, "## %s\n\n", group_titles[group]);
        for (size_t i = 0; i < nib_cli_n_options(); i++)
            if (nib_cli_option_at(i)->group == group) scdoc_option(out, nib_cli_option_at(i));
    }
}
