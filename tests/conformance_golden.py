# tests/conformance_golden.py - the two real models against recorded answers of llama.cpp and of a float32 forward.
# usage: conformance_golden.py --nib PATH --models DIR    with NIB_CONFORMANCE_DATA set to a folder that has golden/
# Forced along the float32 model's greedy ids: the best token wherever the margin is clear, the ten best
# log-probabilities within the tolerances of the file, on the average no further from float32 than llama.cpp;
# perplexity within 0.5 % of llama.cpp's. Without the variable the test is skipped (exit 77).
import argparse
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle"))
from score import Report, score

TOP = 500  # enough that the reference's ten best are always among them


def compare(golden, answers, report):
    """One model: each prompt's 48 rows for the best token, its first 9 rows for the ten best log-probabilities."""
    distances, lost, n_clear, wrong = [], 0, 0, []
    for prompt, answer in zip(golden["prompts"], answers):
        rows = answer["top"][len(prompt["ids"]) - 1:]
        reference = prompt["f32"]
        for step, (row, best, margin) in enumerate(zip(rows, reference["greedy_ids"], reference["margins"])):
            if margin > golden["exact_margin"]:
                n_clear += 1
                if max(row, key=row.get) != best:
                    wrong.append(f"{prompt['name']} step {step}: {max(row, key=row.get)}, reference {best}")
        for row, ten in zip(rows, reference["top10"]):
            lost += sum(token not in row for token, _ in ten)
            distances += [abs(row[token] - logprob) for token, logprob in ten if token in row]
    worst, mean = max(distances), sum(distances) / len(distances)
    report.check(not wrong, f"best token at {n_clear} clear steps; wrong: {wrong or 'none'}")
    report.check(lost == 0, f"{lost} of the reference's ten best are not among nib's {TOP} best")
    report.check(worst <= golden["tolerance"], f"ten best: largest distance {worst:.4f} <= {golden['tolerance']}")
    report.check(mean <= golden["tolerance_mean"], f"ten best: mean distance {mean:.4f} <= {golden['tolerance_mean']}")
    noise = golden["noise"]["mean_abs_logprob_top10"]
    report.check(mean <= noise, f"ten best: mean distance {mean:.4f} <= llama.cpp's {noise:.4f}")


def perplexity(nib, model, folder, text, expected, report):
    run = subprocess.run([nib, "perplexity", "-m", model, "-f", os.path.join(folder, text), "-c", "512", "--json"],
                         capture_output=True, text=True, timeout=1200)
    if run.returncode != 0:
        report.check(False, f"nib perplexity ended with {run.returncode}: {run.stderr.strip()}")
        return
    found = json.loads(run.stdout)["ppl"]
    share = found / expected["llama_cpp"]["ppl"] - 1
    report.check(abs(share) <= 0.005, f"perplexity {found:.4f}, llama.cpp {expected['llama_cpp']['ppl']} "
                 f"({100 * share:+.2f} %), float32 {expected['f32']['ppl']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nib", required=True)
    parser.add_argument("--models", required=True)
    args = parser.parse_args()
    folder = os.path.join(os.environ.get("NIB_CONFORMANCE_DATA", ""), "golden")
    if not os.path.isdir(folder):
        print("skipped: NIB_CONFORMANCE_DATA names no folder with golden/")
        return 77
    with open(os.path.join(folder, "perplexity.json"), encoding="utf-8") as stream:
        ppl = json.load(stream)
    report = Report()
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as stream:
            golden = json.load(stream)
        if "prompts" not in golden:
            continue
        model = os.path.join(args.models, golden["model_file"])
        print(golden["model_file"])
        answers = score(args.nib, model, [p["ids"] + p["f32"]["greedy_ids"][:-1] for p in golden["prompts"]], TOP)
        compare(golden, answers, report)
        name = os.path.splitext(os.path.basename(path))[0]
        perplexity(args.nib, model, folder, ppl["text"], ppl["models"][name], report)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
