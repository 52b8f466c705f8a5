"""POST /v1/chat/completions: fields, answers, streams."""
import json

from harness import CHAT, COMPLETIONS, Case


class Answers(Case):
    def test_whole(self):
        answer = self.chat("Say hi.")
        self.assertEqual(answer["object"], "chat.completion")
        choice, = answer["choices"]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertTrue(choice["message"]["content"])
        usage = answer["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertIn("cached_tokens", usage["prompt_tokens_details"])

    def test_stream_is_the_whole(self):
        fields = {"max_tokens": 24, "logprobs": True, "top_logprobs": 3}
        whole = self.chat("Write a sentence.", **fields)
        events = self.chat("Write a sentence.", stream=True, stream_options={"include_usage": True}, **fields)
        choices = [e["choices"][0] for e in events if e["choices"]]
        self.assertEqual(len({e["id"] for e in events}), 1)
        self.assertEqual("".join(c["delta"].get("content", "") for c in choices), whole["choices"][0]["message"]["content"])
        tokens = [t for c in choices if c["logprobs"] for t in c["logprobs"]["content"]]
        self.assertEqual(tokens, whole["choices"][0]["logprobs"]["content"])
        self.assertEqual(len(tokens), whole["usage"]["completion_tokens"])
        self.assertEqual([c["finish_reason"] for c in choices if c["finish_reason"]], [whole["choices"][0]["finish_reason"]])
        self.assertEqual([e["usage"]["completion_tokens"] for e in events if "usage" in e], [24])
        self.assertEqual(events[-1]["choices"], [])

    def test_the_beginning_is_cached(self):
        text = "Once there was a fisherman. " * 12
        self.chat(text)
        usage = self.chat(text)["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"] - 1)

    def test_salt(self):
        text = "Once there was a king. " * 12
        self.chat(text)
        self.assertEqual(self.chat(text, cache_salt="mine")["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        self.assertGreater(self.chat(text, cache_salt="mine")["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_seeds(self):
        fields = {"temperature": 1, "max_tokens": 12}
        one, two, three = (self.chat("Tell me a story.", seed=seed, **fields) for seed in (7, 7, 8))
        text = [a["choices"][0]["message"]["content"] for a in (one, two, three)]
        self.assertEqual(text[0], text[1])
        self.assertNotEqual(text[0], text[2])

    def test_many(self):
        answer = self.chat("Tell me a story.", n=3, seed=7, temperature=1, max_tokens=12)
        texts = [c["message"]["content"] for c in answer["choices"]]
        self.assertEqual([c["index"] for c in answer["choices"]], [0, 1, 2])
        self.assertEqual(len(set(texts)), 3)
        self.assertEqual(texts[0], self.chat("Tell me a story.", seed=7, temperature=1, max_tokens=12)["choices"][0]["message"]["content"])
        self.assertLess(answer["usage"]["prompt_tokens"], 60)
        events = self.chat("Tell me a story.", n=3, seed=7, temperature=1, max_tokens=12, stream=True)
        for i in range(3):
            parts = [c["delta"].get("content", "") for e in events for c in e["choices"] if c["index"] == i]
            self.assertEqual("".join(parts), texts[i])

    def test_stop(self):
        text = self.chat("Count.", max_tokens=20)["choices"][0]["message"]["content"]
        cut = self.chat("Count.", max_tokens=20, stop=[text[6:10], "never"])["choices"][0]
        self.assertEqual((cut["message"]["content"], cut["finish_reason"], cut["stop_reason"]), (text[:text.index(text[6:10])], "stop", text[6:10]))

    def test_forms(self):
        for form, valid in (({"response_format": {"type": "json_object"}}, "{"),
                            ({"structured_outputs": {"regex": "[0-9]{4}"}}, None),
                            ({"structured_outputs": {"choice": ["yes", "no"]}}, None),
                            ({"guided_choice": ["yes", "no"]}, None),
                            ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"const": 7}}}}, None),
                            ({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"const": 1234567.1}}}}, None)):
            text = self.chat("Answer.", max_tokens=40, **form)["choices"][0]["message"]["content"]
            if valid:
                self.assertTrue(text.startswith(valid), text)
            elif "regex" in str(form):
                self.assertRegex(text, "^[0-9]{4}$")
            elif "choice" in str(form):
                self.assertIn(text, ("yes", "no"))
            else:
                self.assertEqual(text.strip(), str(form["response_format"]["json_schema"]["schema"]["const"]))


