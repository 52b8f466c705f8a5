# tests/oracle/score.py - runs `nib score` and `nib embed` on lists of ids and gives their answers; shared by the tests that
# compare nib with other programs.
import json
import subprocess


def ask(nib, command, model, ids_lists, options):
    requests = "".join(json.dumps({"ids": [int(i) for i in ids]}) + "\n" for ids in ids_lists)
    run = subprocess.run([nib, command, "-m", model, "--jsonl", *options], input=requests, capture_output=True, text=True,
                         timeout=1200)
    if run.returncode != 0:
        raise RuntimeError(f"nib {command} -m {model} ended with {run.returncode}: {run.stderr.strip()}")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    if len(answers) != len(ids_lists):
        raise RuntimeError(f"nib {command} answered {len(answers)} of {len(ids_lists)} lines: {run.stderr.strip()}")
    return answers


def embed(nib, model, ids_lists, options=()):
    """The vector of each list of ids."""
    return [answer["embedding"] for answer in ask(nib, "embed", model, ids_lists, options)]


def score(nib, model, ids_lists, k, options=()):
    """For each list of ids: what nib answers, with "top" as one dict {id: logprob} of the k best per position.

    Position i is the distribution of the token after ids[i]."""
    answers = ask(nib, "score", model, ids_lists, ["--logprobs", str(k), *options])
    for answer in answers:
        answer["top"] = [dict(map(tuple, row)) for row in answer["top"]]
    return answers


class Report:
    """Collects checks; says what failed; its exit status."""

    def __init__(self):
        self.n_passed = self.n_failed = 0

    def check(self, is_right, text):
        self.n_passed += bool(is_right)
        self.n_failed += not is_right
        print(("ok    " if is_right else "FAIL  ") + text, flush=True)

    def finish(self):
        print(f"{self.n_passed} checks right, {self.n_failed} wrong")
        return 1 if self.n_failed or not self.n_passed else 0
