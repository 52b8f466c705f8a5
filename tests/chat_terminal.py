#!/usr/bin/env python3
"""nib chat on a terminal: pexpect types, pyte shows what a terminal would show.

  chat_terminal.py NIB [--models DIR] [-k PATTERN] [-v]

Most tests use a tiny model made on the spot; those of a real one are skipped when it is not in DIR."""
import argparse
import base64
import json
import os
import re
import signal
import stat
import sys
import time
import unittest

import pexpect
import pyte

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "cli"))
import harness  # noqa: E402
import tiny_gguf  # noqa: E402
from fake_server import Server, chunk, cut, said, slowly  # noqa: E402
from harness import Config, tiny  # noqa: E402

TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}")
UP, DOWN, RIGHT, LEFT, HOME, END, DELETE = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~"
CTRL_A, CTRL_C, CTRL_D, CTRL_R, CTRL_U, CTRL_Z, BACKSPACE = "\x01", "\x03", "\x04", "\x12", "\x15", "\x1a", "\x7f"
# What nib may write besides text: styles, movements of its own drawing, brackets around pastes.
OURS = re.compile(rb"\x1b\[(?:[0-9;]*m|[0-9]*A|[JKH]|2J|\?2004[hl])|\r")


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv, env=None, rows=24, columns=80):
        environment = {**os.environ, "TERM": "xterm-256color", "LANG": "C", "XDG_CACHE_HOME": Config.scratch,
                       "XDG_STATE_HOME": os.path.join(Config.scratch, "state"), **(env or {})}
        for name in ("NO_COLOR", "EDITOR", "VISUAL", "DISPLAY", "WAYLAND_DISPLAY", "LC_ALL", "LC_CTYPE"):
            if not env or name not in env:
                environment.pop(name, None)
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = b""
        self.child = pexpect.spawn(argv[0], list(argv[1:]), env=environment, dimensions=(rows, columns), timeout=30)
        self.child.delaybeforesend = None
        self.child.ptyproc.delayafterclose = self.child.ptyproc.delayafterterminate = 0.01

    def pump(self, seconds=0.05):
        try:
            data = self.child.read_nonblocking(65536, seconds)
        except (pexpect.TIMEOUT, pexpect.EOF) as why:
            return not isinstance(why, pexpect.EOF)
        self.bytes += data
        self.stream.feed(data)
        return True

    @property
    def lines(self):
        return [line.rstrip() for line in self.screen.display]

    @property
    def text(self):
        return "\n".join(self.lines).rstrip()

    def wait(self, condition, seconds=30):
        """Until the condition holds, a function or a text that shall be on the screen."""
        holds = condition if callable(condition) else lambda: condition in self.text
        deadline = time.time() + seconds
        while not holds():
            if time.time() > deadline or not self.pump():
                if holds():
                    return
                raise AssertionError(f"{condition} does not come; the screen:\n{self.text}")

    def at_prompt(self):
        line = self.lines[self.screen.cursor.y]
        return line.startswith(">") and self.screen.cursor.x >= 2

    def send(self, keys):
        self.child.send(keys)

    def settle(self):
        """Until nothing has come for a moment."""
        n = -1
        while n != len(self.bytes):
            n = len(self.bytes)
            self.pump(0.15)

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        self.child.setwinsize(rows, columns)

    def close(self):
        self.child.close(force=True)


class Case(unittest.TestCase):
    longMessage = True
    options = ("--temp", 0, "-n", 8)

    @property
    def model(self):
        return tiny("terminal", context=1 << 20, keys={"tokenizer.chat_template": (tiny_gguf.STRING, TEMPLATE)})

    def setUp(self):
        self.path = os.path.join(Config.scratch, "saved.json")
        if os.path.exists(self.path):
            os.unlink(self.path)

    def start(self, *args, env=None, model=None, **how):
        argv = [Config.nib, "chat", "-m", model or self.model, *map(str, args or self.options)]
        t = Terminal(argv, env, **how)
        self.addCleanup(t.close)
        t.wait(t.at_prompt)
        return t

    def ask(self, t, text, seconds=30):
        """Types a message and waits for its answer; the line of statistics."""
        n = t.bytes.count(b" reused")
        t.send(text + "\r")
        t.wait(lambda: t.bytes.count(b" reused") > n, seconds)
        t.wait(t.at_prompt)
        line = [line for line in t.bytes.decode(errors="replace").splitlines() if " reused" in line][-1]
        return OURS.sub(b"", line.encode()).decode()

    def command(self, t, text):
        """Types a command and waits for the next prompt; what it wrote."""
        start = len(t.bytes)
        t.send(text + "\r")
        t.wait(lambda: t.bytes.count(b"\x1b[?2004h", start) > 0)
        t.wait(t.at_prompt)
        shown = OURS.sub(b"", t.bytes[start:]).decode(errors="replace")
        return shown

    def saved(self, t):
        self.command(t, f"/save {self.path}")
        with open(self.path, encoding="utf-8") as f:
            return json.load(f)["messages"]

    def users(self, t):
        return [m["content"] for m in self.saved(t) if m["role"] == "user"]


