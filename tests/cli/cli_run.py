"""nib run: prompts, sampling, what ends a text, JSON, statistics, same bits."""
import json
import math
import os
import subprocess

import tiny_gguf
from harness import Case, Config, tiny


class Prompt(Case):
    def test_prompt_and_continuation(self):
        whole = self.nib("-m", self.model, "-p", "Hello", "-n", 8, "--temp", 0)
        rest = self.nib("-m", self.model, "-p", "Hello", "-n", 8, "--temp", 0, "--no-display-prompt")
        text = self.run_json("-p", "Hello", "-n", 8, "--temp", 0)["text"]
        self.assertEqual(whole.raw, b"Hello" + rest.raw)
        self.assertEqual(rest.out, text)
        self.assertEqual(whole.err, "")
        self.assertNotIn("\033", whole.out)

    def test_where_it_comes_from(self):
        text = "one\\n two\n"
        path = os.path.join(Config.scratch, "prompt.txt")
        with open(path, "w") as f:
            f.write(text)
        raw = [tiny_gguf.BOS, *text.replace("he", "").encode()]
        for args, stdin in [(("-f", path), b""), (("-f", "-"), text.encode()), (("-",), text.encode()), ((), text.encode())]:
            r = self.run_json(*args, "-n", 1, stdin=stdin)
            self.assertEqual(r["prompt_ids"], self.ids(text), args)
        self.assertEqual(len(self.ids(text)), len(raw))

    def ids(self, text):
        return self.nib("tokenize", "-m", self.model, "--jsonl", stdin=json.dumps({"text": text}).encode()).json["ids"]

    def test_escapes(self):
        for args, text in [((r"a\nb\t\x41\\\"\'",), "a\nb\tA\\\"'"), ((r"\q\x4\xzz",), r"\q\x4\xzz"),
                           ((r"a\nb", "--no-escape"), r"a\nb"), ((r"a\nb", "--no-escape", "-e"), "a\nb")]:
            self.assertEqual(self.run_json("-p", *args, "-n", 0)["prompt_ids"], self.ids(text), args)
            self.assertEqual(self.nib("-m", self.model, "-p", *args, "-n", 0).out, text)

    def test_special_tokens_in_the_prompt(self):
        ids = self.run_json("-p", "a</s>b", "-n", 0)["prompt_ids"]
        self.assertEqual(ids, [tiny_gguf.BOS, *self.ids("a")[1:], tiny_gguf.EOS, *self.ids("b")[1:]])

    def test_empty(self):
        r = self.nib("-m", self.model, "-p", "", "-n", 2, "--json")
        self.assertEqual(r.json["prompt_ids"], [tiny_gguf.BOS])
        r = self.nib("-m", self.model, "-n", 2, "--json", stdin=b"")
        self.assertEqual(r.json["prompt_ids"], [tiny_gguf.BOS])
        quiet = tiny("no-bos", keys={"tokenizer.ggml.add_bos_token": (tiny_gguf.BOOL, False)})
        r = self.nib("-m", quiet, "-p", "", "-n", 2, "--json")
        self.assertEqual(r.json["prompt_ids"], [tiny_gguf.BOS])
        self.assertIn("the prompt is empty", r.err)

    def test_an_open_pipe_does_not_block(self):
        """With -p standard input is not touched: it may stay open for ever."""
        read, write = os.pipe()
        try:
            p = self.spawn("-m", self.model, "-p", "x", "-n", 2, stdin=read, stdout=subprocess.DEVNULL)
            self.assertEqual(p.wait(timeout=60), 0)
        finally:
            os.close(read)
            os.close(write)

    def test_unreadable(self):
        self.assertIn("nothing.txt", self.nib("-m", self.model, "-f", "nothing.txt", code=1).err)
        self.assertIn("directory", self.nib("-m", self.model, "-f", "/", code=1).err)

    def test_verbose(self):
        r = self.nib("-m", self.model, "-p", "he", "-n", 1, "--verbose-prompt", "-v")
        self.assertIn("258 -> 'he'", r.err)
        self.assertIn("threads:", r.err)
        self.assertIn("sampling: seed", r.err)


