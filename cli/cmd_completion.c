/* cli/cmd_completion.c - nib completion SHELL: the table of options in -> a completion script out. */
#include "options.h"

#include <string.h>

/* In single quotes of any of the shells. */
static void quoted(nib_cli_out *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            nib_cli_out_puts(out, "'\\''");
        else
            nib_cli_out_write(out, (nib_str){text, 1});
    }
}

static bool wants_file(const nib_cli_option *option) {
    return !strcmp(option->arg, "FILE");
}

typedef void (*option_fn)(nib_cli_out *out, int command, const nib_cli_option *option, nib_str spelling);

static void for_each(nib_cli_out *out, int command, option_fn fn) {
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        const nib_cli_option *option = nib_cli_option_at(i);
        nib_str left = {0}, spelling;
        bool negated;
        while (nib_cli_option_belongs(option, command) && nib_cli_spelling_next(option, &left, &spelling, &negated))
            fn(out, command, option, spelling);
    }
}

static void words(nib_cli_out *out, const nib_cli_option *option) {
    nib_str left = {0}, word;
    for (bool first = true; nib_cli_word_next(option, &left, &word); first = false) {
        if (!first) nib_cli_out_puts(out, " ");
        nib_cli_out_write(out, word);
    }
}

static void command_names(nib_cli_out *out, const char *separator) {
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++)
        nib_cli_out_printf(out, "%s%s", i ? separator : "", nib_cli_command_at(i)->name);
}

/* ---- bash */

static void bash_name(nib_cli_out *out, int command, const nib_cli_option *option, nib_str spelling) {
    (void)command;
    (void)option;
    nib_cli_out_printf(out, " %.*s", (int)spelling.len, spelling.ptr);
}

static void bash_value(nib_cli_out *out, int command, const nib_cli_option *option, nib_str spelling) {
    if (!nib_cli_option_takes_value(option)) return;
    nib_cli_out_printf(out, "    '%s %.*s') ", nib_cli_command_at(command)->name, (int)spelling.len, spelling.ptr);
    if (nib_cli_option_has_words(option)) {
        nib_cli_out_puts(out, "COMPREPLY=($(compgen -W '");
        words(out, option);
        nib_cli_out_puts(out, "' -- \"$cur\")); return ;;\n");
    } else {
        if (wants_file(option)) nib_cli_out_puts(out, "COMPREPLY=($(compgen -f -- \"$cur\")); ");
        nib_cli_out_puts(out, "return ;;\n");
    }
}

static void bash(nib_cli_out *out) {
    nib_cli_out_puts(out,
                     "# bash completion of nib: eval \"$(nib completion bash)\"\n"
                     "_nib() {\n"
                     "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=run options\n"
                     "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} != -* ]]; then command=${COMP_WORDS[1]}; fi\n"
                     "    if [[ $COMP_CWORD -eq 1 && $cur != -* ]]; then\n"
                     "        COMPREPLY=($(compgen -W '");
    command_names(out, " ");
    nib_cli_out_puts(out, "' -- \"$cur\")); return\n    fi\n    case \"$command $prev\" in\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) for_each(out, i, bash_value);
    nib_cli_out_puts(out, "    esac\n    case $command in\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        nib_cli_out_printf(out, "    %s) options='", nib_cli_command_at(i)->name);
        for_each(out, i, bash_name);
        nib_cli_out_puts(out, "' ;;\n");
    }
    nib_cli_out_puts(out, "    esac\n"
                          "    if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")); fi\n"
                          "}\n"
                          "complete -o default -F _nib nib\n");
}

/* ---- zsh */

static void zsh_option(nib_cli_out *out, int command, const nib_cli_option *option, nib_str spelling) {
    (void)command;
    nib_cli_out_printf(out, " \\\n            '*%.*s[", (int)spelling.len, spelling.ptr);
    for (const char *c = option->help; *c; c++) {
        if (strchr("[]:\\", *c)) nib_cli_out_puts(out, "\\");
        quoted(out, (const char[]){*c, 0});
    }
    nib_cli_out_puts(out, "]");
    if (nib_cli_option_takes_value(option)) {
        nib_cli_out_puts(out, option->arg[0] == '[' ? "::value:" : ":value:");
        if (nib_cli_option_has_words(option)) {
            nib_cli_out_puts(out, "(");
            words(out, option);
            nib_cli_out_puts(out, ")");
        } else if (wants_file(option)) {
            nib_cli_out_puts(out, "_files");
        } else {
            nib_cli_out_puts(out, " ");
        }
    }
    nib_cli_out_puts(out, "'");
}