class Editing(Case):
    def typed(self, keys, wait=None):
        """The message that these keys make."""
        t = self.start()
        n = t.bytes.count(b" reused")
        t.send(keys)
        if wait:
            t.wait(wait)
        t.send("\r")
        t.wait(lambda: t.bytes.count(b" reused") > n)
        t.wait(t.at_prompt)
        return self.users(t)[-1]

    def test_characters(self):
        """UTF-8 is edited by characters, combining ones with what they stand on."""
        for keys, text in ((f"ab{LEFT}c", "acb"), (f"中文字{LEFT}{LEFT}{BACKSPACE}", "文字"),
                           (f"e\u0301x{LEFT}{BACKSPACE}y", "yx"), (f"bc{HOME}a{END}d", "abcd"),
                           (f"👨\u200d👩\u200d👧!{LEFT}{LEFT}{DELETE}", "!"), (f"one two{CTRL_U}three", "three"),
                           (f"ก็ข{LEFT}{LEFT}x", "xก็ข"), ("naïve Ünïcödé", "naïve Ünïcödé"), (f"a{CTRL_A}\x0bb", "b")):
            self.assertEqual(self.typed(keys), text, repr(keys))

    def test_lines(self):
        self.assertEqual(self.typed("one\\\rtwo"), "one\ntwo")
        self.assertEqual(self.typed('"""\rone\r  two\r"""'), "one\n  two")
        self.assertEqual(self.typed(f"one\x1b\rthree{HOME}{LEFT}\x1b\rtwo"), "one\ntwo\nthree")
        self.assertEqual(self.typed(f"a\\\rb{UP}A{DOWN}B"), "aA\nbB")

    def test_paste_of_200_lines(self):
        """One message, with tabs and control characters in it."""
        lines = [f"line {i}\twith a tab, \x1b[31m, \x03 and 中文" for i in range(200)]
        pasted = "\x1b[200~" + "\r".join(lines) + "\x1b[201~"
        start = time.time()
        self.assertEqual(self.typed(pasted, wait="line 199"), "\n".join(lines))
        self.assertLess(time.time() - start, 10)
        self.assertEqual(self.typed(f"a\x1b[200~\n b\n\x1b[201~c"), "a\n b\nc")

    def test_wide_characters_are_wrapped_by_columns(self):
        t = self.start(columns=20)
        t.send("abc" + "中" * 10)
        t.wait("> abc" + "中" * 7 + "\n  " + "中" * 3)
        t.wait(lambda: t.screen.cursor.x == 8)

    def test_resize(self):
        t = self.start(columns=60)
        text = " ".join(f"word{i}" for i in range(20))
        t.send(text)
        t.wait("word19")
        for rows, columns in ((24, 40), (24, 100), (6, 30), (24, 80)):
            t.resize(rows, columns)
            t.settle()
            row = t.screen.cursor.y
            first = max((y for y in range(row + 1) if t.lines[y].startswith("> ")), default=None)
            if first is not None:  # a window of few lines shows the end only
                shown = "".join(line[2:] for line in t.lines[first:row + 1])
                self.assertEqual(shown.replace(" ", ""), text.replace(" ", ""), t.text)
            self.assertTrue(t.lines[row].endswith("word19"))
        t.send("!\r")
        t.wait(lambda: b" reused" in t.bytes)
        t.wait(t.at_prompt)
        self.assertEqual(self.users(t), [text + "!"])

    def test_ctrl_c(self):
        t = self.start()
        t.send("some text")
        t.wait("some text")
        t.send(CTRL_C)
        t.wait(lambda: t.at_prompt() and t.lines[t.screen.cursor.y] == ">")
        self.assertNotIn("leaves", t.text.split("some text")[1])
        t.send(CTRL_C)
        t.wait(lambda: t.text.count("Ctrl-D or /exit leaves") == 1)
        t.wait(t.at_prompt)
        self.assertEqual(self.saved(t), [])

    def test_completion(self):
        t = self.start()
        folder = os.path.join(Config.scratch, "files")
        os.makedirs(os.path.join(folder, "sub"), exist_ok=True)
        with open(os.path.join(folder, "name with space.json"), "w", encoding="utf-8") as f:
            json.dump([{"role": "user", "content": "from the file"}], f)
        t.send("/sy\t")
        t.wait(lambda: t.screen.cursor.x == len("> /system "))
        t.send(CTRL_U + "/set to\t")
        t.wait("> /set top_")
        t.send("\t")
        t.wait("top_k")
        t.send("k 7\r/set reas\th\t\r")
        t.wait("/set reasoning hide")
        self.assertRegex(self.command(t, "/params"), r"(?s)reasoning +hide.*top_k +7\b")
        t.send(f"/load {folder}/\t")
        t.wait("sub/")
        t.send("na\t\r")
        t.wait("loaded; the conversation has 1 message")
        t.wait(t.at_prompt)
        self.assertEqual(self.users(t), ["from the file"])
        t.send("word\t!")
        t.wait(lambda: "word" in t.lines[t.screen.cursor.y])

    def test_keys_that_nobody_knows(self):
        self.assertEqual(self.typed("a\x1b[15~\x1b[1;9R\x1b[24~b"), "ab")

    def test_line_by_line(self):
        """On a terminal that cannot move its cursor."""
        t = Terminal([Config.nib, "chat", "-m", self.model, *map(str, self.options)], env={"TERM": "dumb"})
        self.addCleanup(t.close)
        t.wait(lambda: t.bytes.endswith(b"> "))
        t.send("one\\\n")
        t.wait(lambda: t.bytes.endswith(b"  "))
        t.send("two 中文\n")
        t.wait(lambda: b"reused" in t.bytes and t.bytes.endswith(b"> "))
        t.send(f"/save {self.path}\n")
        t.wait("messages saved")
        with open(self.path, encoding="utf-8") as f:
            self.assertEqual(json.load(f)["messages"][0]["content"], "one\ntwo 中文")
        t.send(CTRL_D)
        t.child.expect(pexpect.EOF)
        self.assertNotIn(b"\x1b", t.bytes)


