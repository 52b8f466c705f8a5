# tests/run_oracle.py - nib's log-probabilities and embeddings against the float forward pass of tests/oracle/forward.py.
# usage: run_oracle.py --nib PATH --tiny TINY_MAIN        tiny random models: every architecture, scaling and type
#        run_oracle.py --nib PATH --models DIR            the two real models, as they are and as float32 weights
# Float32 weights (and KV) must agree to F32_BOUND. With quantised weights the oracle rounds activations and KV as the
# numerics contract says. Then most rows agree to the last digits, and a few are off by the noise of a code that fell on
# the other side of a rounding border because a sum was taken in another order; hence a bound for the median row. The
# many layers of a real model spread such codes everywhere, so there the bound is the noise of 8-bit activations.
import argparse
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "oracle"))
import numpy as np

import forward
from f32_gguf import convert
from score import Report, embed, score

F32_BOUND = 1e-3
TINY_MEDIAN, TINY_MAX = 2e-4, 3e-1
REAL_MEAN, REAL_MAX = 2e-1, 2.0
VECTOR_BOUND, REAL_COSINE = 1e-5, 0.995  # of a float32 model: the largest difference; of a real one: the least similarity
F32_KV = ["-ctk", "f32", "-ctv", "f32"]
Q16_KV = ["-ctk", "q16", "-ctv", "q16"]

WIDE = {"n_embd": 256, "n_ff": 512, "head_dim": 64}  # rows of whole super-blocks
TINY = [  # what it shows, fields of tests/support/tiny.h, length of the text
    ("llama", {}, 97),
    ("llama: over segments of 512 positions", {"n_ctx": 1024}, 600),
    ("llama: own output, one key head", {"is_tied": 0, "n_kv": 1}, 33),
    ("llama: biases", {"has_biases": 1}, 33),
    ("llama: linear scaling", {"rope_scaling": "linear", "rope_scaling_factor": 4}, 97),
    ("llama: YaRN", {"rope_scaling": "yarn", "rope_scaling_factor": 4, "rope_original_ctx": 64}, 200),
    ("llama: rope factors of Llama 3", {"rope_factors": "1,1,1.5,3,8"}, 97),
    ("llama: odd widths", {"n_embd": 48, "n_head": 3, "n_kv": 1, "n_ff": 80, "n_vocab": 301}, 45),
    ("qwen2", {"arch": "qwen2"}, 97),
    ("qwen2: YaRN", {"arch": "qwen2", "rope_scaling": "yarn", "rope_scaling_factor": 4, "rope_original_ctx": 64}, 97),
    ("qwen3: heads wider than the model", {"arch": "qwen3", "head_dim": 32}, 97),
    ("gemma3: windows", {"arch": "gemma3", "n_layer": 7, "sliding_window": 40, "rope_base": 1e6}, 150),
    ("gemma3: linear scaling of global layers", {"arch": "gemma3", "n_layer": 6, "sliding_window": 40, "rope_base": 1e6,
                                                 "rope_scaling": "linear", "rope_scaling_factor": 8}, 97),
]
TYPES = ["F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "IQ4_NL", "MXFP4", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K",
         "IQ4_XS"]
PROMPTS = {  # ids of any text will do
    "SmolLM2-135M-Instruct.Q4_1.gguf": [[504, 3575, 282, 4649, 314], [1] + [37 * i % 40000 + 20 for i in range(70)]],
    "gemma-3-270m-q4_k_m.gguf": [[2, 818, 5279, 529, 7001, 563], [2] + [37 * i % 200000 + 300 for i in range(70)]],
}


def distances(reference, answer):
    """|log-probability of the reference - nib's| for every position and the ids that nib lists there."""
    return np.array([np.abs(row[list(top)] - list(top.values()))
                     for row, top in zip(reference, answer["top"], strict=True)])


def compare(report, what, reference, answer, mean_bound, max_bound):
    d = distances(reference, answer)
    report.check(d.mean() <= mean_bound and d.max() <= max_bound,
                 f"{what}: mean {d.mean():.1e} <= {mean_bound:.0e}, largest {d.max():.1e} <= {max_bound:.0e}")


