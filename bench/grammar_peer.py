#!/usr/bin/env python3
"""The time of a grammar per token, nib's and llama.cpp's, in turn: the schema and the text of bench_grammar.

  grammar_peer.py BENCH_GRAMMAR VOCAB.gguf --peer LIBLLAMA --converter JSON_SCHEMA_TO_GRAMMAR.py [--rounds N]

LIBLLAMA is llama.cpp's libllama.so, the converter its script of that name. llama.cpp has two ways: to look at all tokens, as it does
when the token that was chosen first does not fit, and to look at that one only. Both are processor time of one thread per token,
taking it included; nib's is that of the mask of all tokens, with a grammar that is new and with one that saw the text before."""
import argparse
import ctypes
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time


class Params(ctypes.Structure):  # more than llama_model_params, which is read and passed on as it comes
    _fields_ = [("bytes", ctypes.c_uint8 * 512)]


VOCAB_ONLY = 72  # where it is, behind pointers and numbers; check_tensors and use_extra_bufts follow


class Data(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int32), ("logit", ctypes.c_float), ("p", ctypes.c_float)]


class Array(ctypes.Structure):
    _fields_ = [("data", ctypes.POINTER(Data)), ("size", ctypes.c_size_t), ("selected", ctypes.c_int64), ("sorted", ctypes.c_bool)]


class Peer:
    def __init__(self, path, model):
        self.l = l = ctypes.CDLL(path)
        for name in ("llama_load_model_from_file", "llama_model_load_from_file", "llama_model_get_vocab", "llama_sampler_init_grammar"):
            if hasattr(l, name):
                getattr(l, name).restype = ctypes.c_void_p
        l.llama_model_default_params.restype = Params
        l.llama_model_load_from_file.argtypes = [ctypes.c_char_p, Params]
        l.llama_model_get_vocab.argtypes = [ctypes.c_void_p]
        l.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
        l.llama_tokenize.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32, ctypes.POINTER(ctypes.c_int32), ctypes.c_int32,
                                     ctypes.c_bool, ctypes.c_bool]
        l.llama_sampler_init_grammar.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        l.llama_sampler_apply.argtypes = [ctypes.c_void_p, ctypes.POINTER(Array)]
        l.llama_sampler_accept.argtypes = [ctypes.c_void_p, ctypes.c_int32]
        l.llama_sampler_free.argtypes = [ctypes.c_void_p]
        self.quiet = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)(lambda *_: None)
        l.llama_log_set(self.quiet, None)
        params = l.llama_model_default_params()
        if list(params.bytes[VOCAB_ONLY:VOCAB_ONLY + 3]) != [0, 0, 1]:
            sys.exit("grammar_peer.py: llama_model_params has another layout in this version")
        params.bytes[VOCAB_ONLY] = 1
        self.vocab = l.llama_model_get_vocab(l.llama_model_load_from_file(model.encode(), params))
        n = l.llama_vocab_n_tokens(self.vocab)
        self.data = (Data * n)()
        self.one = (Data * 1)()

    def tokenize(self, text):
        text, ids = text.encode(), (ctypes.c_int32 * 8192)()
        n = self.l.llama_tokenize(self.vocab, text, len(text), ids, 8192, False, False)
        return list(ids[:n])

    def apply(self, grammar, data, n):
        array = Array(data, n, -1, False)
        start = time.thread_time()
        self.l.llama_sampler_apply(grammar, ctypes.byref(array))
        return time.thread_time() - start

    def run(self, gbnf, ids):
        """Seconds for all tokens, and for one."""
        grammar = self.l.llama_sampler_init_grammar(self.vocab, gbnf.encode(), b"root")
        every = one = 0.0
        for at, id in enumerate(ids):
            for i, item in enumerate(self.data):
                item.id, item.logit = i, 0.0
            self.one[0].id, self.one[0].logit = id, 0.0
            every += self.apply(grammar, self.data, len(self.data))
            one += self.apply(grammar, self.one, 1)
            if self.one[0].logit != 0.0:
                sys.exit(f"grammar_peer.py: llama.cpp's grammar does not take token {at}")
            start = time.thread_time()
            self.l.llama_sampler_accept(grammar, id)
            took = time.thread_time() - start
            every, one = every + took, one + took
        self.l.llama_sampler_free(grammar)
        return every / len(ids), one / len(ids)


def nib_run(bench, vocab):
    """Seconds of mask and taking, for a first text and again."""
    out = subprocess.run([bench, "0", vocab], capture_output=True, text=True, check=True).stdout
    means = [float(x) * 1e-6 for x in re.findall(r"mean +([0-9.]+)", out[out.index("service:"):])][:4]
    return means[0] + means[1], means[2] + means[3]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("bench")
    p.add_argument("vocab")
    p.add_argument("--peer", required=True, metavar="LIBLLAMA")
    p.add_argument("--converter", required=True, metavar="SCRIPT")
    p.add_argument("--rounds", type=int, default=3)
    opt = p.parse_args()
    schema, text = subprocess.run([opt.bench, "--print"], capture_output=True, text=True, check=True).stdout.splitlines()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        file.write(schema)
        file.flush()
        gbnf = subprocess.run([sys.executable, opt.converter, file.name], capture_output=True, text=True, check=True).stdout
    peer = Peer(opt.peer, opt.vocab)
    ids = peer.tokenize(text)
    rounds = [(*nib_run(opt.bench, opt.vocab), *peer.run(gbnf, ids)) for _ in range(opt.rounds)]
    print(f"{os.path.basename(opt.vocab)}: {len(peer.data)} tokens in the vocabulary, {len(ids)} in the text")
    names = ["nib, first text", "nib, again", "llama.cpp, all tokens", "llama.cpp, one token"]
    for k, name in enumerate(names):
        ratio = statistics.median(r[k] / r[0] for r in rounds)
        print(f"  {name:22} {statistics.median(r[k] for r in rounds) * 1e6:10.1f} us a token   {ratio:8.2f} x nib's first")


if __name__ == "__main__":
    main()