class History(Case):
    def test_there_and_back(self):
        state = os.path.join(Config.scratch, "state-history")
        env = {"XDG_STATE_HOME": state}
        t = self.start(env=env)
        self.ask(t, "the first")
        self.ask(t, 'two\\\rlines')
        t.send("/exit\r")
        t.child.expect(pexpect.EOF)
        path = os.path.join(state, "nib", "history")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        t = self.start(env=env)
        t.send("typed" + UP + UP)
        t.wait("  lines")
        t.send(UP + UP + UP)
        t.wait("> the first")
        t.send(DOWN * 9)
        t.wait("> typed")
        t.send(CTRL_U + CTRL_R + "fir")
        t.wait("> the first")
        self.ask(t, "")
        self.assertEqual(self.users(t), ["the first"])

    def test_a_broken_one_is_a_warning(self):
        state = os.path.join(Config.scratch, "state-broken")
        os.makedirs(os.path.join(state, "nib", "history"), exist_ok=True)
        t = self.start(env={"XDG_STATE_HOME": state})
        self.assertIn("warning: the history is not kept", t.text)
        self.ask(t, "it works")
        t.send(UP)
        t.wait(lambda: t.lines[t.screen.cursor.y] == "> it works")


class Answers(Case):
    def test_conversation(self):
        """Each turn computes its new tokens only."""
        t = self.start()
        self.assertIn("0 reused", self.ask(t, "Hello"))
        line = self.ask(t, "again")
        reused = int(re.search(r"(\d+) reused", line)[1])
        self.assertGreater(reused, 20)
        self.assertRegex(line, r"\[TTFT \d+ ms, [0-9.]+ tok/s, 8 tokens, context \d+ of \d+, \d+ reused, length\]")
        shown = self.command(t, "/context")
        prompt, cached, computed = map(int, re.search(r"prompt had (\d+) tokens: (\d+) reused, (\d+) computed", shown).groups())
        self.assertEqual((cached, prompt), (reused, cached + computed))
        self.assertEqual(len(self.saved(t)), 4)

    def test_ctrl_c_stops_and_keeps(self):
        t = self.start("--temp", 0, "-n", -1, "-c", 200000, "--ignore-eos")
        n = len(t.bytes)
        t.send("go on\r")
        t.wait(lambda: len(t.bytes) > n + 200)
        t.send(CTRL_C)
        t.wait(lambda: b"interrupted]" in t.bytes)
        t.wait(t.at_prompt)
        messages = self.saved(t)
        self.assertEqual([m["role"] for m in messages], ["user", "assistant"])
        self.assertTrue(messages[1]["content"])

    def test_what_is_typed_meanwhile(self):
        """It does not appear in the answer, and is the next message."""
        t = self.start("--temp", 0, "-n", 400, "-c", 4096, "--ignore-eos")
        n = len(t.bytes)
        t.send("first\r")
        t.wait(lambda: len(t.bytes) > n + 50)
        t.send("typed ahead\r")
        t.wait(lambda: t.bytes.count(b" reused") == 2)
        t.wait(t.at_prompt)
        self.assertNotIn(b"typed ahead", t.bytes[:t.bytes.index(b" reused")])
        self.assertEqual(self.users(t), ["first", "typed ahead"])

    def test_a_message_without_an_answer_is_taken_back(self):
        t = self.start("--temp", 0, "-n", 8, "-c", 256, "--overflow", "error")
        text = "x" * 400
        t.send(text + "\r")
        t.wait(lambda: b"the context holds 256" in t.bytes)
        t.wait(lambda: t.lines[t.screen.cursor.y].endswith("xxx"))
        t.send(CTRL_U)
        self.ask(t, "short")
        self.assertEqual(self.users(t), ["short"])

    def test_files_stay_in_front_of_a_message_that_got_no_answer(self):
        path = os.path.join(Config.scratch, "long.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("y" * 400)
        t = self.start("--temp", 0, "-n", 8, "-c", 256, "--overflow", "error")
        self.command(t, f"/read {path}")
        t.send("what?\r")
        t.wait("still go before the next message")
        t.wait(lambda: t.lines[t.screen.cursor.y].endswith("> what?"))
        t.send(CTRL_U)
        self.command(t, "/clear")
        self.ask(t, "short")
        self.assertEqual(self.users(t), ["short"])

    def test_a_message_that_is_too_long_costs_no_turns(self):
        t = self.start("--temp", 0, "-n", 8, "-c", 256)
        self.ask(t, "first")
        t.send("x" * 400 + "\r")
        t.wait(lambda: t.bytes.partition(b"the context holds 256")[2].count(b"x") >= 400)  # it stands in the line again
        t.send(CTRL_U)
        self.ask(t, "second")
        self.assertNotIn(b"no longer shown", t.bytes)

    def test_ctrl_c_stops_a_command(self):
        path = os.path.join(Config.scratch, "nobody-writes")
        os.mkfifo(path)
        t = self.start()
        t.send(f"/load {path}\r")
        time.sleep(0.3)
        t.send(CTRL_C)
        t.wait("Interrupted")
        t.wait(t.at_prompt)
        self.ask(t, "still here")

    def test_nothing_commands_the_terminal(self):
        """A model that writes any byte: what reaches the terminal are characters and sequences of nib's own."""
        for args in ((), ("--plain",), ("--reasoning", "hide")):
            t = self.start("--temp", 3, "--top-k", 0, "--top-p", 1, "--min-p", 0, "-n", 600, "-s", 5, "--ignore-eos", *args)
            start = len(t.bytes)
            self.ask(t, "\x1b[200~\x1b]0;title\x07\x9b31m\x1b[201~")
            shown = OURS.sub(b"", t.bytes[start:])
            text = shown.decode()  # it is UTF-8
            bad = [c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)]
            self.assertEqual(bad, [])
            self.assertIn("␛", text)

    def test_nothing_commands_the_terminal_of_run(self):
        wild = ("--temp", "3", "--top-k", "0", "--top-p", "1", "--min-p", "0", "-n", "600", "-s", "5", "--ignore-eos", "--no-stats")
        t = Terminal([Config.nib, "run", "-m", self.model, "-p", r"\x1b]0;title\x07", "--color", "off", *wild])
        self.addCleanup(t.close)
        while t.pump(5):
            pass
        text = t.bytes.decode().replace("\r", "")
        self.assertEqual([c for c in text if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)], [])
        self.assertIn("␛", text)

    def test_thoughts(self):
        template = TEMPLATE.replace("assistant: {% endif", "assistant: <think>\\n{% endif")
        model = tiny("thinks", keys={"tokenizer.chat_template": (tiny_gguf.STRING, template.replace("\\n", "\n"))})
        t = self.start(*self.options, model=model)
        start = len(t.bytes)
        self.ask(t, "x")
        self.assertIn(b"\x1b[2m", t.bytes[start:])
        self.command(t, "/set reasoning hide")
        self.ask(t, "y")
        self.assertRegex(t.text, r"thought for \d+\.\d s, \d tokens")
        self.assertNotIn("thinking …", t.text)
        self.assertTrue(all("reasoning_content" in m for m in self.saved(t) if m["role"] == "assistant"))

    def test_no_colour(self):
        t = self.start(env={"NO_COLOR": "1"})
        self.ask(t, "Hello")
        self.assertNotRegex(t.bytes, rb"\x1b\[[0-9;]+m")

    def test_a_question_on_the_command_line(self):
        argv = [Config.nib, "chat", "-m", self.model, "--temp", "3", "--top-k", "0", "-n", "300", "-s", "5", "-p", "Hi"]
        t = Terminal(argv)
        self.addCleanup(t.close)
        t.wait(lambda: not t.pump())
        self.assertNotRegex(OURS.sub(b"", t.bytes), rb"[\x00-\x08\x0b-\x1f\x7f]")
        self.assertTrue(t.bytes.endswith(b"\n"))