class Length(Case):
    def test_n(self):
        for n in (0, 1, 7):
            r = self.run_json("-p", "abc", "-n", n, "--ignore-eos")
            self.assertEqual((len(r["ids"]), r["finish_reason"]), (n, "length"))
        self.assertEqual(self.nib("-m", self.model, "-p", "abc", "-n", 0).out, "abc")

    def test_end_of_generation(self):
        r = self.run_json("-p", "abc", "-l", f"{tiny_gguf.EOS}+1000")
        self.assertEqual((r["ids"], r["text"], r["finish_reason"]), ([tiny_gguf.EOS], "", "stop"))
        r = self.run_json("-p", "abc", "-l", f"{tiny_gguf.EOS}+1000", "--special")
        self.assertEqual(r["text"], "</s>")
        r = self.run_json("-p", "abc", "-l", f"{tiny_gguf.EOS}+1000", "--ignore-eos", "-n", 20)
        self.assertEqual(len(r["ids"]), 20)
        self.assertNotIn(tiny_gguf.EOS, r["ids"])

    def test_context(self):
        """A full context ends the text; a prompt of its size still gets one token; one more is refused."""
        for n_prompt, n_new in [(10, 55), (63, 2), (64, 1)]:
            r = self.run_json("-p", "a" * (n_prompt - 1), "-c", 64, "--ignore-eos")
            self.assertEqual((len(r["prompt_ids"]), len(r["ids"]), r["finish_reason"]), (n_prompt, n_new, "length"))
        r = self.nib("-m", self.model, "-p", "a" * 64, "-c", 64, code=1)
        self.assertIn("65 tokens", r.err)
        self.assertIn("holds 64", r.err)
        self.assertEqual(r.out, "")

    def test_prompts_around_the_batch(self):
        want = {}
        for batch in (1, 7, 31, 32, 512):
            for n in (31, 32, 33, 127, 128):
                text = ("x" * 200)[: n - 1]
                ids = self.run_json("-p", text, "-c", 256, "-b", batch, "-n", 5, "--temp", 0)["ids"]
                self.assertEqual(want.setdefault(n, ids), ids, (n, batch))

    def test_stop_strings(self):
        free = self.run_json("-p", "abc", "-n", 40, "--temp", 0, "--ignore-eos")["text"]
        stop = free[10:14]
        cut = free[: free.index(stop)]
        r = self.run_json("-p", "abc", "-n", 40, "--temp", 0, "--ignore-eos", "-r", "not there", "-r", stop)
        self.assertEqual((r["text"], r["stop"], r["finish_reason"]), (cut, stop, "stop"))
        streamed = self.nib("-m", self.model, "-p", "abc", "-n", 40, "--temp", 0, "--ignore-eos", "--no-display-prompt",
                            "--reverse-prompt", stop)
        self.assertEqual(streamed.out, cut)
        self.assertIsNone(self.run_json("-p", "abc", "-n", 4, "-r", "not there")["stop"])

    def test_stop_string_with_escapes(self):
        newline = tiny_gguf.byte_tokens().index("\u010a")
        r = self.run_json("-p", "abc", "-n", 9, "-l", f"{newline}+1000", "-r", r"\n\n")
        self.assertEqual((r["text"], r["stop"], len(r["ids"])), ("", "\n\n", 2))


