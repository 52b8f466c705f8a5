"""POST /v1/messages as Anthropic's clients use it: messages, streams of blocks, tools, counting."""
import json

import anthropic

from harness import Case

MESSAGES = "/v1/messages"
TOOL = {"name": "get_weather", "description": "The weather of a city", "input_schema": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}


def events_of(body):
    """The events of a stream: each has its type as its name, too."""
    events = []
    for part in body.decode().split("\n\n"):
        if part:
            name, data = part.split("\n")
            event = json.loads(data[6:])
            assert name == "event: " + event["type"], part
            events.append(event)
    return events


def message_of(events):
    """What a client makes of a stream; checks the order of events."""
    assert [e["type"] for e in events[:2]] == ["message_start", "ping"] and events[-1]["type"] == "message_stop", events
    message = events[0]["message"]
    for e in events[2:-1]:
        if e["type"] == "content_block_start":
            assert e["index"] == len(message["content"])
            message["content"].append(dict(e["content_block"]))
        elif e["type"] == "content_block_delta":
            block, delta = message["content"][e["index"]], e["delta"]
            if delta["type"] == "input_json_delta":
                block["json"] = block.get("json", "") + delta["partial_json"]
            else:
                name = delta["type"].removesuffix("_delta")
                block[name] += delta[name]
        elif e["type"] == "content_block_stop":
            block = message["content"][e["index"]]
            if "json" in block:
                block["input"] = json.loads(block.pop("json"))
        else:
            assert e["type"] == "message_delta"
            message.update(e["delta"])
            message["usage"] = e["usage"]
    return message


