"""The other commands: tokenize, detokenize, render, score, perplexity, trace, inspect, check, bench."""
import json
import math
import os
import time

import tiny_gguf
from harness import Case, Config, tiny


class Tokens(Case):
    def jsonl(self, command, *requests, code=0):
        text = "".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in requests)
        return self.nib(command, "-m", self.vocabulary, "--jsonl", stdin=text.encode(), code=code).lines

    @property
    def vocabulary(self):
        return tiny("vocabulary", weights=False)

    def test_lines(self):
        r = self.nib("tokenize", "-m", self.vocabulary, "-p", r"hey\n")
        self.assertEqual(r.out.splitlines()[0], "   256 -> '<s>'")
        self.assertEqual(r.out.splitlines()[1], "   258 -> 'he'")
        self.assertTrue(r.out.endswith(" -> '\\n'\n"))
        r = self.nib("tokenize", "-m", self.vocabulary, "-p", "he", "--ids", "--show-count")
        self.assertEqual(r.out, "[256, 258]\nTotal number of tokens: 2\n")
        self.assertEqual(self.nib("tokenize", "-m", self.vocabulary, "--no-bos", "--ids", stdin=b"he</s>").out, "[258, 257]\n")
        self.assertEqual(len(self.nib("tokenize", "-m", self.vocabulary, "--no-parse-special", "--ids", "-",
                                      stdin=b"</s>").json), 5)

    def test_round_trip(self):
        for text in ("hello", " he he\n\ttail  ", "日本語 🙂", ""):
            ids = self.nib("tokenize", "-m", self.vocabulary, "--no-bos", "--ids", stdin=text.encode()).out
            self.assertEqual(self.nib("detokenize", "-m", self.vocabulary, stdin=ids.encode()).out, text)
        self.assertEqual(self.nib("detokenize", "-m", self.vocabulary, 258, "258,257").out, "hehe</s>")
        self.assertEqual(self.nib("detokenize", "-m", self.vocabulary, "--no-special", 258, "258,257").out, "hehe")
        self.usage("detokenize", "-m", self.vocabulary, "x", says="expected token ids")
        self.usage("detokenize", "-m", self.vocabulary, "9999", says="9999")

    def test_jsonl(self):
        a, b, c, d = self.jsonl("tokenize", {"text": "he"}, {"text": "he", "add_special": False}, {"hex": "68E5"},
                                {"text": "</s>", "parse_special": False, "add_special": False})
        self.assertEqual((a["ids"], b["ids"]), ([256, 258], [258]))
        self.assertEqual(len(c["ids"]) > 1, True)
        self.assertEqual(len(d["ids"]), 4)
        a, b, c = self.jsonl("detokenize", {"ids": [256, 258], "remove_special": True}, {"ids": [128, 129]},
                             {"ids": [256, 258], "unparse_special": False})
        self.assertEqual((a, c), ({"text": "he"}, {"text": "he"}))
        self.assertEqual(b, {"hex": "8081"})

    def test_bad_lines_are_answered(self):
        bad = ["{", "[]", "1", '{"text":1}', '{"hex":"0"}', '{"hex":"zz"}', '{"text":"x","add_special":1}', "[" * 100000,
               '{"a":' * 70, "{}", '{"text":"\\ud800"}']
        answers = self.jsonl("tokenize", *bad, {"text": "he", "add_special": False}, code=1)
        self.assertEqual(len(answers), len(bad) + 1)
        for answer in answers[:-1]:
            self.assertEqual(list(answer), ["error"])
        self.assertEqual(answers[-1], {"ids": [258]})
        bad = [{"ids": 1}, {"ids": ["x"]}, {"ids": [1.5]}, {"ids": [-1]}, {"ids": [1 << 40]}, {"ids": [260]}, {}]
        for answer in self.jsonl("detokenize", *bad, code=1):
            self.assertEqual(list(answer), ["error"])

    def test_jsonl_takes_no_other_input(self):
        for command, args in (("tokenize", ("-p", "x")), ("tokenize", ("-f", "x")), ("detokenize", (1,))):
            self.usage(command, "-m", self.vocabulary, "--jsonl", *args, says="--jsonl reads standard input")

    def test_controls_are_escaped(self):
        """A terminal shall show a token and not obey it: C1 as well as C0."""
        r = self.nib("trace", "-m", self.model, stdin="\x1b[31m\u009b31m\x7fé".encode())
        self.assertIn("\\x1b[31m\\xc2\\x9b31m\\x7fé", r.out)

    def test_speed(self):
        """Thousands a second."""
        n = 20000
        start = time.time()
        answers = self.jsonl("tokenize", *[{"text": "hello there, number %d" % i} for i in range(n)])
        self.assertEqual(len(answers), n)
        self.assertGreater(n / (time.time() - start), 2000)