class Sampling(Case):
    def ids(self, *args, **how):
        return self.run_json("-p", "Hello there", "-n", 24, "--ignore-eos", *args, **how)["ids"]

    def test_seed(self):
        r = self.run_json("-p", "abc", "-n", 24, "-s", 42)
        self.assertEqual(r["seed"], 42)
        self.assertEqual(self.run_json("-p", "abc", "-n", 24, "--seed", 42)["ids"], r["ids"])
        self.assertNotEqual(self.run_json("-p", "abc", "-n", 24, "-s", 43)["ids"], r["ids"])
        self.assertNotEqual(self.run_json("-p", "abc", "-n", 1)["seed"], self.run_json("-p", "abc", "-n", 1)["seed"])

    def test_greedy_in_several_ways(self):
        want = self.ids("--temp", 0)
        for args in (("--top-k", 1), ("--temp", -1), ("--top-p", 0), ("--samplers", "temperature", "--temp", 0),
                     ("--min-p", 1)):
            self.assertEqual(self.ids(*args, "-s", 7), want, args)

    def test_chain(self):
        base = ("-s", 5, "--temp", 1.5, "--top-k", 20)
        self.assertEqual(self.ids(*base, "--samplers", "top_k;temperature"), self.ids(*base, "--sampler-seq", "kt"))
        self.assertEqual(self.ids(*base, "--samplers", "top-k;temp"), self.ids(*base, "--sampling-seq", "kt"))
        self.assertEqual(self.ids(*base), self.ids(*base, "--sampler-seq", "edskypmxt"))
        self.assertNotEqual(self.ids(*base, "--sampler-seq", "k"), self.ids(*base, "--sampler-seq", "kt"))
        self.usage("-m", self.model, "-p", "x", "--samplers", "top_k;magic", says=["magic", "top_n_sigma"])
        self.usage("-m", self.model, "-p", "x", "--sampler-seq", "kz", says="'z'")
        self.usage("-m", self.model, "-p", "x", "--sampler-seq", "k", "--samplers", "top_k", says="leave one out")

    def test_every_option_changes_the_text(self):
        base = ("-s", 5, "--temp", 1.2)
        plain = self.ids(*base)
        for args in (("--temp", 2), ("--top-k", 2), ("--top-p", 0.3), ("--min-p", 0.5), ("--typical", 0.2),
                     ("--top-n-sigma", 0.5), ("--xtc-probability", 1, "--xtc-threshold", 0.01), ("--repeat-penalty", 3),
                     ("--presence-penalty", 5), ("--frequency-penalty", 5), ("--dynatemp-range", 1.1), ("--mirostat", 1),
                     ("--mirostat", 2), ("-l", f"{plain[0]}-inf"),
                     ("--samplers", "temperature;adaptive_p", "--adaptive-target", 0.01)):
            self.assertNotEqual(self.ids(*base, *args), plain, args)

    def test_dry(self):
        args = ("--temp", 0, "-l", "65+30")  # a model that says A for ever
        dry = ("--dry-multiplier", 50, "--dry-allowed-length", 1)
        self.assertEqual(self.ids(*args), [65] * 24)
        self.assertNotEqual(self.ids(*args, *dry), [65] * 24)
        self.assertNotEqual(self.ids(*args, *dry, "--dry-penalty-last-n", -1), [65] * 24)
        self.assertEqual(self.ids(*args, *dry, "--dry-sequence-breaker", "A"), [65] * 24)
        self.assertNotEqual(self.ids(*args, *dry, "--dry-sequence-breaker", r"\n", "--dry-sequence-breaker", "x"), [65] * 24)
        self.assertNotEqual(self.ids(*args, *dry, "--dry-sequence-breaker", "none"), [65] * 24)

    def test_repeat_last_n(self):
        base = ("-s", 3, "--repeat-penalty", 1.5)
        self.assertEqual(self.ids(*base, "--repeat-last-n", -1), self.ids(*base, "--repeat-last-n", 100000))
        self.assertEqual(self.ids(*base, "--repeat-last-n", 0), self.ids("-s", 3))
        self.assertNotEqual(self.ids(*base, "--repeat-last-n", -1), self.ids("-s", 3))

    def test_logit_bias(self):
        self.assertEqual(self.ids("-l", "65+1000"), [65] * 24)
        self.assertEqual(set(self.ids("-l", "65+1000", "-l", "66+1000")), {65, 66})
        self.usage("-m", self.model, "-p", "x", "-l", "99999+1", says="99999")

    def test_hints_of_the_file(self):
        hint = tiny("hints", keys={"general.sampling.top_k": (tiny_gguf.I32, 1), "general.sampling.temp": (tiny_gguf.F32, 2)})
        greedy = self.ids("--temp", 0)
        by_hint = self.nib("-m", hint, "-p", "Hello there", "-n", 24, "--ignore-eos", "--json", "-v")
        self.assertEqual(by_hint.json["ids"], greedy)
        self.assertIn("general.sampling.top_k = 1 (from the file)", by_hint.err)
        over = ("-p", "Hello there", "-n", 24, "--ignore-eos", "--json", "-s", 1, "--top-k", 40)
        self.assertEqual(self.nib("-m", hint, *over).json["ids"], self.nib("-m", self.model, *over, "--temp", 2).json["ids"])
        odd = tiny("odd-hints", keys={"general.sampling.top_k": (tiny_gguf.STRING, "many"),
                                      "general.sampling.sequence": (tiny_gguf.STRING, "top_k;magic")})
        r = self.nib("-m", odd, "-p", "x", "-n", 1)
        self.assertEqual(r.err.count("nib: warning: "), 2)
        odd = tiny("wild-hints", keys={"general.sampling.mirostat": (tiny_gguf.I32, 7),
                                       "general.sampling.xtc_probability": (tiny_gguf.F32, 2),
                                       "general.sampling.temp": (tiny_gguf.F32, float("nan"))})
        r = self.nib("-m", odd, "-p", "x", "-n", 1)
        self.assertEqual(r.err.count("of the file is not used"), 3)
        chain = tiny("chain", keys={"general.sampling.sequence": (tiny_gguf.STRING, "top_k")})
        self.assertEqual(self.nib("-m", chain, "-p", "Hello there", "-n", 24, "--ignore-eos", "--json", "-s", 9).json["ids"],
                         self.ids("-s", 9, "--samplers", "top_k"))

    def test_suppressed_tokens(self):
        model = tiny("suppress", keys={"tokenizer.ggml.suppress_tokens": (tiny_gguf.ARRAY, (tiny_gguf.I32, [65, 9999]))})
        self.assertNotIn(65, self.nib("-m", model, "-p", "x", "-n", 9, "-l", "65+90", "--json").json["ids"])


