"""HTTP itself: routes, methods, framing, limits, keep-alive, hang-ups, the end of the server."""
import email.utils
import json
import os
import re
import signal
import socket
import subprocess
import time

from harness import CHAT, PATIENCE, Case, Config, read_all


class Routes(Case):
    def test_health(self):
        for path in ("/health", "/live", "/ready"):
            self.assertEqual(self.server.get(path).json, {"status": "ok"})

    def test_nothing_there(self):
        self.refused(self.server.get("/nix"), 404, code="not_found")
        self.refused(self.server.post("/v1/nosuch", {}), 404)

    def test_method(self):
        reply = self.server.get(CHAT)
        self.refused(reply, 405)
        self.assertEqual(reply.headers["allow"], "POST")

    def test_head_is_get_without_a_body(self):
        reply = self.server.request("HEAD", "/health")
        self.assertEqual((reply.status, reply.body), (200, b""))
        self.assertEqual(reply.headers["content-length"], "15")

    def test_date(self):
        date = email.utils.parsedate_to_datetime(self.server.get("/health").headers["date"])
        self.assertLess(abs(time.time() - date.timestamp()), PATIENCE)

    def test_options(self):
        reply = self.server.request("OPTIONS", CHAT)
        self.assertEqual(reply.status, 204)
        self.assertNotIn("access-control-allow-origin", reply.headers)

    def test_models(self):
        listed = self.server.get("/v1/models").json
        name = listed["data"][0]["id"]
        self.assertEqual(name, "SmolLM2-135M-Instruct.Q4_1")
        self.assertEqual(self.server.get("/v1/models/" + name).json, listed["data"][0])
        self.assertEqual(self.server.get("/v1/models/" + name.replace("-", "%2d")).json, listed["data"][0])
        self.refused(self.server.get("/v1/models/other"), 404, code="model_not_found")


class Framing(Case):
    def head(self, *lines, method=b"GET /health"):
        return method + b" HTTP/1.1\r\n" + b"".join(line + b"\r\n" for line in (b"Connection: close", *lines)) + b"\r\n"

    def says(self, answer, status):
        head, _, body = answer.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 %d " % status), answer[:200])
        self.assertIn(b"application/json", head)
        self.assertTrue(json.loads(body)["error"]["message"])

    def test_malformed(self):
        cases = {
            b"hello\r\n\r\n": 400,
            b"\x16\x03\x01\x02": 400, # TLS
            b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n": 400,
            b"GET health HTTP/1.1\r\nHost: x\r\n\r\n": 400,
            b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n": 505,
            b"GET /health HTTP/1.1\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n": 400,
            b"GET /health HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n": 400,
            self.head(b"Host: x", b"Content-Length: 2", b"Content-Length: 2"): 400,
            self.head(b"Host: x", b"Content-Length: 2", b"Transfer-Encoding: chunked"): 400,
            self.head(b"Host: x", b"Content-Length: -2"): 400,
            self.head(b"Host: x", b"Content-Length: 99999999999999999999999999"): 413,
            self.head(b"Host: x", b"Content-Length: 100000000"): 413,
            self.head(b"Host: x", b"Transfer-Encoding: gzip"): 501,
            self.head(b"Host: x", b"Transfer-Encoding: chunked") + b"x\r\n": 400,
            self.head(b"Host: x", b"Transfer-Encoding: chunked") + b"\r\n": 400,
            self.head(b"Host: x", b"Transfer-Encoding: chunked") + b"2\r\nabc\r\n": 400,
            self.head(b"Host: x", b"Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n": 413,
            self.head(b"Host: x", b"Expect: wonders"): 417,
            self.head(b"Host: x", *(b"A%d: x" % i for i in range(200))): 431,
            self.head(b"Host: x", b"A: " + b"x" * 40000): 431,
            b"G" * 40000: 431,
        }
        for sent, status in cases.items():
            with self.subTest(sent[:80]):
                self.says(self.server.raw(sent), status)
        self.assertIn(b"  431 0 ms", self.server.text())

    def test_byte_by_byte(self):
        request = self.head(b"Host: x")
        self.assertIn(b'{"status":"ok"}', self.server.raw(*(request[i:i + 1] for i in range(len(request)))))

    def test_old_client(self):
        answer = self.server.raw(b"GET /health HTTP/1.0\r\n\r\n")
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 "))
        self.assertIn(b"Connection: close", answer)

    def test_pipelined(self):
        one = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
        body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}).encode()
        post = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (CHAT.encode(), len(body)) + body
        answer = self.server.raw(one * 20 + post + one * 20 + self.head(b"Host: x"))
        self.assertEqual(answer.count(b"HTTP/1.1 200 OK"), 42)

    def test_long_body_is_refused_while_it_is_sent(self):
        head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" % CHAT.encode()
        self.says(self.server.raw(head, *[b" " * 1000000] * 100), 413)

    def test_nobody_wants_that_body(self):
        head = b"POST /nix HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\nExpect: 100-continue\r\n\r\n"
        self.says(self.server.raw(head), 404)

    def test_slow_head_is_cut(self):
        with socket.create_connection((self.server.host, self.server.port)) as s:
            s.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nA: ")
            s.settimeout(0.5)

            def is_cut(): # a byte now and then does not help
                try:
                    s.sendall(b"x")
                    return not s.recv(1000)
                except socket.timeout:
                    return False
                except OSError:
                    return True
            self.server.until(is_cut)


