"""nib run with a grammar, and nib grammar: texts always match, and what cannot be kept is refused."""
import json
import os
import re

import tiny_gguf
from harness import Case, Config


def path_of(name, text):
    path = os.path.join(Config.scratch, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


class Run(Case):
    def text(self, *args, n=200):
        r = self.nib("-m", self.model, "-p", "x", "-n", n, "--json", "--seed", 5, *args).json
        self.assertEqual(r["finish_reason"], "stop")
        return r["text"]

    def test_each_notation(self):
        self.assertRegex(self.text("--grammar", 'root ::= [a-c]{3,5} " " x\nx ::= "yes" | "no"'), r"^[a-c]{3,5} (yes|no)$")
        self.assertRegex(self.text("--grammar-file", path_of("g.gbnf", 'root ::= "a"{20}')), r"^a{20}$")
        self.assertRegex(self.text("--regex", r"\d{4}-(0[1-9]|1[0-2])"), r"^\d{4}-(0[1-9]|1[0-2])$")
        self.assertIn(self.text("--choice", "red,green,dark blue"), ["red", "green", "dark blue"])
        schema = {"type": "object", "properties": {"b": {"type": "integer", "minimum": 3, "maximum": 9}, "a": {"enum": ["x", None]}},
                  "required": ["a", "b"], "additionalProperties": False}
        for args in [("--json-schema", json.dumps(schema)), ("-jf", path_of("s.json", json.dumps(schema)))]:
            value = json.loads(self.text(*args))
            self.assertEqual(list(value), ["b", "a"])  # the order of the schema
            self.assertTrue(3 <= value["b"] <= 9 and value["a"] in ("x", None))
        compact = self.text("--json-schema", json.dumps(schema), "--json-space", "compact", "--key-order", "any")
        self.assertNotRegex(compact, r"\s")

    def test_json_object(self):
        r = self.nib("-m", self.model, "-p", "x", "-n", 60, "--json", "--seed", 2, "--json-object")
        if r.json["finish_reason"] == "stop":
            self.assertIsInstance(json.loads(r.json["text"]), dict)
        else:
            self.assertIn("the text was cut (length) before it matched", r.err)

    def test_a_cut_text_says_so(self):
        r = self.nib("-m", self.model, "-p", "x", "-n", 3, "--json", "--grammar", 'root ::= [ab]{9}')
        self.assertEqual(r.json["finish_reason"], "length")
        self.assertIn("before it matched the grammar", r.err)

    def test_forced_text_is_the_same_with_and_without_jumps(self):
        grammar = 'root ::= "the quick brown fox " [xy] " jumps over the lazy dog" [xy] "."'
        texts = [self.text("--grammar", grammar, jump, "--temp", 0) for jump in ("--jump-ahead", "--no-jump-ahead")]
        self.assertEqual(texts[0], texts[1])

    def test_forced_text_has_logprobs(self):
        args = ("-m", self.model, "-p", "x", "--json", "--seed", 5, "--grammar", 'root ::= "the quick brown fox " [xy] " jumps over the lazy dog" [xy] "."')
        plain, told = self.nib(*args).json, self.nib(*args, "--logprobs", 1).json
        self.assertEqual((told["ids"], told["text"]), (plain["ids"], plain["text"]))
        self.assertEqual([p["id"] for p in told["logprobs"]], told["ids"])

    def test_forced_text_where_every_text_begins_with_a_blank(self):
        model = os.path.join(Config.scratch, "spm.gguf")
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581"]
        tiny_gguf.write(model, keys={
            "tokenizer.ggml.model": (tiny_gguf.STRING, "llama"), "tokenizer.ggml.pre": (tiny_gguf.STRING, None),
            "tokenizer.ggml.merges": (tiny_gguf.STRING, None),
            "tokenizer.ggml.tokens": (tiny_gguf.ARRAY, (tiny_gguf.STRING, tokens)),
            "tokenizer.ggml.scores": (tiny_gguf.ARRAY, (tiny_gguf.F32, [0.0] * len(tokens))),
            "tokenizer.ggml.token_type": (tiny_gguf.ARRAY, (tiny_gguf.I32, [2, 3, 3] + [6] * 256 + [1])),
            "tokenizer.ggml.bos_token_id": (tiny_gguf.U32, 1), "tokenizer.ggml.eos_token_id": (tiny_gguf.U32, 2)})
        args = ("-m", model, "-p", "x", "--json", "--temp", 0, "--grammar", 'root ::= [xy] "the quick brown fox"')
        jumped, walked = (self.nib(*args, jump).json for jump in ("--jump-ahead", "--no-jump-ahead"))
        self.assertEqual(jumped["ids"], walked["ids"])
        self.assertRegex(jumped["text"], "^[xy]the quick brown fox$")
        banned = self.nib(*args, "--jump-ahead", "--logit-bias", "259-inf").json
        self.assertIn(259, jumped["ids"])
        self.assertNotIn(259, banned["ids"])
        self.assertEqual(banned["text"][1:], "the quick brown fox")

    def test_all_that_matches_changes_nothing(self):
        """Law 1: with a grammar that permits everything the bits are those without one."""
        args = ("-m", self.model, "-p", "Hello", "-n", 12, "--temp", 0.9, "--seed", 3, "--json", "--logits-hash")
        free, bound = self.nib(*args).json, self.nib(*args, "--grammar", "root ::= (!<[258]> | <[258]>)*").json
        for key in ("ids", "text", "logits_hash"):
            self.assertEqual(free[key], bound[key])

    def test_refusals(self):
        def fails(*args, says):
            r = self.nib("-m", self.model, "-p", "x", "-n", 1, *args, code=None)
            self.assertNotEqual(r.code, 0)
            self.assertIn(says, r.err)
        fails("--grammar", "root ::= x", says="--grammar, byte 9: rule x is not defined")
        fails("--json-schema", '{"properties":{"a":{"if":true}}}', says="#/properties/a/if: the keyword \"if\" is not supported")
        fails("--regex", "(a)\\1", says="back-references")
        fails("--regex", "a", "--choice", "b", says="one grammar at a time")


class Grammar(Case):
    def jsonl(self, *requests, code=0):
        r = self.nib("grammar", "test", "--jsonl", stdin="".join(json.dumps(q) + "\n" for q in requests).encode(), code=code)
        return [json.loads(line) for line in r.out.splitlines()]

    def test_lines(self):
        results, = self.jsonl({"grammar": 'root ::= "\u00e9" [0-9]+', "texts": ["\u00e91", "\u00e9", "\u00e9x", ""]})
        self.assertEqual(results["results"], [
            {"match": True, "incomplete": False, "dead_at": None}, {"match": False, "incomplete": True, "dead_at": None},
            {"match": False, "incomplete": False, "dead_at": 1}, {"match": False, "incomplete": True, "dead_at": None}])
        results, = self.jsonl({"schema": {"const": 0.1}, "texts": ["0.1", "0.10000000000000001"]})
        self.assertEqual([r["match"] for r in results["results"]], [True, False])
        answers = self.jsonl({"schema": {"contains": {}}, "texts": []}, {"regex": "a**", "texts": []}, {"schema": "{", "texts": []},
                             {"schema": True, "texts": ["[1]"]}, code=1)
        self.assertEqual(answers[0]["error"]["pointer"], "#/contains")
        self.assertEqual(answers[1]["error"]["offset"], 2)
        self.assertIn("not JSON", answers[2]["error"]["message"])
        self.assertTrue(answers[3]["results"][0]["match"])

    def test_one_text(self):
        grammar = path_of("t.gbnf", 'root ::= "ab" [0-9]')
        self.assertEqual(self.nib("grammar", "test", grammar, stdin=b"ab1").out, "match\n")
        self.assertEqual(self.nib("grammar", "test", grammar, stdin=b"abc", code=1).out,
                         "no match: fails at byte 2 (character 2): expected '0'-'9'\n")
        self.assertIn("incomplete: ends at byte 2", self.nib("grammar", "test", grammar, stdin=b"ab", code=1).out)

    def test_check_and_explain(self):
        schema = path_of("e.json", '{"type": "boolean"}')
        self.assertRegex(self.nib("grammar", "check", schema, "--schema").out, r"^.*e\.json: \d+ states\n$")
        self.assertIn("state 0:", self.nib("grammar", "explain", schema, "--schema").out)
        bad = path_of("bad.gbnf", "root ::= a\na ::= (")
        r = self.nib("grammar", "check", bad, code=None)
        self.assertTrue(re.search(r"bad\.gbnf:2:7: the group that begins here", r.err), r.err)
        self.usage("grammar", says="expected check FILE")
        self.usage("grammar", "check", says="expected check FILE")
        named = path_of("named.gbnf", 'root ::= <s>')
        self.assertIn("needs a vocabulary", self.nib("grammar", "check", named, code=None).err)
        self.nib("grammar", "check", named, "-m", self.model)

    def test_calls_of_tools(self):
        tools = path_of("tools.json", json.dumps([{"name": "now", "parameters": {"type": "object", "additionalProperties": False}}]))
        call = b'<tool_call>{"name": "now", "arguments": {}}</tool_call>'
        args = ("--tools", tools, "--format", "hermes")
        self.assertIn("rule 0 answer", self.nib("grammar", "explain", *args).out)
        for choice, texts in (("auto", [call, b"No.", b"Yes. " + call]), ("required", [call, call + call]), ("now", [call])):
            for text in texts:
                self.assertEqual(self.nib("grammar", "test", *args, "--tool-choice", choice, stdin=text).out, "match\n")
        self.nib("grammar", "test", *args, "--tool-choice", "required", stdin=b"No.", code=1)
        self.nib("grammar", "test", *args, stdin=call.replace(b"{}", b'{"x": 1}'), code=1)
        self.usage("grammar", "check", "x", "--tools", tools, says="instead of FILE")
        self.usage("grammar", "check", *args, "--tool-choice", "none", says="nothing is left")