class Json(Case):
    def test_schema(self):
        r = self.run_json("-p", "Hello", "-n", 5, "--logprobs", 3, "--temp", 0, "--logits-hash")
        self.assertEqual(set(r), {"model", "prompt_ids", "ids", "text", "finish_reason", "stop", "seed", "logprobs",
                                  "timings", "logits_hash"})
        self.assertEqual(r["model"], self.model)
        self.assertEqual([p["id"] for p in r["logprobs"]], r["ids"])
        for p in r["logprobs"]:
            self.assertEqual(len(p["top"]), 3)
            self.assertEqual(p["top"][0], [p["id"], p["logprob"]])  # greedy: the best one was chosen
            values = [x[1] for x in p["top"]]
            self.assertEqual(values, sorted(values, reverse=True))
        self.assertTrue({"load_ms", "ttft_ms", "tpot_ms", "prefill_ms", "decode_ms", "prefill_tok_s", "decode_tok_s", "gb_s",
                         "prompt_tokens", "generated_tokens", "kv_used", "kv_size", "weight_bytes_per_token",
                         "kv_bytes_per_token", "threads"} <= set(r["timings"]))
        self.assertEqual(r["timings"]["kv_used"], len(r["prompt_ids"]) + len(r["ids"]) - 1)
        self.assertIsNone(self.run_json("-p", "Hello", "-n", 1)["logprobs"])
        self.assertEqual(self.run_json("-p", "Hello", "-n", 1, "--logprobs", 0)["logprobs"][0]["top"], [])

    def test_strict(self):
        """A token that cannot come has log-probability -infinity, which JSON does not have: null."""
        text = self.nib("-m", self.model, "-p", "x", "-n", 3, "--json", "--logprobs", 260).out
        json.loads(text, parse_constant=lambda name: self.fail(name))

    def test_logprobs_are_those_of_score(self):
        r = self.run_json("-p", "Hello", "-n", 6, "--logprobs", 2, "-s", 4)
        ids = r["prompt_ids"] + r["ids"]
        scored = self.nib("score", "-m", self.model, "--logprobs", 2, stdin=json.dumps({"ids": ids}).encode()).json
        n = len(r["prompt_ids"])
        self.assertEqual(scored["logprobs"][n:], [p["logprob"] for p in r["logprobs"]])
        self.assertEqual(scored["top"][n - 1:-1], [p["top"] for p in r["logprobs"]])

    def test_text_is_utf8(self):
        """Bytes that are no character become U+FFFD, in JSON and on stdout alike."""
        r = self.run_json("-p", "x", "-n", 3, "-l", "128+1000")
        self.assertEqual(r["text"], "\ufffd" * 3)
        raw = self.nib("-m", self.model, "-p", "x", "-n", 3, "-l", "128+1000", "--no-display-prompt").raw
        self.assertEqual(raw.decode(), r["text"])


