/* server/http_message.c - HTTP/1.x requests, byte by byte as they come (http_message.h). */
#include "http_message.h"

#include "base/hex.h"

#include <string.h>
#include <strings.h>

enum { SIZE, SIZE_EXTENSION, DATA, DATA_END, TRAILER_START, TRAILER }; /* parts of a chunk */

#define MAX_KEPT 65536

static void fault(nib_server_message *m, int status, const char *text) {
    m->stage = NIB_SERVER_BAD;
    m->status = status;
    m->fault = text;
}

/* ---- the head */

static bool is_token_char(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(nib_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (!is_token_char((unsigned char)s.ptr[i])) return false;
    return s.len > 0;
}

/* Printable, bytes beyond ASCII included, and tabs. */
static bool is_text(nib_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (((unsigned char)s.ptr[i] < 0x20 && s.ptr[i] != '\t') || s.ptr[i] == 0x7F) return false;
    return true;
}

static bool is_word(nib_str s, const char *word) {
    return s.len == strlen(word) && strncasecmp(s.ptr, word, s.len) == 0;
}

static nib_str trim(nib_str s) {
    while (s.len && (*s.ptr == ' ' || *s.ptr == '\t')) s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t')) s.len--;
    return s;
}

/* Cuts *left at the separator; all of it when there is none. */
static nib_str cut(nib_str *left, char separator) {
    const char *end = left->len ? memchr(left->ptr, separator, left->len) : NULL;
    nib_str part = {left->ptr, end ? (size_t)(end - left->ptr) : left->len};
    size_t n = part.len + (end ? 1 : 0);
    *left = (nib_str){left->ptr + n, left->len - n};
    return part;
}

static nib_str next_line(nib_str *left) {
    nib_str line = cut(left, '\n');
    if (line.len && line.ptr[line.len - 1] == '\r') line.len--;
    return line;
}

static void read_target(nib_server_message *m, nib_str target) {
    if (target.len >= 7 && strncasecmp(target.ptr, "http://", 7) == 0) { /* as proxies are asked */
        const char *slash = memchr(target.ptr + 7, '/', target.len - 7);
        target = slash ? (nib_str){slash, target.len - (size_t)(slash - target.ptr)} : (nib_str){"/", 1};
    }
    bool is_path = target.len && (*target.ptr == '/' || is_word(target, "*"));
    for (size_t i = 0; i < target.len; i++) is_path &= (unsigned char)target.ptr[i] > 0x20 && target.ptr[i] != 0x7F;
    if (!is_path) {
        fault(m, 400, "the request line has no path");
        return;
    }
    m->query = target;
    m->path = cut(&m->query, '?');
    nib_str fragment = m->query;
    m->query = cut(&fragment, '#');
}

static void read_first_line(nib_server_message *m, nib_str line) {
    m->method = cut(&line, ' ');
    nib_str target = cut(&line, ' ');
    if (!is_token(m->method) || !target.len || line.len != 8 || strncmp(line.ptr, "HTTP/", 5) != 0) {
        fault(m, 400, "the request line is malformed, expected for instance \"GET /health HTTP/1.1\"");
    } else if (strncmp(line.ptr, "HTTP/1.", 7) != 0 || (line.ptr[7] != '0' && line.ptr[7] != '1')) {
        fault(m, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    } else {
        m->is_old = line.ptr[7] == '0';
        m->keeps_alive = !m->is_old;
        read_target(m, target);
    }
}

static void read_header_line(nib_server_message *m, nib_str line) {
    nib_str value = line, name = cut(&value, ':');
    if (name.len == line.len || !is_token(name) || !is_text(value)) {
        fault(m, 400, "a header line is malformed, expected \"Name: value\"");
    } else if (m->n_headers == NIB_SERVER_MAX_HEADERS) {
        fault(m, 431, "too many header lines, at most 100");
    } else {
        m->headers[m->n_headers++] = (nib_server_header){name, trim(value)};
    }
}

static size_t count(const nib_server_message *m, const char *name) {
    size_t n = 0;
    for (size_t i = 0; i < m->n_headers; i++) n += is_word(m->headers[i].name, name);
    return n;
}

static void read_length(nib_server_message *m, nib_str value) {
    size_t n = 0;
    bool is_number = value.len > 0;
    for (size_t i = 0; i < value.len; i++) {
        is_number &= value.ptr[i] >= '0' && value.ptr[i] <= '9';
        n = n > SIZE_MAX / 16 ? n : n * 10 + (size_t)(value.ptr[i] - '0');
    }
    if (!is_number) fault(m, 400, "Content-Length is no number");
    else if (n > m->max_body) fault(m, 413, "the body is longer than this server takes");
    m->left = n;
}

static bool lists_word(nib_str list, const char *word) {
    while (list.len)
        if (is_word(trim(cut(&list, ',')), word)) return true;
    return false;
}

/* Which bytes of the connection are the body. */
static void read_framing(nib_server_message *m) {
    nib_str length = nib_server_message_header(m, "content-length"), coding = nib_server_message_header(m, "transfer-encoding");
    nib_str connection = nib_server_message_header(m, "connection"), expect = nib_server_message_header(m, "expect");
    size_t n_lengths = count(m, "content-length"), n_codings = count(m, "transfer-encoding");
    if (n_lengths > 1 || n_codings > 1 || (n_lengths && n_codings)) {
        fault(m, 400, "the length of the body is given more than once");
        return;
    }
    if (coding.ptr && (m->is_old || !is_word(coding, "chunked"))) {
        fault(m, m->is_old ? 400 : 501, "Transfer-Encoding is not chunked");
        return;
    }
    if (expect.ptr && !is_word(expect, "100-continue")) {
        fault(m, 417, "Expect is not 100-continue");
        return;
    }
    m->is_chunked = coding.ptr != NULL;
    m->expects_continue = expect.ptr && !m->is_old;
    if (length.ptr) read_length(m, length);
    if (lists_word(connection, "close")) m->keeps_alive = false;
    else if (lists_word(connection, "keep-alive")) m->keeps_alive = true;
}

static void read_head(nib_server_message *m) {
    nib_str left = {m->head.ptr, m->head.len};
    read_first_line(m, next_line(&left));
    while (m->stage == NIB_SERVER_HEAD && left.len) {
        nib_str line = next_line(&left);
        if (line.len) read_header_line(m, line);
    }
    if (m->stage != NIB_SERVER_HEAD) return;
    if (!m->is_old && count(m, "host") != 1) fault(m, 400, "expected one Host header");
    else read_framing(m);
    if (m->stage == NIB_SERVER_HEAD) m->stage = m->is_chunked || m->left ? NIB_SERVER_BODY : NIB_SERVER_COMPLETE;
}

/* Takes bytes up to the empty line that ends the head. */
static size_t feed_head(nib_server_message *m, const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        size_t len = m->head.len;
        if (len == 0 && (bytes[i] == '\r' || bytes[i] == '\n')) continue; /* some clients end a body with a newline */
        if (len == 0 && !is_token((nib_str){bytes + i, 1})) {
            fault(m, 400, "the request begins with a byte that no HTTP has; TLS is not spoken here");
            return i;
        }
        if (len == m->max_head) {
            fault(m, 431, "request line and headers are longer than this server takes");
            return i;
        }
        if (!nib_buf_char(&m->head, bytes[i])) {
            fault(m, 503, "out of memory");
            return i;
        }
        if (bytes[i] != '\n') continue;
        const char *end = m->head.ptr + len; /* at the newline */
        if (end[-1] == '\n' || (len > 1 && end[-1] == '\r' && end[-2] == '\n')) {
            read_head(m);
            return i + 1;
        }
    }
    return n;
}

/* ---- the body */

static void take(nib_server_message *m, const char *bytes, size_t n) {
    if (n > m->max_body - m->body.len) fault(m, 413, "the body is longer than this server takes");
    else if (!nib_buf_append(&m->body, bytes, n)) fault(m, 503, "out of memory");
}

/* The line before a chunk is complete. */
static void begin_chunk(nib_server_message *m) {
    if (!m->has_size) fault(m, 400, "the length of a chunk is no number");
    else if (m->left > m->max_body - m->body.len) fault(m, 413, "the body is longer than this server takes");
    m->chunk_part = m->left ? DATA : TRAILER_START;
    m->has_size = false;
    m->n_line_bytes = 0;
}

/* One byte of the lines around chunks. */
static void feed_chunk_line(nib_server_message *m, char c) {
    int digit = nib_hex_digit(c);
    if (++m->n_line_bytes > m->max_head) {
        fault(m, 431, "the lines between chunks are longer than this server takes");
    } else if (m->chunk_part == SIZE && digit >= 0) {
        m->left = m->left > m->max_body ? m->left : m->left * 16 + (size_t)digit;
        m->has_size = true;
    } else if (m->chunk_part <= SIZE_EXTENSION && c == '\n') {
        begin_chunk(m);
    } else if (m->chunk_part == SIZE && (c == ';' || c == '\r' || c == ' ')) {
        m->chunk_part = SIZE_EXTENSION;
    } else if (m->chunk_part == SIZE) {
        fault(m, 400, "the length of a chunk is no number");
    } else if (m->chunk_part == DATA_END && c == '\n') {
        m->chunk_part = SIZE;
    } else if (m->chunk_part == DATA_END && c != '\r') {
        fault(m, 400, "a chunk is longer than it says");
    } else if (m->chunk_part == TRAILER_START && c == '\n') {
        m->stage = NIB_SERVER_COMPLETE;
    } else if (m->chunk_part == TRAILER_START && c != '\r') {
        m->chunk_part = TRAILER;
    } else if (m->chunk_part == TRAILER && c == '\n') {
        m->chunk_part = TRAILER_START;
    }
}

static size_t feed_body(nib_server_message *m, const char *bytes, size_t n) {
    size_t used = 0;
    while (used < n && m->stage == NIB_SERVER_BODY) {
        if (m->is_chunked && m->chunk_part != DATA) {
            feed_chunk_line(m, bytes[used++]);
            continue;
        }
        size_t now = n - used < m->left ? n - used : m->left;
        take(m, bytes + used, now);
        used += now;
        m->left -= now;
        if (m->left || m->stage == NIB_SERVER_BAD) continue;
        if (m->is_chunked) m->chunk_part = DATA_END;
        else m->stage = NIB_SERVER_COMPLETE;
    }
    return used;
}

size_t nib_server_message_feed(nib_server_message *m, const char *bytes, size_t n) {
    if (m->stage == NIB_SERVER_HEAD) return feed_head(m, bytes, n);
    return m->stage == NIB_SERVER_BODY ? feed_body(m, bytes, n) : 0;
}

nib_str nib_server_message_header(const nib_server_message *m, const char *name) {
    for (size_t i = 0; i < m->n_headers; i++)
        if (is_word(m->headers[i].name, name)) return m->headers[i].value;
    return (nib_str){0};
}

static void empty(nib_buf *buf) {
    if (buf->capacity > MAX_KEPT || buf->failed) nib_buf_free(buf);
    buf->len = 0;
}

void nib_server_message_reset(nib_server_message *m) {
    nib_buf head = m->head, body = m->body;
    empty(&head);
    empty(&body);
    *m = (nib_server_message){.max_head = m->max_head, .max_body = m->max_body, .head = head, .body = body};
}

void nib_server_message_free(nib_server_message *m) {
    nib_buf_free(&m->head);
    nib_buf_free(&m->body);
}
