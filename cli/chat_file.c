/* cli/chat_file.c - a conversation -> a file, and back: JSON for people and programs, or a session, which has the same object
 * in its first line and the keys and values of its tokens after it. */
#include "chat.h"

#include "base/status.h"
#include "input.h"
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_LINE = 1 << 28 };

static int put_json(const char *text, size_t n, void *out) {
    return nib_buf_append(out, text, n) ? 0 : -1;
}

static nib_status to_json(json_t *value, size_t flags, nib_buf *out, nib_error *err) {
    bool ok = json_dump_callback(value, put_json, out, flags) == 0 && nib_buf_char(out, '\n');
    json_decref(value);
    return ok ? NIB_OK : nib_fail_nomem(err, 0, "the conversation");
}

/* Takes the messages of the object, or the array that they are; names what is wrong. */
static nib_status take_messages(nib_cli_chat *c, json_t *value, nib_error *err) {
    json_t *messages = json_is_object(value) ? json_object_get(value, "messages") : value, *message;
    size_t i;
    if (!json_is_array(messages))
        return nib_fail(err, NIB_E_FORMAT, "expected messages: a JSON array, or an object with \"messages\"");
    json_array_foreach(messages, i, message)
        if (!json_is_string(json_object_get(message, "role")))
            return nib_fail(err, NIB_E_FORMAT, "messages[%zu] must be an object with a \"role\"", i);
    json_incref(messages);
    json_decref(c->messages);
    c->messages = messages;
    c->n_dropped = 0;
    return NIB_OK;
}

#define SESSION_HEAD "{\"nib_session\""

static bool is_session(const char *path) {
    char head[sizeof SESSION_HEAD - 1];
    FILE *f = fopen(path, "rb");
    bool is = f && fread(head, 1, sizeof head, f) == sizeof head && memcmp(head, SESSION_HEAD, sizeof head) == 0;
    if (f) fclose(f);
    return is;
}

nib_status nib_cli_chat_save(const nib_cli_chat *c, const char *path, nib_error *err) {
    nib_buf text = {0};
    if ((c->opt.session_file && strcmp(path, c->opt.session_file) == 0) || is_session(path))
        return nib_fail(err, NIB_E_ARG, "%s is a session, whose keys and values would be lost: choose another name", path);
    json_t *object = json_object();
    json_object_set(object, "messages", c->messages);
    nib_status status = to_json(object, JSON_INDENT(2), &text, err);
    if (status == NIB_OK) status = nib_cli_replace_text(path, nib_cli_bytes(&text), err);
    nib_buf_free(&text);
    return status;
}

/* Of a session only the first line is JSON. */
static nib_str json_of(nib_str text) {
    const char *end = text.len ? memchr(text.ptr, '\n', text.len) : NULL;
    bool has_head = end && text.len >= sizeof SESSION_HEAD && memcmp(text.ptr, SESSION_HEAD, sizeof SESSION_HEAD - 1) == 0;
    return has_head ? (nib_str){text.ptr, (size_t)(end - text.ptr)} : text;
}

nib_status nib_cli_chat_load(nib_cli_chat *c, const char *path, nib_error *err) {
    json_t *value = NULL;
    nib_buf text = {0};
    nib_status status = nib_cli_input_file(path, &text, err);
    if (status == NIB_OK) {
        status = nib_cli_json_parse(json_of(nib_cli_bytes(&text)), &value, err);
        if (status == NIB_OK) status = take_messages(c, value, err);
        if (status != NIB_OK) nib_error_prefix(err, "%s", path);
    }
    nib_buf_free(&text);
    json_decref(value);
    return status;
}

/* ---- sessions */

static nib_status write_session(const nib_cli_chat *c, nib_cli_replace *file, nib_error *err) {
    nib_buf line = {0};
    json_t *object = json_object();
    nib_cli_json_set_int(object, "nib_session", 1);
    if (c->opt.model) nib_cli_json_set_str(object, "model", c->opt.model);
    nib_cli_json_set_int(object, "dropped", (int64_t)c->n_dropped);
    json_object_set(object, "messages", c->messages);
    nib_status status = to_json(object, JSON_COMPACT, &line, err);
    if (status == NIB_OK) status = nib_cli_replace_write(file, line.ptr, line.len, err);
    nib_buf_free(&line);
    if (status == NIB_OK && c->s.ctx) status = nib_seq_save(c->s.ctx, 0, c->ids.ids, nib_cli_replace_write, file, err);
    return status;
}