def tiny_model(args, folder, fields):
    path = os.path.join(folder, "tiny.gguf")
    subprocess.run([args.tiny, path, *(f"{name}={value}" for name, value in fields.items())], check=True)
    return path


def unit(vector):
    return vector / np.linalg.norm(vector)


def compare_vectors(report, args, path, model, ids, is_exact):
    """All kinds of pooling, and the length that the model gives the vector."""
    hidden = model.hidden(ids).astype(np.float64)
    for pooling, want in {"mean": hidden.mean(axis=0), "cls": hidden[0], "last": hidden[-1]}.items():
        how = ["--pooling", pooling, *(F32_KV if is_exact else [])]
        (got,), (raw,) = embed(args.nib, path, [ids], how), embed(args.nib, path, [ids], [*how, "--no-normalize"])
        error, cosine = np.abs(got - unit(want)).max(), np.dot(got, unit(want))
        length = np.linalg.norm(raw) / np.linalg.norm(want)
        is_right = error <= VECTOR_BOUND and abs(length - 1) <= VECTOR_BOUND if is_exact else cosine >= REAL_COSINE
        report.check(is_right, f"embedding, {pooling}, {len(ids)} ids: largest difference {error:.1e}, cosine {cosine:.5f}, "
                               f"length {length:.5f}")


def run_tiny(args, report, folder):
    rng = np.random.default_rng(7)
    for what, fields, n in TINY:
        path = tiny_model(args, folder, {**fields, "type": "F32"})
        ids = rng.integers(3, 300, n)
        answer, = score(args.nib, path, [ids], 50, F32_KV)
        model = forward.Model(path)
        compare(report, f"{what}, F32", model.logprobs(ids), answer, F32_BOUND, F32_BOUND)
        answer, = score(args.nib, path, [ids], 50, Q16_KV)
        compare(report, f"{what}, F32, cache q16", model.logprobs(ids, contract="q16"), answer, F32_BOUND, F32_BOUND)
        if what in ("llama", "gemma3: windows"):
            compare_vectors(report, args, path, model, ids, True)
    for arch in ("llama", "qwen2", "qwen3", "gemma3"):
        for type_name in TYPES:
            path = tiny_model(args, folder, {**WIDE, "arch": arch, "type": type_name})
            # Many short texts: a code that flipped in one does not reach the others.
            texts = rng.integers(3, 300, (40, 3))
            model = forward.Model(path)
            for cache in ("f16", "q16") if type_name in ("F16", "Q4_0", "Q4_K") else ("f16",):
                answers = score(args.nib, path, texts, 50, ["-ctk", cache, "-ctv", cache])
                rows = np.concatenate([distances(model.logprobs(ids, contract=cache), answer).max(axis=1)
                                       for ids, answer in zip(texts, answers)])
                report.check(np.median(rows) <= TINY_MEDIAN and rows.max() <= TINY_MAX,
                             f"{arch}, {type_name}, cache {cache}: median row {np.median(rows):.1e} <= {TINY_MEDIAN:.0e}, "
                             f"largest {rows.max():.1e} <= {TINY_MAX:.0e}")


def run_real(args, report, folder):
    for file_name, prompts in PROMPTS.items():
        path, f32_path = os.path.join(args.models, file_name), os.path.join(folder, "f32.gguf")
        convert(path, f32_path)
        model = forward.Model(path, f32_path)
        for ids, answer in zip(prompts, score(args.nib, path, prompts, 50)):
            compare(report, f"{file_name}, {len(ids)} ids", model.logprobs(ids), answer, REAL_MEAN, REAL_MAX)
        compare_vectors(report, args, path, model, prompts[0], False)
        for ids, answer in zip(prompts, score(args.nib, f32_path, prompts, 50, F32_KV)):
            compare(report, f"{file_name} as F32, {len(ids)} ids", model.logprobs(ids), answer, F32_BOUND, F32_BOUND)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--nib", required=True)
    parser.add_argument("--tiny")
    parser.add_argument("--models")
    args = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="nib-oracle-") as folder:
        if args.tiny:
            run_tiny(args, report, folder)
        if args.models:
            run_real(args, report, folder)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
