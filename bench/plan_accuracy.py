#!/usr/bin/env python3
"""How well nib plan foretells: 20 points of (prompt, generation, sequences) over the given models, each measured by nib bench
right after the limits and compared. A point is its time in all: reading the prompts, then generating.

  plan_accuracy.py NIB MODEL... [--within 0.20] [--threads N]

Exit status 1 when a point is off by more."""
import argparse
import json
import statistics
import subprocess
import sys

POINTS = [(32, 32, 1), (128, 64, 1), (512, 32, 1), (512, 128, 1), (1024, 32, 1), (64, 32, 2), (128, 32, 4), (256, 32, 8),
          (64, 32, 16), (2048, 16, 1)]
N_POINTS = 20


def run(nib, *args):
    done = subprocess.run([nib, *map(str, args), "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("models", nargs="+")
    p.add_argument("--within", type=float, default=0.20)
    p.add_argument("--threads", type=int, default=0)
    opt = p.parse_args()
    threads = ["-t", opt.threads] if opt.threads else []
    for model in opt.models:  # kernels that are not known yet
        run(opt.nib, "plan", "-m", model, *threads)
    worst = 0
    print(f"{'model':36} {'prompt':>6} {'gen':>5} {'x':>3} {'predicted s':>12} {'measured s':>11} {'off':>7}   (prefill, decode)")
    for i in range(N_POINTS):
        model = opt.models[i % len(opt.models)]
        prompt, gen, batch = POINTS[(i + i // len(POINTS)) % len(POINTS)]
        run(opt.nib, "limits", "--refresh", *threads)
        plan = run(opt.nib, "plan", "-m", model, "-p", prompt, "-n", gen, "--concurrency", batch, *threads)
        results = run(opt.nib, "bench", "-m", model, "-p", prompt, "-n", 0, "-r", 3, *threads)
        results += run(opt.nib, "bench", "-m", model, "-p", 0, "-n", gen, "--batch", batch, "-d", prompt, "-r", 3, *threads)
        prefill, decode = (statistics.median(r["tok_s"]) for r in results)
        parts = [(plan["ttft_last_ms"] / 1e3, prompt * batch / prefill), (plan["tpot_ms"] / 1e3 * gen, gen * batch / decode)]
        predicted, measured = (sum(part[k] for part in parts) for k in (0, 1))
        off = predicted / measured - 1
        worst = max(worst, abs(off))
        print(f"{model.split('/')[-1]:36} {prompt:6} {gen:5} {batch:3} {predicted:12.3f} {measured:11.3f} {100 * off:+6.1f}%   "
              f"({', '.join(f'{100 * (a / b - 1):+.1f}%' for a, b in parts)})", flush=True)
    print(f"worst: {100 * worst:.1f} %, allowed {100 * opt.within:.0f} %")
    return 1 if worst > opt.within else 0


if __name__ == "__main__":
    sys.exit(main())
