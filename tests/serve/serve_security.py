"""Who may ask, and what one client can do to others: keys, CORS, TLS, limits, slow readers."""
import http.client
import json
import os
import socket
import ssl
import subprocess

from harness import CHAT, COMPLETIONS, PATIENCE, Case, Config

HI = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}


class Keys(Case):
    def test_keys(self):
        path = os.path.join(Config.scratch, "keys")
        with open(path, "w", encoding="ascii") as f:
            f.write("# of the team\nsecond-key\nthird-key\r\n")
        server = self.spawn("-c", 2048, "--api-key", "first-key", "--api-key-file", path, "--isolate-keys")
        self.assertEqual(server.get("/health").status, 200)
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer first-keyy"}, {"Authorization": "first-key"},
                        {"Authorization": "Bearer "}, {"x-api-key": "# of the team"}):
            reply = server.post(CHAT, HI, headers=headers)
            self.refused(reply, 401, code="invalid_api_key")
            self.assertEqual(reply.headers["www-authenticate"], "Bearer")
            self.refused(server.get("/v1/models", headers=headers), 401)
        for headers in ({"Authorization": "Bearer first-key"}, {"authorization": "bearer second-key"}, {"X-Api-Key": "third-key"}):
            self.assertEqual(server.post(CHAT, HI, headers=headers).status, 200)
        long = {"prompt": "A long text about nothing in particular. " * 10, "max_tokens": 1}
        cached = [server.post(COMPLETIONS, long, headers={"x-api-key": key}).json["usage"]["prompt_tokens_details"]["cached_tokens"]
                  for key in ("second-key", "second-key", "third-key")]
        self.assertTrue(cached[1] > 0 and cached[0] == cached[2] == 0, cached)
        self.assertNotIn(b"first-key", server.text())

    def test_each_protocol_says_it_in_its_own_way(self):
        server = self.spawn("-c", 1024, "--api-key", "k")
        self.assertEqual(server.post("/v1/messages", {}).json["error"]["type"], "authentication_error")
        self.assertEqual(server.post("/v1/messages", {}).json["type"], "error")
        self.assertIsInstance(server.post("/api/chat", {}).json["error"], str)
        self.assertEqual(server.post(CHAT, {}).json["error"]["code"], "invalid_api_key")

    def test_warning(self):
        server = self.spawn("-c", 1024, "--host", "0.0.0.0")
        self.assertIn(b"warning: everybody who can reach 0.0.0.0", server.text())


class Pages(Case):
    def test_other_origins(self):
        server = self.spawn("-c", 1024, "--cors-origin", "https://example.org")
        reply = server.request("OPTIONS", CHAT, headers={"Origin": "https://example.org", "Access-Control-Request-Method": "POST"})
        self.assertEqual(reply.status, 204)
        self.assertEqual(reply.headers["access-control-allow-origin"], "https://example.org")
        self.assertIn("Authorization", reply.headers["access-control-allow-headers"])
        self.assertEqual(server.get("/v1/models").headers["access-control-allow-origin"], "https://example.org")
        self.assertNotIn("access-control-allow-origin", self.server.get("/v1/models", headers={"Origin": "https://example.org"}).headers)

    def test_a_page_of_another_site_may_not_ask(self):
        body = {"prompt": "a", "max_tokens": 1}
        own = f"127.0.0.1:{self.server.port}"
        for headers, status in (({"Origin": "http://evil.example", "Content-Type": "text/plain"}, 403), ({"Origin": "null"}, 403),
                                ({"Host": "evil.example", "Origin": "http://evil.example"}, 403), ({"Host": "evil.example:80"}, 403),
                                ({"Host": own, "Origin": "http://" + own}, 200), ({"Host": "localhost:1"}, 200),
                                ({"Host": "[::1]:1"}, 200), ({"Host": "a.localhost"}, 200), ({"Host": "nib"}, 200)):
            with self.subTest(str(headers)):
                self.assertEqual(self.server.post(COMPLETIONS, body, headers=headers).status, status)
        named = self.spawn("-c", 1024, "--cors-origin", "https://example.org")
        keyed = self.spawn("-c", 1024, "--api-key", "k")
        for headers in ({"Origin": "https://example.org"}, {"Origin": "https://example.org", "Host": "example.org"}):
            self.assertEqual(named.post(COMPLETIONS, body, headers=headers).status, 200)
        self.assertEqual(named.post(COMPLETIONS, body, headers={"Origin": "https://example.com"}).status, 403)
        self.assertEqual(keyed.post(COMPLETIONS, body, headers={"Origin": "app://x", "x-api-key": "k"}).status, 200)

    def test_no_files(self):
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "/v1/models/../../etc/passwd", "//etc/passwd"):
            self.refused(self.server.get(path), 404)


