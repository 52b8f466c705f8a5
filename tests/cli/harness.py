"""What the tests of the program share: how to run nib, and the models they run it on."""
import json
import os
import subprocess
import tempfile
import unittest

import tiny_gguf

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(FOLDER))


class Config:
    """Set by run_cli_tests.py."""
    nib = "nib"
    models = None
    allow_missing = False
    scratch = None


def tiny(name, **how):
    """The path of a tiny model, made once."""
    path = os.path.join(Config.scratch, name + ".gguf")
    if not os.path.exists(path):
        tiny_gguf.write(path, **how)
    return path


class Result:
    def __init__(self, code, out, err):
        self.code, self.raw, self.err = code, out, err.decode(errors="replace")

    @property
    def out(self):
        return self.raw.decode(errors="replace")

    @property
    def json(self):
        return json.loads(self.raw)

    @property
    def lines(self):
        return [json.loads(line) for line in self.raw.splitlines()]


class Case(unittest.TestCase):
    longMessage = True
    maxDiff = 2000

    @property
    def model(self):
        return tiny("tiny")

    def real(self, name):
        path = os.path.join(Config.models or "", name)
        if not Config.models or not os.path.exists(path):
            if Config.allow_missing:
                self.skipTest(f"{name} is not there")
            self.fail(f"{name} is missing in the folder of models (--allow-missing skips)")
        return path

    def nib(self, *args, stdin=b"", code=0, env=None, timeout=120):
        """Runs nib and checks its exit status (None: any); stdin None: an empty terminal-less input."""
        done = subprocess.run([Config.nib, *map(str, args)], input=stdin, capture_output=True, timeout=timeout,
                              env={**os.environ, "XDG_CACHE_HOME": Config.scratch, **(env or {})})
        result = Result(done.returncode, done.stdout, done.stderr)
        if code is not None:
            self.assertEqual(done.returncode, code, f"nib {' '.join(map(str, args))}\n{result.err}{result.out[:500]}")
        return result

    def run_json(self, *args, **how):
        return self.nib("-m", self.model, "--json", *args, **how).json

    def usage(self, *args, says=(), **how):
        """A wrong command line: status 2, nothing on stdout, one line on stderr that says these words."""
        r = self.nib(*args, code=2, **how)
        self.assertEqual(r.out, "")
        self.assertTrue(r.err.strip().splitlines()[-1].startswith("nib: error: "), r.err)
        for word in [says] if isinstance(says, str) else says:
            self.assertIn(word, r.err)
        return r

    def spawn(self, *args, **how):
        p = subprocess.Popen([Config.nib, *map(str, args)], **how)
        self.addCleanup(self.reap, p)
        return p

    @staticmethod
    def reap(p):
        if p.poll() is None:
            p.kill()
        p.wait()
        for stream in (p.stdin, p.stdout, p.stderr):
            if stream:
                stream.close()


def scratch():
    return tempfile.TemporaryDirectory(prefix="nib-cli-")
