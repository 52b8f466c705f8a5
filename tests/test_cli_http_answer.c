/* tests/test_cli_http_answer.c - answers of HTTP/1.1: whole and cut anywhere they mean the same; what is damaged is refused. */
#include "../cli/http_answer.c" /* the program is no library */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bool keep(void *user, const nib_cli_http_answer *answer, nib_str piece) {
    assert_true(answer->status >= 200);
    return nib_buf_append(user, piece.ptr, piece.len);
}

/* Feeds the text in pieces of n bytes, and the end of the connection. */
static nib_status read_answer(const char *text, size_t n, nib_cli_http_answer *answer, nib_buf *body) {
    nib_error err;
    size_t len = strlen(text);
    *answer = (nib_cli_http_answer){.body = keep, .user = body};
    body->len = 0;
    for (size_t i = 0; i < len; i += n) {
        nib_status status = nib_cli_http_answer_feed(answer, (nib_str){text + i, n < len - i ? n : len - i}, &err);
        if (status != NIB_OK) return status;
    }
    return nib_cli_http_answer_end(answer, &err);
}

#define OK "HTTP/1.1 200 OK\r\n"

static void test_answers(void **state) {
    static const struct {
        const char *text, *body, *type;
        int status;
        bool closes;
    } cases[] = {
        {OK "Content-Length: 5\r\nContent-Type: Application/JSON; charset=utf-8\r\n\r\nhello", "hello", "application/json", 200, false},
        {OK "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: x\r\n\r\n", "hello", "", 200, false},
        {OK "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", "", "", 200, true},
        {OK "content-type:text/plain\r\n\r\nto the end", "to the end", "text/plain", 200, true},
        {"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\nno", "no", "", 404, true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503\nRetry-After: 7\nContent-Length: 0\n\n", "", "", 503, false},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", "", 204, false},
        {OK "Content-Length: 2\r\n\r\nhello", "he", "", 200, true},
    };
    nib_buf body = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t n = 1; n <= strlen(cases[i].text); n++) {
            nib_cli_http_answer answer;
            assert_int_equal(read_answer(cases[i].text, n, &answer, &body), NIB_OK);
            assert_int_equal(answer.status, cases[i].status);
            assert_string_equal(answer.type, cases[i].type);
            assert_int_equal(answer.closes, cases[i].closes);
            assert_int_equal(body.len, strlen(cases[i].body));
            assert_memory_equal(body.ptr ? body.ptr : "", cases[i].body, body.len);
            if (answer.status == 503) assert_int_equal(answer.retry_s, 7);
            nib_cli_http_answer_free(&answer);
        }
    nib_buf_free(&body);
}

static void test_damaged(void **state) {
    static const struct {
        const char *text;
        nib_status status;
    } cases[] = {
        {"", NIB_E_IO},
        {"HTTP/1.1 200", NIB_E_IO},
        {OK "Content-Length: 6\r\n\r\nhello", NIB_E_IO},
        {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", NIB_E_IO},
        {"SSH-2.0-OpenSSH_9.2\r\n", NIB_E_FORMAT},
        {"HTTP/2 200 OK\r\n", NIB_E_FORMAT},
        {"HTTP/1.1 2x0 OK\r\n", NIB_E_FORMAT},
        {OK "Content-Length: -1\r\n\r\n", NIB_E_FORMAT},
        {OK "Content-Length: 99999999999999999999\r\n\r\n", NIB_E_FORMAT},
        {OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", NIB_E_FORMAT},
        {OK "Transfer-Encoding: gzip\r\n\r\n", NIB_E_FORMAT},
        {OK "Transfer-Encoding: chunked\r\n\r\nx\r\n", NIB_E_FORMAT},
        {OK "Transfer-Encoding: chunked\r\n\r\n\r\n", NIB_E_FORMAT},
        {OK "Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n", NIB_E_FORMAT},
        {OK "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n", NIB_E_FORMAT},
    };
    nib_buf body = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t n = 1; n <= strlen(cases[i].text) + 1; n++) {
            nib_cli_http_answer answer;
            assert_int_equal(read_answer(cases[i].text, n, &answer, &body), cases[i].status);
            nib_cli_http_answer_free(&answer);
        }
    nib_buf_free(&body);
}

static void test_endless_head(void **state) {
    nib_cli_http_answer answer = {.body = keep};
    nib_error err;
    char line[] = OK;
    nib_status status = NIB_OK;
    (void)state;
    for (size_t n = 0; n < 2 * MAX_HEAD && status == NIB_OK; n += strlen(line)) {
        status = nib_cli_http_answer_feed(&answer, (nib_str){line, strlen(line)}, &err);
        memcpy(line, "X: y 2", 6);
    }
    assert_int_equal(status, NIB_E_FORMAT);
    nib_cli_http_answer_free(&answer);
}

static bool refuse(void *user, const nib_cli_http_answer *answer, nib_str piece) {
    (void)user, (void)answer, (void)piece;
    return false;
}

static void test_not_wanted(void **state) {
    static const char text[] = OK "Content-Length: 5\r\n\r\nhello";
    nib_cli_http_answer answer = {.body = refuse};
    nib_error err;
    (void)state;
    assert_int_equal(nib_cli_http_answer_feed(&answer, (nib_str){text, sizeof text - 1}, &err), NIB_E_CANCELLED);
    nib_cli_http_answer_free(&answer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_endless_head),
        cmocka_unit_test(test_not_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
