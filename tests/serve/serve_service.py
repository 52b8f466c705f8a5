"""nib serve as a service: what systemd hears of it, and that its unit is valid and closed."""
import os
import re
import shutil
import signal
import socket
import subprocess

from harness import PATIENCE, Case, Config

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "contrib", "nib.service")


class Service(Case):
    def test_notifies(self):
        path = os.path.join(Config.scratch, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            s.bind(path)
            s.settimeout(PATIENCE)
            server = self.spawn("-c", 512, env={"NOTIFY_SOCKET": path})
            self.assertIn(b"READY=1", s.recv(1000))
            self.assertEqual(server.stop(signal.SIGTERM), 0)
            self.assertIn(b"STOPPING=1", s.recv(1000))

    def test_unit(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is missing")
        copy = os.path.join(Config.scratch, "nib.service")
        with open(UNIT, encoding="utf-8") as f, open(copy, "w", encoding="utf-8") as out:
            text = f.read()
            self.assertIn("Type=notify", text)
            out.write(text.replace("/usr/local/bin/nib", Config.nib).replace("Documentation=man:nib(1)\n", "")) # as if installed
        done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", copy], capture_output=True, text=True, timeout=PATIENCE)
        exposure = re.search(r"exposure level for nib.service: ([\d.]+)", done.stdout)
        self.assertLess(float(exposure[1]), 2, done.stdout)
