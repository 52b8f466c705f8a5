"""--pack-cache: the second start reads what the first one wrote, and both give the same bits, whatever happens between."""
import os
import re
import shutil
import struct
import subprocess

from harness import Case, Config, tiny


class PackCache(Case):
    def setUp(self):
        self.folder = os.path.join(Config.scratch, self._testMethodName)
        self.own = self.folder + ".gguf"
        shutil.copy(tiny("tiny"), self.own)

    def start(self, *args, model=None, folder=None, **how):
        """The hash of the logits, and all lines about packed weights."""
        r = self.nib("-m", model or self.own, "-p", "Hello", "-n", 4, "--temp", 0, "--logits-hash", "--pack-cache",
                     folder or self.folder, *args, **how)
        return re.search("logits-hash: (.*)", r.err)[1], "\n".join(re.findall("nib: (.*packed weights.*)", r.err))

    def plain(self, model=None):
        r = self.nib("-m", model or self.own, "-p", "Hello", "-n", 4, "--temp", 0, "--logits-hash")
        return re.search("logits-hash: (.*)", r.err)[1]

    def kept(self):
        return sorted(os.path.join(self.folder, name) for name in os.listdir(self.folder))

    def test_the_same_bits(self):
        for name in ["SmolLM2-135M-Instruct.Q4_1.gguf", None]:
            model = self.real(name) if name else self.own
            want = self.plain(model)
            hashed, said = self.start("-v", model=model)
            self.assertEqual(hashed, want)
            self.assertRegex(said, f"^note: packed weights written to {self.folder}/[0-9a-f]{{16}}.nibpack$")
            for args in [("-t", 1), ("-t", 2, "--mmap"), ("--isa", "scalar", "-t", 2)]:
                hashed, said = self.start("-v", *args, model=model)
                self.assertEqual(hashed, want, args)
                self.assertIn("note: packed weights read from ", said)
            self.assertEqual(self.start(model=model), (want, ""))
        self.assertEqual(len(self.kept()), 2)

    def test_every_command(self):
        self.start()
        for args in [("score", "--jsonl"), ("perplexity", "-f", self.own + ".txt", "-c", 16), ("trace", "-p", "Hello"),
                     ("bench", "-p", 4, "-n", 2, "-r", 1)]:
            with open(self.own + ".txt", "w") as f:
                f.write("Hello " * 40)
            r = self.nib(*args, "-m", self.own, "--pack-cache", self.folder, "-v",
                         stdin=b'{"text": "Hello"}' if args[0] == "score" else b"")
            self.assertIn("packed weights read from", r.err, args)

    def test_a_changed_model(self):
        before, _ = self.start()
        os.utime(self.own, (1, 1))
        hashed, said = self.start("-v")
        self.assertEqual(hashed, before)
        self.assertIn("note: the file there is older than the model file, or of another copy of it: packed weights written", said)
        with open(self.own, "r+b") as f:
            f.seek(-2000, os.SEEK_END)  # in the last matrix
            f.write(struct.pack("<2f", 5, -5))
        hashed, said = self.start("-v")
        self.assertNotEqual(hashed, before)
        self.assertEqual(hashed, self.plain())
        self.assertIn("written to", said)

    def test_damaged_files(self):
        want, _ = self.start()
        path = self.kept()[0]
        with open(path, "rb") as f:
            whole = f.read()
        for data in [b"", whole[:100], whole[:-1], whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:], b"x" * len(whole)]:
            with open(path, "wb") as f:
                f.write(data)
            hashed, said = self.start("-v")
            self.assertEqual(hashed, want)
            self.assertRegex(said, "^note: the file there .*: packed weights written to ")
            with open(path, "rb") as f:
                self.assertEqual(f.read(), whole)
        self.assertEqual(self.kept(), [path])

    def test_what_goes_wrong_is_a_warning(self):
        want = self.plain()
        for folder in [self.own, os.path.join(self.folder, "a", "b")]:
            hashed, said = self.start(folder=folder)
            self.assertEqual(hashed, want)
            self.assertTrue(said.startswith(f"warning: packed weights not written to {folder}/"), said)
        limited = subprocess.run(["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", Config.nib, "-m", self.own, "-p", "Hello", "-n", "1",
                                  "--pack-cache", self.folder], capture_output=True, text=True)
        self.assertEqual(limited.returncode, 0)
        self.assertIn("warning: packed weights not written", limited.stderr)
        self.assertFalse(os.path.exists(self.folder))

    def test_a_full_disk(self):
        script = 'mount -t tmpfs -o size=128k none "$1" 2>&- || exit 77; shift; "$@"; echo "exit $?"; ls "$D"'
        os.mkdir(self.folder)
        r = subprocess.run(["unshare", "-rm", "sh", "-c", script, "sh", self.folder, Config.nib, "-m", self.own, "-p", "Hello",
                            "-n", "1", "--pack-cache", self.folder], capture_output=True, text=True,
                           env={**os.environ, "D": self.folder})
        if r.returncode == 77 or "unshare" in r.stderr:
            self.skipTest("no file system can be mounted here")
        self.assertIn("warning: packed weights not written", r.stderr)
        self.assertIn("No space left on device", r.stderr)
        self.assertTrue(r.stdout.endswith("exit 0\n"), r.stdout)  # done, and nothing is left in the folder
