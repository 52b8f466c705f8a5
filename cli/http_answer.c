/* cli/http_answer.c - see http_answer.h. Lengths are checked before they are used; what is ambiguous is an error. */
#include "http_answer.h"

#include "base/status.h"

#include <string.h>
#include <strings.h>

enum { AT_STATUS, AT_HEADER, AT_BODY, AT_CHUNK_SIZE, AT_CHUNK_END, AT_TRAILER, AT_END, MAX_HEAD = 1 << 16 };

/* ---- lines */

static bool is_name(nib_str line, const char *name, nib_str *value) {
    size_t n = strlen(name);
    if (line.len <= n || strncasecmp(line.ptr, name, n) != 0 || line.ptr[n] != ':') return false;
    *value = (nib_str){line.ptr + n + 1, line.len - n - 1};
    while (value->len && (*value->ptr == ' ' || *value->ptr == '\t')) value->ptr++, value->len--;
    while (value->len && (value->ptr[value->len - 1] == ' ' || value->ptr[value->len - 1] == '\t')) value->len--;
    return true;
}

static bool is_word(nib_str value, const char *word) {
    return value.len == strlen(word) && strncasecmp(value.ptr, word, value.len) == 0;
}

/* A number with no sign; false: it is none, or does not fit. */
static bool read_number(nib_str text, unsigned base, uint64_t *out) {
    uint64_t x = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = (char)(text.ptr[i] | 0x20);
        unsigned digit = c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(text.ptr[i] - '0');
        if (digit >= base || x > (UINT64_MAX - digit) / base) return false;
        x = x * base + digit;
    }
    *out = x;
    return text.len > 0;
}

static nib_status read_status(nib_cli_http_answer *a, nib_str line, nib_error *err) {
    uint64_t status;
    if (line.len < 12 || strncmp(line.ptr, "HTTP/1.", 7) != 0 || line.ptr[8] != ' ' || (line.len > 12 && line.ptr[12] != ' ') ||
        !read_number((nib_str){line.ptr + 9, 3}, 10, &status))
        return nib_fail(err, NIB_E_FORMAT, "the server does not speak HTTP/1.1: its answer begins with \"%.*s\"",
                        line.len < 40 ? (int)line.len : 40, line.ptr);
    a->status = (int)status;
    a->closes = line.ptr[7] == '0';
    a->state = AT_HEADER;
    return NIB_OK;
}

static nib_status read_header(nib_cli_http_answer *a, nib_str line, nib_error *err) {
    nib_str value;
    uint64_t number;
    if (is_name(line, "content-length", &value)) {
        if (!read_number(value, 10, &number) || (a->has_length && number != a->left))
            return nib_fail(err, NIB_E_FORMAT, "the server's Content-Length is \"%.40s\"", value.ptr);
        a->has_length = true;
        a->left = number;
    } else if (is_name(line, "transfer-encoding", &value)) {
        if (!is_word(value, "chunked")) return nib_fail(err, NIB_E_FORMAT, "the server's Transfer-Encoding is \"%.40s\"", value.ptr);
        a->is_chunked = true;
    } else if (is_name(line, "content-type", &value)) {
        size_t n = 0;
        while (n < value.len && n + 1 < sizeof a->type && value.ptr[n] != ';' && value.ptr[n] != ' ') n++;
        for (size_t i = 0; i < n; i++) a->type[i] = (char)(value.ptr[i] >= 'A' && value.ptr[i] <= 'Z' ? value.ptr[i] | 0x20 : value.ptr[i]);
        a->type[n] = 0;
    } else if (is_name(line, "connection", &value)) {
        if (is_word(value, "close")) a->closes = true;
        if (is_word(value, "keep-alive")) a->closes = false;
    } else if (is_name(line, "retry-after", &value)) {
        if (read_number(value, 10, &number) && number <= 86400) a->retry_s = (uint32_t)number;
    }
    return NIB_OK;
}

static void end_head(nib_cli_http_answer *a) {
    if (a->status < 200 && a->status != 101) { /* the answer proper is still to come */
        a->state = AT_STATUS;
        a->has_length = a->is_chunked = false;
        return;
    }
    bool has_body = a->status != 204 && a->status != 304;
    if (a->is_chunked && has_body) {
        a->state = AT_CHUNK_SIZE;
    } else if (!has_body || (a->has_length && a->left == 0)) {
        a->state = AT_END;
    } else {
        a->state = AT_BODY;
        if (!a->has_length) a->closes = true;
    }
}