class Forced(Case):
    """Text that a form leaves no choice about is jumped over."""
    schema = {"type": "object", "properties": {
        "customer_identification_number": {"type": "integer", "minimum": 0, "maximum": 99}, "is_confirmed": {"type": "boolean"},
        "remarks_of_the_customer": {"type": "string", "maxLength": 8}}, "additionalProperties": False,
        "required": ["customer_identification_number", "is_confirmed", "remarks_of_the_customer"]}

    def test_jumps(self):
        form = {"response_format": {"type": "json_schema", "json_schema": {"schema": self.schema}}, "max_tokens": 120}
        for fields in ({}, {"temperature": 1, "seed": 5}):
            plain = self.chat("An order.", **form, **fields)
            told = self.chat("An order.", **form, **fields, logprobs=True, top_logprobs=1)
            choice = told["choices"][0]
            self.assertEqual(choice["message"], plain["choices"][0]["message"])
            self.assertEqual(told["usage"]["completion_tokens"], plain["usage"]["completion_tokens"])
            tokens = [t["token"] for t in choice["logprobs"]["content"]]
            self.assertIn("customer", tokens)  # as the tokenizer cuts it, not as a model would spell it that knows no form
            self.assertEqual(json.loads("".join(tokens)), json.loads(choice["message"]["content"]))

    def test_bans_hold(self):
        """A token that is forced, and forbidden, is written otherwise."""
        customer, = self.server.post("/tokenize", {"content": "customer"}).json["tokens"]
        form = {"guided_regex": "the customer of the customer", "max_tokens": 60, "logprobs": True, "top_logprobs": 1}
        choice = self.chat("An order.", logit_bias={str(customer): -100}, **form)["choices"][0]
        self.assertEqual(choice["message"]["content"], "the customer of the customer")
        self.assertNotIn("customer", [t["token"] for t in choice["logprobs"]["content"]])


class Logs(Case):
    def test_an_answer_is_found_in_the_log(self):
        reply = self.server.post(CHAT, {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2})
        name = reply.headers["x-request-id"]
        self.assertTrue(reply.json["id"].endswith(name))
        self.server.until(lambda: self.server.n_logged(name) == 1)
        self.assertRegex(self.server.text().decode(), rf"POST /v1/chat/completions 200 \d+ ms {name}: prompt \d+ \(\d+ cached\), generated 2,")


