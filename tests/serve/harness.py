"""What the tests of `nib serve` share: a server on a free port, requests, streams of events. Standard library only.

A module of tests is serve_<area>.py; its classes derive from Case. self.server is a server that all modules share (SmolLM2);
self.spawn(...) starts one with other options for one test."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

FOLDER = os.path.dirname(os.path.abspath(__file__))
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PATIENCE = 200  # seconds for what must come at all: no test is about the speed of the machine


class Config:
    """Set by run_serve_tests.py."""
    nib = "nib"
    model = None
    models = None
    scratch = None
    shared = None  # the server that all tests may use


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def events(self):
        """The objects of a stream of server-sent events, which must end in [DONE]."""
        assert self.headers["content-type"].startswith("text/event-stream"), self.headers
        data = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        assert data[-1] == "[DONE]" and data.count("[DONE]") == 1, data[-2:]
        return [json.loads(item) for item in data[:-1]]


class Server:
    """nib serve, from its start to its end."""

    def __init__(self, *args, model=None, wait=True, env=None, wrap=()):
        command = [*wrap, Config.nib, "serve", "-m", model or Config.model, "--port", "0", *map(str, args)]
        self.log = tempfile.TemporaryFile(dir=Config.scratch)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log,
                                        env={**os.environ, "XDG_CACHE_HOME": Config.scratch, **(env or {})})
        self.host, self.port = "127.0.0.1", None
        try:
            self.until(lambda: re.search(rb"listening on \w+://\S+:(\d+)\n", self.text()))
            self.port = int(re.search(rb"listening on \w+://\S+:(\d+)\n", self.text())[1])
            if wait:
                self.until(lambda: b"\nready\n" in self.text())
        except AssertionError:
            self.stop(signal.SIGKILL)
            raise

    def text(self):
        self.log.flush()
        return os.pread(self.log.fileno(), 1 << 24, 0)

    def until(self, condition):
        end = time.monotonic() + PATIENCE
        while not condition():
            if self.process.poll() is not None:
                raise AssertionError(f"nib serve ended with {self.process.returncode}: {self.text().decode()}")
            if time.monotonic() > end:
                raise AssertionError(f"not within {PATIENCE} s: {self.text().decode()[-2000:]}")
            time.sleep(0.005)

    def connect(self, timeout=PATIENCE):
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=PATIENCE, connection=None):
        """body: an object, sent as JSON, or bytes."""
        own = connection or self.connect(timeout)
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        try:
            own.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = own.getresponse()
            content = answer.read()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)
        finally:
            if not connection:
                own.close()

    def get(self, path, **how):
        return self.request("GET", path, **how)

    def post(self, path, body, **how):
        return self.request("POST", path, body, **how)

    def raw(self, *parts, pause=0.0, timeout=PATIENCE):
        """Sends bytes as they are; returns all that comes back until the server closes or `timeout`."""
        with socket.create_connection((self.host, self.port), timeout) as s:
            try:
                for part in parts:
                    s.sendall(part)
                    time.sleep(pause)
            except OSError:
                pass
            return read_all(s)

    def open_stream(self, path, body):
        """A socket with a streamed request, of which the head of the answer and its first event have come."""
        s = self.send(path, dict(body, stream=True))
        got = b""
        while got.count(b"data: ") < 2:
            part = s.recv(65536)
            assert part, got
            got += part
        return s

    def send(self, path, body, key=None):
        """A socket on which the request was sent."""
        data = json.dumps(body).encode()
        who = f"Authorization: Bearer {key}\r\n".encode() if key else b""
        s = socket.create_connection((self.host, self.port), PATIENCE)
        s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (path.encode(), who, len(data)) + data)
        return s

    def n_logged(self, words):
        return self.text().count(words.encode())

    def stop(self, signal_number=signal.SIGTERM):
        """Ends it and returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        try:
            return self.process.wait(PATIENCE)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.log.close()


def read_all(s):
    got = b""
    try:
        while part := s.recv(65536):
            got += part
    except OSError:
        pass
    return got


class Case(unittest.TestCase):
    longMessage = True
    maxDiff = 2000

    @property
    def server(self):
        if not Config.shared or Config.shared.process.poll() is not None:
            Config.shared = Server("-c", 8192)
        return Config.shared

    def spawn(self, *args, **how):
        server = Server(*args, **how)
        self.addCleanup(lambda: server.process.poll() is None and server.stop(signal.SIGKILL))
        return server

    def real(self, name):
        path = os.path.join(Config.models, name)
        if not os.path.exists(path):
            self.fail(f"{name} is missing in {Config.models}")
        return path

    def chat(self, text="Hello", server=None, **fields):
        """The answer to a message, parsed; the answers' temperature is 0."""
        body = {"messages": [{"role": "user", "content": text}], "max_tokens": 8, "temperature": 0, **fields}
        reply = (server or self.server).post(CHAT, body)
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.events if fields.get("stream") else reply.json

    def refused(self, reply, status=400, param=None, code=None, says=()):
        """Checks an error and the shape that all errors have; returns it."""
        self.assertEqual(reply.status, status, reply.body[:500])
        self.assertEqual(reply.headers["content-type"], "application/json")
        error = reply.json["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"] and error["type"], error)
        if param is not None:
            self.assertEqual(error["param"], param, error)
        if code is not None:
            self.assertEqual(error["code"], code, error)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, error["message"])
        if status in (429, 503) and "retry-after" in reply.headers:
            self.assertGreaterEqual(int(reply.headers["retry-after"]), 1)
        return error

    @staticmethod
    def at_once(functions):
        """Runs functions in threads and returns what they return."""
        results = [None] * len(functions)

        def run(i):
            results[i] = functions[i]()
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results
