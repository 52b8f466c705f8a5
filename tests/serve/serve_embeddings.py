"""POST /v1/embeddings: four forms of input, two encodings, refusals."""
import base64
import json
import math
import struct
import subprocess

from harness import Case, Config

EMBEDDINGS = "/v1/embeddings"


class Embeddings(Case):
    def embed(self, value, **fields):
        reply = self.server.post(EMBEDDINGS, {"input": value, **fields})
        self.assertEqual(reply.status, 200, reply.body[:300])
        answer = reply.json
        self.assertEqual([(d["index"], d["object"]) for d in answer["data"]], [(i, "embedding") for i in range(len(answer["data"]))])
        return [d["embedding"] for d in answer["data"]]

    def ids(self, text):
        return self.server.post("/tokenize", {"content": text, "add_special": True}).json["tokens"]

    def test_forms(self):
        a, b = "a cat", "stock market"
        one, = self.embed(a)
        self.assertAlmostEqual(math.hypot(*one), 1, places=5)
        both = self.embed([a, b])
        self.assertEqual(both[0], one)
        self.assertNotEqual(both[1], one)
        self.assertEqual(self.embed(self.ids(a)), [one])
        self.assertEqual(self.embed([self.ids(a), self.ids(b)]), both)

    def test_is_what_the_program_says(self):
        run = subprocess.run([Config.nib, "embed", "-m", Config.model, "--json"], input=b"hello\nworld", capture_output=True, check=True)
        self.assertEqual(self.embed(["hello", "world"]), [json.loads(line)["embedding"] for line in run.stdout.splitlines()])

    def test_base64(self):
        for vector, text in zip(self.embed(["a", "b"]), self.embed(["a", "b"], encoding_format="base64")):
            raw = base64.b64decode(text, validate=True)
            for x, y in zip(struct.unpack(f"<{len(raw) // 4}f", raw), vector, strict=True):
                self.assertAlmostEqual(x, y, places=7)

    def test_usage_and_options(self):
        reply = self.server.post(EMBEDDINGS, {"input": ["one two", "three"], "dimensions": 576, "user": "me"}).json
        n = len(self.ids("one two")) + len(self.ids("three"))
        self.assertEqual(reply["usage"], {"prompt_tokens": n, "total_tokens": n})
        vectors = [self.embed("one two three", pooling=p)[0] for p in ("mean", "cls", "last")]
        self.assertEqual(len({tuple(v) for v in vectors}), 3)
        self.assertNotAlmostEqual(math.hypot(*self.embed("one", normalize=False)[0]), 1, places=2)

    def test_many_at_once(self):
        texts = [f"text number {i} of many" for i in range(60)]
        vectors = self.embed(texts)
        self.assertEqual(len(vectors), 60)
        self.assertEqual(self.embed(texts[40]), [vectors[40]])
        chat, again = self.at_once([lambda: self.chat("Hello", max_tokens=20), lambda: self.embed(texts)])
        self.assertEqual(again, vectors)
        self.assertEqual(chat["choices"], self.chat("Hello", max_tokens=20)["choices"])

    def test_refusals(self):
        for fields, param in (({}, "input"), ({"input": []}, "input"), ({"input": ""}, "input"), ({"input": 5}, "input"), ({"input": [""]}, "input"),
                              ({"input": ["a", 1]}, "input"), ({"input": [1, "a"]}, "input"), ({"input": [-1]}, "input"),
                              ({"input": [10**9]}, "input"), ({"input": "a", "dimensions": 64}, "dimensions"),
                              ({"input": "a", "encoding_format": "hex"}, "encoding_format"), ({"input": "a", "pooling": "max"}, "pooling"),
                              ({"input": ["a"] * 2049}, "input")):
            with self.subTest(str(fields)[:60]):
                self.assertIn(self.refused(self.server.post(EMBEDDINGS, fields))["param"], (param, "prompt"))
        self.refused(self.server.post(EMBEDDINGS, {"input": "one two " * 8000}), code="context_length_exceeded")