class Connections(Case):
    def test_kept_alive(self):
        c = self.server.connect()
        for _ in range(3):
            body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2}
            self.assertEqual(self.server.post(CHAT, body, connection=c).status, 200)
            port = c.sock.getsockname()[1]
            self.assertEqual(len(self.server.post(CHAT, {**body, "stream": True}, connection=c).events), 4)
            self.assertEqual(self.server.post(CHAT, b"{bad", connection=c).status, 400)
            self.assertEqual(self.server.get("/nix", connection=c).status, 404)
            self.assertEqual(c.sock.getsockname()[1], port)
        c.close()

    def figure(self, name):
        return float(re.search(rf"^nib_{name} (\S+)$", self.server.get("/metrics").body.decode(), re.M)[1])

    def test_hang_up(self):
        long = " ".join(str(i) for i in range(1000))
        body = {"messages": [{"role": "user", "content": long}], "max_tokens": 2000, "temperature": 0, "ignore_eos": True}
        short = dict(body, messages=[{"role": "user", "content": "Count"}])
        for how, request in {"mid-prefill": dict(body, stream=True), "whole": body, "decoding, whole": short}.items():
            with self.subTest(how):
                before, generated = self.server.n_logged(" 499 "), self.figure("generation_tokens_total")
                s = self.server.send(CHAT, request)
                time.sleep(0.3)
                s.close()
                self.server.until(lambda: self.server.n_logged(" 499 ") > before)
                self.server.until(lambda: self.figure("requests_running") == 0)
                self.assertLess(self.figure("generation_tokens_total") - generated, 2000) # it did not go on to the end

    def test_hang_up_in_a_stream(self):
        before = self.server.n_logged(" 499 ")
        streams = [self.server.open_stream(CHAT, {"messages": [{"role": "user", "content": "Count"}], "ignore_eos": True}) for _ in range(4)]
        for s in streams:
            s.close()
        self.server.until(lambda: self.server.n_logged(" 499 ") == before + 4)