/* Notes the state of the file; false: it is another one than at loading. */
static bool is_same(const char *path, nib_cli_chat *c, bool is_loading) {
    struct stat st;
    if (stat(path, &st) != 0) memset(&st, 0, sizeof st);
    const int64_t now[] = {(int64_t)st.st_dev, (int64_t)st.st_ino, (int64_t)st.st_mtim.tv_sec, (int64_t)st.st_mtim.tv_nsec,
                           (int64_t)st.st_size};
    _Static_assert(sizeof now == sizeof c->session, "the same five numbers");
    if (is_loading) memcpy(&c->session, now, sizeof now);
    return memcmp(&c->session, now, sizeof now) == 0;
}

nib_status nib_cli_chat_session_save(nib_cli_chat *c, const char *path, nib_error *err) {
    nib_cli_replace file;
    char beside[4096];
    if (!is_same(path, c, false) && snprintf(beside, sizeof beside, "%s.%ld", path, (long)getpid()) < (int)sizeof beside) {
        nib_cli_warning(c->s.term, "%s was changed by another program meanwhile: this conversation is kept in %s", path, beside);
        path = beside;
    }
    NIB_TRY(nib_cli_replace_open(&file, path, err));
    nib_status status = write_session(c, &file, err);
    if (status == NIB_OK) return nib_cli_replace_finish(&file, err);
    nib_cli_replace_abandon(&file);
    return status;
}

static nib_status read_bytes(void *user, void *data, size_t n, nib_error *err) {
    FILE *file = user;
    if (fread(data, 1, n, file) == n) return NIB_OK;
    if (ferror(file)) return nib_fail_errno(err, errno, "cannot be read");
    return nib_fail(err, NIB_E_FORMAT, "the file ends too early");
}

static nib_status read_line(FILE *file, nib_buf *line, nib_error *err) {
    int c;
    while ((c = getc(file)) != EOF && c != '\n')
        if (line->len == MAX_LINE || !nib_buf_char(line, (char)c))
            return nib_fail(err, NIB_E_FORMAT, "is no session: its first line is longer than %d bytes", MAX_LINE);
    if (ferror(file)) return nib_fail_errno(err, errno, "cannot be read");
    return line->len ? NIB_OK : nib_fail(err, NIB_E_FORMAT, "is empty: remove it to begin a session");
}

/* The first line. */
static nib_status read_conversation(nib_cli_chat *c, FILE *file, nib_error *err) {
    nib_buf line = {0};
    json_t *value = NULL;
    nib_status status = read_line(file, &line, err);
    if (status == NIB_OK && nib_cli_json_parse(nib_cli_bytes(&line), &value, err) != NIB_OK) {
        nib_error_prefix(err, "is no session, or damaged in its first line");
        status = NIB_E_FORMAT;
    }
    if (status == NIB_OK && json_integer_value(json_object_get(value, "nib_session")) != 1)
        status = nib_fail(err, NIB_E_FORMAT, "is no session of this version of nib");
    if (status == NIB_OK) status = take_messages(c, value, err);
    json_int_t dropped = json_integer_value(json_object_get(value, "dropped"));
    if (status == NIB_OK && dropped > 0 && (size_t)dropped < json_array_size(c->messages)) c->n_dropped = (size_t)dropped;
    json_decref(value);
    nib_buf_free(&line);
    return status;
}

/* Opening a FIFO would wait for a writer, were it not for O_NONBLOCK. */
static FILE *open_session(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "rb");
    if (fd >= 0 && !file) close(fd);
    return file;
}

nib_status nib_cli_chat_session_load(nib_cli_chat *c, const char *path, nib_error *err) {
    FILE *file = open_session(path);
    nib_error why;
    is_same(path, c, true);
    if (!file && errno == ENOENT) { /* better known now than after the answer */
        nib_cli_replace fresh;
        NIB_TRY(nib_cli_replace_open(&fresh, path, err));
        nib_cli_replace_abandon(&fresh);
        return NIB_OK;
    }
    if (!file) return nib_fail(err, NIB_E_IO, "cannot open %s: %s", path, strerror(errno));
    struct stat st;
    bool is_regular = fstat(fileno(file), &st) == 0 && S_ISREG(st.st_mode);
    nib_status status = is_regular ? read_conversation(c, file, err) : nib_fail(err, NIB_E_FORMAT, "is not a regular file");
    if (status != NIB_OK) {
        nib_error_prefix(err, "%s", path);
    } else if (c->s.ctx && nib_seq_load(c->s.ctx, 0, read_bytes, file, &c->ids, &why) != NIB_OK) {
        nib_cli_warning(c->s.term, "%s: the conversation is loaded, its keys and values are not used: %s", path, why.message);
    }
    fclose(file);
    return status;
}
