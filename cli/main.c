/* cli/main.c - the program nib: argv in -> exit status out.
 * The first argument names the command (commands.def); when it is a flag the command is run. The options of the command
 * are parsed by one table (options.def), then its function in cmd_<name>.c takes over. */
#include "help.h"
#include "json.h"
#include "options.h"
#include "signals.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int unknown_command(const char *word, const nib_cli_term *term) {
    nib_str names[NIB_CLI_N_COMMANDS];
    for (int i = 0; i < NIB_CLI_N_COMMANDS; i++)
        names[i] = (nib_str){nib_cli_command_at(i)->name, strlen(nib_cli_command_at(i)->name)};
    nib_str nearest = names[nib_cli_nearest((nib_str){word, strlen(word)}, names, NIB_CLI_N_COMMANDS)];
    nib_cli_error(term, "unknown command '%s'; the nearest is %.*s ('nib help' lists all; a model goes after -m)", word,
                  (int)nearest.len, nearest.ptr);
    return NIB_CLI_USAGE;
}

static int run(const nib_cli_options *opt, const nib_cli_term *term) {
    if (opt->version) return nib_cli_command_at(NIB_CLI_VERSION)->run(opt, term);
    if (!opt->help) return nib_cli_command_at(opt->command)->run(opt, term);
    nib_cli_out out;
    nib_cli_out_open(&out);
    nib_cli_help_command(&out, term, opt->command);
    return nib_cli_out_close(&out, term, NIB_CLI_DONE);
}

/* A stream that the caller closed gets a descriptor that refuses: else the next file opened, the model, would take its
 * number and be read as the input. */
static void hold_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
}

int main(int argc, char **argv) {
    nib_cli_term term = nib_cli_term_new(NIB_CLI_AUTO);
    nib_cli_options opt;
    nib_error err;
    hold_streams();
    nib_cli_signals_init();
    nib_cli_json_init();
    if (argc < 2) {
        nib_cli_line(&term, "usage: nib -m MODEL.gguf -p TEXT [options]\n       nib help");
        return NIB_CLI_USAGE;
    }
    bool named = argv[1][0] != '-';
    int command = named ? nib_cli_command_find(argv[1]) : NIB_CLI_RUN;
    if (command < 0) return unknown_command(argv[1], &term);
    nib_status status = nib_cli_options_parse(&opt, command, argv + 1 + named, &term, &err);
    if (status == NIB_OK) term = nib_cli_term_new(opt.color);
    int code = status == NIB_OK ? run(&opt, &term) : nib_cli_fail(&term, &err);
    nib_cli_options_free(&opt);
    return code;
}
