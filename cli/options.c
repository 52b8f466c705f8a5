/* cli/options.c - the table of options; argv in -> values out.
 * Which rows exist depends on the command: -p is a text for run and a list of lengths for bench. Called by main.c;
 * help.c and completion.c walk the table. */
#include "options.h"

#include "base/status.h"

#include <string.h>

enum {
#define COMMAND(id, name, operand, summary) id = 1u << NIB_CLI_##id,
#include "commands.def"
#undef COMMAND
    ALL = (1u << NIB_CLI_N_COMMANDS) - 1,
    USES_CONTEXT = RUN | CHAT | SERVE | SCORE | EMBED | PERPLEXITY | TRACE | BENCH | PLAN,
    USES_WEIGHTS = USES_CONTEXT | INSPECT | CHECK,
    USES_TEXT = RUN | CHAT | SERVE | SCORE | EMBED | PERPLEXITY | TRACE | TOKENIZE | DETOKENIZE,
    USES_MODEL = USES_WEIGHTS | USES_TEXT,
    USES_JSON = RUN | CHAT | EMBED | PERPLEXITY | TRACE | INSPECT | CHECK | BENCH | LIMITS | PLAN,
    SAMPLES = RUN | CHAT | TRACE,
    LLAMA = USES_CONTEXT,
    CLIENTS = CHAT | BENCH,
};

static const nib_cli_option options[] = {
#define OPTION(commands, group, kind, field, spellings, arg, default_text, low, high, help)                            \
    {commands, NIB_CLI_GROUP_##group, NIB_CLI_KIND_##kind, offsetof(nib_cli_options, field), spellings, arg,           \
     default_text, low, high, help},
#include "options.def"
#undef OPTION
};
enum { N_OPTIONS = sizeof options / sizeof options[0] };
_Static_assert(N_OPTIONS <= NIB_CLI_MAX_OPTIONS, "raise NIB_CLI_MAX_OPTIONS");

/* Every field has the type that its row's kind writes. */
#define KIND(id, takes_value, is_list, type) typedef type type_of_##id;
#include "kinds.def"
#undef KIND
#define OPTION(commands, group, kind, field, spellings, arg, default_text, low, high, help)                            \
    _Static_assert(_Generic(((nib_cli_options *)0)->field, type_of_##kind: 1, default: 0), "type of " #field);
#include "options.def"
#undef OPTION

static const struct {
    bool takes_value, is_list;
} kinds[] = {
#define KIND(id, takes_value, is_list, type) {takes_value, is_list},
#include "kinds.def"
#undef KIND
};

size_t nib_cli_n_options(void) {
    return N_OPTIONS;
}

const nib_cli_option *nib_cli_option_at(size_t i) {
    return &options[i];
}

bool nib_cli_option_belongs(const nib_cli_option *option, int command) {
    return option->commands >> command & 1;
}

bool nib_cli_option_takes_value(const nib_cli_option *option) {
    return kinds[option->kind].takes_value && option->arg[0];
}

bool nib_cli_option_is_list(const nib_cli_option *option) {
    return kinds[option->kind].is_list;
}

bool nib_cli_option_has_words(const nib_cli_option *option) {
    return option->arg[0] == '[' || option->kind == NIB_CLI_KIND_WORD || option->kind == NIB_CLI_KIND_CHOICE;
}

/* Cuts the part before the separator off *left. */
static bool next_part(nib_str *left, char separator, nib_str *part) {
    while (left->len && *left->ptr == separator) left->ptr++, left->len--;
    const char *end = memchr(left->ptr, separator, left->len);
    *part = (nib_str){left->ptr, end ? (size_t)(end - left->ptr) : left->len};
    *left = (nib_str){part->ptr + part->len, left->len - part->len};
    return part->len > 0;
}

bool nib_cli_spelling_next(const nib_cli_option *option, nib_str *left, nib_str *spelling, bool *negated) {
    if (!left->ptr) *left = (nib_str){option->spellings, strlen(option->spellings)};
    if (!next_part(left, ' ', spelling)) return false;
    *negated = *spelling->ptr == '!';
    if (*negated) spelling->ptr++, spelling->len--;
    return true;
}

bool nib_cli_word_next(const nib_cli_option *option, nib_str *left, nib_str *word) {
    if (!left->ptr) {
        bool bracket = option->arg[0] == '[';
        *left = (nib_str){option->arg + bracket, strlen(option->arg) - 2u * bracket};
    }
    return next_part(left, '|', word);
}

static void *field(nib_cli_options *opt, size_t i) {
    return (char *)opt + options[i].offset;
}

bool nib_cli_given(const nib_cli_options *opt, size_t offset) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (opt->given[i] && options[i].offset == offset) return true;
    return false;
}

/* Long options may be written with '_' for '-', as llama.cpp allows. */
static bool same_spelling(nib_str spelling, nib_str typed) {
    if (spelling.len != typed.len) return false;
    bool is_long = typed.len > 2 && typed.ptr[0] == '-' && typed.ptr[1] == '-';
    for (size_t i = 0; i < typed.len; i++) {
        char c = is_long && typed.ptr[i] == '_' ? '-' : typed.ptr[i];
        if (c != spelling.ptr[i]) return false;
    }
    return true;
}

/* The row of the command that has this spelling; N_OPTIONS when there is none. */
static size_t find(int command, nib_str typed, bool *negated) {
    for (size_t i = 0; i < N_OPTIONS; i++) {
        nib_str left = {0}, spelling;
        while (nib_cli_option_belongs(&options[i], command) &&
               nib_cli_spelling_next(&options[i], &left, &spelling, negated))
            if (same_spelling(spelling, typed)) return i;
    }
    return N_OPTIONS;
}

const nib_cli_option *nib_cli_option_find(int command, nib_str spelling) {
    bool negated;
    size_t i = find(command, spelling, &negated);
    return i < N_OPTIONS && !negated ? &options[i] : NULL;
}

nib_status nib_cli_option_change(nib_cli_options *opt, const nib_cli_option *option, nib_str name, const char *text,
                                 nib_error *err) {
    NIB_TRY(nib_cli_value_parse(option, name, text, opt, err));
    opt->given[option - options] = true;
    return NIB_OK;
}

static nib_status unknown(int command, nib_str typed, nib_error *err) {
    nib_str names[8 * NIB_CLI_MAX_OPTIONS];
    size_t n = 0;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        nib_str left = {0}, spelling;
        bool negated;
        while (nib_cli_option_belongs(&options[i], command) && n < sizeof names / sizeof names[0] &&
               nib_cli_spelling_next(&options[i], &left, &spelling, &negated))
            names[n++] = spelling;
    }
    nib_str nearest = names[nib_cli_nearest(typed, names, n)];
    return nib_fail(err, NIB_E_ARG, "unknown option %.*s; the nearest is %.*s ('nib %s --help' lists all)",
                    NIB_STR_ARG(typed), NIB_STR_ARG(nearest), nib_cli_command_at(command)->name);
}

