# tests/oracle/forward.py - a float forward pass of the decoder architectures in numpy: GGUF file + ids -> logits.
# The truth that tests compare nib with. Written from the published descriptions of the models, one obvious line after
# another, without a cache: every call computes all positions. Weights are dequantised by the gguf package.
# With contract="q16" it also rounds what nib rounds (docs/ARCHITECTURE.md, numerics): activations to 8 bits before a
# product with a quantised weight; queries, keys, values and the weights of a page to 16-bit codes. With "f16" keys and values are
# halves. The engine must then agree far more closely.
# Used by tests/run_oracle.py; by hand: forward.py MODEL.gguf ID ID ... prints the ten best next ids.
import math
import sys

import gguf
import numpy as np


Q = gguf.GGMLQuantizationType
# How many activations share a scale before a product with a weight of this type; absent: not rounded.
ACTIVATION_BLOCK = {**dict.fromkeys((Q.Q4_0, Q.Q4_1, Q.Q5_0, Q.Q5_1, Q.Q8_0, Q.IQ4_NL, Q.MXFP4), 32),
                    **dict.fromkeys((Q.Q2_K, Q.Q3_K, Q.Q4_K, Q.Q5_K, Q.Q6_K, Q.IQ4_XS), 256)}

INTERLEAVED = {  # does rope turn the pairs (2i, 2i+1) of a head, or (i, i + n_rot/2)?
    "llama": True,
    "qwen2": False,
    "qwen3": False,
    "gemma3": False,
}


