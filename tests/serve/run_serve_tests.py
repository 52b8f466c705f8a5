#!/usr/bin/env python3
"""Tests of nib serve over HTTP.

  run_serve_tests.py NIB [--models DIR] [--area AREA]... [-k PATTERN] [-v]

AREA is the middle of serve_<area>.py; without one all run. DIR holds SmolLM2-135M-Instruct.Q4_1.gguf."""
import argparse
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("--area", action="append")
    p.add_argument("--models", default="models")
    p.add_argument("-k", action="append", metavar="PATTERN")
    p.add_argument("-v", action="store_true")
    opt = p.parse_args()
    harness.Config.nib = os.path.abspath(opt.nib)
    harness.Config.models = opt.models
    harness.Config.model = os.path.join(opt.models, "SmolLM2-135M-Instruct.Q4_1.gguf")
    loader = unittest.TestLoader()
    loader.testNamePatterns = [k if "*" in k else f"*{k}*" for k in opt.k] if opt.k else None
    with tempfile.TemporaryDirectory(prefix="nib-serve-") as folder:
        harness.Config.scratch = folder
        suite = unittest.TestSuite(loader.discover(harness.FOLDER, pattern=f"serve_{area}.py") for area in opt.area or ["*"])
        done = unittest.TextTestRunner(verbosity=2 if opt.v else 1).run(suite)
        clean = not harness.Config.shared or harness.Config.shared.stop() == 0
        if not clean:
            print("the shared server did not end well", file=sys.stderr)
    return 0 if done.wasSuccessful() and done.testsRun and clean else 1


if __name__ == "__main__":
    sys.exit(main())
