/* cli/chat_complete.c - what was typed so far in -> words that may follow out: commands, names and values of /set, files. */
#include "base/status.h"
#include "tui.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Adds word and end when they go on from what is typed behind words->start. */
static void offer(nib_cli_words *words, nib_str typed, nib_str word, const char *end) {
    if (word.len < typed.len || memcmp(word.ptr, typed.ptr, typed.len)) return;
    nib_buf_append(&words->text, word.ptr, word.len);
    nib_buf_str(&words->text, end);
    nib_buf_char(&words->text, 0);
    words->n++;
}

static void offer_commands(nib_cli_words *words, nib_str typed) {
    for (int i = 0; i < NIB_CLI_TUI_N_COMMANDS; i++) {
        const nib_cli_tui_command *command = nib_cli_tui_command_at(i);
        nib_buf name = {0};
        nib_buf_printf(&name, "/%s", command->name);
        offer(words, typed, nib_cli_bytes(&name), *command->argument ? " " : "");
        nib_buf_free(&name);
    }
}

static void offer_params(nib_cli_words *words, nib_str typed) {
    for (size_t i = 0; i < nib_cli_n_options(); i++) {
        nib_buf name = {0};
        if (nib_cli_tui_param_name(nib_cli_option_at(i), &name)) offer(words, typed, nib_cli_bytes(&name), " ");
        nib_buf_free(&name);
    }
}

static void offer_values(nib_cli_words *words, nib_str name, nib_str typed) {
    const nib_cli_option *option = nib_cli_tui_param(name);
    nib_str left = {0}, word;
    if (!option) return;
    if (!nib_cli_option_takes_value(option)) {
        offer(words, typed, (nib_str){"on", 2}, "");
        offer(words, typed, (nib_str){"off", 3}, "");
    }
    while (nib_cli_option_has_words(option) && nib_cli_word_next(option, &left, &word)) offer(words, typed, word, "");
}

static bool is_folder(const char *folder, const char *name) {
    struct stat st;
    nib_buf path = {0};
    nib_buf_printf(&path, "%s/%s", folder, name);
    const char *text = nib_buf_cstr(&path);
    bool yes = text && stat(text, &st) == 0 && S_ISDIR(st.st_mode);
    nib_buf_free(&path);
    return yes;
}

/* Files whose path begins with what is typed. */
static void offer_files(nib_cli_words *words, nib_str typed) {
    size_t n = typed.len;
    char given[1024], folder[1024];
    while (n && typed.ptr[n - 1] != '/') n--;
    if (n >= sizeof given) return;
    memcpy(given, typed.ptr, n);
    given[n] = 0;
    if (!nib_cli_tui_path(n ? given : ".", folder, sizeof folder)) return;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        bool is_hidden = entry->d_name[0] == '.';
        nib_buf path = {0};
        if (is_hidden && (typed.len == n || typed.ptr[n] != '.')) continue;
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        nib_buf_printf(&path, "%s%s", given, entry->d_name);
        offer(words, typed, nib_cli_bytes(&path), is_folder(folder, entry->d_name) ? "/" : "");
        nib_buf_free(&path);
    }
    if (dir) closedir(dir);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A folder gives its files in no order. */
static void sort(nib_cli_words *words) {
    nib_buf sorted = {0};
    const char **starts = words->text.failed ? NULL : calloc(words->n + 1, sizeof *starts);
    if (!starts) return;
    for (size_t i = 0, at = 0; i < words->n; at += strlen(words->text.ptr + at) + 1) starts[i++] = words->text.ptr + at;
    qsort(starts, words->n, sizeof *starts, by_name);
    for (size_t i = 0; i < words->n; i++) nib_buf_append(&sorted, starts[i], strlen(starts[i]) + 1);
    free(starts);
    nib_buf_free(&words->text);
    words->text = sorted;
}

void nib_cli_tui_complete(void *tui, nib_str text, nib_cli_words *words) {
    size_t n = 0;
    (void)tui;
    if (!text.len || *text.ptr != '/' || memchr(text.ptr, '\n', text.len)) return;
    while (n < text.len && text.ptr[n] != ' ') n++;
    if (n == text.len) {
        offer_commands(words, text);
        return;
    }
    const nib_cli_tui_command *command = NULL;
    for (int i = 0; i < NIB_CLI_TUI_N_COMMANDS && !command; i++) {
        const char *name = nib_cli_tui_command_at(i)->name;
        if (strlen(name) == n - 1 && !memcmp(name, text.ptr + 1, n - 1)) command = nib_cli_tui_command_at(i);
    }
    while (n < text.len && text.ptr[n] == ' ') n++;
    nib_str rest = {text.ptr + n, text.len - n};
    const char *space = rest.len ? memchr(rest.ptr, ' ', rest.len) : NULL;
    words->start = n;
    if (command && command->completion == NIB_CLI_COMPLETE_FILES) offer_files(words, rest);
    if (command && command->completion == NIB_CLI_COMPLETE_PARAMS && !space) offer_params(words, rest);
    if (command && command->completion == NIB_CLI_COMPLETE_PARAMS && space) {
        nib_str name = {rest.ptr, (size_t)(space - rest.ptr)};
        words->start = n + name.len + 1;
        offer_values(words, name, (nib_str){space + 1, rest.len - name.len - 1});
    }
    sort(words);
}