class Config:
    """Hyper-parameters, read from the keys of the file with the defaults that the format prescribes."""

    def __init__(self, reader):
        self.arch = reader.get_field("general.architecture").contents()
        if self.arch not in INTERLEAVED:
            raise ValueError(f"oracle knows no architecture {self.arch}")

        def get(key, default=None):
            field = reader.get_field(f"{self.arch}.{key}")
            if field is None and default is None:
                raise ValueError(f"key {self.arch}.{key} is missing")
            return default if field is None else field.contents()

        self.n_embd = get("embedding_length")
        self.n_layer = get("block_count")
        self.n_head = get("attention.head_count")
        self.n_kv = get("attention.head_count_kv", self.n_head)
        self.eps = get("attention.layer_norm_rms_epsilon")
        self.d_key = get("attention.key_length", self.n_embd // self.n_head)
        self.d_value = get("attention.value_length", self.n_embd // self.n_head)
        self.n_rot = get("rope.dimension_count", self.d_key)
        self.rope_base = get("rope.freq_base", 10000.0)
        self.scaling = get("rope.scaling.type", "none" if get("rope.scaling.factor", 0) == 0 else "linear")
        self.factor = get("rope.scaling.factor", get("rope.scale_linear", 1.0)) or 1.0
        self.n_ctx_orig = get("rope.scaling.original_context_length", get("context_length"))
        self.yarn = {"ext": get("rope.scaling.yarn_ext_factor", 1.0),
                     "attn": get("rope.scaling.yarn_attn_factor", 1.0) * get("rope.scaling.attn_factor", 1.0),
                     "fast": get("rope.scaling.yarn_beta_fast", 32.0),
                     "slow": get("rope.scaling.yarn_beta_slow", 1.0)}
        self.is_gemma = self.arch == "gemma3"
        self.is_interleaved = INTERLEAVED[self.arch]
        self.window = get("attention.sliding_window", 0) if self.is_gemma else 0
        self.local_base = get("rope.freq_base_swa", 10000.0)

    def is_local(self, layer):
        """Gemma 3: five layers with a sliding window, then one that sees everything."""
        return self.window > 0 and (layer + 1) % 6 != 0


def round_activations(x, block):
    """Each block of a row becomes 8-bit codes times one scale: codes by the largest value, then the scale that makes the
    squared error least."""
    blocks = x.astype(np.float32).reshape(len(x), -1, block)
    step = np.abs(blocks).max(axis=-1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), step, out=np.zeros_like(step), where=step > 0)
    codes = np.rint(blocks * inverse)
    along, squares = ((v * codes).sum(axis=-1, keepdims=True) for v in (blocks, codes))
    scale = np.divide(along, squares, out=np.zeros_like(step), where=squares > 0)
    return (codes * scale).reshape(x.shape).astype(x.dtype)


PAGE = 32  # positions whose weights share a scale
KEY_CODES, VALUE_CODES = 5792, 8191  # the largest codes of queries and keys, of weights and values


def round_codes(x, largest):
    """Whole numbers up to `largest`, and their scale, for each vector of the last axis."""
    top = np.abs(x.astype(np.float32)).max(axis=-1, keepdims=True)
    inverse = np.divide(np.float32(largest), top, out=np.zeros_like(top), where=top >= 1e-30)
    return np.rint(x.astype(np.float32) * inverse), top / np.float32(largest)


def mean_of_codes(p, v):
    """Values by weights p (queries, positions), which become codes page by page."""
    codes, scale = round_codes(v, VALUE_CODES)
    out = np.zeros((len(p), v.shape[1]))
    for first in range(0, len(v), PAGE):
        page = slice(first, first + PAGE)
        weights, page_scale = round_codes(p[:, page] * scale[page, 0], VALUE_CODES)
        out += weights.astype(np.float64) @ codes[page] * page_scale
    return out / p.sum(axis=-1, keepdims=True)


def rms_norm(x, weight, eps):
    mean = np.mean(np.square(x), axis=-1, keepdims=True, dtype=x.dtype)
    return x / np.sqrt(mean + x.dtype.type(eps)) * weight


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(x):
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def rope_angles(config, layer, n, factors):
    """Angle of each position and pair, and the magnitude of YaRN: ((n, n_rot/2), float). In double precision."""
    pairs = config.n_rot // 2
    if config.is_local(layer):
        freq = config.local_base ** (-2.0 * np.arange(pairs) / config.n_rot)
        return np.outer(np.arange(n), freq), 1.0
    freq = float(config.rope_base) ** (-2.0 * np.arange(pairs) / config.n_rot)
    if factors is not None:
        freq = freq / factors.astype(np.float64)
    if config.scaling == "linear":
        return np.outer(np.arange(n), freq / config.factor), 1.0
    if config.scaling != "yarn":
        return np.outer(np.arange(n), freq), 1.0

    # YaRN: pairs that turn often in the original context keep their frequency, slow ones are interpolated, a ramp in
    # between. A pair that turns `beta` times has index n_rot * ln(n_ctx / (beta * 2 pi)) / (2 ln base).
    def pair_that_turns(beta):
        return config.n_rot * math.log(config.n_ctx_orig / (beta * 2 * math.pi)) / (2 * math.log(config.rope_base))

    low = max(0, math.floor(pair_that_turns(config.yarn["fast"])))
    high = min(config.n_rot - 1, math.ceil(pair_that_turns(config.yarn["slow"])))
    keep = (1 - np.clip((np.arange(pairs) - low) / max(0.001, high - low), 0, 1)) * config.yarn["ext"]
    freq = freq / config.factor * (1 - keep) + freq * keep
    return np.outer(np.arange(n), freq), config.yarn["attn"] * (0.1 * math.log(config.factor) + 1)


def rope(x, angles, magnitude, is_interleaved):
    """x: (n, heads, d); the first n_rot dimensions of each head are turned."""
    cos = (np.cos(angles) * magnitude).astype(x.dtype)[:, None, :]
    sin = (np.sin(angles) * magnitude).astype(x.dtype)[:, None, :]
    pairs = angles.shape[1]
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if is_interleaved else (
        slice(0, pairs), slice(pairs, 2 * pairs))
    a, b = x[..., first], x[..., second]
    out = x.copy()
    out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
    return out


class Model:
    def __init__(self, path, weights_path=None):
        """weights_path: take the weights from this file instead (float32, so that they need not be unpacked again)."""
        reader = gguf.GGUFReader(path)
        self.config = Config(reader)
        self.block = {t.name: ACTIVATION_BLOCK.get(t.tensor_type) for t in reader.tensors}
        tensors = gguf.GGUFReader(weights_path).tensors if weights_path else reader.tensors
        self.weights = {t.name: gguf.quants.dequantize(t.data, t.tensor_type) for t in tensors}
        self.contract = None

    def linear(self, x, name):
        weight = name + ".weight"
        if self.contract and self.block[weight]:
            x = round_activations(x, self.block[weight])
        y = x @ self.weights[weight].T
        bias = self.weights.get(name + ".bias")
        return y if bias is None else y + bias

    def norm(self, x, name):
        return rms_norm(x, self.weights[name + ".weight"], self.config.eps)

    def attention(self, x, layer):
        c, blk, n = self.config, f"blk.{layer}.", len(x)
        q = self.linear(x, blk + "attn_q").reshape(n, c.n_head, c.d_key)
        k = self.linear(x, blk + "attn_k").reshape(n, c.n_kv, c.d_key)
        v = self.linear(x, blk + "attn_v").reshape(n, c.n_kv, c.d_value)
        if blk + "attn_q_norm.weight" in self.weights:
            q, k = self.norm(q, blk + "attn_q_norm"), self.norm(k, blk + "attn_k_norm")
        angles, magnitude = rope_angles(c, layer, n, self.weights.get("rope_freqs.weight"))
        q, k = (rope(t, angles, magnitude, c.is_interleaved) for t in (q, k))
        q = q * x.dtype.type(1 / math.sqrt(c.d_key))
        if self.contract == "f16":
            k, v = (t.astype(np.float16).astype(x.dtype) for t in (k, v))
        if self.contract == "q16":
            q, k = (codes * scale for codes, scale in (round_codes(t, KEY_CODES) for t in (q, k)))

        distance = np.arange(n)[:, None] - np.arange(n)[None, :]  # query position - key position
        hidden = distance < 0
        if c.is_local(layer):
            hidden |= distance >= c.window
        mask = np.where(hidden, -np.inf, 0).astype(x.dtype)
        out = np.empty((n, c.n_head, c.d_value), x.dtype)
        for head in range(c.n_head):
            kv = head // (c.n_head // c.n_kv)
            scores = q[:, head] @ k[:, kv].T + mask
            if self.contract == "q16":
                out[:, head] = mean_of_codes(np.exp(scores - scores.max(axis=-1, keepdims=True)), v[:, kv])
            else:
                out[:, head] = softmax(scores) @ v[:, kv]
        return self.linear(out.reshape(n, -1), blk + "attn_output")

    def feed_forward(self, x, layer):
        blk = f"blk.{layer}."
        activation = gelu_tanh if self.config.is_gemma else silu
        return self.linear(activation(self.linear(x, blk + "ffn_gate")) * self.linear(x, blk + "ffn_up"), blk + "ffn_down")

    def hidden(self, ids, contract=None):
        """(n, n_embd): the states of all positions after the final norm."""
        self.contract = contract
        x = self.weights["token_embd.weight"][np.asarray(ids)]
        if self.config.is_gemma:
            x = x * x.dtype.type(math.sqrt(self.config.n_embd))
        for layer in range(self.config.n_layer):
            blk = f"blk.{layer}."
            y = self.attention(self.norm(x, blk + "attn_norm"), layer)
            x = x + (self.norm(y, blk + "post_attention_norm") if self.config.is_gemma else y)
            y = self.feed_forward(self.norm(x, blk + "ffn_norm"), layer)
            x = x + (self.norm(y, blk + "post_ffw_norm") if self.config.is_gemma else y)
        return self.norm(x, "output_norm")

    def logits(self, ids, contract=None):
        """(n, n_vocab): row i holds the logits of the token after ids[i]."""
        return self.linear(self.hidden(ids, contract), "output" if "output.weight" in self.weights else "token_embd")

    def logprobs(self, ids, contract=None):
        return log_softmax(self.logits(ids, contract).astype(np.float64))


def main():
    row = Model(sys.argv[1]).logprobs([int(arg) for arg in sys.argv[2:]])[-1]
    for i in np.argsort(-row)[:10]:
        print(f"{i}\t{row[i]:.5f}")


if __name__ == "__main__":
    main()
