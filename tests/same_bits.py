"""tests/same_bits.py - real models give the same logits on every level, with any number of threads and any chunking.

usage: same_bits.py NIB MODEL.gguf...

For each type of KV cache (f16 and q16 alone after the first model), the scalar level one token at a time is the reference; `--logits-hash` of every other way must be
equal. Levels that this machine lacks are named. Exit status 1 on the first difference, 77 without models.
"""
import itertools
import json
import os
import subprocess
import sys

PROMPT = "The quick brown fox jumps over the lazy dog, \u4f60\u597d. " * 3
LEVELS = ["amx", "avx512", "avxvnni", "avx2", "neon_i8mm", "neon"]


def logits_hash(nib, model, *args):
    command = [nib, "-m", model, "-p", PROMPT, "-n", "6", "--temp", "0", "--ignore-eos", "--json", "--logits-hash", *args]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot run the instruction set level" in run.stderr or "no instruction set level" in run.stderr:
        return None
    if run.returncode:
        sys.exit(f"{' '.join(command)}: {run.stderr}")
    return json.loads(run.stdout)["logits_hash"]


def main(nib, models):
    models = [m for m in models if os.path.exists(m)]
    if not models:
        print("no models: skipped")
        return 77
    levels = []
    for level in LEVELS:
        if logits_hash(nib, models[0], "--isa", level, "-n", "1"):
            levels.append(level)
        else:
            print(f"{level}: not on this machine")
    if not levels:
        print("only the scalar level: skipped")
        return 77
    n = 0
    caches = ("f16", "f32", "q8_0", "q16")
    for model, kv in [(models[0], kv) for kv in caches] + [(model, kv) for model in models[1:] for kv in ("f16", "q16")]:
        cache = ("-ctk", kv, "-ctv", kv)
        want = logits_hash(nib, model, *cache, "--isa", "scalar", "-ub", "1")
        for level, (threads, chunk) in itertools.product(levels, (("1", "512"), ("2", "512"), ("3", "7"))):
            way = ("--isa", level, "-t", threads, "-ub", chunk)
            got = logits_hash(nib, model, *cache, *way)
            if got != want:
                sys.exit(f"{model} {' '.join(cache + way)}: {got}, expected {want}")
            n += 1
    print(f"{n} runs of {len(models)} models on {', '.join(levels)} equal the scalar level's")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