static void zsh(nib_cli_out *out) {
    nib_cli_out_puts(out, "#compdef nib\n"
                          "# zsh completion of nib: nib completion zsh > a folder of $fpath/_nib\n"
                          "_nib() {\n    local command=run\n    local -a commands\n    commands=(\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        nib_cli_out_printf(out, "        '%s:", nib_cli_command_at(i)->name);
        quoted(out, nib_cli_command_at(i)->summary);
        nib_cli_out_puts(out, "'\n");
    }
    nib_cli_out_puts(out, "    )\n    if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then\n"
                          "        _describe command commands\n        return\n    fi\n"
                          "    if [[ $words[2] != -* ]]; then\n"
                          "        command=$words[2]\n        shift words\n        (( CURRENT-- ))\n    fi\n"
                          "    case $command in\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        nib_cli_out_printf(out, "    %s)\n        _arguments", nib_cli_command_at(i)->name);
        for_each(out, i, zsh_option);
        nib_cli_out_puts(out, nib_cli_command_at(i)->operand[0] ? " \\\n            '*:file:_files' ;;\n" : " ;;\n");
    }
    nib_cli_out_puts(out, "    esac\n}\nif [[ $funcstack[1] == _nib ]]; then _nib \"$@\"; else compdef _nib nib; fi\n");
}

/* ---- fish */

static void fish_option(nib_cli_out *out, int command, const nib_cli_option *option, nib_str spelling) {
    bool is_long = spelling.len > 2 && spelling.ptr[1] == '-';
    nib_cli_out_printf(out, "complete -c nib -n '__nib_command %s' %s %.*s -d '", nib_cli_command_at(command)->name,
                       is_long ? "-l" : spelling.len == 2 ? "-s" : "-o", (int)spelling.len - 1 - is_long,
                       spelling.ptr + 1 + is_long);
    for (const char *c = option->help; *c; c++) {
        if (*c == '\'' || *c == '\\') nib_cli_out_puts(out, "\\");
        nib_cli_out_write(out, (nib_str){c, 1});
    }
    nib_cli_out_puts(out, "'");
    if (nib_cli_option_takes_value(option) && option->arg[0] != '[')
        nib_cli_out_puts(out, wants_file(option) ? " -r" : " -x");
    if (nib_cli_option_has_words(option)) {
        nib_cli_out_puts(out, " -a '");
        words(out, option);
        nib_cli_out_puts(out, "'");
    }
    nib_cli_out_puts(out, "\n");
}

static void fish(nib_cli_out *out) {
    nib_cli_out_puts(out, "# fish completion of nib: nib completion fish > ~/.config/fish/completions/nib.fish\n"
                          "function __nib_command\n"
                          "    set -l words (commandline -opc)\n"
                          "    set -l command run\n"
                          "    if set -q words[2]; and not string match -q -- '-*' $words[2]\n"
                          "        set command $words[2]\n"
                          "    end\n"
                          "    contains -- $command $argv\n"
                          "end\n");
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) {
        nib_cli_out_printf(out, "complete -c nib -n __fish_use_subcommand -a %s -d '", nib_cli_command_at(i)->name);
        quoted(out, nib_cli_command_at(i)->summary);
        nib_cli_out_puts(out, "'\n");
    }
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++) for_each(out, i, fish_option);
}

static const struct {
    const char *name;
    void (*print)(nib_cli_out *out);
} shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

int nib_cli_cmd_completion(const nib_cli_options *opt, const nib_cli_term *term) {
    const nib_str *operands = opt->operands.items;
    for (size_t i = 0; opt->operands.n == 1 && i < sizeof shells / sizeof shells[0]; i++) {
        if (strcmp(operands[0].ptr, shells[i].name)) continue;
        nib_cli_out out;
        nib_cli_out_open(&out);
        shells[i].print(&out);
        return nib_cli_out_close(&out, term, NIB_CLI_DONE);
    }
    nib_cli_error(term, "expected a shell: nib completion bash, zsh or fish");
    return NIB_CLI_USAGE;
}