class Tools(Case):
    tools = [{"type": "function", "function": {"name": name, "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"], "additionalProperties": False}}}
        for name in ("get_weather", "get_time")]

    def test_required(self):
        """One call, as the model's template knows no tools; as many as it likes where the request says so."""
        fields = {"tools": self.tools, "tool_choice": "required", "max_tokens": 200}
        call, = self.chat("Weather in Paris?", **fields)["choices"][0]["message"]["tool_calls"]
        many = self.chat("Weather in Paris?", parallel_tool_calls=True, **fields)["choices"][0]["message"]["tool_calls"]
        self.assertGreater(len(many), 1)
        self.assertEqual((call["type"], set(json.loads(call["function"]["arguments"]))), ("function", {"city"}))
        self.assertRegex(call["id"], "^call_\\w{20,}$")

    def test_named_and_streamed(self):
        fields = {"tools": self.tools, "tool_choice": {"type": "function", "function": {"name": "get_time"}}, "max_tokens": 200,
                  "parallel_tool_calls": False}
        whole = self.chat("Weather in Paris?", **fields)["choices"][0]
        events = self.chat("Weather in Paris?", stream=True, **fields)
        deltas = [c["delta"]["tool_calls"][0] for e in events for c in e["choices"] if "tool_calls" in c["delta"]]
        self.assertEqual((whole["finish_reason"], whole["message"]["content"]), ("tool_calls", None))
        self.assertTrue(all(d["index"] == 0 for d in deltas))
        self.assertEqual([d["function"]["name"] for d in deltas if "name" in d["function"]], ["get_time"])
        self.assertEqual(len([d for d in deltas if "id" in d]), 1)
        self.assertEqual("".join(d["function"]["arguments"] for d in deltas), whole["message"]["tool_calls"][0]["function"]["arguments"])
        self.assertEqual([c["finish_reason"] for e in events for c in e["choices"] if c["finish_reason"]], ["tool_calls"])

    def test_cut(self):
        """Wherever the limit cuts a call of which arguments were given, nothing of its syntax is text."""
        fields = {"tools": self.tools, "tool_choice": "required", "parallel_tool_calls": False}
        n = self.chat("Weather in Paris?", max_tokens=200, **fields)["usage"]["completion_tokens"]
        cut = [self.chat("Weather in Paris?", max_tokens=i, **fields)["choices"][0]["message"] for i in range(n - 12, n)]
        called = [m["content"] for m in cut if "tool_calls" in m]
        self.assertGreater(len(called), 3)
        self.assertEqual(called, [None] * len(called))

    def test_none(self):
        answer = self.chat("Weather in Paris?", tools=self.tools, tool_choice="none")["choices"][0]["message"]
        self.assertNotIn("tool_calls", answer)

    def test_refusals(self):
        for fields, param in (({"tools": self.tools, "tool_choice": {"type": "function", "function": {"name": "nosuch"}}}, "tool_choice"),
                              ({"tool_choice": "required"}, "tool_choice"), ({"tools": [{}]}, "tools[0]"), ({"tools": 5}, "tools")):
            reply = self.server.post(CHAT, {"messages": [{"role": "user", "content": "Hi"}], **fields})
            self.assertTrue(self.refused(reply)["param"].startswith(param), reply.body)


