/* bench/bench_output.c - MB/s of nib_chat_parser: plain text, reasoning, text full of what nearly is a marker, and
 * calls, in pieces as a model gives them (4 bytes) and as a pipe does (4 KiB). The bound that counts: 50 MB/s. */
#define _POSIX_C_SOURCE 200809L
#include "nib.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_BYTES ((size_t)32 << 20)

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* one thread, no I/O: what else runs does not count */
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool count(void *user, const nib_chat_event *event) {
    *(size_t *)user += event->text.len;
    return true;
}

/* The best of three runs over the text, repeated to N_BYTES between the two others. */
static double mb_per_s(const char *format, const char *open, const char *text, const char *close, size_t piece) {
    size_t n = 0, n_out = 0, len = strlen(text);
    char *all = malloc(N_BYTES + strlen(open) + len + strlen(close));
    double best = 0;
    if (!all) exit(1);
    memcpy(all, open, n = strlen(open));
    for (; n < N_BYTES; n += len) memcpy(all + n, text, len);
    memcpy(all + n, close, strlen(close));
    n += strlen(close);
    for (int round = 0; round < 3; round++) {
        nib_chat_parser *parser;
        nib_chat_parser_config config = NIB_CHAT_PARSER_CONFIG_INIT;
        config.format = format;
        config.event = count;
        config.user = &n_out;
        config.max_call_bytes = 2 * N_BYTES;
        if (nib_chat_parser_new(&parser, &config, NULL) != NIB_OK) exit(1);
        double start = now_s();
        for (size_t at = 0; at < n; at += piece) {
            nib_str bytes = {all + at, n - at < piece ? n - at : piece};
            if (nib_chat_parser_push(parser, bytes, NULL) != NIB_OK) exit(1);
        }
        if (nib_chat_parser_finish(parser, NULL) != NIB_OK) exit(1);
        double speed = (double)n / (now_s() - start) * 1e-6;
        if (speed > best) best = speed;
        nib_chat_parser_free(parser);
    }
    free(all);
    return n_out ? best : 0;
}

int main(void) {
    static const char prose[] = "The tides are raised by the Moon, and to a lesser degree by the Sun;\nwhat a harbour "
                                "sees depends on the shape of its coast. ";
    static const char near[] = "if (a < b) <tool <<think <tool_cal <function= </ <| <tool_call> x <｜tool▁call ";
    static const struct {
        const char *label, *format, *open, *text, *close;
    } rows[] = {
        {"content", "hermes", "", prose, ""},
        {"content, harmony", "harmony", "<|channel|>final<|message|>", prose, ""},
        {"content, deepseek", "deepseek", "", prose, ""},
        {"reasoning", "hermes", "<think>\n", prose, "</think>"},
        {"near markers", "hermes", "", near, ""},
        {"near markers, qwen3-coder", "qwen3-coder", "", near, ""},
        {"blanks", "hermes", "", "\n\n    ", ""},
        {"many JSON calls", "hermes", "",
         "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"word\": \"tide\", \"n\": 3}}\n</tool_call>\n", ""},
        {"one long JSON call", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"", "some text ",
         "\"}}</tool_call>"},
        {"one long parameter", "qwen3-coder", "<tool_call><function=f><parameter=text>", "some < text ",
         "</parameter></function></tool_call>"},
        {"an unfinished call", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"text\": \"", "<tool_call> ",
         ""},
    };
    printf("%-28s %12s %12s   MB/s\n", "", "4 bytes", "4 KiB");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%-28s %12.0f %12.0f\n", rows[i].label,
               mb_per_s(rows[i].format, rows[i].open, rows[i].text, rows[i].close, 4),
               mb_per_s(rows[i].format, rows[i].open, rows[i].text, rows[i].close, 4096));
    return 0;
}
