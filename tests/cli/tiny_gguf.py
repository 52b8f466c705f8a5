"""A GGUF model small enough to make on the spot: llama architecture, 2 layers, width 64, a byte-level vocabulary of 260
tokens, random float32 weights that are the same every time. Used by the tests of the program."""
import array
import random
import struct

U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
WIDTH, LAYERS, HEADS, KV_HEADS, FEED, HEAD = 64, 2, 2, 1, 128, 32
BOS, EOS, HE, USER = 256, 257, 258, 259


def byte_tokens():
    """The printable stand-ins of byte-level BPE, in the order of the bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(other)) for b in range(256)]


def string(text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(data)) + data


def value(kind, x):
    if kind == STRING:
        return string(x)
    if kind == ARRAY:
        element, items = x
        return struct.pack("<IQ", element, len(items)) + b"".join(value(element, i) for i in items)
    return struct.pack({U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}[kind], x)


def metadata(context):
    tokens = byte_tokens() + ["<s>", "</s>", "he", "<user>"]
    return {
        "general.architecture": (STRING, "llama"),
        "general.name": (STRING, "tiny"),
        "llama.context_length": (U32, context),
        "llama.embedding_length": (U32, WIDTH),
        "llama.block_count": (U32, LAYERS),
        "llama.feed_forward_length": (U32, FEED),
        "llama.attention.head_count": (U32, HEADS),
        "llama.attention.head_count_kv": (U32, KV_HEADS),
        "llama.rope.dimension_count": (U32, HEAD),
        "llama.attention.layer_norm_rms_epsilon": (F32, 1e-5),
        "tokenizer.ggml.model": (STRING, "gpt2"),
        "tokenizer.ggml.pre": (STRING, "gpt-2"),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.token_type": (ARRAY, (I32, [1] * 256 + [3, 3, 1, 4])),
        "tokenizer.ggml.merges": (ARRAY, (STRING, ["h e"])),
        "tokenizer.ggml.bos_token_id": (U32, BOS),
        "tokenizer.ggml.eos_token_id": (U32, EOS),
        "tokenizer.ggml.add_bos_token": (BOOL, True),
    }


def shapes(n_vocab):
    yield "token_embd.weight", (WIDTH, n_vocab)
    for i in range(LAYERS):
        yield f"blk.{i}.attn_norm.weight", (WIDTH,)
        yield f"blk.{i}.attn_q.weight", (WIDTH, HEADS * HEAD)
        yield f"blk.{i}.attn_k.weight", (WIDTH, KV_HEADS * HEAD)
        yield f"blk.{i}.attn_v.weight", (WIDTH, KV_HEADS * HEAD)
        yield f"blk.{i}.attn_output.weight", (HEADS * HEAD, WIDTH)
        yield f"blk.{i}.ffn_norm.weight", (WIDTH,)
        yield f"blk.{i}.ffn_gate.weight", (WIDTH, FEED)
        yield f"blk.{i}.ffn_up.weight", (WIDTH, FEED)
        yield f"blk.{i}.ffn_down.weight", (FEED, WIDTH)
    yield "output_norm.weight", (WIDTH,)


def write(path, context=4096, keys=None, weights=True):
    """keys: {name: (type, value)} to add or replace; value None leaves the key out. weights False: vocabulary only."""
    meta = {**metadata(context), **(keys or {})}
    meta = {k: v for k, v in meta.items() if v[1] is not None}
    tensors = list(shapes(260)) if weights else []
    rng = random.Random(1)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(meta))
    for key, (kind, x) in meta.items():
        head += string(key) + struct.pack("<I", kind) + value(kind, x)
    data = bytearray()
    for name, dims in tensors:
        n = 1
        for d in dims:
            n *= d
        head += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        scale = 0.3 if len(dims) == 2 else 1
        numbers = [rng.gauss(0, scale) for _ in range(n)] if len(dims) == 2 else [1.0] * n
        data += array.array("f", numbers).tobytes()
        data += bytes(-len(data) % 32)
    head += bytes(-len(head) % 32)
    with open(path, "wb") as f:
        f.write(head + data)
    return path
