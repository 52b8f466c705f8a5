#!/usr/bin/env python3
"""Compare nib's dequantisation with the gguf package, bit for bit; or print the vectors of test_quant_type.c.

  quant_oracle.py DEQUANT [BLOCKS [SEED]]   run the program DEQUANT (tests/support/dequant_main.c) on random blocks
  quant_oracle.py --vectors                 print the table that tests/test_quant_type.c holds

Needs numpy and gguf. NaN results are equal whatever their payload; every other result must have the same bits.
"""
import re
import subprocess
import sys

import gguf
import numpy as np

# Offsets of the float16 fields of a block.
F16_FIELDS = {
    "F32": [], "F16": [0], "BF16": [], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
    "MXFP4": [],
}
EDGES = [0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
         0x7c01]
M64 = (1 << 64) - 1


def reference(name, blocks):
    qtype = gguf.GGMLQuantizationType[name]
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(gguf.quants.dequantize(blocks, qtype)).reshape(-1).astype(np.float32, copy=False)


def sizes(name):
    return gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]


def random_blocks(rng, name, n):
    """Random bytes; then blocks of all-zero and all-one codes; each with every edge value in each float16 field."""
    size = sizes(name)[1]
    plain = rng.integers(0, 256, (n, size), dtype=np.uint8)
    rows = [plain]
    for fill in (None, 0x00, 0xff):
        for field in F16_FIELDS[name]:
            for edge in EDGES:
                b = plain[:1].copy() if fill is None else np.full((1, size), fill, np.uint8)
                b[0, field] = edge & 255
                b[0, field + 1] = edge >> 8
                rows.append(b)
    if name == "MXFP4":
        every = rng.integers(0, 256, (256, size), dtype=np.uint8)
        every[:, 0] = np.arange(256)
        rows.append(every)
    return np.concatenate(rows)


def compare(program, n, seed):
    rng = np.random.default_rng(seed)
    bad = 0
    for name in F16_FIELDS:
        blocks = random_blocks(rng, name, n)
        run = subprocess.run([program, name], input=blocks.tobytes(), stdout=subprocess.PIPE, check=True)
        got, want = np.frombuffer(run.stdout, np.float32), reference(name, blocks)
        ok = got.shape == want.shape
        if ok:
            same = (got.view(np.uint32) == want.view(np.uint32)) | (np.isnan(got) & np.isnan(want))
            ok = bool(same.all())
            if not ok:
                i = int(np.argmin(same))
                block = blocks[i // sizes(name)[0]].tobytes().hex()
                print(f"{name}: weight {i}: {got[i]!r}, expected {want[i]!r}; block {block}")
        bad += not ok
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {want.size} weights, {int(np.isnan(want).sum())} NaN")
    return 1 if bad else 0


def splitmix_bytes(seed, n):
    """The generator of test_quant_type.c."""
    out = bytearray()
    while len(out) < n:
        seed = (seed + 0x9E3779B97F4A7C15) & M64
        z = seed
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M64
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out[:n])


def vectors():
    """64 blocks of random bytes a type, float16 fields and floats made finite by clearing one exponent bit."""
    for name in F16_FIELDS:
        size = sizes(name)[1]
        n = 64
        seed = int(gguf.GGMLQuantizationType[name])
        b = np.frombuffer(splitmix_bytes(seed, n * size), np.uint8).reshape(n, size).copy()
        for field in F16_FIELDS[name]:
            b[:, field + 1] &= 0xbf
        if name in ("F32", "BF16"):
            b[:, -1] &= 0xbf
        if name == "MXFP4":
            b[:, 0] &= 0x7f
        w = reference(name, b)
        assert np.isfinite(w).all(), name
        h = 0xCBF29CE484222325
        for x in w.view(np.uint32).tolist():
            h = ((h ^ x) * 0x100000001B3) & M64
        first = ", ".join(re.sub(r"\.?0*p", "p", float(x).hex()) + "f" for x in (w[0], w[w.size // 3], w[-1]))
        print(f'    {{"{name}", 0x{h:016x}, {{{first}}}}},')


if __name__ == "__main__":
    if sys.argv[1:] == ["--vectors"]:
        vectors()
    elif len(sys.argv) in (2, 3, 4):
        sys.exit(compare(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000,
                         int(sys.argv[3]) if len(sys.argv) > 3 else 1))
    else:
        sys.exit(__doc__)