static nib_status read_chunk_size(nib_cli_http_answer *a, nib_str line, nib_error *err) {
    size_t n = 0;
    while (n < line.len && line.ptr[n] != ';' && line.ptr[n] != ' ') n++;
    if (!read_number((nib_str){line.ptr, n}, 16, &a->left))
        return nib_fail(err, NIB_E_FORMAT, "the server's answer is damaged: a chunk has the length \"%.20s\"", line.ptr);
    a->state = a->left ? AT_BODY : AT_TRAILER;
    return NIB_OK;
}

static nib_status take_line(nib_cli_http_answer *a, nib_str line, nib_error *err) {
    switch (a->state) {
    case AT_STATUS: return read_status(a, line, err);
    case AT_HEADER:
        if (line.len) return read_header(a, line, err);
        end_head(a);
        return NIB_OK;
    case AT_CHUNK_SIZE: return read_chunk_size(a, line, err);
    case AT_CHUNK_END:
        if (line.len) return nib_fail(err, NIB_E_FORMAT, "the server's answer is damaged: a chunk is longer than it says");
        a->state = AT_CHUNK_SIZE;
        return NIB_OK;
    default:
        if (!line.len) a->state = AT_END;
        return NIB_OK;
    }
}

/* ---- pieces */

static nib_status feed_line(nib_cli_http_answer *a, nib_str *bytes, nib_error *err) {
    const char *end = memchr(bytes->ptr, '\n', bytes->len);
    size_t n = end ? (size_t)(end - bytes->ptr) + 1 : bytes->len;
    if (a->state == AT_CHUNK_SIZE || a->state == AT_CHUNK_END) a->n_head = a->line.len; /* these are bounded one by one */
    a->n_head += n;
    if (a->n_head > MAX_HEAD) return nib_fail(err, NIB_E_FORMAT, "the head of the server's answer is longer than %d bytes", MAX_HEAD);
    if (!nib_buf_append(&a->line, bytes->ptr, n)) return nib_fail_nomem(err, n, "the server's answer");
    *bytes = (nib_str){bytes->ptr + n, bytes->len - n};
    if (!end) return NIB_OK;
    a->line.len--;
    if (a->line.len && a->line.ptr[a->line.len - 1] == '\r') a->line.len--;
    a->line.ptr[a->line.len] = 0;
    nib_status status = take_line(a, (nib_str){a->line.ptr, a->line.len}, err);
    a->line.len = 0;
    return status;
}

static nib_status feed_body(nib_cli_http_answer *a, nib_str *bytes, nib_error *err) {
    bool is_bounded = a->is_chunked || a->has_length;
    nib_str piece = *bytes;
    if (is_bounded && piece.len > a->left) piece.len = (size_t)a->left;
    *bytes = (nib_str){bytes->ptr + piece.len, bytes->len - piece.len};
    if (is_bounded) {
        a->left -= piece.len;
        if (a->left == 0) a->state = a->is_chunked ? AT_CHUNK_END : AT_END;
    }
    return a->body(a->user, a, piece) ? NIB_OK : nib_fail(err, NIB_E_CANCELLED, "stopped");
}

nib_status nib_cli_http_answer_feed(nib_cli_http_answer *a, nib_str bytes, nib_error *err) {
    while (bytes.len) {
        if (a->state == AT_END) {
            a->closes = true; /* nobody asked for what follows */
            return NIB_OK;
        }
        NIB_TRY(a->state == AT_BODY ? feed_body(a, &bytes, err) : feed_line(a, &bytes, err));
    }
    return NIB_OK;
}

nib_status nib_cli_http_answer_end(nib_cli_http_answer *a, nib_error *err) {
    if (a->state == AT_BODY && !a->is_chunked && !a->has_length) a->state = AT_END;
    if (a->state == AT_END) return NIB_OK;
    return nib_fail(err, NIB_E_IO, "the server closed the connection %s",
                    a->state == AT_STATUS ? "and sent no answer" : "in the middle of its answer");
}

bool nib_cli_http_answer_is_complete(const nib_cli_http_answer *a) {
    return a->state == AT_END;
}

void nib_cli_http_answer_free(nib_cli_http_answer *a) {
    nib_buf_free(&a->line);
}