class Messages(Case):
    def ask(self, content="Say hi.", **fields):
        body = {"model": "", "max_tokens": 16, "temperature": 0, "messages": [{"role": "user", "content": content}], **fields}
        reply = self.server.post(MESSAGES, body)
        self.assertEqual(reply.status, 200, reply.body[:300])
        if not fields.get("stream"):
            return reply.json
        self.assertTrue(reply.headers["content-type"].startswith("text/event-stream"))
        return message_of(events_of(reply.body))

    def same(self, **fields):
        """Streamed and whole are equal, but for the cache; returns the message."""
        whole, streamed = self.ask(**fields), self.ask(stream=True, **fields)
        for message in (whole, streamed):
            usage = message["usage"]
            usage["input_tokens"] += usage.pop("cache_read_input_tokens")
            self.assertTrue(message.pop("id").startswith("msg_"))
            for block in message["content"]:
                self.assertEqual(block.pop("id", "call_")[:5], "call_")
        self.assertEqual(streamed, whole)
        return whole

    def test_text(self):
        message = self.same(content="Write a sentence.", max_tokens=24)
        self.assertEqual((message["type"], message["role"], message["stop_reason"]), ("message", "assistant", "max_tokens"))
        self.assertEqual([b["type"] for b in message["content"]], ["text"])
        chat = self.chat("Write a sentence.", max_tokens=24)
        self.assertEqual(message["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual(message["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(message["usage"]["output_tokens"], 24)

    def test_blocks_and_system(self):
        plain = self.ask("a\nb", system="Be brief.")
        blocks = self.ask([{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}, {"type": "text", "text": "b"}],
                          system=[{"type": "text", "text": "Be brief."}])
        self.assertEqual(blocks["content"], plain["content"])

    def test_stop_sequence(self):
        text = self.ask("Count.", max_tokens=20)["content"][0]["text"]
        message = self.same(content="Count.", max_tokens=20, stop_sequences=[text[6:10]])
        self.assertEqual((message["stop_reason"], message["stop_sequence"]), ("stop_sequence", text[6:10]))
        self.assertEqual(message["content"][0]["text"], text[:text.index(text[6:10])])

    def test_stop_of_the_template(self):
        """What ends every answer is no stop sequence of the client's."""
        template = "{% for m in messages %}{{ m.role }}: {{ m.content }}[END]{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
        server = self.spawn("-c", 2048, "--chat-template", template)
        body = {"max_tokens": 30, "messages": [{"role": "user", "content": "Hi"}],
                "output_format": {"type": "json_schema", "schema": {"const": "one[END]two"}}}
        for fields, reason, sequence in (({}, "end_turn", None), ({"stop_sequences": ["e["]}, "stop_sequence", "e["),
                                         ({"stop_sequences": ["x"] * 64}, "end_turn", None)):
            message = server.post(MESSAGES, {**body, **fields}).json
            self.assertEqual((message["stop_reason"], message["stop_sequence"]), (reason, sequence))
            self.assertEqual(message["content"][0]["text"], '"on' if sequence else '"one')

    def test_prefill(self):
        messages = [{"role": "user", "content": "Name a color."}, {"role": "assistant", "content": "The color is"}]
        chat = self.server.post("/v1/chat/completions", {"messages": messages, "continue_final_message": True, "max_tokens": 8,
                                                         "temperature": 0}).json
        self.assertEqual(self.ask(messages=messages, max_tokens=8)["content"][0]["text"], chat["choices"][0]["message"]["content"])

    def test_tools(self):
        message = self.same(content="What is the weather in Oslo?", tools=[TOOL], max_tokens=120,
                            tool_choice={"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True})
        call = next(b for b in message["content"] if b["type"] == "tool_use")
        self.assertEqual((call["type"], call["name"]), ("tool_use", "get_weather"))
        self.assertEqual(list(call["input"]), ["city"])
        whole = self.ask("What is the weather in Oslo?", tools=[TOOL], tool_choice={"type": "any"}, max_tokens=120)
        many = self.ask("What is the weather in Oslo?", tools=[TOOL], tool_choice={"type": "any", "disable_parallel_tool_use": False}, max_tokens=120)
        calls = [sum(b["type"] == "tool_use" for b in m["content"]) for m in (whole, many)]
        self.assertEqual(calls[0], 1)
        self.assertGreater(calls[1], 1)
        history = [{"role": "user", "content": "What is the weather in Oslo?"}, {"role": "assistant", "content": whole["content"]},
                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": next(b["id"] for b in whole["content"] if b["type"] == "tool_use"),
                                                 "content": [{"type": "text", "text": "3 degrees"}]}, {"type": "text", "text": "Well?"}]}]
        self.assertTrue(self.ask(messages=history, tools=[TOOL], tool_choice={"type": "none"})["content"])
        whole, question = (self.server.post("/v1/messages/count_tokens", {"messages": messages, "tools": [TOOL]}).json["input_tokens"]
                           for messages in (history, history[:1]))
        self.assertGreater(whole, question + 8)

    def test_format(self):
        schema = {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9, "minimum": 0}}, "required": ["n"], "additionalProperties": False}
        for fields in ({"output_format": {"type": "json_schema", "schema": schema}}, {"output_config": {"format": {"type": "json_schema", "schema": schema}}}):
            self.assertIn(json.loads(self.ask("A number?", max_tokens=40, **fields)["content"][0]["text"])["n"], range(10))

    def test_count(self):
        body = {"messages": [{"role": "user", "content": "Hello"}], "system": "Be brief."}
        n = self.server.post("/v1/messages/count_tokens", body).json["input_tokens"]
        usage = self.ask("Hello", system="Be brief.")["usage"]
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], n)

    def test_refusals(self):
        image = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]
        for fields, says in (({"messages": []}, "messages"), ({"messages": None}, "messages"), ({"max_tokens": 0}, "max_tokens"),
                             ({"messages": [{"role": "user", "content": image}]}, "messages[0].content"),
                             ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"), ({"system": 5}, "system"),
                             ({"messages": [{"role": "user"}]}, "messages[0].content"), ({"stop_sequences": "x"}, "stop_sequences"),
                             ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
                             ({"tool_choice": {"type": "some"}}, "tool_choice"), ({"thinking": {"type": "x"}}, "thinking"),
                             ({"mcp_servers": [{}]}, "mcp_servers"), ({"output_format": {"type": "x"}}, "output_format")):
            with self.subTest(str(fields)):
                reply = self.server.post(MESSAGES, {"max_tokens": 4, "messages": [{"role": "user", "content": "x"}], **fields})
                self.assertEqual((reply.status, reply.json["type"], reply.json["error"]["type"]), (400, "error", "invalid_request_error"))
                self.assertIn(says, reply.json["error"]["message"])
        reply = self.server.post(MESSAGES, {"model": "claude", "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]})
        self.assertEqual((reply.status, reply.json["error"]["type"]), (404, "not_found_error"))
        self.assertEqual(self.server.post("/v1/messages/count_tokens", {}).json["type"], "error")


class Client(Case):
    """The real package."""

    def setUp(self):
        self.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{self.server.port}", api_key="none", max_retries=0)
        self.fields = {"model": "SmolLM2-135M-Instruct.Q4_1", "max_tokens": 20, "extra_body": {"temperature": 0},
                       "messages": [{"role": "user", "content": "Hello"}]}

    def test_message_and_stream(self):
        message = self.client.messages.create(**self.fields)
        with self.client.messages.stream(**self.fields) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, message.content[0].text)
        self.assertEqual((final.content[0].text, final.stop_reason), (text, message.stop_reason))
        self.assertGreater(self.client.messages.count_tokens(model=self.fields["model"], messages=self.fields["messages"]).input_tokens, 3)

    def test_tools(self):
        fields = {**self.fields, "max_tokens": 120, "tools": [TOOL], "messages": [{"role": "user", "content": "What is the weather in Oslo?"}],
                  "tool_choice": {"type": "tool", "name": "get_weather", "disable_parallel_tool_use": True}}
        with self.client.messages.stream(**fields) as stream:
            final = stream.get_final_message()
        again = self.client.messages.create(**fields)
        self.assertIn("tool_use", [b.type for b in final.content])
        self.assertEqual([b.input for b in final.content if b.type == "tool_use"], [b.input for b in again.content if b.type == "tool_use"])

    def test_errors(self):
        with self.assertRaises(anthropic.BadRequestError):
            self.client.messages.create(**{**self.fields, "max_tokens": 9000})
