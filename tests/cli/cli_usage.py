"""The command line: commands, options, values, help, manual page, completions."""
import os
import re
import shutil
import subprocess

from harness import ROOT, Case, Config

COMMANDS = "run chat serve tokenize detokenize render parse grammar score embed perplexity trace inspect check bench limits plan completion help version".split()


def table():
    """The rows of options.def: (commands, kind, field, spellings, argument, default)."""
    with open(os.path.join(ROOT, "cli", "options.def"), encoding="utf-8") as f:
        text = f.read()
    rows = re.findall(r'^OPTION\(([^,]+), (\w+), (\w+), ([\w.]+), "([^"]*)", "([^"]*)",\s*"((?:[^"\\]|\\.)*)"', text, re.M)
    return [{"commands": c, "group": g, "kind": k, "field": f, "spellings": s.split(), "arg": a, "default": d}
            for c, g, k, f, s, a, d in rows] + [
        {"commands": "LLAMA", "group": "IGNORED", "kind": "IGNORED", "field": "ignored", "spellings": s.split(), "arg": a,
         "default": ""} for s, a in re.findall(r'^IGNORE\("([^"]+)", "([^"]*)"', text, re.M)]


class Usage(Case):
    def test_nothing(self):
        r = self.nib(code=2)
        self.assertEqual(r.out, "")
        self.assertIn("nib help", r.err)

    def test_unknown_command(self):
        self.usage("rnu", says=["rnu", "nearest is run"])
        self.usage("tokenise", says="nearest is tokenize")
        self.usage("\x1b[31mx\ny\u009b", says="command '?[31mx?y??';")
        self.usage("help", "a\nb", says="no command 'a?b'")
        self.usage("help", "run", "tokenize", says="expected one command")

    def test_unknown_option_names_the_nearest(self):
        for typed, nearest in [("--topk", "--top-k"), ("--tempreature", "--temperature"), ("--n-predct", "--n-predict"),
                               ("--flash-atn", "--flash-attn"), ("--no-display-promt", "--no-display-prompt"),
                               ("-mm", "-m"), ("--dry-multiplyer", "--dry-multiplier")]:
            self.usage(typed, 1, says=["unknown option " + typed, "the nearest is " + nearest])
        self.usage("--grammatik", "x", says=["unknown option --grammatik", "the nearest is --"])

    def test_options_belong_to_commands(self):
        self.usage("tokenize", "--temp", 1, says="unknown option --temp")
        self.usage("run", "--jsonl", says="unknown option --jsonl")

    def test_missing_value(self):
        self.usage("--temp", says="--temp needs a value")
        self.usage("-n", says="-n needs a value")

    def test_bad_values(self):
        for args, says in [(("--temp", "hot"), "expected a number"), (("--temp", "nan"), "expected a number"),
                           (("--temp", "inf"), "expected a number"), (("-n", "1.5"), "expected a whole number"),
                           (("-n", "-2"), "from -1"), (("-n", "99999999999"), "to 2147483647"), (("-c", "x"), "whole"),
                           (("-b", "0"), "from 1"), (("--mirostat", 3), "from 0 to 2"), (("-s", "-2"), "from -1"),
                           (("-s", "4294967296"), "to 4294967295"), (("-ctk", "q5_0"), "f16|f32|q8_0|q16"),
                           (("-l", "5"), "ID+BIAS"), (("-l", "5+x"), "bias"), (("-l", "x+1"), "ID+BIAS"),
                           (("--load-mode", "fast"), "mmap"), (("--color", "on", "x"), "unexpected argument"),
                           (("-c", 1 << 30), "to 268435456"), (("-ub", 1 << 17), "to 65536"), (("--temp", ""), "--temp '': expected a number"),
                           (("-f", ""), "-f '': expected the path"), (("-m", ""), "-m '': expected the path"),
                           (("-t", "two"), "whole number"), (("--json=1",), "takes no value")]:
            self.usage("-m", self.model, *args, says=says)

    def test_no_model(self):
        for command in ("run", "tokenize", "detokenize", "score", "embed", "perplexity", "trace", "bench"):
            self.usage(command, says="-m FILE")
        self.usage("-p", "x", says="-m FILE")
        self.usage("inspect", says="FILE")
        self.usage("check", says="FILE")

    def test_model_is_not_there(self):
        r = self.nib("-m", "nowhere.gguf", "-p", "x", code=1)
        self.assertTrue(r.err.startswith("nib: error: "))
        self.assertIn("nowhere.gguf", r.err)

    def test_llama_cpp_flags_are_ignored_with_a_note(self):
        plain = self.nib("-m", self.model, "-p", "hi", "-n", 4, "--temp", 0)
        r = self.nib("-m", self.model, "-p", "hi", "-n", 4, "--temp", 0, "-ngl", 99, "-fa", "--flash-attn", "on",
                     "--no-warmup", "--numa", "distribute", "-dev", "none", "-sm", "layer", "-nr", "-no-cnv")
        self.assertEqual(r.raw, plain.raw)
        notes = [line for line in r.err.splitlines() if line.startswith("nib: note: ")]
        self.assertEqual(len(notes), 9)
        self.assertIn("-ngl is ignored", notes[0])

    def test_every_ignored_flag(self):
        for row in table():
            if row["kind"] == "IGNORED":
                command = "chat" if row["commands"] == "CHAT" else "bench"
                value = [] if not row["arg"] else ["on" if row["arg"][0] == "[" else "1"]
                for name in row["spellings"]:
                    self.assertIn(name + " is ignored", self.usage(command, name, *value, says="-m FILE").err)

    def test_underscores_and_equals(self):
        want = self.run_json("-p", "hi", "--n-predict", 3, "--top-k", 1)["ids"]
        self.assertEqual(self.run_json("-p", "hi", "--n_predict=3", "--top_k=1")["ids"], want)

    def test_operands(self):
        self.usage("run", "hello", says="a text goes after -p")
        self.usage("-m", self.model, "--", "hello", says="unexpected argument")
        self.usage("-m", self.model, "-p", "x", "-f", "y", says="given twice")
        self.usage("-m", self.model, "-p", "x", "-", says="given twice")
        self.usage("-m", self.model, "-p", "x", "--logprobs", 3, says="--json")
        self.usage("-m", self.model, "-p", "x", "-r", "", says="empty")

    def test_first_argument_is_a_flag(self):
        args = ("-m", self.model, "-p", "hi", "-n", 5, "--temp", 0)
        self.assertEqual(self.nib(*args).raw, self.nib("run", *args).raw)