class Commands(Case):
    def test_undo_retry_system_clear(self):
        t = self.start()
        self.assertIn("no message to take back", self.command(t, "/undo"))
        self.assertIn("no message to answer", self.command(t, "/retry"))
        self.ask(t, "one")
        self.ask(t, "two")
        self.assertIn("taken back; the conversation has 2 messages", self.command(t, "/undo"))
        self.assertEqual(self.users(t), ["one"])
        self.ask(t, "/regen")
        self.assertEqual([m["role"] for m in self.saved(t)], ["user", "assistant"])
        self.command(t, "/system Be brief.")
        self.assertIn("Be brief.", self.command(t, "/system"))
        self.assertIn("cleared; the conversation has 1 message", self.command(t, "/clear"))
        self.assertEqual(self.saved(t), [{"role": "system", "content": "Be brief."}])
        self.command(t, "/system -")
        self.assertEqual(self.saved(t), [])

    def test_edit_in_the_line(self):
        t = self.start()
        self.assertIn("no message to change", self.command(t, "/edit"))
        self.ask(t, "first")
        self.ask(t, "a mistke")
        t.send("/edit\r")
        t.wait(lambda: t.lines[t.screen.cursor.y] == "> a mistke")
        self.ask(t, BACKSPACE * 2 + "ake")
        self.assertEqual(self.users(t), ["first", "a mistake"])
        t.send("/edit\r")
        t.wait(lambda: t.lines[t.screen.cursor.y] == "> a mistake")
        t.send(CTRL_C)
        t.wait(lambda: t.lines[t.screen.cursor.y] == ">")
        self.ask(t, "third")
        self.assertEqual(self.users(t), ["first", "a mistake", "third"])

    def test_edit_in_an_editor(self):
        editor = os.path.join(Config.scratch, "my editor.sh")
        with open(editor, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\nls -l "$2" > "$2.seen"\necho "$2" > "$0.path"\nstty -a > "$0.stty"\nsed s/old/new/ "$2" > "$2.x" && cat "$2.x" > "$2"\n'
                    'mv "$2.seen" "$0.seen"; rm "$2.x"\n')
        os.chmod(editor, 0o755)
        t = self.start(env={"EDITOR": f"'{editor}' -w"})
        self.ask(t, "the old text")
        self.ask(t, "/edit")
        self.assertEqual(self.users(t), ["the new text"])
        with open(editor + ".seen", encoding="utf-8") as f:
            self.assertTrue(f.read().startswith("-rw-------"))
        with open(editor + ".stty", encoding="utf-8") as f:
            self.assertRegex(f.read(), r"(?s) icanon.* echo ")
        with open(editor + ".path", encoding="utf-8") as f:
            self.assertFalse(os.path.exists(f.read().strip()))
        t = self.start(env={"VISUAL": "false", "EDITOR": editor})
        self.ask(t, "stays")
        self.assertIn("false failed with exit status 1", self.command(t, "/edit"))
        self.assertEqual(self.users(t), ["stays"])

    def test_read(self):
        def file(name, content):
            with open(os.path.join(Config.scratch, name), "wb") as f:
                f.write(content)
            return os.path.join(Config.scratch, name)

        t = self.start()
        self.assertIn("12 bytes of", self.command(t, f"/read {file('a b.txt', 'zwölf Bytes'.encode())}"))
        self.ask(t, "what is it?")
        self.assertEqual(self.users(t), ["zwölf Bytes\n\nwhat is it?"])
        for path, says in ((file("binary", b"\x7fELF\0\1"), "is no text: byte 4"), (file("latin", b"caf\xe9"), "is no text: byte 3"),
                           (file("large", b"x" * ((1 << 20) + 1)), "/read takes up to"), (file("empty", b""), "is empty"),
                           (Config.scratch, "is no file with text"), ("/nowhere", "No such file"), ("", "/read needs a FILE")):
            self.assertIn(says, self.command(t, f"/read {path}"))
        self.ask(t, "next")
        self.assertEqual(self.users(t)[1], "next")

    def test_save_and_load(self):
        t = self.start()
        self.ask(t, "remember 中文")
        before = self.saved(t)
        t = self.start()
        self.assertIn("loaded; the conversation has 2 messages", self.command(t, f"/load {self.path}"))
        self.assertEqual(self.saved(t), before)
        self.assertIn("No such file", self.command(t, "/load /nowhere"))
        self.assertIn("error:", self.command(t, f"/load {Config.nib}"))
        self.assertIn("error:", self.command(t, "/save /nowhere/x"))
        session = os.path.join(Config.scratch, "kept.nib")
        with open(session, "w", encoding="utf-8") as f:
            f.write('{"nib_session":1,"messages":[]}\n')
        self.assertIn("choose another name", self.command(t, f"/save {session}"))
        self.assertEqual(self.saved(t), before)

    def test_set(self):
        t = self.start()
        for line, says in (("temp", "needs a value"), ("temp x", "expected a number"), ("tmp 1", "the nearest is temp"),
                           ("min_p 3", "from 0 to 1"), ("samplers nonsense", "nonsense"), ("plain maybe", "on or off"),
                           ("reasoning loud", "show|hide|off"), ("model x", "there is no model"), ("", "needs a NAME VALUE")):
            self.assertIn(says, self.command(t, f"/set {line}"), line)
        for line in ("temp 0.25", "--top-k 3", "n 5", "plain on", "samplers top_k;temperature", "seed 7", "ignore_eos on"):
            self.assertNotIn("error", self.command(t, f"/set {line}"))
        shown = self.command(t, "/params")
        for name, value in (("temp", "0.25"), ("top_k", "3"), ("predict", "5"), ("plain", "on"), ("seed", "7"),
                            ("samplers", "top_k;temperature"), ("min_p", "0.05")):
            self.assertRegex(shown, rf"\b{name} +{value}\r?\n")
        self.assertIn(" 5 tokens", self.ask(t, "x"))

    def test_others(self):
        t = self.start()
        shown = self.command(t, "/help")
        for name in ("help", "system", "clear", "undo", "retry", "edit", "save", "load", "params", "set", "tokens", "context",
                     "copy", "read", "exit"):
            self.assertIn(f"/{name}", shown)
        self.assertIn("no answer to copy", self.command(t, "/copy"))
        self.ask(t, "Hello")
        answer = self.saved(t)[-1]["content"].encode()
        start = len(t.bytes)
        t.send("/copy\r")
        t.wait(lambda: b"bytes copied by the terminal" in t.bytes[start:])
        self.assertEqual(base64.b64decode(re.search(rb"\x1b\]52;c;([^\x07]*)\x07", t.bytes[start:])[1]), answer)
        t.wait(t.at_prompt)
        ids = re.search(r"\r?\n([0-9 ]+)\r?\n", self.command(t, "/tokens"))[1].split()
        self.assertEqual(ids[0], str(tiny_gguf.BOS))
        self.assertIn("unknown command /foo; the nearest is /", self.command(t, "/foo"))
        self.assertIn("/exit takes nothing", self.command(t, "/exit now"))
        self.ask(t, "/usr/bin is a path")
        self.ask(t, " /help")
        self.assertEqual(self.users(t)[1:], ["/usr/bin is a path", " /help"])


