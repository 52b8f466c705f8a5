#!/usr/bin/env python3
"""How long it takes from the start of the process to its first token, nib against another engine, in turn.

  start.py NIB MODEL... [--peer PROGRAM] [--rounds N] [--threads N]

PROGRAM is llama.cpp's llama-completion, or takes the same options. Every run is a process of its own that generates one
token from a short prompt and ends; its whole life counts, and the peak of its memory. Files are read once before, so that
they are in the page cache. The ratio is taken in each round, then the median of those."""
import argparse
import os
import statistics
import subprocess
import sys
import time


def run(argv):
    """Seconds and MiB of one process."""
    start = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"start.py: {' '.join(argv)} ended with {child.returncode}")
    return time.monotonic() - start, usage.ru_maxrss / 1024


def cell(values, digits):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("models", nargs="+")
    p.add_argument("--peer", metavar="PROGRAM")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    opt = p.parse_args()
    for model in opt.models:
        same = ["-m", model, "-p", "Hello", "-n", "1", "--temp", "0", "-t", str(opt.threads)]
        engines = {"nib": [opt.nib, *same]}
        if opt.peer:
            engines[os.path.basename(opt.peer)] = [opt.peer, *same, "-no-cnv"]
            engines["no warm-up"] = [opt.peer, *same, "-no-cnv", "--no-warmup"]
        for argv in engines.values():
            run(argv)
        rounds = [{name: run(argv) for name, argv in engines.items()} for _ in range(opt.rounds)]
        print(os.path.basename(model))
        for name in engines:
            seconds, memory = ([r[name][k] for r in rounds] for k in (0, 1))
            ratio = [r["nib"][0] / r[name][0] for r in rounds]
            print(f"  {name:18} {cell([1e3 * s for s in seconds], 0):>18} ms   {statistics.median(memory):6.0f} MiB   "
                  f"nib takes {cell(ratio, 2)}", flush=True)


if __name__ == "__main__":
    main()