class Refusals(Case):
    def refuse(self, says="", status=400, param=None, **fields):
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1, **fields}
        return self.refused(self.server.post(CHAT, body), status, param=param, says=says)

    def test_fields(self):
        for name, value in (("temperature", -1), ("temperature", "hot"), ("dry_base", 0), ("top_p", 2), ("n", 0), ("n", 100000), ("n", 1.5),
                            ("max_tokens", -5), ("max_tokens", 0), ("stop", 5), ("seed", "x"), ("stream", "yes"), ("logit_bias", "x"),
                            ("logit_bias", {"99999999": 1}), ("logit_bias", {"1": 1000}), ("top_logprobs", 10000), ("cache_salt", ""),
                            ("tools", {}), ("response_format", 5), ("stream_options", 1), ("priority", "x"), ("model", 7),
                            ("use_beam_search", True), ("bad_words", ["x"]), ("functions", [{}]), ("chat_template", "x")):
            with self.subTest(f"{name} {value}"):
                error = self.refuse(**{name: value})
                self.assertTrue(error["param"].startswith(name), error)

    def test_messages(self):
        for messages, param in (([], "messages"), ({}, "messages"), ([{"content": "x"}], "messages[0].role"),
                                ([{"role": "user", "content": 5}], "messages[0].content")):
            self.refuse(messages=messages, param=param)

    def test_model(self):
        self.assertEqual(self.refuse(status=404, model="gpt-9", param="model")["code"], "model_not_found")

    def test_forms(self):
        self.refuse(response_format={"type": "json_schema", "json_schema": {"schema": {"type": "strng"}}})
        self.refuse(response_format={"type": "yaml"}, param="response_format.type")
        self.refuse(response_format={"type": "json_object"}, guided_regex="a", says="more than once")

    def test_nothing_may_be_said(self):
        """A form whose tokens a bias forbids, from the first one on or behind some."""
        ban = {str(i): -100 for text in ("a", "xa") for i in self.server.post("/tokenize", {"content": text}).json["tokens"]}
        x, = self.server.post("/tokenize", {"content": "x"}).json["tokens"]
        ban.pop(str(x), None)
        beside = {"messages": [{"role": "user", "content": "Tell me a story."}], "max_tokens": 40, "temperature": 0}
        alone = self.server.post(CHAT, beside).json["choices"]
        for form in ({"guided_regex": "a"}, {"guided_choice": ["xa"]}, {"guided_regex": "a", "min_tokens": 3}):
            with self.subTest(str(form)):
                body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 8, "logit_bias": ban, **form}
                whole, stream, other = self.at_once([lambda body=body: self.server.post(CHAT, body),
                                                     lambda body=body: self.server.post(CHAT, {**body, "stream": True}),
                                                     lambda: self.server.post(CHAT, beside)])
                error = self.refused(whole, param="logit_bias", says="mask and bias forbid all")
                self.assertEqual(stream.events[-1], {"error": error})
                self.assertFalse([e for e in stream.events[:-1] if e["choices"][0]["finish_reason"]])
                self.assertEqual(other.json["choices"], alone)

    def test_null_is_nothing(self):
        self.chat(**{name: None for name in ("n", "stop", "seed", "tools", "tool_choice", "logit_bias", "response_format", "top_p")})

    def test_too_long(self):
        error = self.refuse(messages=[{"role": "user", "content": "one two " * 8000}])
        self.assertEqual((error["code"], error["param"]), ("context_length_exceeded", "messages"))
        self.assertEqual(self.refuse(max_tokens=100000)["code"], "context_length_exceeded")
        for text in (" " * (8 << 20), "one two " * (1 << 20)): # found out without tokenizing, or even rendering, all of it
            for path, body in ((CHAT, {"messages": [{"role": "user", "content": text}]}), (COMPLETIONS, {"prompt": text}),
                               ("/completion", {"prompt": [1, text]}), ("/v1/embeddings", {"input": text})):
                self.refused(self.server.post(path, body), code="context_length_exceeded")

    def test_bodies(self):
        for body in (b"", b"hello", b"[1,2]", b'{"messages":', b"[" * 100000, b'{"a":1,"a":2}', b'{"messages":[{"role":"user","content":"\xff"}]}',
                     b'{"messages":[{"role":"user","content":"\\ud800"}]}'):
            with self.subTest(body[:40]):
                self.refused(self.server.post(CHAT, body))

    def test_large_numbers(self):
        """JSON has no largest number; the fields of a request do."""
        for name, number in (("seed", 2**63), ("seed", 2**64), ("seed", -10**30), ("max_tokens", 2**64), ("n", 10**400), ("temperature", "1e999"),
                             ("logit_bias", '{"1": -1e999}')):
            with self.subTest(f"{name} {number}"):
                body = '{"messages":[{"role":"user","content":"1e999"}],"%s":%s}' % (name, number)
                error = self.refused(self.server.post(CHAT, body.encode()), says="expected")
                self.assertTrue(error["param"].startswith(name), error)
        self.chat(seed=2**63 - 1, metadata={"id": 2**64}, user=10**400)
        answer = self.chat("A number?", max_tokens=40, guided_json={"type": "integer", "minimum": 2**70, "maximum": 2**70})
        self.assertEqual(float(answer["choices"][0]["message"]["content"]), 2.0**70)

    def test_strict(self):
        server = self.spawn("-c", 1024, "--strict-fields")
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        self.assertEqual(server.post(CHAT, body).status, 200)
        self.refused(server.post(CHAT, {**body, "frobnicate": 1}), param="frobnicate")
        self.assertEqual(self.server.post(CHAT, {**body, "frobnicate": 1}).status, 200)