class Bits(Case):
    def test_logits_hash(self):
        base = ("-m", self.model, "-p", "The quick brown fox jumps over the lazy dog", "-n", 12, "--temp", 0, "--logits-hash")
        first = self.nib(*base)
        self.assertRegex(first.err, r"^logits-hash: [0-9a-f]{16}\n$")
        for args in (("-t", 1), ("-t", 2), ("-tb", 1), ("-b", 1), ("-b", 7), ("-ub", 3), ("--isa", "scalar"), ("--no-mmap",),
                     ("--load-mode", "none"), ("-c", 128)):
            r = self.nib(*base, *args)
            self.assertEqual((r.raw, r.err), (first.raw, first.err), args)
        self.assertEqual(self.nib(*base, "--json").json["logits_hash"], first.err.split()[1])
        for args in (("-ctk", "f32"), ("-ctv", "q8_0"), ("--rope-freq-base", 5000), ("--rope-freq-scale", 0.5)):
            self.assertNotEqual(self.nib(*base, *args).err, first.err, args)

    def test_isa(self):
        self.usage("-m", self.model, "-p", "x", "--isa", "mmx", says="mmx")

    def test_loading(self):
        for args in (("--mlock",), ("--check-tensors",), ("--mmap",), ("--load-mode", "mmap"), ("-lm", "dio")):
            self.nib("-m", self.model, "-p", "x", "-n", 1, *args)


class Stats(Case):
    def test_stats(self):
        r = self.nib("-m", self.model, "-p", "Hello", "-n", 5, "--stats", "--ignore-eos")
        for word in ("load", "TTFT", "TPOT", "prefill", "decode", "tokens/s", "KV cache", "GB/s", "10 of 4096"):
            self.assertIn(word, r.err)
        self.assertEqual(self.nib("-m", self.model, "-p", "Hello", "-n", 5, "--no-stats").err, "")


class Real(Case):
    def test_smollm2(self):
        model = self.real("SmolLM2-135M-Instruct.Q4_1.gguf")
        r = self.nib("-m", model, "-p", "The capital of France is", "-n", 2, "--temp", 0, "--json").json
        self.assertEqual(r["prompt_ids"], [504, 3575, 282, 4649, 314])
        self.assertEqual(r["text"], " Paris.")

    def test_gemma3(self):
        model = self.real("gemma-3-270m-q4_k_m.gguf")
        r = self.nib("-m", model, "-p", "The capital of France is", "-n", 2, "--temp", 0, "--json").json
        self.assertTrue(math.isfinite(r["timings"]["tpot_ms"]))
        self.assertEqual(r["prompt_ids"], [2, 818, 5279, 529, 7001, 563])
        self.assertEqual(r["text"], " the capital")