class Parse(Case):
    answer = b'<think>\nHm.\n</think>\nOk.\n<tool_call>\n<function=f>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>'

    def events(self, *args, stdin):
        return [json.loads(line) for line in self.nib("parse", *args, stdin=stdin).out.splitlines()]

    def test_events(self):
        path = os.path.join(Config.scratch, "tools.json")
        with open(path, "w", encoding="utf-8") as stream:
            json.dump([{"name": "f", "parameters": {"properties": {"x": {"type": "string"}}}}], stream)
        call = {"type": "tool_call", "index": 0, "id": "call_0", "name": "f", "arguments": '{"x":1}'}
        texts = [{"type": "reasoning", "text": "Hm."}, {"type": "content", "text": "Ok."}]
        self.assertEqual(self.events(stdin=self.answer), texts + [call])
        self.assertEqual(self.events("--format", "qwen3-coder", "--tools", path, stdin=self.answer),
                         texts + [dict(call, arguments='{"x":"1"}')])
        self.assertEqual(self.events("--thinking", stdin=b"a</think>b"),
                         [{"type": "reasoning", "text": "a"}, {"type": "content", "text": "b"}])
        self.assertEqual([e["type"] for e in self.events(stdin=b'<tool_call>{"name": }')], ["warning", "content"])

    def test_refusals(self):
        self.usage("parse", "--format", "hermess", stdin=b"", says=["'hermess'", "hermes qwen3-coder"])
        path = os.path.join(Config.scratch, "tools.json")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("{")
        self.usage("parse", "--tools", path, stdin=b"", says="tools")


