/* cli/signals.c - the one place with mutable globals: a signal handler has no argument to hang state off. */
#include "signals.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/select.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted, window_changed, continued;
static volatile sig_atomic_t terminal = -1; /* descriptor */
static struct termios terminal_modes;
static sigjmp_buf after_fault;

void nib_cli_signals_restore(void) {
    static const char no_paste[] = "\033[0m\033[?2004l";
    if (terminal < 0 || tcgetpgrp(terminal) != getpgrp()) return; /* it belongs to somebody else now */
    ssize_t ignored = write(terminal, no_paste, sizeof no_paste - 1);
    (void)ignored;
    tcsetattr(terminal, TCSANOW, &terminal_modes);
}

static void on_interrupt(int signal_number) {
    if (interrupted) { /* this one acts as usual, when the handler returns */
        nib_cli_signals_restore();
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    interrupted = signal_number;
}

/* Ctrl-Z: what the shell finds is the terminal as it was. */
static void on_stop(int signal_number) {
    sigset_t set;
    nib_cli_signals_restore();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    sigprocmask(SIG_UNBLOCK, &set, NULL); /* it stops here */
    signal(signal_number, on_stop);
}

static void on_change(int signal_number) {
    if (signal_number == SIGCONT)
        continued = 1;
    else
        window_changed = 1;
}

static void on_bus(int signal_number) {
    static const char text[] = "\nnib: error: the model file was truncated while mapped, or its disk failed; "
                               "get a whole file, or use --no-mmap\n";
    (void)signal_number;
    nib_cli_signals_restore();
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

static void catch_signals(const int *signals, size_t n, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}; /* no SA_RESTART: a read or write that waits must end */
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < n; i++) sigaction(signals[i], &action, NULL);
}

void nib_cli_signals_catch(void) {
    catch_signals((const int[]){SIGINT, SIGTERM}, 2, on_interrupt);
}

void nib_cli_signals_terminal(int fd) {
    if (terminal < 0 && tcgetattr(fd, &terminal_modes) == 0) terminal = fd;
    catch_signals((const int[]){SIGINT, SIGTERM, SIGHUP}, 3, on_interrupt);
    catch_signals((const int[]){SIGWINCH, SIGCONT}, 2, on_change);
    catch_signals((const int[]){SIGTSTP}, 1, on_stop);
    atexit(nib_cli_signals_restore);
}

void nib_cli_signals_forget(void) {
    interrupted = 0;
}

nib_cli_wait nib_cli_signals_wait(int fd, int ms) {
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    sigset_t ours, others;
    int n = 1;
    fd_set set;
    FD_ZERO(&set);
    FD_SET(fd, &set);
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGWINCH);
    sigaddset(&ours, SIGCONT);
    sigprocmask(SIG_BLOCK, &ours, &others); /* so that none comes between the look at the flags and the wait */
    if (!interrupted && !window_changed && !continued)
        n = pselect(fd + 1, &set, NULL, NULL, ms < 0 ? NULL : &time, &others);
    nib_cli_wait what = interrupted      ? NIB_CLI_WAIT_SIGNAL
                        : continued      ? NIB_CLI_WAIT_CONTINUED
                        : window_changed ? NIB_CLI_WAIT_WINDOW
                        : n == 0         ? NIB_CLI_WAIT_TIMEOUT
                                         : NIB_CLI_WAIT_INPUT;
    if (!interrupted) continued = window_changed = 0;
    sigprocmask(SIG_SETMASK, &others, NULL);
    return what;
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
