"""The disk tier: what a server computed is found by the next one, also after a kill -9 in the middle of it; what is damaged or
foreign is not used; a folder that cannot be used costs nothing but the cache."""
import os
import signal
import tempfile
import time

from harness import COMPLETIONS, Case, Config

TEXT = " ".join(f"word{i} of the story" for i in range(60))


class Disk(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=Config.scratch)
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *args):
        return self.spawn("-c", 4096, "--kv-dir", self.folder, *args)

    def ask(self, server, text=TEXT):
        reply = server.post(COMPLETIONS, {"prompt": text, "max_tokens": 12, "temperature": 0, "logprobs": 2})
        self.assertEqual(reply.status, 200, reply.body[:500])
        choice = reply.json["choices"][0]
        return (choice["text"], choice["logprobs"]), reply.json["usage"]["prompt_tokens_details"]["cached_tokens"]

    def pages(self):
        return [os.path.join(self.folder, name) for name in os.listdir(self.folder) if name.endswith(".page")]

    def test_restart(self):
        server = self.start()
        want, cached = self.ask(server)
        self.assertEqual(cached, 0)
        self.assertEqual(server.stop(), 0)
        server = self.start("--kv-disk", 100)
        self.assertIn(b"tokens are found in", server.text())
        self.assertEqual(self.ask(server), (want, 320))
        self.assertEqual(server.stop(), 0)
        self.assertGreaterEqual(len(self.pages()), 10)
        self.assertEqual(os.stat(self.pages()[0]).st_mode & 0o077, 0)

    def test_killed_while_writing(self):
        server = self.start()
        want, _ = self.ask(server)
        server.stop()
        for pause in (0.05, 0.3):
            server = self.start()
            text = f"{pause} {TEXT}"
            self.at_once([lambda: self.catch(server, text), lambda: (time.sleep(pause), server.process.kill())])
            server.process.wait()
        with open(os.path.join(self.folder, "nib-0123.page"), "wb") as f:
            f.write(b"foreign")
        path = max(self.pages(), key=os.path.getsize)
        os.truncate(path, os.path.getsize(path) // 2)  # torn, as by a crash of the machine
        server = self.start()
        self.assertIn(b"a cached page is not used", server.text())
        self.assertEqual(self.ask(server)[0], want)
        self.assertTrue(os.path.exists(os.path.join(self.folder, "nib-0123.page")))
        self.assertEqual(server.stop(signal.SIGTERM), 0)

    def catch(self, server, text):
        try:
            self.ask(server, text)
        except (OSError, AssertionError):
            pass

    def test_no_folder(self):
        server = self.spawn("-c", 4096, "--kv-dir", "/proc/nowhere")
        self.assertIn(b"nothing is cached on disk: /proc/nowhere", server.text())
        self.ask(server)