class Life(Case):
    def test_wrong_starts(self):
        taken = self.server.port
        for args, says in ((["--port", taken], "Address already in use"), (["-m", "nix.gguf"], "nix.gguf"), (["--host", "no.such.host.invalid"], "no.such"),
                           (["--tls-cert", "nix.pem"], "belong together"), (["--cors-origin", "https://a.example/"], "without a path"),
                           (["--cors-origin", ""], "without a path"), (["--cors-origin", "a\nb: c"], "without a path"),
                           (["--api-key", ""], "empty"), (["--api-key-file", "/dev/null"], "no keys")):
            done = subprocess.run([Config.nib, "serve", "-m", Config.model, "--port", "0", *map(str, args)], capture_output=True, timeout=PATIENCE)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(says, done.stderr.decode())

    def test_signal_while_loading(self):
        server = self.spawn("-c", 1024, wait=False)
        self.refused(server.get("/health"), 503, code="loading")
        self.assertEqual(server.get("/live").status, 200)
        self.refused(server.post(CHAT, {"messages": []}), 503)
        self.assertEqual(server.stop(), 0)

    def test_drain(self):
        server = self.spawn("-c", 2048)
        s = server.open_stream(CHAT, {"messages": [{"role": "user", "content": "Count"}], "max_tokens": 60, "ignore_eos": True})
        server.process.send_signal(signal.SIGTERM)
        server.until(lambda: b"shutting down" in server.text())
        server.until(lambda: server.get("/health").status == 503)
        self.assertEqual(server.get("/live").status, 200)
        self.refused(server.post(CHAT, {"messages": [{"role": "user", "content": "Hi"}]}), 503, code="shutting_down")
        self.assertTrue(read_all(s).endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))
        self.assertEqual(server.process.wait(PATIENCE), 0)

    def test_second_signal(self):
        server = self.spawn("-c", 4096, "--shutdown-timeout", 3600, "--stream-ms", 60000)
        fields = {"messages": [{"role": "user", "content": "Count"}], "ignore_eos": True}
        s = server.open_stream(CHAT, fields)
        whole = server.send(CHAT, fields)
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(PATIENCE), 0)
        text = read_all(s)
        self.assertIn(b'"code":"shutting_down"', text)
        self.assertGreater(text.count(b'"content":"'), 2)  # what waited to be sent is not lost
        self.assertTrue(read_all(whole).startswith(b"HTTP/1.1 503 "))

    def test_patience(self):
        """While it only passes on tokens, the thread of HTTP takes no CPU from the engine; where somebody waits, it does."""
        if os.sched_getscheduler(0) != os.SCHED_OTHER:
            self.skipTest("the system has another scheduling policy for this process")
        server = self.spawn("-c", 8192)

        def n_patient():
            return sum(os.sched_getscheduler(int(thread)) == os.SCHED_BATCH for thread in os.listdir(f"/proc/{server.process.pid}/task"))

        self.assertEqual(n_patient(), 0)
        s = server.open_stream(CHAT, {"messages": [{"role": "user", "content": "Count"}], "max_tokens": 2000, "ignore_eos": True})
        server.until(lambda: n_patient() == 1)
        long = " ".join(str(i) for i in range(1000))
        waiting = server.send(CHAT, {"messages": [{"role": "user", "content": long}], "max_tokens": 2000, "ignore_eos": True})
        server.until(lambda: n_patient() == 0)
        waiting.close()
        server.until(lambda: n_patient() == 1)
        s.close()
        server.until(lambda: n_patient() == 0)
        self.assertEqual(server.stop(), 0)

    def test_chosen_policy(self):
        """A policy that somebody chose for the process stays."""
        if os.sched_getscheduler(0) != os.SCHED_OTHER:
            self.skipTest("the system has another scheduling policy for this process")
        server = self.spawn("-c", 2048)
        threads = [int(thread) for thread in os.listdir(f"/proc/{server.process.pid}/task")]
        for policy in (os.SCHED_BATCH, os.SCHED_IDLE):
            for thread in threads:
                os.sched_setscheduler(thread, policy, os.sched_param(0))
            for _ in range(2):
                reply = server.post(CHAT, {"messages": [{"role": "user", "content": "Count"}], "max_tokens": 100, "ignore_eos": True})
                self.assertEqual(reply.status, 200)
            self.assertEqual({os.sched_getscheduler(thread) for thread in threads}, {policy})
        self.assertEqual(server.stop(), 0)

    def test_idle(self):
        server = self.spawn("-c", 1024)
        clients = [server.connect() for _ in range(8)]
        for c in clients:
            server.get("/health", connection=c)

        def cpu():
            with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as f:
                fields = f.read().split()
            return int(fields[13]) + int(fields[14])
        before = cpu()
        time.sleep(3)
        self.assertLessEqual(cpu() - before, 3) # of 300 ticks, whatever else the machine does
        for c in clients:
            c.close()