static bool word_fits(const nib_cli_option *option, const char *word) {
    nib_str left = {0}, have;
    while (nib_cli_word_next(option, &left, &have))
        if (strlen(word) == have.len && !memcmp(word, have.ptr, have.len)) return true;
    return false;
}

static nib_status set_defaults(nib_cli_options *opt, nib_error *err) {
    opt->sampling = (nib_sampler_params)NIB_SAMPLER_PARAMS_INIT;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const nib_cli_option *o = &options[i];
        if (!nib_cli_option_belongs(o, opt->command) || !o->default_text[0]) continue;
        if (o->kind == NIB_CLI_KIND_STRINGS) {
            nib_str left = {o->default_text, strlen(o->default_text)}, part;
            while (next_part(&left, ' ', &part))
                if (!nib_cli_list_append(field(opt, i), &part, 1, sizeof part))
                    return nib_fail_nomem(err, sizeof part, "options");
        } else {
            NIB_TRY(nib_cli_value_parse(o, (nib_str){o->spellings, strlen(o->spellings)}, o->default_text, opt, err));
        }
    }
    return NIB_OK;
}

static nib_status operand(nib_cli_options *opt, const char *arg, nib_error *err) {
    const nib_cli_command *command = nib_cli_command_at(opt->command);
    bool only_dash = !strcmp(command->operand, "[-]");
    if (!command->operand[0] || (only_dash && strcmp(arg, "-")))
        return nib_fail(err, NIB_E_ARG, "unexpected argument '%s'%s ('nib %s --help' lists what there is)", arg,
                        only_dash ? "; a text goes after -p, a file after -f" : "", command->name);
    nib_str item = {arg, strlen(arg)};
    if (!nib_cli_list_append(&opt->operands, &item, 1, sizeof item)) return nib_fail_nomem(err, sizeof item, "options");
    return NIB_OK;
}

/* One option at *argv; moves *argv on to its value when it takes the next argument. */
static nib_status option(nib_cli_options *opt, char *const **argv, const nib_cli_term *term, nib_error *err) {
    const char *arg = **argv, *equals = arg[1] == '-' ? strchr(arg, '=') : NULL, *value = equals ? equals + 1 : NULL;
    nib_str typed = {arg, equals ? (size_t)(equals - arg) : strlen(arg)};
    bool negated;
    size_t i = find(opt->command, typed, &negated);
    if (i == N_OPTIONS) return unknown(opt->command, typed, err);
    const nib_cli_option *o = &options[i];
    if (!nib_cli_option_takes_value(o)) {
        if (value) return nib_fail(err, NIB_E_ARG, "%.*s takes no value", NIB_STR_ARG(typed));
        value = negated ? "off" : "on";
    } else if (!value) {
        const char *next = (*argv)[1];
        bool optional = o->arg[0] == '[';
        if (optional ? next && word_fits(o, next) : next != NULL)
            value = next, ++*argv;
        else if (optional)
            value = "on";
        else
            return nib_fail(err, NIB_E_ARG, "%.*s needs a value: %s", NIB_STR_ARG(typed), o->arg);
    }
    if (kinds[o->kind].is_list && !opt->given[i]) ((nib_cli_list *)field(opt, i))->n = 0; /* in place of the default */
    opt->given[i] = true;
    if (o->kind == NIB_CLI_KIND_IGNORED) nib_cli_note(term, "%.*s is ignored: %s", NIB_STR_ARG(typed), o->help);
    return nib_cli_value_parse(o, typed, value, opt, err);
}

nib_status nib_cli_options_parse(nib_cli_options *opt, int command, char *const *argv, const nib_cli_term *term,
                                 nib_error *err) {
    *opt = (nib_cli_options){.command = command};
    NIB_TRY(set_defaults(opt, err));
    bool only_operands = false;
    for (; *argv; argv++) {
        if (!only_operands && !strcmp(*argv, "--"))
            only_operands = true;
        else if (!only_operands && (*argv)[0] == '-' && (*argv)[1])
            NIB_TRY(option(opt, &argv, term, err));
        else
            NIB_TRY(operand(opt, *argv, err));
        if (opt->help || opt->version) return NIB_OK;
    }
    return NIB_OK;
}

void nib_cli_options_free(nib_cli_options *opt) {
    for (size_t i = 0; i < N_OPTIONS; i++)
        if (kinds[options[i].kind].is_list) nib_cli_list_free(field(opt, i));
    nib_cli_list_free(&opt->operands);
}
