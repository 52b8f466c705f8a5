"""POST /v1/completions: prompts, echo, log-probabilities, streams."""
from harness import COMPLETIONS, Case

FOX = "The quick brown fox"


class Completions(Case):
    def complete(self, prompt=FOX, **fields):
        reply = self.server.post(COMPLETIONS, {"prompt": prompt, "max_tokens": 8, "temperature": 0, **fields})
        self.assertEqual(reply.status, 200, reply.body[:500])
        return reply.events if fields.get("stream") else reply.json

    def refuse(self, status=400, param=None, **fields):
        return self.refused(self.server.post(COMPLETIONS, {"prompt": FOX, "max_tokens": 1, **fields}), status, param=param)

    def test_prompts(self):
        one = self.complete()
        self.assertEqual(one["object"], "text_completion")
        text = one["choices"][0]["text"]
        many = self.complete([FOX, "Once upon a time", FOX])
        self.assertEqual([c["index"] for c in many["choices"]], [0, 1, 2])
        self.assertEqual([many["choices"][i]["text"] for i in (0, 2)], [text, text])
        self.assertNotEqual(many["choices"][1]["text"], text)
        self.assertGreater(many["usage"]["prompt_tokens"], 2 * one["usage"]["prompt_tokens"])
        ids = [504, 2365, 6354, 16438]
        self.assertEqual(self.complete(ids)["choices"][0]["text"], text)
        self.assertEqual([c["text"] for c in self.complete([ids, ids])["choices"]], [text, text])

    def test_length(self):
        answer = self.server.post(COMPLETIONS, {"prompt": FOX, "temperature": 0, "ignore_eos": True}).json
        self.assertEqual(answer["usage"]["completion_tokens"], 16)
        self.assertEqual(answer["choices"][0]["finish_reason"], "length")

    def test_echo(self):
        text = self.complete()["choices"][0]["text"]
        self.assertEqual(self.complete(echo=True)["choices"][0]["text"], FOX + text)
        self.assertEqual(self.complete([504, 2365, 6354, 16438], echo=True)["choices"][0]["text"], FOX + text)
        events = self.complete(echo=True, stream=True, n=2)
        for i in (0, 1):
            self.assertEqual("".join(c["text"] for e in events for c in e["choices"] if c["index"] == i), FOX + text)

    def test_logprobs(self):
        answer = self.complete(logprobs=2)["choices"][0]
        found = answer["logprobs"]
        self.assertEqual("".join(found["tokens"]), answer["text"])
        self.assertEqual(len(found["token_logprobs"]), 8)
        self.assertTrue(all(len(tops) == 2 and max(tops.values()) == logprob
                            for tops, logprob in zip(found["top_logprobs"], found["token_logprobs"])))
        self.assertEqual(found["text_offset"][:2], [0, len(found["tokens"][0])])
        events = self.complete(logprobs=2, stream=True)
        parts = [c["logprobs"] for e in events for c in e["choices"] if c["logprobs"]]
        for key in found:
            self.assertEqual(sum((part[key] for part in parts), []), found[key])

    def test_the_prompt_is_scored(self):
        both = self.complete(FOX, logprobs=1, echo=True)["choices"][0]["logprobs"]
        self.assertEqual("".join(both["tokens"][:4]), FOX)
        self.assertIsNone(both["token_logprobs"][0])
        self.assertTrue(all(x <= 0 for x in both["token_logprobs"][1:]))
        only = self.complete(FOX, logprobs=1, echo=True, max_tokens=0)
        self.assertEqual(only["choices"][0]["logprobs"]["token_logprobs"], both["token_logprobs"][:4])
        self.assertEqual((only["choices"][0]["text"], only["usage"]["completion_tokens"]), (FOX, 0))
        after = self.complete([504, 2365, 6354], logprobs=1, max_tokens=1)["choices"][0]["logprobs"]
        self.assertEqual(both["top_logprobs"][3], after["top_logprobs"][0])  # the same bits by prefill and decoding

    def test_large_parts(self):
        """A part of a stream is as large as it is: only who does not read what came before is slow."""
        reply = self.server.post(COMPLETIONS, {"prompt": "one two three " * 400, "max_tokens": 1, "echo": True, "logprobs": 100, "stream": True})
        tokens = [t for e in reply.events for t in (e["choices"][0]["logprobs"] or {"tokens": []})["tokens"]]
        self.assertGreater(len(reply.body), 1 << 20)
        self.assertEqual("".join(tokens)[:5599], ("one two three " * 400)[:5599])

    def test_bias(self):
        first = self.complete(logprobs=0, max_tokens=1)["choices"][0]["logprobs"]["tokens"][0]
        ids = {"0": 100}
        self.assertNotEqual(self.complete(logit_bias=ids, max_tokens=1)["choices"][0]["text"], first)

    def test_allowed_ids(self):
        ids = [t for text in (" one", " two", " three") for t in self.server.post("/tokenize", {"content": text}).json["tokens"]]
        for fields in ({}, {"temperature": 2, "seed": 1}, {"ignore_eos": True}, {"guided_regex": "( one| two)+"}):
            words = self.complete(allowed_token_ids=ids, max_tokens=12, **fields)["choices"][0]["text"].split()
            self.assertTrue(words and set(words) <= {"one", "two", "three"}, words)
        self.refuse(allowed_token_ids=ids, guided_regex="four", param="allowed_token_ids", says="forbid")

    def test_truncate(self):
        ids = self.server.post("/tokenize", {"content": "one two three four five six seven eight"}).json["tokens"]
        for cut, fields in ((ids[-3:], {"truncate_prompt_tokens": 3}), (ids[:3], {"truncate_prompt_tokens": 3, "truncation_side": "right"}),
                            (ids, {"truncate_prompt_tokens": 100}), (ids, {"truncate_prompt_tokens": -1})):
            want = self.complete(cut)
            for prompt in (ids, "one two three four five six seven eight"):
                got = self.complete(prompt, **fields)
                self.assertEqual((got["choices"][0]["text"], got["usage"]["prompt_tokens"]), (want["choices"][0]["text"], len(cut)))
        long = self.complete("one two three four " * 5000, truncate_prompt_tokens=4)
        self.assertEqual(long["usage"]["prompt_tokens"], 4)
        chat = self.chat("one two three four " * 5000, truncate_prompt_tokens=30)
        self.assertEqual(chat["usage"]["prompt_tokens"], 30)

    def test_stops(self):
        text = self.complete(max_tokens=12)["choices"][0]["text"]
        cut = self.complete(max_tokens=12, stop=text[3:6], include_stop_str_in_output=True)["choices"][0]["text"]
        self.assertEqual(cut, text[:text.index(text[3:6]) + 3])
        self.assertEqual(self.complete(stop=["", "never"])["choices"][0]["text"], self.complete()["choices"][0]["text"])
        stopped = self.complete([504, 2365, 6354], stop_token_ids=[16438])["choices"][0]
        self.assertEqual((stopped["text"], stopped["finish_reason"]), ("", "stop"))
        self.assertGreaterEqual(self.complete([504, 2365, 6354], stop_token_ids=[16438], min_tokens=4)["usage"]["completion_tokens"], 4)

    def test_cut_behind_the_first_token(self):
        """A BOS that the tokenizer puts before a text stays when the text is cut, in chats as well; one that the client sent does not."""
        server = self.spawn("-c", 512, "--chat-template", "gemma", model=self.real("gemma-3-270m-q4_k_m.gguf"))

        def ask(path, **fields):
            reply = server.post(path, {"max_tokens": 4, "temperature": 0, "logprobs": 2 if path == COMPLETIONS else True, **fields})
            self.assertEqual(reply.status, 200, reply.body[:300])
            return reply.json
        text = "one two three four five six seven eight"
        ids = server.post("/tokenize", {"content": text, "add_special": True}).json["tokens"]
        self.assertEqual(ids[0], 2)
        cut = [*ids[:1], *ids[-3:]]
        want = ask(COMPLETIONS, prompt=cut)
        for fields, same in (({"prompt": text}, True), ({"prompt": ids}, False)):
            got = ask(COMPLETIONS, truncate_prompt_tokens=4, **fields)
            self.assertEqual(got["usage"]["prompt_tokens"], 4)
            (self.assertEqual if same else self.assertNotEqual)(got["choices"][0]["logprobs"], want["choices"][0]["logprobs"])
        messages = [{"role": "user", "content": text}]
        rendered = server.post("/apply-template", {"messages": messages}).json["prompt"]
        whole = server.post("/tokenize", {"content": rendered, "add_special": False, "parse_special": True}).json["tokens"]
        whole = whole if whole[0] == 2 else [2, *whole]
        chat = ask("/v1/chat/completions", messages=messages, truncate_prompt_tokens=9)
        text = ask(COMPLETIONS, prompt=[2, *whole[-8:]])["choices"][0]["text"]
        self.assertEqual((chat["choices"][0]["message"]["content"], chat["usage"]["prompt_tokens"]), (text, 9))

    def test_a_model_without_a_template(self):
        server = self.spawn("-c", 512, model=self.real("gemma-3-270m-q4_k_m.gguf"))
        self.assertIn(b"only completions, no chat", server.text())
        reply = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}]})
        self.refused(reply, 400, code="no_chat_template", says="give a template")
        self.assertEqual(server.post(COMPLETIONS, {"prompt": FOX}).status, 200)

    def test_a_format_that_there_is_not(self):
        with self.assertRaisesRegex(AssertionError, "no format of answers is called 'nosuch'"):
            self.spawn("-c", 512, "--format", "nosuch")

    def test_refusals(self):
        for fields, param in (({"prompt": {}}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [[]]}, "prompt"), ({"prompt": [1, "x"]}, "prompt"),
                              ({"prompt": [1, 999999999]}, "prompt"), ({"prompt": None}, "prompt"), ({"suffix": "x"}, "suffix"),
                              ({"best_of": 3}, "best_of"), ({"truncate_prompt_tokens": 0}, "truncate_prompt_tokens"),
                              ({"truncation_side": "top"}, "truncation_side"), ({"allowed_token_ids": []}, "allowed_token_ids"),
                              ({"allowed_token_ids": [10**9]}, "allowed_token_ids"), ({"max_tokens": 0}, "max_tokens"), ({"logprobs": 1000}, "logprobs"),
                              ({"prompt": ["x"] * 300}, "prompt"), ({"prompt": "one two " * 8000}, "prompt")):
            with self.subTest(str(fields)[:60]):
                self.refuse(param=param, **fields)
