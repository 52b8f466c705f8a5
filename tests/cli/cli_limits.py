"""nib limits: what it measures, prints and keeps."""
import glob
import json
import os
import stat

from harness import Case, Config


class Limits(Case):
    def setUp(self):
        self.home = os.path.join(Config.scratch, self._testMethodName)

    def limits(self, *args, **how):
        return self.nib("limits", *args, env={"XDG_CACHE_HOME": self.home}, **how)

    def kept(self):
        return glob.glob(os.path.join(self.home, "nib", "*"))

    def test_measured_and_kept(self):
        r = self.limits("--json", "-t", 2)
        self.assertIn("measuring", r.err)
        self.assertEqual([row["threads"] for row in r.json["limits"]], [1, 2])
        for row in r.json["limits"]:
            self.assertGreater(row["read_gb_s"], 0)
            self.assertEqual(row["peaks"][-1]["isa"], "scalar")
            for peak in row["peaks"]:
                self.assertGreater(peak["int8_gmac_s"], 0)
                self.assertGreater(peak["f32_gmac_s"], 0)
        self.assertIn(r.json["best_threads"], (1, 2))
        self.assertEqual(len(self.kept()), 1)
        with open(self.kept()[0]) as f:
            self.assertEqual(json.load(f), r.json)
        again = self.limits("--json", "-t", 2)
        self.assertEqual((again.json, again.err), (r.json, ""))
        self.assertEqual(len(self.limits("--json", "-t", 1).json["limits"]), 2)  # what is known is enough
        text = self.limits("-t", 2).out
        self.assertRegex(text, r"(?m)^ +2( +[\d.]+){4}  \w+ +[\d.]+ +[\d.]+$")
        self.assertIn("--refresh", text)
        self.assertNotEqual(self.limits("--json", "-t", 1, "--refresh").json, r.json)

    def test_damaged_cache_is_measured_anew(self):
        self.limits("-t", 1)
        path = self.kept()[0]
        whole = json.load(open(path))
        rows = whole["limits"]
        broken = ["{", json.dumps({**whole, "cpu": "another"}), json.dumps({**whole, "limits": [{**rows[0], "threads": "x"}]})]
        for text in broken:
            with open(path, "w") as f:
                f.write(text)
            self.assertIn("measuring", self.limits("-t", 1).err, text[:80])
            self.assertEqual(json.load(open(path))["cpu"], whole["cpu"])
        self.assertEqual(len(self.kept()), 1)  # nothing temporary stays

    def test_no_place_to_keep_it(self):
        open(self.home, "w").close()
        self.assertIn("could not be kept", self.limits("-t", 1).err)
        home = self.home + "-home"
        r = self.nib("limits", "-t", 1, env={"XDG_CACHE_HOME": "relative", "HOME": home})
        self.assertIn("measured now", r.out)
        self.assertFalse(os.path.exists("relative"))
        folder = os.path.join(home, ".cache", "nib")
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode) & 0o077, 0)
        self.assertEqual(len(os.listdir(folder)), 1)

    def test_usage(self):
        self.usage("limits", "x", says="unexpected argument")
        self.usage("limits", "-t", 1025, says="1024")
