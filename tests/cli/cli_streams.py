"""Streams and signals: pipes that close, full disks, Ctrl-C, terminals."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from harness import Case, Config, tiny


class Streams(Case):
    endless = ("-p", "Hello", "-n", "-1", "-c", 200000, "--ignore-eos")

    @property
    def long_model(self):
        return tiny("long", context=1 << 20)

    def start(self, *args, **how):
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **how}
        return self.spawn("-m", self.long_model, *self.endless, *args, **how)

    def test_reader_goes_away(self):
        p = self.start()
        self.assertTrue(p.stdout.read(100))
        p.stdout.close()
        p.stdout = None
        self.assertEqual(p.stderr.read(), b"")
        self.assertEqual(p.wait(timeout=60), 0)

    def test_reader_of_a_list_goes_away(self):
        for args in (("help", "run"), ("inspect", self.model), ("completion", "zsh")):
            done = subprocess.run(f"'{Config.nib}' {' '.join(args)} | true", shell=True, capture_output=True)
            self.assertEqual(done.stderr, b"")

    def test_disk_full(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("/dev/full is not there")
        for args in (("-m", self.model, "-p", "Hello", "-n", "3"), ("inspect", self.model), ("help",),
                     ("tokenize", "-m", self.model, "-p", "x"), ("-m", self.model, "-p", "x", "-n", "2", "--json")):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([Config.nib, *args], stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 1, args)
            self.assertIn(b"nib: error: cannot write to standard output", done.stderr)

    def test_closed_streams(self):
        """A closed stream is an error of that stream; the model does not take its place."""
        for command, line in ((f"tokenize --jsonl -m '{self.model}' <&-", b"cannot read standard input: Bad file"),
                              (f"-m '{self.model}' -n 2 <&-", b"cannot read standard input: Bad file"),
                              (f"-m '{self.model}' -p x -n 2 >&-", b"cannot write to standard output: Bad file")):
            done = subprocess.run(f"'{Config.nib}' {command}", shell=True, capture_output=True)
            self.assertEqual((done.returncode, done.stdout), (1, b""), command)
            self.assertIn(line, done.stderr)

    def test_file_size_limit(self):
        with open(os.path.join(Config.scratch, "limited"), "wb") as f:
            done = subprocess.run(["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", Config.nib, "help"], stdout=f,
                                  stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write to standard output: File too large", done.stderr)

    def test_streaming(self):
        """On a pipe each token comes when it is made, not when a buffer is full."""
        p = self.start()
        self.assertTrue(os.read(p.stdout.fileno(), 100))
        self.assertIsNone(p.poll())

    def interrupt(self, number, *args):
        p = self.start(*args)
        text = os.read(p.stdout.fileno(), 8)
        p.send_signal(number)
        rest, err = p.communicate(timeout=60)
        return p.returncode, text + rest, err.decode()

    def test_ctrl_c(self):
        code, text, err = self.interrupt(signal.SIGINT, "--stats")
        self.assertEqual(code, 130)
        self.assertTrue(text.startswith(b"Hello"))
        self.assertIn("TPOT", err)
        self.assertNotIn("error", err)

    def test_sigterm(self):
        code, text, err = self.interrupt(signal.SIGTERM)
        self.assertEqual((code, err), (143, ""))
        self.assertTrue(text.startswith(b"Hello"))

    def test_ctrl_c_with_json(self):
        p = self.start("--json")
        time.sleep(0.5)
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 130)
        self.assertIn(b'"finish_reason":"interrupted"', out)

    def test_second_ctrl_c_kills(self):
        """A reader that does not read blocks the writer; the first signal ends the write, two always end the program."""
        p = self.start()
        time.sleep(1)
        p.send_signal(signal.SIGINT)
        time.sleep(0.1)
        p.send_signal(signal.SIGINT)
        self.assertIn(p.wait(timeout=30), (130, -signal.SIGINT))

    def test_sigbus_is_explained(self):
        p = self.spawn("tokenize", "-m", self.model, "--jsonl", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
        p.stdin.write(b'{"text":"x"}\n')
        p.stdin.flush()
        p.stdout.readline()
        p.send_signal(signal.SIGBUS)
        _, err = p.communicate(timeout=30)
        self.assertEqual(p.returncode, 1)
        self.assertIn(b"truncated while mapped", err)

    def on_terminal(self, *args, columns=80):
        """Runs nib with both streams on one terminal; what it shows."""
        pid, master = pty.fork()
        if pid == 0:
            try:
                os.environ["TERM"] = "xterm"
                os.environ.pop("NO_COLOR", None)
                os.execv(Config.nib, [Config.nib, *map(str, args)])
            finally:
                os._exit(127)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        shown = b""
        deadline = time.time() + 60
        while time.time() < deadline and select.select([master], [], [], 60)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
        os.close(master)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode(errors="replace").replace("\r\n", "\n")

    def test_terminal(self):
        code, shown = self.on_terminal("-m", self.model, "-p", "Hello", "-n", 5, "--temp", 0)
        plain = self.nib("-m", self.model, "-p", "Hello", "-n", 5, "--temp", 0).out
        self.assertEqual(code, 0)
        self.assertIn("TTFT", shown)
        self.assertIn("\033[33mHello\033[0m", shown)
        self.assertIn(plain[5:] + "\n", re.sub(r"\033\[[0-9;]*[mK]", "", shown))

    def test_terminal_without_a_prompt(self):
        code, shown = self.on_terminal("-m", self.model)
        self.assertEqual(code, 2)
        self.assertIn("no input", shown)

    def test_no_colour(self):
        _, shown = self.on_terminal("-m", self.model, "-p", "Hello", "-n", 1, "--color", "off")
        self.assertNotIn("\033[3", shown)
        _, shown = self.on_terminal("-x")
        self.assertIn("nib: \033[1;31merror:\033[0m ", shown)
        self.assertNotIn("\033", self.nib("-x", code=2).err)
        self.assertIn("\033[33m", self.nib("-m", self.model, "-p", "Hello", "-n", 1, "--color", "on").out)
        self.assertNotIn("\033", self.nib("-m", self.model, "-p", "Hello", "-n", 1, "--color", "auto").out)

    def test_progress_of_a_long_prompt(self):
        code, shown = self.on_terminal("-m", self.long_model, "-p", "x" * 12000, "-n", 1, "-c", 16384, "-ub", 64)
        self.assertEqual(code, 0)
        self.assertIn("prompt [", shown)
