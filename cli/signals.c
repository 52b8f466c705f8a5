/* cli/signals.c - the one place with mutable globals: a signal handler has no argument to hang state off. */
#include "signals.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;
static sigjmp_buf after_fault;

static void on_interrupt(int signal_number) {
    interrupted = signal_number;
}

static void on_bus(int signal_number) {
    static const char text[] = "\nnib: error: the model file was truncated while mapped, or its disk failed; "
                               "get a whole file, or use --no-mmap\n";
    (void)signal_number;
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    _exit(1);
}

void nib_cli_signals_init(void) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, bus = {.sa_handler = on_bus};
    sigemptyset(&ignore.sa_mask);
    sigemptyset(&bus.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL); /* the write fails, and says why */
    sigaction(SIGXFSZ, &ignore, NULL);
    sigaction(SIGBUS, &bus, NULL);
}

void nib_cli_signals_catch(void) {
    /* No SA_RESTART: a read or write that waits must end. SA_RESETHAND: the next signal kills. */
    struct sigaction interrupt = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&interrupt.sa_mask);
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGTERM, &interrupt, NULL);
}

int nib_cli_interrupted(void) {
    return interrupted;
}

bool nib_cli_abort(void *user) {
    (void)user;
    return interrupted != 0;
}

static void on_fault(int signal_number) {
    siglongjmp(after_fault, signal_number);
}

bool nib_cli_signals_survive(bool (*test)(const char *arg), const char *arg, bool *result) {
    static const int signals[] = {SIGILL, SIGSEGV, SIGBUS};
    enum { N = sizeof signals / sizeof signals[0] };
    struct sigaction catch = {.sa_handler = on_fault}, old[N];
    sigemptyset(&catch.sa_mask);
    for (int i = 0; i < N; i++) sigaction(signals[i], &catch, &old[i]);
    volatile bool survived = false;
    if (sigsetjmp(after_fault, 1) == 0) {
        *result = test(arg);
        survived = true;
    }
    for (int i = 0; i < N; i++) sigaction(signals[i], &old[i], NULL);
    return survived;
}
