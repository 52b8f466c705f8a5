"""What llama-server's clients ask: /completion, /tokenize, /detokenize, /apply-template, /props, /slots."""
import json

from harness import Case


class Completion(Case):
    def complete(self, prompt="Once upon a time", **fields):
        reply = self.server.post("/completion", {"prompt": prompt, "n_predict": 12, "temperature": 0, **fields})
        self.assertEqual(reply.status, 200, reply.body[:300])
        if fields.get("stream"):
            return [json.loads(line[6:]) for line in reply.body.decode().split("\n") if line.startswith("data: ")]
        return reply.json

    def test_stream_is_the_whole(self):
        fields = {"n_probs": 2, "return_tokens": True}
        whole = self.complete(**fields)
        parts = self.complete(stream=True, **fields)
        self.assertEqual([p["stop"] for p in parts], [False] * (len(parts) - 1) + [True])
        self.assertEqual("".join(p["content"] for p in parts), whole["content"])
        self.assertEqual([t for p in parts for t in p["tokens"]], whole["tokens"])
        self.assertEqual([t for p in parts for t in p.get("completion_probabilities", [])], whole["completion_probabilities"])
        last = parts[-1]
        for name in set(whole) - {"content", "tokens", "timings", "tokens_cached", "completion_probabilities"}:
            self.assertEqual(last[name], whole[name], name)
        self.assertEqual((whole["stop_type"], whole["tokens_predicted"]), ("limit", 12))
        self.assertEqual(whole["timings"]["predicted_n"], 12)

    def test_is_what_openai_says(self):
        other = self.server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}).json
        self.assertEqual(self.complete()["content"], other["choices"][0]["text"])

    def test_prompts(self):
        ids = self.server.post("/tokenize", {"content": "Once upon", "add_special": True}).json["tokens"]
        self.assertEqual(self.complete([*ids, " a time"])["content"], self.complete()["content"])
        self.assertEqual([r["index"] for r in self.complete(["One", "Two"])], [0, 1])
        self.assertEqual(self.complete({"prompt_string": "Once upon a time"})["content"], self.complete()["content"])
        self.assertEqual(self.complete(n_predict=0)["content"], "")

    def test_stops(self):
        word = self.complete()["content"][3:8]
        r = self.complete(stop=[word])
        self.assertEqual((r["stop_type"], r["stopping_word"]), ("word", word))

    def test_response_fields(self):
        fields = {"response_fields": ["content", "generation_settings/n_predict", "nothing/here", "tokens_predicted/x"]}
        self.assertEqual(self.complete(**fields), {"content": self.complete()["content"], "generation_settings/n_predict": 12})
        self.assertEqual(self.complete(stream=True, **fields)[-1], {"content": "", "generation_settings/n_predict": 12})

    def test_breakers(self):
        """DRY sees through what is no breaker; llama.cpp's own hold where none are given."""
        fields = {"prompt": "a: b c, d: b c, e: b c, f: b c, g:", "dry_multiplier": 50, "dry_allowed_length": 2, "dry_penalty_last_n": -1}
        usual = self.complete(**fields)["content"]
        self.assertEqual(self.complete(dry_sequence_breakers=["\n", ":", '"', "*"], **fields)["content"], usual)
        self.assertEqual(self.complete(dry_sequence_breakers=[":", " b"], **fields)["content"][:4], " b c")
        self.assertNotEqual(self.complete(dry_sequence_breakers=[], **fields)["content"], usual)

    def test_samplers_and_grammar(self):
        self.assertRegex(self.complete(grammar='root ::= "yes" | "no"')["content"], "^(yes|no)$")
        self.assertEqual(json.loads(self.complete(json_schema={"const": 7})["content"]), 7)
        fields = {"temperature": 1, "seed": 3, "samplers": ["top_k", "temperature"], "top_k": 1}
        self.assertEqual(self.complete(**fields)["content"], self.complete()["content"])
        id = self.server.post("/tokenize", {"content": " no"}).json["tokens"][0]
        for bias in ([[id, 1000]], [[" no", 1000]], [[id, 1000.5]]):
            self.assertTrue(self.complete(logit_bias=bias)["content"].startswith(" no no"))
        for i in range(3):
            self.assertNotIn(" no", self.complete(logit_bias=[[id, False]], prompt="no no no no no", seed=i)["content"])

    def test_refusals(self):
        for fields, param in (({"prompt": None}, "prompt"), ({"n_predict": "x"}, "n_predict"), ({"logit_bias": [[1]]}, "logit_bias"),
                              ({"logit_bias": [[-1, 1]]}, "logit_bias"), ({"samplers": 5}, "samplers"), ({"samplers": ["top_k", 5]}, "samplers"), ({"lora": [{"id": 0}]}, "lora"),
                              ({"prompt": {"multimodal_data": []}}, "prompt"), ({"post_sampling_probs": True}, "post_sampling_probs"),
                              ({"dry_sequence_breakers": ["x", 1]}, "dry_sequence_breakers"), ({"dry_sequence_breakers": "x"}, "dry_sequence_breakers"),
                              ({"dry_multiplier": 1, "dry_sequence_breakers": [""]}, "dry_sequence_breakers"), ({"response_fields": "content"}, "response_fields"),
                              ({"prompt": [1, "a", -5]}, "prompt")):
            with self.subTest(str(fields)):
                self.refused(self.server.post("/completion", {"prompt": "a", "n_predict": 1, **fields}), param=param)


