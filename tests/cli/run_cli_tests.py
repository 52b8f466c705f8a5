#!/usr/bin/env python3
"""Tests of the program nib: options, streams, exit statuses, commands. Python's standard library only.

  run_cli_tests.py NIB [--models DIR] [--allow-missing] [-k PATTERN] [-v]

DIR holds the real models; a test that needs one that is not there fails, or is skipped with --allow-missing."""
import argparse
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("--models")
    p.add_argument("--allow-missing", action="store_true")
    p.add_argument("-k", action="append", metavar="PATTERN")
    p.add_argument("-v", action="store_true")
    opt = p.parse_args()
    harness.Config.nib = os.path.abspath(opt.nib)
    harness.Config.models = opt.models
    harness.Config.allow_missing = opt.allow_missing
    loader = unittest.TestLoader()
    loader.testNamePatterns = [k if "*" in k else f"*{k}*" for k in opt.k] if opt.k else None
    with harness.scratch() as folder:
        harness.Config.scratch = folder
        suite = loader.discover(harness.FOLDER, pattern="cli_*.py")
        done = unittest.TextTestRunner(verbosity=2 if opt.v else 1).run(suite)
    return 0 if done.wasSuccessful() and done.testsRun else 1


if __name__ == "__main__":
    sys.exit(main())