class Help(Case):
    def test_version(self):
        for args in (("--version",), ("version",), ("bench", "--version")):
            self.assertRegex(self.nib(*args).out, r"^nib \d+\.\d+\.\d+\n$")
        self.assertIn("scalar", self.nib("version", "-v").out)

    def test_overview(self):
        text = self.nib("help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} ")
        self.usage("help", "nothing", says="no command 'nothing'")

    def test_help_is_complete_and_plain(self):
        rows = table()
        self.assertGreater(len(rows), 90)
        everywhere = ""
        for command in COMMANDS:
            text = self.nib("help", command).out
            self.assertEqual(text, self.nib(command, "--help").out)
            self.assertNotIn("\033", text)
            self.assertIn("Exit status", text)
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, line)
            everywhere += text
        self.assertEqual(self.nib("--help").out, self.nib("run", "-h").out)
        words = set(re.findall(r"(?<![\w-])--?[\w-]+", everywhere))
        for row in rows:
            for name in row["spellings"]:
                self.assertIn(name.lstrip("!"), words)

    def test_help_shows_defaults(self):
        text = re.sub(r"\s+", " ", self.nib("run", "--help").out)
        for name, default in [("--temp", "0.8"), ("--top-k", "40"), ("--top-p", "0.95"), ("--min-p", "0.05"), ("-n", "-1"),
                              ("-b", "2048"), ("-ub", "512"), ("--repeat-last-n", "64"), ("--dry-base", "1.75")]:
            self.assertRegex(text, rf" {name}[ ,].*?\(default: {re.escape(default)}\)")

    def test_help_in_colour(self):
        self.assertIn("\033[1m", self.nib("--color", "on", "--help").out)

    def test_spellings_are_unique_within_a_command(self):
        for command in COMMANDS:
            names = re.findall(r"(?m)^  ((?:--?[\w-]+,? )*--?[\w-]+)", self.nib(command, "--help").out)
            flat = [n for line in names for n in re.findall(r"--?[\w-]+", line)]
            self.assertEqual(len(flat), len(set(flat)), command)

    def test_manual_page_is_up_to_date(self):
        done = subprocess.run([os.path.join(ROOT, "man", "update"), "--check", Config.nib], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_manual_page_is_well_formed(self):
        if not shutil.which("scdoc"):
            self.skipTest("scdoc is not there")
        with open(os.path.join(ROOT, "man", "nib.1.scd"), "rb") as page:
            done = subprocess.run(["scdoc"], stdin=page, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"EXIT STATUS", done.stdout)

    def complete(self, *words):
        """What bash offers for these words, the last one being typed."""
        script = f"""
            eval "$({Config.nib} completion bash)"
            COMP_WORDS=({" ".join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}
            _nib; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completion(self):
        if not shutil.which("bash"):
            self.skipTest("bash is not there")
        self.assertEqual(self.complete("nib", "tok"), ["tokenize"])
        self.assertEqual(self.complete("nib", "--top-k"), ["--top-k"])
        self.assertEqual(self.complete("nib", "-m", "x", "--cache-type-k", "q"), ["q8_0", "q16"])
        self.assertIn("--plan", self.complete("nib", "inspect", "--"))
        self.assertNotIn("--temp", self.complete("nib", "inspect", "--"))

    def test_other_completions(self):
        for shell in ("zsh", "fish"):
            script = self.nib("completion", shell).out
            self.assertIn("tokenize", script)
            self.assertIn("top-k", script)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=script, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, done.stderr)
        self.usage("completion", "tcsh", says="bash, zsh or fish")
