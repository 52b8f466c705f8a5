/* cli/process.c - a command line in -> a program that runs, and its exit status out. Called by chat_commands.c and
 * clipboard.c. */
#include "process.h"

#include "base/status.h"
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- running */

/* Signals that we catch or ignore have their usual meaning for the other program. */
static int spawn(pid_t *pid, const char *const *argv, int input) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE);
        sigaddset(&usual, SIGINT);
        sigaddset(&usual, SIGXFSZ);
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        if (input >= 0) {
            posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
            posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        }
        error = posix_spawnp(pid, argv[0], &actions, &attributes, (char *const *)(uintptr_t)argv, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void feed(int fd, nib_str input) {
    for (size_t done = 0; done < input.len;) {
        ssize_t n = write(fd, input.ptr + done, input.len - done);
        if (n < 0 && errno != EINTR) return; /* it reads no more: its exit status says why */
        if (n > 0) done += (size_t)n;
    }
}

nib_status nib_cli_process_run(const char *const *argv, nib_str input, int *status, nib_error *err) {
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    int ends[2] = {-1, -1}, code = 0, waited = 0;
    pid_t pid;
    if (input.ptr && pipe(ends) != 0) return nib_fail_errno(err, errno, "cannot make a pipe");
    if (input.ptr) fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGINT, &ignore, &old); /* Ctrl-C is for the other program */
    int error = spawn(&pid, argv, ends[0]);
    if (ends[0] >= 0) close(ends[0]);
    if (!error && input.ptr) feed(ends[1], input);
    if (ends[1] >= 0) close(ends[1]);
    while (!error && (waited = waitpid(pid, &code, 0)) < 0 && errno == EINTR) {
    }
    sigaction(SIGINT, &old, NULL);
    if (error || waited < 0) return nib_fail_errno(err, error ? error : errno, "cannot run %s", argv[0]);
    *status = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
    return NIB_OK;
}

/* ---- the editor */

const char *nib_cli_editor(void) {
    const char *visual = getenv("VISUAL"), *editor = getenv("EDITOR");
    return visual && *visual ? visual : editor && *editor ? editor : NULL;
}

static nib_status write_file(int fd, const char *path, const nib_buf *text, nib_error *err) {
    for (size_t done = 0; done < text->len;) {
        ssize_t n = write(fd, text->ptr + done, text->len - done);
        if (n < 0 && errno != EINTR) return nib_fail_errno(err, errno, "cannot write %s", path);
        if (n > 0) done += (size_t)n;
    }
    return NIB_OK;
}

/* The variable may hold options, too: a shell takes it apart. */
static nib_status edit_file(const char *path, nib_error *err) {
    const char *argv[] = {"sh", "-c", "eval \"${VISUAL:-$EDITOR}\" '\"$1\"'", "nib", path, NULL};
    int status = 0;
    NIB_TRY(nib_cli_process_run(argv, (nib_str){0}, &status, err));
    if (status) return nib_fail(err, NIB_E_IO, "%s failed with exit status %d", nib_cli_editor(), status);
    return NIB_OK;
}

nib_status nib_cli_editor_run(nib_buf *text, nib_error *err) {
    const char *folder = getenv("TMPDIR");
    char path[1024];
    int n = snprintf(path, sizeof path, "%s/nib-XXXXXX", folder && *folder == '/' ? folder : "/tmp");
    if (n < 0 || (size_t)n >= sizeof path) return nib_fail(err, NIB_E_ARG, "TMPDIR is too long");
    int fd = mkstemp(path); /* mode 0600 */
    if (fd < 0) return nib_fail_errno(err, errno, "cannot make %s", path);
    nib_status status = write_file(fd, path, text, err);
    close(fd);
    if (status == NIB_OK) status = edit_file(path, err);
    if (status == NIB_OK) {
        text->len = 0;
        status = nib_cli_input_file(path, text, err);
    }
    unlink(path);
    while (text->len && text->ptr[text->len - 1] == '\n') text->len--; /* editors add one */
    return status;
}
