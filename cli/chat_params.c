/* cli/chat_params.c - /set and /params: options of the command line that may change during a conversation. */
#include "answerer.h"
#include "base/mem.h"
#include "base/status.h"
#include "glyph.h"
#include "tui.h"

#include <string.h>

static bool may_change(const nib_cli_option *option) {
    static const size_t others[] = {offsetof(nib_cli_options, n_predict), offsetof(nib_cli_options, ignore_eos),
                                    offsetof(nib_cli_options, overflow), offsetof(nib_cli_options, reasoning),
                                    offsetof(nib_cli_options, plain)};
    if (!nib_cli_option_belongs(option, NIB_CLI_CHAT) || nib_cli_option_is_list(option)) return false;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (option->offset == others[i]) return true;
    return option->group == NIB_CLI_GROUP_SAMPLING && option->offset != offsetof(nib_cli_options, sampler_letters);
}

/* The first long spelling without its dashes, as an identifier. */
bool nib_cli_tui_param_name(const nib_cli_option *option, nib_buf *name) {
    nib_str left = {0}, spelling;
    bool negated;
    if (!may_change(option)) return false;
    while (nib_cli_spelling_next(option, &left, &spelling, &negated))
        if (spelling.len > 2 && spelling.ptr[1] == '-') break;
    for (size_t i = 2; i < spelling.len; i++) nib_buf_char(name, spelling.ptr[i] == '-' ? '_' : spelling.ptr[i]);
    return true;
}

const nib_cli_option *nib_cli_tui_param(nib_str name) {
    static const char *const dashes[] = {"", "--", "-"};
    const nib_cli_option *found = NULL;
    for (size_t i = 0; i < sizeof dashes / sizeof dashes[0] && !found; i++) {
        nib_buf spelling = {0};
        nib_buf_str(&spelling, dashes[i]);
        nib_buf_append(&spelling, name.ptr, name.len);
        found = nib_cli_option_find(NIB_CLI_CHAT, nib_cli_bytes(&spelling));
        if (found && !may_change(found)) found = NULL;
        nib_buf_free(&spelling);
    }
    return found;
}

static nib_status unknown(nib_str name, nib_error *err) {
    nib_str names[NIB_CLI_MAX_OPTIONS];
    nib_buf text = {0};
    size_t n = 0;
    if (!nib_buf_reserve(&text, NIB_CLI_MAX_OPTIONS * 64)) return nib_fail_nomem(err, 0, "names"); /* it does not move */
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        size_t start = text.len;
        if (nib_cli_tui_param_name(nib_cli_option_at(i), &text))
            names[n++] = (nib_str){text.ptr + start, text.len - start};
    }
    nib_str nearest = names[nib_cli_nearest(name, names, n)];
    nib_status status = nib_fail(err, NIB_E_ARG, "/set: there is no %.*s; the nearest is %.*s (/params lists all)",
                                 NIB_STR_ARG(name), NIB_STR_ARG(nearest));
    nib_buf_free(&text);
    return status;
}

/* Takes the value when answers can be made with it. */
static nib_status change(nib_cli_tui *t, const nib_cli_option *option, nib_str name, const char *value, nib_error *err) {
    nib_cli_options old = t->c->opt;
    NIB_TRY(nib_cli_option_change(&t->c->opt, option, name, value, err));
    nib_status status = t->c->who->check(t->c, err);
    if (status != NIB_OK) t->c->opt = old;
    nib_cli_chat_options_changed(t->c);
    return status;
}

nib_status nib_cli_tui_set(nib_cli_tui *t, const char *argument, nib_error *err) {
    nib_str name = {argument, strcspn(argument, " =")};
    const char *value = argument + name.len + strspn(argument + name.len, " =");
    const nib_cli_option *option = nib_cli_tui_param(name);
    if (!option) return unknown(name, err);
    if (!*value && option->kind != NIB_CLI_KIND_STRING)
        return nib_fail(err, NIB_E_ARG, "/set %.*s needs a value%s%s", NIB_STR_ARG(name), *option->arg ? ": " : ": on or off",
                        option->arg);
    char *kept = nib_alloc(strlen(value) + 1, 1);
    if (!kept || !nib_cli_list_append(&t->values, &kept, 1, sizeof kept)) {
        nib_free(kept);
        return nib_fail_nomem(err, strlen(value), "a value");
    }
    strcpy(kept, value);
    if (!nib_cli_option_takes_value(option) && strcmp(value, "on") && strcmp(value, "off"))
        return nib_fail(err, NIB_E_ARG, "/set %.*s %s: expected on or off", NIB_STR_ARG(name), value);
    return change(t, option, name, kept, err);
}

void nib_cli_tui_params(nib_cli_tui *t) {
    nib_cli_options now = t->c->opt;
    bool knows_all = t->c->who->defaults(t->c, &now);
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        const nib_cli_option *option = nib_cli_option_at(i);
        nib_buf name = {0}, value = {0};
        if (nib_cli_tui_param_name(option, &name)) {
            if (knows_all || nib_cli_given(&now, option->offset) || option->group != NIB_CLI_GROUP_SAMPLING)
                nib_cli_value_print(option, &now, &value);
            else
                nib_buf_str(&value, "(the server's)");
            nib_cli_out_printf(&t->out, "  %-20s ", nib_buf_cstr(&name));
            nib_cli_glyph_show(&t->out.buf, nib_cli_bytes(&value));
            nib_cli_out_puts(&t->out, "\n");
        }
        nib_buf_free(&name);
        nib_buf_free(&value);
    }
}