class Render(Case):
    def template(self, text):
        path = os.path.join(Config.scratch, "template.jinja")
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return path

    def test_lines(self):
        path = self.template("{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}\n{{ 1 + tools }}")
        good, bad = {"messages": [{"role": "user", "content": "a<|x|>"}], "tools": 1}, {"messages": []}
        r = self.nib("render", "--template", path, "--jsonl", "--spans", stdin="\n".join(map(json.dumps, [good, bad])).encode(), code=1)
        self.assertEqual(r.lines[0]["text"], "<|user|>a<|x|>2")
        self.assertEqual("".join(s["text"] for s in r.lines[0]["spans"] if not s["trusted"]), "usera<|x|>2")
        self.assertEqual({k: r.lines[1]["error"][k] for k in ("line", "column")}, {"line": 2, "column": 6})

    def test_one(self):
        path = self.template("{{ strftime_now('%d %b %Y') }} {{ s }}")
        self.assertEqual(self.nib("render", "--template", path, "--date", "2024-07-26", stdin=b'{"s": "x"}').out, "26 Jul 2024 x")
        self.assertEqual(self.nib("render", "--template", path, "--date", "2024-02-29", "--spans", stdin=b'{"s": "x"}').out,
                         'trusted   "29 Feb 2024 "\nuntrusted "x"\n')
        self.usage("render", "--template", path, "--date", "2023-02-29", stdin=b"{}", says="--date")
        self.usage("render", stdin=b"{}", says="--template")
        self.usage("render", "--template", path, "--chat-template", "chatml", stdin=b"{}", says="--chat-template NAME")
        self.usage("render", "--chat-template", "chatmi", stdin=b"{}", says="no built-in template chatmi")
        names = self.nib("render", "--list-templates").out.split()
        self.assertIn("chatml", names)
        for name in names:
            data = b'{"messages": [{"role": "user", "content": "a"}]}'
            self.assertIn("a", self.nib("render", "--chat-template", name, stdin=data).out)
        r = self.nib("render", "--template", self.template("a\n{{ x"), stdin=b"{}", code=1)
        self.assertIn(":2:1: ", r.err)
        self.usage("render", "--template", path, "--ids", stdin=b"{}", says="-m MODEL")

    def test_model(self):
        template = "{% for m in messages %}{{ m.role }}: {{ m.content }}{{ eos_token }}\n{% endfor %}{{ raise_exception('no') if x }}"
        model = tiny("render", weights=False, keys={"tokenizer.chat_template": (tiny_gguf.STRING, template)})
        data = b'{"messages": [{"role": "user", "content": "a</s>"}], "tools": [{"type": "function", "function": {"name": "f"}}]}'
        r = self.nib("render", "-m", model, stdin=data)
        self.assertEqual(r.out, "user: a</s></s>\n")
        self.assertIn("does not show tools", r.err)
        ids = [self.nib("render", "-m", model, "--ids", *more, stdin=data).json for more in ([], ["--permissive"])]
        self.assertEqual([i.count(tiny_gguf.EOS) for i in ids], [1, 2])
        self.assertEqual(ids[0][0], tiny_gguf.BOS)
        r = self.nib("render", "-m", model, "--spans", "--permissive", stdin=data)
        self.assertEqual(r.out, 'trusted   "user: a</s></s>\\n"\n')
        bad = [{"messages": [{"role": "user", "content": 5}]},
               {"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"x": 1}}]
        r = self.nib("render", "-m", model, "--jsonl", stdin="\n".join(map(json.dumps, bad)).encode(), code=1)
        self.assertEqual([(e["error"]["line"], e["error"]["column"]) for e in r.lines], [(None, None), (2, 31)])
        self.assertTrue(r.lines[0]["error"]["message"].startswith("messages[0].content: is a number"))
        r = self.nib("render", "-m", model, "--chat-template", "gemma", "--jsonl", "--ids", stdin=data)
        self.assertEqual(r.lines[0]["text"], "<start_of_turn>user\na</s><end_of_turn>\n<start_of_turn>model\n")
        self.assertEqual(r.lines[0]["notes"], ["the template does not show tools to the model"])
        self.assertNotIn(tiny_gguf.EOS, r.lines[0]["ids"])
        path = self.template("{{ messages[0].content }}")
        self.assertEqual(self.nib("render", "-m", model, "--template", path, stdin=data).out, "a</s>")
        none = tiny("vocabulary", weights=False)
        self.assertIn("has no chat template", self.nib("render", "-m", none, stdin=data, code=2).err)


class Score(Case):
    def score(self, *requests, args=(), code=0):
        text = "".join(json.dumps(r) + "\n" for r in requests)
        return self.nib("score", "-m", self.model, "--jsonl", *args, stdin=text.encode(), code=code).lines

    def test_shape(self):
        ids = [256, 65, 66, 67, 258]
        a, b, empty = self.score({"ids": ids}, {"text": "ABChe"}, {"ids": []}, args=("--logprobs", 3))
        self.assertEqual(a["ids"], ids)
        self.assertIsNone(a["logprobs"][0])
        self.assertEqual((len(a["logprobs"]), len(a["top"])), (5, 5))
        self.assertEqual({len(t) for t in a["top"]}, {3})
        self.assertEqual(b["ids"][0], tiny_gguf.BOS)
        self.assertEqual(empty, {"ids": [], "logprobs": [], "top": []})
        for i, top in enumerate(a["top"][:-1]):
            self.assertLessEqual(a["logprobs"][i + 1], top[0][1])

    def test_distribution_sums_to_one(self):
        top = self.score({"ids": [256, 65, 66]}, args=("--logprobs", 260))[0]["top"]
        for row in top:
            self.assertAlmostEqual(sum(math.exp(lp) for _, lp in row), 1, places=4)

    def test_long_texts_in_pieces(self):
        """More tokens than rows of logits, and a second text after the first."""
        ids = [256] + [i % 256 for i in range(1500)]
        whole, again = self.score({"ids": ids}, {"ids": ids})
        self.assertEqual(whole, again)
        self.assertEqual(self.score({"ids": ids}, args=("-b", 13))[0], whole)
        self.assertEqual(self.score({"ids": ids[:40]})[0]["logprobs"], whole["logprobs"][:40])

    def test_errors(self):
        answers = self.score({"ids": [1, 260]}, {"ids": [0] * 70}, {"none": 1}, {"ids": [1, 2]}, args=("-c", 64), code=1)
        self.assertIn("260", answers[0]["error"])
        self.assertIn("70", answers[1]["error"])
        self.assertIn("error", answers[2])
        self.assertEqual(answers[3]["ids"], [1, 2])


class Embed(Case):
    def vectors(self, *args, **how):
        return [[float(x) for x in line.split(" ")] for line in self.nib("embed", "-m", self.model, *args, **how).out.splitlines()]

    def test_texts(self):
        one, two = self.vectors(stdin=b"hello\nhe")
        self.assertAlmostEqual(math.hypot(*one), 1, places=6)
        self.assertNotEqual(one, two)
        self.assertEqual(self.vectors("-p", "hello"), [one])
        self.assertEqual(self.vectors("-f", "-", stdin=b"hello"), [one])
        self.assertNotEqual(self.vectors("-f", "-", stdin=b"hello\n"), [one])
        answer, = self.nib("embed", "-m", self.model, "--json", stdin=b"hello\n").lines
        self.assertEqual(answer["embedding"], one)
        long = self.vectors("--no-normalize", "-p", "hello")[0]
        for a, b in zip(long, one):
            self.assertAlmostEqual(a / math.hypot(*long), b, places=6)

    def test_pooling_and_chunks(self):
        ids = [256] + [i * i % 250 for i in range(200)]
        requests = "".join(json.dumps(r) + "\n" for r in ({"ids": ids}, {"ids": ids[:1]}, {"ids": ids}))
        seen = []
        for pooling in ("mean", "cls", "last"):
            whole, first, again = self.nib("embed", "-m", self.model, "--jsonl", "--pooling", pooling, stdin=requests.encode()).lines
            parts = self.nib("embed", "-m", self.model, "--jsonl", "--pooling", pooling, "-ub", 7, "-t", 2, stdin=requests.encode()).lines
            self.assertEqual(whole, again)
            self.assertEqual(parts, [whole, first, again])
            self.assertEqual(whole["embedding"] == first["embedding"], pooling == "cls")
            seen.append(whole["embedding"])
        self.assertEqual(self.nib("embed", "-m", self.model, "--jsonl", stdin=requests.encode()).lines[0]["embedding"], seen[0])
        self.assertEqual(len({tuple(v) for v in seen}), 3)

    def test_errors(self):
        r = self.nib("embed", "-m", self.model, "--no-normalize", "-c", 64, stdin=b"he\n" + b"ab" * 70, code=1)
        self.assertEqual(len(r.out.splitlines()), 1)
        self.assertIn("line 2: ", r.err)
        bad = [{"ids": []}, {"ids": [260]}, {"text": 1}, {"ids": [256]}]
        answers = self.nib("embed", "-m", self.model, "--jsonl", stdin="\n".join(map(json.dumps, bad)).encode(), code=1).lines
        self.assertEqual([list(a)[0] for a in answers], ["error", "error", "error", "embedding"])
        self.usage("embed", "-m", self.model, "--jsonl", "-p", "x", says="--jsonl reads standard input")


class Perplexity(Case):
    def text(self, n):
        path = os.path.join(Config.scratch, f"text-{n}.txt")
        with open(path, "w") as f:
            f.write("".join(chr(97 + i * i % 26) for i in range(n)))
        return path

    def test_against_score(self):
        """Chunks of 64, BOS in place of the first token, scores of the second half."""
        path = self.text(200)
        r = self.nib("perplexity", "-m", self.model, "-f", path, "-c", 64, "--json")
        with open(path) as f:
            ids = self.nib("tokenize", "-m", self.model, "--jsonl", stdin=json.dumps({"text": f.read()}).encode()).json["ids"]
        nll, running = [], []
        for i in range(len(ids) // 64):
            chunk = [tiny_gguf.BOS] + ids[i * 64 + 1:i * 64 + 64]
            logprobs = self.nib("score", "-m", self.model, stdin=json.dumps({"ids": chunk}).encode()).json["logprobs"]
            nll += [-x for x in logprobs[33:]]
            running.append(math.exp(sum(nll) / len(nll)))
        self.assertEqual((r.json["n_tokens"], r.json["n_scored"]), (len(ids), len(nll)))
        for got, want in zip(r.json["running_ppl"], running, strict=True):
            self.assertAlmostEqual(got / want, 1, places=5)
        self.assertAlmostEqual(r.json["ppl"] / running[-1], 1, places=5)
        mean = sum(nll) / len(nll)
        error = math.sqrt((sum(x * x for x in nll) / len(nll) - mean * mean) / (len(nll) - 1)) * math.exp(mean)
        self.assertAlmostEqual(r.json["plus_minus"] / error, 1, places=4)
        self.assertEqual(r.err.count("\n"), 3)

    def test_text(self):
        r = self.nib("perplexity", "-m", self.model, "-c", 64, stdin=b"abc" * 50)
        self.assertRegex(r.out, r"^PPL = \d+\.\d{4} \+/- \d+\.\d{5} \(62 tokens scored\)\n$")

    def test_too_short(self):
        self.usage("perplexity", "-m", self.model, "-f", self.text(100), says=["101 tokens", "512"])


class Trace(Case):
    def test_text(self):
        r = self.nib("trace", "-m", self.model, "-p", "hey", "--temp", 0.8, "-s", 1)
        order = [r.out.index("\n" + word) for word in ("ids ", "batch ", "plan ", "logits ", "sampling ", "chosen ", "text ")]
        self.assertEqual(order, sorted(order))
        for word in ("258 -> 'he'", "embed", "matmul", "attention", "top_k", "share", "GB/s"):
            self.assertIn(word, r.out)

    def test_json(self):
        r = self.nib("trace", "-m", self.model, "-p", "hey", "-s", 1, "-n", 3, "--json", "--logprobs", 4).json
        run = self.run_json("-p", "hey", "-s", 1, "-n", 3)
        self.assertEqual([t["id"] for t in r["tokens"]], run["ids"])
        self.assertEqual(r["prompt_ids"], run["prompt_ids"])
        first, second = r["tokens"][:2]
        self.assertEqual((first["batch"], first["position"]), (r["prompt_ids"], 0))
        self.assertEqual((second["batch"], second["position"]), ([first["id"]], len(r["prompt_ids"])))
        self.assertEqual(len(first["top"]), 4)
        self.assertEqual({"op", "name", "type", "layer", "rows", "n_in", "n_out", "bytes", "macs", "ms", "wait_ms", "share", "gb_s", "gmac_s"},
                         set(first["steps"][0]) - {"share_of_limit", "bound"})  # these where the machine was measured
        self.assertAlmostEqual(sum(s["share"] for s in first["steps"]), 1, places=3)
        self.assertAlmostEqual(sum(s["ms"] for s in second["steps"]) + second["rest_ms"], second["ms"], places=6)
        self.assertAlmostEqual(sum(s["wait_ms"] for s in second["steps"]), second["barrier_ms"], places=6)
        self.assertTrue(0 <= second["share_outside"] < 1 and second["sample_ms"] > 0)
        self.assertIn("top_k", [s["name"] for s in first["samplers"]])


class Files(Case):
    def test_inspect(self):
        r = self.nib("inspect", self.model)
        for word in ("general.architecture", '"llama"', "260 x string", "blk.1.ffn_down.weight", "128 x 64", "parameters", "F32"):
            self.assertIn(word, r.out)
        j = self.nib("inspect", "-m", self.model, "--json").json
        self.assertEqual(j["metadata"]["llama.block_count"], 2)
        self.assertEqual(len(j["metadata"]["tokenizer.ggml.tokens"]), 260)
        self.assertIs(j["metadata"]["tokenizer.ggml.add_bos_token"], True)
        self.assertEqual(j["parameters"], sum(t["n_elements"] for t in j["tensors"]))
        self.assertEqual(j["types"]["F32"]["bytes"], 4 * j["parameters"])
        self.assertEqual(j["bytes"], os.path.getsize(self.model))
        self.usage("inspect", self.model, self.model, says="one file")

    def test_plan(self):
        r = self.nib("inspect", self.model, "--plan")
        self.assertIn("one decode step", r.out)
        self.assertIn("512-token prefill", r.out)
        plan = self.nib("inspect", self.model, "--plan", "--json").json["plan"]
        matmul = sum(s["macs"] for s in plan["steps"] if s["op"] == "matmul")
        attention = sum(s["macs"] for s in plan["steps"] if s["op"] == "attention")
        self.assertEqual(plan["decode_macs"], matmul + attention)
        self.assertGreater(plan["prefill_512_macs"], 300 * plan["decode_macs"])

    def test_vocabulary_only(self):
        vocabulary = tiny("vocabulary", weights=False)
        self.assertEqual(self.nib("inspect", vocabulary, "--json").json["parameters"], 0)
        self.assertIn("token_embd", self.nib("-m", vocabulary, "-p", "x", code=1).err)

    def test_check(self):
        self.assertEqual(self.nib("check", self.model).out, f"{self.model}: ok, 20 tensors\n")
        self.assertEqual(self.nib("check", self.model, "--json").json, {"file": self.model, "ok": True, "faults": []})
        whole = open(self.model, "rb").read()
        cut = os.path.join(Config.scratch, "cut.gguf")
        with open(cut, "wb") as f:
            f.write(whole[:-1])
        bad = tiny("bad", keys={"llama.attention.head_count": (tiny_gguf.U32, 0)})
        r = self.nib("check", cut, self.model, bad, "nowhere.gguf", code=1)
        self.assertEqual([line.split(": ")[0] for line in r.out.splitlines()], [cut, self.model, bad, "nowhere.gguf"])
        self.assertTrue(self.nib("check", "a\nb", code=1).out.startswith("a?b: cannot open"))
        faults = self.nib("check", bad, "--json", code=1).json["faults"]
        self.assertIn("head_count", faults[0]["message"])
        nan = os.path.join(Config.scratch, "nan.gguf")
        with open(nan, "wb") as f:
            f.write(whole[:-4] + b"\x00\x00\xc0\x7f")
        self.assertIn("output_norm", self.nib("check", nan, code=1).out)
        self.assertTrue(self.nib("-m", nan, "-p", "x", code=1).err.startswith("nib: error: "))

    def test_every_fault_is_told(self):
        bad = tiny("wide", keys={"llama.feed_forward_length": (tiny_gguf.U32, 96)})
        r = self.nib("check", bad, code=1)
        for layer in range(2):
            for name in ("gate", "up", "down"):
                self.assertIn(f"blk.{layer}.ffn_{name}", r.out)

    def test_bench(self):
        r = self.nib("bench", "-m", self.model, "-t", 1, "-p", "16,33", "-n", "4", "-r", 3, "--json").json
        self.assertEqual([t["test"] for t in r], ["pp16", "pp33", "tg4"])
        for t in r:
            self.assertEqual((t["threads"], len(t["tok_s"])), (1, 3))
            self.assertTrue(all(x > 0 for x in t["tok_s"]))
            self.assertGreater(t["macs_per_token"], 0)
        self.assertGreater(r[2]["bytes_per_token"], 0)
        self.assertEqual([t["test"] for t in self.nib("bench", "-m", self.model, "-p", 0, "-n", 2, "-r", 1, "--json").json],
                         ["tg2"])
        r = self.nib("bench", "-m", self.model, "-p", 8, "-n", 8, "-r", 2)
        for name in ("pp8", "tg8"):
            self.assertRegex(r.out, rf"(?m)^ +\d+  {name} +[\d.]+ \+/- +[\d.]+ +[\d.]+ +[\d.]+  +[\d.]+ % of (read|MACs)")
        self.usage("bench", "-m", self.model, "-p", "8,x", says="joined by commas")
        self.usage("bench", "-m", self.model, "-p", 0, "-n", 0, says="nothing to measure")

    def test_bench_lists(self):
        r = self.nib("bench", "-m", self.model, "-t", "1,2", "-p", 8, "-n", "4,5", "-r", 1, "-d", "0,40", "--batch", "1,3",
                     "--json").json
        one = ["pp8", "tg4", "tg4 x3", "tg5", "tg5 x3"]
        self.assertEqual([t["test"] for t in r], 2 * (one + [name + " @ d40" for name in one]))
        self.assertEqual([t["threads"] for t in r], [1] * 10 + [2] * 10)
        for t in r:
            self.assertEqual((t["depth"], t["batch"]), (40 if "d40" in t["test"] else 0, 3 if "x3" in t["test"] else 1))
            self.assertIn(t["bound"], ("read", "macs"))
            self.assertGreater(t["share"], 0)
        single, batch, deep = r[1], r[2], r[6]
        self.assertLess(batch["bytes_per_token"], single["bytes_per_token"])  # weights are read once for all
        self.assertEqual(batch["macs_per_token"], single["macs_per_token"])
        layer_kv = self.nib("inspect", self.model, "--plan", "--json").json["plan"]["kv_bytes_per_position"]
        self.assertEqual(deep["bytes_per_token"] - single["bytes_per_token"], 40 * layer_kv)
        self.usage("bench", "-m", self.model, "--batch", 0, says="from 1 to 4096")
        self.usage("bench", "-m", self.model, "-d", 1 << 24, "--batch", 4096, says="positions")

    def test_bench_kernels(self):
        best = self.nib("limits", "--json").json["limits"][0]["peaks"][0]["isa"]
        r = self.nib("bench", "--kernels", "--type", "Q4_0", "--type", "F16", "--isa", best, "-r", 1, "--json").json
        self.assertEqual([(t["type"], t["tokens"]) for t in r], [(k, n) for k in ("F16", "Q4_0") for n in (1, 8, 512)])
        for t in r:
            self.assertEqual(t["isa"], best)
            self.assertTrue(all(t[key] > 0 for key in ("gb_s", "gmac_s", "share")))
        self.usage("bench", "--kernels", "--type", "Q9", says="Q9")
        self.usage("bench", "--kernels", "--isa", "nonsense", says="nonsense")

    def test_plan(self):
        r = self.nib("plan", "-m", self.model, "-t", 1, "-p", 40, "-n", 8, "--concurrency", 3, "--json").json
        self.assertEqual((r["prompt"], r["gen"], r["concurrency"], r["threads"]), (40, 8, 3, 1))
        for key in ("ttft_ms", "tpot_ms", "prefill_tok_s", "decode_tok_s", "weight_bytes", "kv_bytes", "buffer_bytes"):
            self.assertGreater(r[key], 0, key)
        self.assertAlmostEqual(r["ttft_last_ms"], 3 * r["ttft_ms"], places=5)
        self.assertAlmostEqual(sum(r["decode_ms"].values()), r["tpot_ms"], places=5)
        self.assertLess(0, r["best_tpot_ms"])
        start = time.time()  # everything is known by now
        again = self.nib("plan", "-m", self.model, "-t", 1, "-p", 40, "-n", 8, "--concurrency", 3, "--json")
        self.assertLess(time.time() - start, 2)
        self.assertEqual(again.err, "")
        self.assertAlmostEqual(again.json["tpot_ms"], r["tpot_ms"], delta=1e-6 * r["tpot_ms"])  # numbers have nine digits
        longer = self.nib("plan", "-m", self.model, "-t", 1, "-p", 80, "-n", 8, "--json").json
        self.assertGreater(longer["ttft_ms"], r["ttft_ms"])
        self.assertRegex(self.nib("plan", "-m", self.model, "-t", 1).out, r"(?m)^TPOT +[\d.]+ ms, [\d.]+ tokens/s in all")
        self.usage("plan", says="needs -m")
        self.usage("plan", "-m", self.model, "--concurrency", 4096, "-p", 1 << 20, says="positions")

    def test_machine(self):
        path = os.path.join(Config.scratch, "machine.json")
        plan = self.nib("inspect", self.model, "--plan", "--json").json["plan"]

        def judge(**machine):
            with open(path, "w") as f:
                json.dump(machine, f)
            return self.nib("inspect", self.model, "--machine", path, "--json").json["machine"]

        slow = judge(read_gb_s=1, int8_gmac_s=1e6, f32_gmac_s=1e6)
        self.assertEqual((slow["bound"], slow["bytes_per_token"]), ("read", plan["bytes_per_token"]))
        read = plan["bytes_per_token"] + plan["kv_bytes_per_position"]  # the token's own position
        self.assertAlmostEqual(slow["decode_tok_s"], 1e9 / read, delta=1e-3 * 1e9 / read)
        weak = judge(read_gb_s=1e6, int8_gmac_s=1e-3, f32_gmac_s=1e-3)
        self.assertEqual(weak["bound"], "macs")
        self.assertAlmostEqual(weak["decode_tok_s"], 1e6 / plan["decode_macs"], delta=1e-3 * 1e6 / plan["decode_macs"])
        self.assertIn("decode at most", self.nib("inspect", self.model, "--machine", path).out)
        here = self.nib("limits", "--json").json
        self.assertGreater(judge(**here)["decode_tok_s"], 0)
        for text in ("", "{", "{}", "[]", '{"read_gb_s":-1,"int8_gmac_s":1,"f32_gmac_s":1}', '{"limits":[]}'):
            with open(path, "w") as f:
                f.write(text)
            self.assertIn(path, self.nib("inspect", self.model, "--machine", path, code=1).err)
        self.nib("inspect", self.model, "--machine", "nowhere", code=1)

    def test_trace_shows_shares(self):
        home = os.path.join(Config.scratch, "shares")
        args = ("trace", "-m", self.model, "-p", "hey", "-t", 1, "--temp", 0)
        plain = self.nib(*args, env={"XDG_CACHE_HOME": home})
        self.assertRegex(plain.out, r"(?m) matmul .* GMAC/s *$")
        self.assertNotIn("of the limit", plain.out)
        self.nib("limits", "-t", 1, env={"XDG_CACHE_HOME": home})
        self.assertRegex(self.nib(*args, env={"XDG_CACHE_HOME": home}).out, r"(?m) matmul .* (GB|GMAC)/s +[\d.]+%$")
        steps = self.nib(*args, "--json", env={"XDG_CACHE_HOME": home}).json["tokens"][0]["steps"]
        for step in steps:
            if step["op"] == "matmul":
                self.assertIn(step["bound"], ("read", "macs"))
                self.assertGreater(step["share_of_limit"], 0)