class Leaving(Case):
    """However nib ends, the terminal is as it was."""

    def session(self, *args):
        """nib in a shell that prints the terminal's modes before and after it."""
        script = 'stty -g; sh -c \'echo "PID $$"; exec "$@"\' nib "$@"; echo "LEFT $?"; stty -g; echo END'
        t = Terminal(["/bin/sh", "-c", script, "sh", Config.nib, "chat", "-m", self.model, *map(str, args or self.options)])
        self.addCleanup(t.close)
        t.wait(t.at_prompt)
        return t, int(re.search(rb"PID (\d+)", t.bytes)[1])

    def left(self, t, code):
        t.wait(lambda: b"END" in t.bytes)
        text = t.bytes.decode(errors="replace").replace("\r", "")
        self.assertEqual(int(re.search(r"LEFT (\d+)", text)[1]), code, text)
        modes = re.findall(r"^[0-9a-f]+(?::[0-9a-f]+){10,}$", text, re.M)
        self.assertEqual(len(modes), 2)
        self.assertEqual(modes[0], modes[1])
        last = re.findall(rb"\x1b\[\?2004([hl])", t.bytes)[-1]
        self.assertEqual(last, b"l")

    def test_by_a_command_or_a_key(self):
        for keys in ("/exit\r", "/quit\r", CTRL_D, "text" + CTRL_C + CTRL_D):
            t, _ = self.session()
            t.send(keys)
            self.left(t, 0)

    def test_by_a_signal_at_the_prompt(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            t, pid = self.session()
            t.send("half a line")
            t.wait("half a line")
            os.kill(pid, number)
            self.left(t, 128 + number)

    def test_by_a_signal_during_an_answer(self):
        for signals, code in (([signal.SIGTERM], 143), ([signal.SIGHUP], 129), ([signal.SIGQUIT], 131)):
            t, pid = self.session("--temp", 0, "-n", -1, "-c", 200000, "--ignore-eos")
            n = len(t.bytes)
            t.send("go\r")
            t.wait(lambda: len(t.bytes) > n + 100)
            for number in signals:
                os.kill(pid, number)
                t.pump()
            self.left(t, code)

    def test_by_an_error(self):
        folder = os.path.join(Config.scratch, "gone")
        os.mkdir(folder)
        t, _ = self.session("--session", os.path.join(folder, "session"), *self.options)
        self.ask(t, "hi")
        os.rmdir(folder)
        t.send(CTRL_D)
        self.left(t, 1)

    def test_when_the_terminal_is_gone(self):
        t, pid = self.session()
        t.child.close(force=False)
        for _ in range(100):
            if not os.path.exists(f"/proc/{pid}"):
                return
            time.sleep(0.05)
        self.fail("nib stays without a terminal")

    def test_stop_and_go_on(self):
        """Ctrl-Z at the prompt and during an answer, in a shell with jobs."""
        shell = Terminal(["/bin/bash", "--norc", "--noprofile", "-i"], env={"PS1": "$$ "})
        self.addCleanup(shell.close)
        shell.send("PS1='shell$ '; stty -g > %s/before\r" % Config.scratch)
        shell.wait("shell$ ")
        shell.send(" ".join([f"'{Config.nib}'", "chat", "-m", f"'{self.model}'", "--temp 0 -n -1 -c 200000 --ignore-eos\r"]))
        shell.wait(shell.at_prompt)
        shell.send("half a li")
        shell.wait("half a li")
        shell.send(CTRL_Z)
        shell.wait(lambda: shell.lines[shell.screen.cursor.y].startswith("shell$"))
        shell.send("stty -g > %s/during\r" % Config.scratch)
        shell.wait(lambda: shell.text.count("during") == 1 and shell.lines[shell.screen.cursor.y] == "shell$")
        shell.send("fg\r")
        shell.wait(lambda: shell.lines[shell.screen.cursor.y] == "> half a li")
        n = len(shell.bytes)
        shell.send("ne\r")
        shell.wait(lambda: len(shell.bytes) > n + 100)
        shell.send(CTRL_Z)
        shell.wait(lambda: shell.lines[shell.screen.cursor.y].startswith("shell$"))
        shell.send("fg\r")
        n = len(shell.bytes)
        shell.wait(lambda: len(shell.bytes) > n + 200)
        shell.send(CTRL_C)
        shell.wait(lambda: b"interrupted]" in shell.bytes)
        shell.wait(shell.at_prompt)
        self.assertEqual(self.users(shell), ["half a line"])
        shell.send(CTRL_D)
        shell.wait(lambda: shell.lines[shell.screen.cursor.y] == "shell$")
        shell.send("stty -g > %s/after\r" % Config.scratch)
        shell.wait(lambda: shell.text.count("/after") == 1 and shell.lines[shell.screen.cursor.y] == "shell$")
        modes = [open(os.path.join(Config.scratch, name), encoding="utf-8").read() for name in ("before", "during", "after")]
        self.assertTrue(modes[0])
        self.assertEqual(modes, [modes[0]] * 3)


USAGE = {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32, "prompt_tokens_details": {"cached_tokens": 24}}


class Remote(Case):
    """A server answers; more in cli/cli_server.py."""

    def serve(self, *answers, **how):
        server = Server(*answers, **how)
        self.addCleanup(server.close)
        t = Terminal([Config.nib, "chat", "--server", server.url])
        self.addCleanup(t.close)
        t.wait(t.at_prompt)
        return server, t

    def test_conversation(self):
        server, t = self.serve([chunk({"reasoning_content": "Hm."}), *said("Hello ", "there", usage=USAGE)])
        self.assertIn("fake, at 127.0.0.1", t.text)
        self.assertIn("2 tokens, context 32 of 4096, 24 reused", self.ask(t, "Hi"))
        self.assertIn("Hello there", t.text)
        self.assertIn("30 tokens: 24 reused, 6 computed", self.command(t, "/context"))
        self.assertIn("the server does not tell", self.command(t, "/tokens"))
        self.assertIn("(the server's)", self.command(t, "/params"))
        self.command(t, "/set temp 0.2")
        self.ask(t, "And?")
        self.assertEqual((server.requests[-1]["temperature"], len(server.requests[-1]["messages"])), (0.2, 3))
        self.assertEqual(server.n_connections, 1)

    def test_refused(self):
        _, t = self.serve(said("Hello", usage=USAGE), (503, {"error": {"message": "full"}}), said("Yes", usage=USAGE))
        self.ask(t, "one")
        t.send("two\r")
        t.wait("refused (503): full")
        t.wait("> two")
        self.ask(t, "")
        self.assertEqual(self.users(t), ["one", "two"])

    def test_lost(self):
        server, t = self.serve(slowly("Once upon", then=cut), said("Hello", usage=USAGE))
        t.send("one\r")
        t.wait("in the middle of its answer")
        t.wait(t.at_prompt)
        self.ask(t, "two")
        self.assertEqual([m["content"] for m in server.requests[-1]["messages"]], ["one", "Once upon", "two"])

    def test_ctrl_c(self):
        _, t = self.serve(slowly("Once"), said("Hello", usage=USAGE))
        t.send("one\r")
        t.wait("Once..")
        t.send(CTRL_C)
        t.wait("interrupted]")
        self.ask(t, "two")
        self.assertEqual(self.users(t), ["one", "two"])

    def test_nothing_commands_the_terminal(self):
        bad = "a\x1b]0;x\x07\x1b[5m"
        call = {"index": 0, "id": bad, "function": {"name": bad, "arguments": bad}}
        _, t = self.serve([chunk({"reasoning_content": bad}), chunk({"content": bad}), chunk({"tool_calls": [call]}), chunk(finish=bad)],
                          (400, {"error": {"message": bad}}), models=(bad,))
        t.send("one\r")
        t.wait("reused")
        t.wait(t.at_prompt)
        t.send("two\r")
        t.wait("refused (400)")
        t.settle()
        self.assertNotIn(b"\x1b]", t.bytes)
        self.assertNotIn(b"\x1b[5m", t.bytes)


class RealModel(Case):
    """A conversation of ten turns, as people have it."""

    def test_conversation(self):
        model = os.path.join(Config.models or "", "SmolLM2-135M-Instruct.Q4_1.gguf")
        if not os.path.exists(model):
            self.skipTest("SmolLM2 is not there")
        t = self.start("--temp", 0, "-n", 24, "-c", 4096, model=model)
        reused = [int(re.search(r"(\d+) reused", self.ask(t, f"What is {i} plus {i}? Answer in one word.", 120))[1]) for i in range(10)]
        self.assertEqual(reused, sorted(set(reused)))  # each turn goes on from the one before
        self.assertEqual(len(self.saved(t)), 20)
        self.command(t, "/undo")
        t.send("/edit\r")
        t.wait(lambda: "What is 8 plus 8" in t.lines[t.screen.cursor.y])
        self.ask(t, CTRL_U + "你好，世界 👋", 120)
        t.resize(30, 50)
        lines = "\n".join(f"{i}: the quick brown fox" for i in range(200))
        self.ask(t, f"\x1b[200~{lines}\x1b[201~", 300)
        users = self.users(t)
        self.assertEqual((len(users), users[8], users[9]), (10, "你好，世界 👋", lines))
        self.command(t, f"/load {self.path}")
        t.send("Count to one thousand.\r")
        n = len(t.bytes)
        t.wait(lambda: len(t.bytes) > n + 60, 120)
        t.send(CTRL_C)
        t.wait(t.at_prompt, 120)
        self.assertIn(len(self.saved(t)), (20, 22))  # the message is taken back when it was not answered yet

    def test_a_base_model_says_that_it_has_no_template(self):
        model = os.path.join(Config.models or "", "gemma-3-270m-q4_k_m.gguf")
        if not os.path.exists(model):
            self.skipTest("Gemma 3 is not there")
        t = Terminal([Config.nib, "chat", "-m", model])
        self.addCleanup(t.close)
        t.wait(lambda: not t.pump(0.5))
        self.assertRegex(t.text, "error:.*template")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("--models")
    p.add_argument("-k", action="append", metavar="PATTERN")
    p.add_argument("-v", action="store_true")
    opt = p.parse_args()
    Config.nib, Config.models = os.path.abspath(opt.nib), opt.models
    loader = unittest.TestLoader()
    loader.testNamePatterns = [k if "*" in k else f"*{k}*" for k in opt.k] if opt.k else None
    with harness.scratch() as folder:
        Config.scratch = folder
        suite = loader.loadTestsFromModule(sys.modules["__main__"])
        done = unittest.TextTestRunner(verbosity=2 if opt.v else 1).run(suite)
    return 0 if done.wasSuccessful() and done.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