class Tls(Case):
    def test_tls(self):
        cert, key = os.path.join(Config.scratch, "cert.pem"), os.path.join(Config.scratch, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-out", cert, "-keyout", key],
                       check=True, capture_output=True)
        server = self.spawn("-c", 1024, "--tls-cert", cert, "--tls-key", key)
        self.assertIn(b"https://127.0.0.1", server.text())
        c = http.client.HTTPSConnection("localhost", server.port, context=ssl.create_default_context(cafile=cert), timeout=PATIENCE)
        for stream in (False, True, False):
            c.request("POST", CHAT, json.dumps({**HI, "max_tokens": 4, "stream": stream}).encode(), {"Content-Type": "application/json"})
            answer = c.getresponse()
            self.assertEqual(answer.status, 200)
            self.assertTrue(answer.read())
        c.request("POST", CHAT, json.dumps({**HI, "max_tokens": 900, "stream": True, "ignore_eos": True}).encode(), {})
        c.sock.close()
        server.until(lambda: server.n_logged(" 499 ") == 1)
        self.assertFalse(server.raw(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP"))


class Limits(Case):
    def test_too_many_requests(self):
        server = self.spawn("-c", 2048, "--max-requests", "2", "-np", "2")
        body = {**HI, "max_tokens": 900, "ignore_eos": True}
        busy = [server.open_stream(CHAT, body) for _ in range(2)]
        replies = self.at_once([lambda: server.post(CHAT, HI) for _ in range(8)])
        for reply in replies:
            self.refused(reply, 503, code="queue_full")
            self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        for s in busy:
            s.close()
        server.until(lambda: server.post(CHAT, HI).status == 200)

    def test_too_many_connections(self):
        server = self.spawn("-c", 1024, "--max-connections", "4")
        held = [socket.create_connection((server.host, server.port)) for _ in range(4)]
        for s in held: # the fourth is accepted for sure when it was answered
            s.sendall(b"GET /live HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(b"200 OK", s.recv(1000))
        self.assertTrue(server.raw(b"").startswith(b"HTTP/1.1 503 "))
        for s in held:
            s.close()
        server.until(lambda: server.raw(b"GET /live HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200 "))

    def test_timeouts(self):
        server = self.spawn("-c", 4096, "--queue-timeout", "1", "-np", "1")
        s = server.open_stream(CHAT, {**HI, "max_tokens": 3000, "ignore_eos": True})
        self.refused(server.post(CHAT, HI), 504, code="timeout")
        s.close()

    def test_slow_reader(self):
        server = self.spawn("-c", 8192, "--timeout", "2")
        body = json.dumps({"prompt": "x", "max_tokens": 3000, "stream": True, "logprobs": 100, "ignore_eos": True, "n": 2}).encode()
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect((server.host, server.port))
        s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (COMPLETIONS.encode(), len(body)) + body)
        server.until(lambda: server.n_logged(" 499 ") == 1)
        self.assertEqual(server.post(CHAT, HI).status, 200)
        s.close()

    def test_the_text_is_not_logged(self):
        self.chat("Tell me about the hippopotamus.")
        self.assertNotIn(b"hippopotamus", self.server.text())
        server = self.spawn("-c", 1024, "--log-text")
        self.chat("Tell me about the hippopotamus.\x1b[2J", server=server)
        self.assertIn(b"hippopotamus", server.text())
        self.assertNotIn(b"\x1b", server.text())
