/* tests/test_server_http_message.c - requests of HTTP/1.x: the same result however the bytes are cut, and faults for what is
 * not strictly right. */
#include "server/http_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "POST /v1/x?a=b#c HTTP/1.1\r\nHost: x\r\nX-Name:  a value \r\n"

static void feed(nib_server_message *m, const char *text, size_t len, size_t cut) {
    for (size_t i = 0; i < len && m->stage < NIB_SERVER_COMPLETE;) {
        size_t n = i < cut && cut < len ? cut - i : len - i;
        i += nib_server_message_feed(m, text + i, n);
    }
}

static bool is(nib_str s, const char *text) {
    return s.len == strlen(text) && (!s.len || memcmp(s.ptr, text, s.len) == 0);
}

static void check_parts(const nib_server_message *m, const char *body) {
    assert_int_equal(m->stage, NIB_SERVER_COMPLETE);
    assert_true(is(m->method, "POST"));
    assert_true(is(m->path, "/v1/x"));
    assert_true(is(m->query, "a=b"));
    assert_true(is(nib_server_message_header(m, "x-name"), "a value"));
    assert_null(nib_server_message_header(m, "x-other").ptr);
    assert_true(is((nib_str){m->body.ptr, m->body.len}, body));
}

static void test_cuts(void **state) {
    static const struct {
        const char *text, *body;
    } cases[] = {
        {HEAD "\r\n", ""},
        {HEAD "Content-Length: 11\r\n\r\nhello world", "hello world"},
        {HEAD "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n006;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n", "hello world"},
        {"\r\n\nPOST http://host/v1/x?a=b HTTP/1.1\nhost: x\nX-NAME:a value\ncontent-length: 1\n\n{", "{"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_server_message m = {.max_head = 1000, .max_body = 100};
        for (size_t cut = 0; cut <= strlen(cases[i].text); cut++) {
            feed(&m, cases[i].text, strlen(cases[i].text), cut);
            check_parts(&m, cases[i].body);
            nib_server_message_reset(&m);
        }
        nib_server_message_free(&m);
    }
}

static void test_stops_at_the_end(void **state) {
    static const char text[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next";
    nib_server_message m = {.max_head = 1000, .max_body = 100};
    (void)state;
    assert_int_equal(nib_server_message_feed(&m, text, strlen(text)), strlen(text) - strlen("GET /next"));
    assert_int_equal(m.stage, NIB_SERVER_COMPLETE);
    assert_int_equal(nib_server_message_feed(&m, text, strlen(text)), 0);
    nib_server_message_free(&m);
}

static void test_connection(void **state) {
    static const struct {
        const char *text;
        bool keeps_alive;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade, close\r\n\r\n", false},
        {"GET / HTTP/1.0\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_server_message m = {.max_head = 1000, .max_body = 100};
        feed(&m, cases[i].text, strlen(cases[i].text), 0);
        assert_int_equal(m.stage, NIB_SERVER_COMPLETE);
        assert_int_equal(m.keeps_alive, cases[i].keeps_alive);
        nib_server_message_free(&m);
    }
}

static void test_faults(void **state) {
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"hello\r\n\r\n", 400},
        {"GET / HTTP/1.1 \r\nHost: x\r\n\r\n", 400},
        {"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        {"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\n b: c\r\n\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: x\r\nA: \x02\r\n\r\n", 400},
        {HEAD "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
        {HEAD "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
        {HEAD "Content-Length: +1\r\n\r\n", 400},
        {HEAD "Content-Length: \r\n\r\n", 400},
        {HEAD "Content-Length: 101\r\n\r\n", 413},
        {HEAD "Content-Length: 18446744073709551617\r\n\r\n", 413},
        {HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n", 501},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n\r\n", 400},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n65\r\n", 413},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n10000000000000001\r\n", 413},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
        {HEAD "Expect: more\r\n\r\n", 417},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_server_message m = {.max_head = 1000, .max_body = 100};
        feed(&m, cases[i].text, strlen(cases[i].text), 0);
        assert_int_equal(m.stage, NIB_SERVER_BAD);
        assert_int_equal(m.status, cases[i].status);
        assert_non_null(m.fault);
        nib_server_message_free(&m);
    }
}

static void test_limits(void **state) {
    static const struct {
        const char *head, *again;
        int n, status;
    } cases[] = {
        {"", "G", 2000, 431},
        {"GET / HTTP/1.1\r\nHost: x\r\nA: ", "x", 2000, 431},
        {"GET / HTTP/1.1\r\nHost: x\r\n", "A:b\r\n", 150, 431},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n1;", "x", 2000, 431},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 101, 413},
        {HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", 2000, 431},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        nib_server_message m = {.max_head = 1000, .max_body = 100};
        feed(&m, cases[i].head, strlen(cases[i].head), 0);
        for (int k = 0; k < cases[i].n; k++) feed(&m, cases[i].again, strlen(cases[i].again), 0);
        feed(&m, "\r\n", 2, 0);
        assert_int_equal(m.stage, NIB_SERVER_BAD);
        assert_int_equal(m.status, cases[i].status);
        assert_true(m.head.len <= 1000 && m.body.len <= 100);
        nib_server_message_free(&m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts), cmocka_unit_test(test_stops_at_the_end), cmocka_unit_test(test_connection),
        cmocka_unit_test(test_faults), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