class Tools(Case):
    def test_tokens(self):
        for text in ("Hello world", "日本語 🙂", "", "<|im_end|>"):
            ids = self.server.post("/tokenize", {"content": text}).json["tokens"]
            self.assertEqual(self.server.post("/detokenize", {"tokens": ids}).json, {"content": text})
        self.assertEqual(len(self.server.post("/tokenize", {"content": "<|im_end|>"}).json["tokens"]), 1)
        self.assertGreater(len(self.server.post("/tokenize", {"content": "<|im_end|>", "parse_special": False}).json["tokens"]), 1)
        pieces = self.server.post("/tokenize", {"content": "🙂 a", "with_pieces": True}).json["tokens"]
        data = b"".join(bytes(p["piece"]) if isinstance(p["piece"], list) else p["piece"].encode() for p in pieces)
        self.assertEqual(data.decode(), "🙂 a")
        for path, body in (("/tokenize", {}), ("/tokenize", {"content": 1}), ("/tokenize", {"content": "a", "add_special": 1}),
                           ("/detokenize", {}), ("/detokenize", {"tokens": ["a"]}), ("/detokenize", {"tokens": [10**9]}), ("/tokenize", [])):
            self.refused(self.server.post(path, body))
        self.refused(self.server.post("/tokenize", b"{"))

    def test_template(self):
        body = {"messages": [{"role": "user", "content": "Hi"}]}
        prompt = self.server.post("/apply-template", body).json["prompt"]
        self.assertTrue(prompt.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"), prompt)
        self.refused(self.server.post("/apply-template", {"messages": []}), param="messages")

    def test_embedding(self):
        want = [d["embedding"] for d in self.server.post("/v1/embeddings", {"input": ["a", "b"]}).json["data"]]
        for body in ({"content": ["a", "b"]}, {"input": ["a", "b"]}, {"content": ["a", "b"], "embd_normalize": 2}):
            self.assertEqual(self.server.post("/embedding", body).json, [{"index": i, "embedding": [v]} for i, v in enumerate(want)])
        raw = self.server.post("/embeddings", {"content": "a", "embd_normalize": -1}).json[0]["embedding"][0]
        self.assertEqual(raw, self.server.post("/v1/embeddings", {"input": "a", "normalize": False}).json["data"][0]["embedding"])
        for body, param in (({}, "content"), ({"content": "a", "embd_normalize": 1}, "embd_normalize")):
            self.refused(self.server.post("/embedding", body), param=param)

    def test_lengths(self):
        usage = self.chat("Hello")["usage"]
        for path, body in (("/v1/chat/completions/input_tokens", {"messages": [{"role": "user", "content": "Hello"}]}),
                           ("/v1/responses/input_tokens", {"input": "Hello"})):
            self.assertEqual(self.server.post(path, body).json, {"object": "response.input_tokens", "input_tokens": usage["prompt_tokens"]})
            self.refused(self.server.post(path, {}))

    def test_other_names(self):
        self.assertEqual(self.server.get("/v1/health").status, 200)
        self.assertEqual(self.server.get("/models").json, self.server.get("/v1/models").json)
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4, "temperature": 0}
        self.assertEqual(self.server.post("/chat/completions", body).json["choices"], self.chat("Hello", max_tokens=4)["choices"])

    def test_props_and_slots(self):
        props = self.server.get("/props").json
        self.assertEqual(props["default_generation_settings"]["n_ctx"], 8192)
        self.assertEqual(props["model_path"], "SmolLM2-135M-Instruct.Q4_1")
        slots = self.server.get("/slots").json
        self.assertEqual(len(slots), props["total_slots"])
        self.assertEqual([s["is_processing"] for s in slots], [False] * len(slots))
        with self.server.open_stream("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2000, "ignore_eos": True}):
            self.assertEqual([s["is_processing"] for s in self.server.get("/slots").json].count(True), 1)
        self.assertEqual(self.server.get("/slots?fail_on_no_slot=1").status, 200)
