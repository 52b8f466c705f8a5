"""The examples of docs/SERVER.md, each against a real server: blocks that begin with ```sh server, ```python server, ```js server.
The packages are those of their authors: openai of PyPI in this virtual environment, openai of npm in build/npm-clients."""
import json
import os
import re
import shutil
import subprocess
import sys

from harness import Case, Config

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CURL = "curl() { command curl --silent --show-error --fail-with-body --max-time 60 \"$@\" && echo; }\nset -e\n"


def blocks(language):
    with open(os.path.join(ROOT, "docs/SERVER.md"), encoding="utf-8") as f:
        return re.findall(rf"^```{language} server\n(.*?)^```$", f.read(), re.M | re.S)


class Examples(Case):
    def run_all(self, language, command, prelude="", cwd=None):
        """Runs each block as standard input of the command; returns what they print."""
        found = blocks(language)
        self.assertTrue(found, f"docs/SERVER.md has no example in {language}")
        outputs = []
        for block in found:
            code = prelude + block.replace("http://127.0.0.1:8080", f"http://127.0.0.1:{self.server.port}")
            done = subprocess.run(command, input=code, text=True, capture_output=True, timeout=300, cwd=cwd)
            self.assertEqual((done.returncode, done.stderr), (0, ""), block)
            outputs.append(done.stdout)
        return outputs

    def test_curl(self):
        if not shutil.which("curl"):
            self.skipTest("curl is missing")
        output = "".join(self.run_all("sh", ["sh"], prelude=CURL))
        self.assertEqual(output.count('"object":"chat.completion"'), 1, output)
        self.assertIn('"embedding"', output)

    def test_python(self):
        streamed, chosen, *_ = self.run_all("python", [sys.executable, "-"])
        self.assertRegex(streamed, r"(?s)\w{3}.*\ncached: \d+\n$")
        self.assertRegex(chosen, r"^(red|green|blue) \d+\n$")

    def test_javascript(self):
        if not shutil.which("npm"):
            self.skipTest("npm is missing")
        folder = os.path.join(ROOT, "build", "npm-clients")
        os.makedirs(folder, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(ROOT, "tests", "serve", "npm", name), folder)
        if not os.path.exists(os.path.join(folder, "node_modules", "openai")):
            done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error"],
                                  cwd=folder, capture_output=True, text=True, timeout=300)
            if done.returncode:
                self.skipTest(f"npm could not fetch its packages: {done.stderr[-300:]}")
        output = "".join(self.run_all("js", ["node", "--input-type=module", "-"], cwd=folder))
        self.assertGreater(len(output), 20)


class Client(Case):
    """nib as a client of nib; more in tests/cli/cli_server.py."""

    def nib(self, *args, code=0):
        done = subprocess.run([Config.nib, *map(str, args)], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
                              env={**os.environ, "XDG_CACHE_HOME": Config.scratch})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def test_the_same_as_here(self):
        args = ("-p", "Why is the sky blue?", "-n", 24, "--temp", 0)
        self.assertEqual(self.nib("chat", "--server", self.url, *args).stdout, self.nib("chat", "-m", Config.model, *args).stdout)

    def test_conversation(self):
        path = os.path.join(Config.scratch, "client.nib")
        one, two = (json.loads(self.nib("chat", "--server", self.url, "--session", path, "-p", question, "-n", 12, "--temp", 0,
                                        "--json").stdout) for question in ("Name a colour.", "Name another one."))
        self.assertGreater(two["usage"]["prompt_tokens_details"]["cached_tokens"], one["usage"]["prompt_tokens"] - 32)
        self.assertEqual(one["model"], "SmolLM2-135M-Instruct.Q4_1")

    def test_refusals(self):
        self.assertIn("refused (400)", self.nib("chat", "--server", self.url, "-p", "x", "--top-p", 7, code=1).stderr)
        self.assertIn("refused (404)", self.nib("chat", "--server", self.url, "-m", "nix", "-p", "x", code=1).stderr)
        locked = self.spawn("-c", 512, "--api-key", "k1")
        url = f"http://127.0.0.1:{locked.port}"
        self.assertIn("refused (401)", self.nib("chat", "--server", url, "-p", "x", code=1).stderr)
        self.nib("chat", "--server", url, "-p", "x", "-n", 2, "--api-key", "k1")

    def test_bench(self):
        r, = json.loads(self.nib("bench", "--serve", self.url, "--workload", "shared-prefix", "--prefix-tokens", 200, "--prompt-tokens", 20,
                                 "--max-tokens", 4, "--requests", 6, "--concurrency", 2, "--json").stdout)
        self.assertEqual((r["requests"], r["failed"], r["output_tokens"]), (6, 0, 24))
        self.assertGreater(r["cached_tokens"], 3 * 190)
        self.assertLess(r["ttft_ms"]["p50"], r["e2e_ms"]["p50"])
