/* cli/signals.c - the one place with mutable globals: a signal handler has no argument to hang state off. */
#include "signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

static atomic_int interrupted; /* asked by threads, too */
static volatile sig_atomic_t window_changed, continued;
static volatile sig_atomic_t terminal = -1; /* descriptor */
static int wake[2] = {-1, -1};              /* a pipe that ends nib_cli_signals_wait, whichever thread gets the signal */
static struct termios terminal_modes;
static sigjmp_buf after_fault;

void nib_cli_signals_restore(void) {
    static const char no_paste[] = "\033[0m\033[?2004l";
    if (terminal < 0 || tcgetpgrp(terminal) != getpgrp()) return; /* it belongs to somebody else now */
    ssize_t ignored = write(terminal, no_paste, sizeof no_paste - 1);
    (void)ignored;
    tcsetattr(terminal, TCSANOW, &terminal_modes);
}

static void wake_up(void) {
    int old = errno;
    ssize_t ignored = write(wake[1], "", 1);
    (void)ignored;
    errno = old;
}

static void on_interrupt(int signal_number) {
    int old = errno;
    if (interrupted) { /* this one acts as usual, when the handler returns */
        nib_cli_signals_restore();
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    interrupted = signal_number;
    wake_up();
    errno = old;
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
    wake_up();
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
    struct sigaction hangup;
    bool is_wanted = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN; /* nohup ignores it */
    catch_signals((const int[]){SIGINT, SIGTERM, SIGHUP}, is_wanted ? 3 : 2, on_interrupt);
}

void nib_cli_signals_terminal(int fd) {
    if (wake[0] < 0 && pipe(wake) == 0)
        for (int i = 0; i < 2; i++) {
            fcntl(wake[i], F_SETFD, FD_CLOEXEC);
            fcntl(wake[i], F_SETFL, O_NONBLOCK);
        }
    if (terminal < 0 && tcgetattr(fd, &terminal_modes) == 0) terminal = fd;
    catch_signals((const int[]){SIGINT, SIGTERM, SIGHUP, SIGQUIT}, 4, on_interrupt);
    catch_signals((const int[]){SIGWINCH, SIGCONT}, 2, on_change);
    catch_signals((const int[]){SIGTSTP}, 1, on_stop);
    atexit(nib_cli_signals_restore);
}

void nib_cli_signals_forget(void) {
    interrupted = 0;
}

nib_cli_wait nib_cli_signals_wait(int fd, int ms) {
    struct pollfd ends[] = {{fd, POLLIN, 0}, {wake[0], POLLIN, 0}};
    char bytes[64];
    bool is_waiting = !interrupted && !window_changed && !continued;
    int n = poll(ends, 2, is_waiting ? ms : 0);
    while (ends[1].revents && read(wake[0], bytes, sizeof bytes) == sizeof bytes) {
    }
    if (interrupted) return NIB_CLI_WAIT_SIGNAL;
    nib_cli_wait what = continued ? NIB_CLI_WAIT_CONTINUED : NIB_CLI_WAIT_WINDOW;
    if (continued || window_changed) {
        continued = window_changed = 0;
        return what;
    }
    return n > 0 && ends[0].revents ? NIB_CLI_WAIT_INPUT : NIB_CLI_WAIT_TIMEOUT;
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
