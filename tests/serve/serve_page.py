"""The web page's files and headers, and the pictures of the engine. What the page does is tested in tests/page."""
import gzip
import json
import re
import signal
import threading

from harness import CHAT, PATIENCE, Case

EVENTS = "/engine/events"


class Page(Case):
    def test_files(self):
        page = self.server.get("/")
        self.assertEqual((page.status, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
        named = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page.body.decode())
        self.assertGreater(len(named), 3)
        for path in named:
            reply = self.server.get(path)
            self.assertEqual((reply.status, reply.headers["content-encoding"], reply.headers["x-content-type-options"]), (200, "gzip", "nosniff"))
            self.assertGreater(len(gzip.decompress(reply.body)), 100)
        for path in ("/assets/", "/assets/nix.js", "/assets/../server/page.c", "/assets/%2e%2e/x", "/index.html"):
            self.refused(self.server.get(path), 404)

    def test_policy(self):
        for path in ("/", "/assets/main.js"):
            policy = self.server.get(path).headers["content-security-policy"]
            self.assertIn("default-src 'none'", policy)
            self.assertNotIn("unsafe", policy)
            self.assertNotIn("*", policy)

    def test_known_version(self):
        tag = self.server.get("/").headers["etag"]
        for have in (tag, f'W/"1-2", {tag}'):
            reply = self.server.get("/", headers={"If-None-Match": have})
            self.assertEqual((reply.status, reply.body, reply.headers["etag"]), (304, b"", tag))
            self.assertNotIn("content-length", reply.headers)
        self.assertEqual(self.server.get("/", headers={"If-None-Match": '"1-2"'}).status, 200)


class Watcher:
    """Reads events until it has what it wants."""

    def __init__(self, server, headers=None):
        self.connection = server.connect()
        self.connection.request("GET", EVENTS, headers=headers or {})
        self.answer = self.connection.getresponse()

    def next(self):
        while line := self.answer.readline():
            if line.startswith(b"data: "):
                return json.loads(line[6:])
        return None

    def close(self):
        self.connection.close()


class Engine(Case):
    def test_pictures(self):
        watcher = Watcher(self.server)
        self.assertEqual(watcher.answer.status, 200)
        event = watcher.next()
        self.assertTrue(event["full"])
        state = [0] * event["n_pages"]
        before = sum(event["figures"][name] for name in ("prompt", "generated"))
        body = {"messages": [{"role": "user", "content": "Count from one to a hundred in words, please."}], "max_tokens": 40, "temperature": 0}
        threading.Thread(target=self.server.post, args=(CHAT, body)).start()
        answered = prompt = 0
        while event is not None:
            for i, kind, users, link in zip(*[iter(event["pages"])] * 4):
                state[i] = kind
                self.assertLess(link, len(state))
                self.assertTrue(users > 0 if kind in (2, 3) else users == 0)
            for turn in event["turns"]:
                self.assertGreater(turn["ms"], 0)
                for _, n, is_prompt in zip(*[iter(turn["parts"])] * 3):
                    prompt, answered = prompt + n * is_prompt, answered + n * (1 - is_prompt)
            if answered and not event["requests"]:  # it may have come and gone between two pictures
                break
            event = watcher.next()
            self.assertFalse(event["full"])
        self.assertEqual(event["missed"], 0)
        self.assertGreater(sum(event["figures"][name] for name in ("prompt", "generated")), before + answered)
        self.assertGreater(prompt, 10)  # of the question: its frame was computed for others
        self.assertGreater(answered, 1)
        self.assertIn(1, state)
        watcher.close()

    def test_two_look(self):
        first, second = Watcher(self.server), Watcher(self.server)
        self.assertTrue(first.next()["full"] and second.next()["full"])
        first.close()
        self.assertFalse(second.next()["full"])
        second.close()
        self.assertEqual(self.server.request("HEAD", EVENTS).body, b"")

    def test_key(self):
        server = self.spawn("--api-key", "secret")
        self.refused(server.get(EVENTS), 401)
        self.assertEqual(server.get("/").status, 200)
        watcher = Watcher(server, {"Authorization": "Bearer secret"})
        self.assertTrue(watcher.next()["full"])
        server.process.send_signal(signal.SIGTERM)  # those who look do not keep it from ending
        while watcher.next():
            pass
        self.assertEqual(server.process.wait(PATIENCE), 0)
