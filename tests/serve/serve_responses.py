"""POST /v1/responses, without state: items in, items out, streams of events."""
import json

import openai

from harness import Case

RESPONSES = "/v1/responses"
TOOL = {"type": "function", "name": "get_weather", "strict": True, "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}


def events_of(body):
    events = []
    for part in body.decode().split("\n\n"):
        if part and not part.startswith(":"):
            name, data = part.split("\n")
            events.append(json.loads(data[6:]))
            assert name == "event: " + events[-1]["type"], part
    assert [e["sequence_number"] for e in events] == list(range(len(events)))
    return events


def output_of(events):
    """The items of a stream, from their deltas, checked against what the events say when they are complete."""
    items, texts = [], {}
    for e in events:
        kind = e["type"].removeprefix("response.")
        if kind == "output_item.added":
            assert e["output_index"] == len(items) and e["item"]["status"] == "in_progress"
            items.append(e["item"])
            texts[e["output_index"]] = ""
        elif kind.endswith(".delta"):
            assert e["item_id"] == items[e["output_index"]]["id"]
            texts[e["output_index"]] += e["delta"]
        elif kind in ("output_text.done", "reasoning_text.done"):
            assert e["text"] == texts[e["output_index"]]
        elif kind == "function_call_arguments.done":
            assert e["arguments"] == texts[e["output_index"]]
        elif kind == "content_part.done":
            assert e["part"]["text"] == texts[e["output_index"]]
        elif kind == "output_item.done":
            done = e["item"]
            assert (done.get("arguments") or done["content"][0]["text"]) == texts[e["output_index"]]
            items[e["output_index"]] = done
    assert all(item["status"] == "completed" for item in items)
    return items


class Responses(Case):
    def respond(self, value="Hello", **fields):
        reply = self.server.post(RESPONSES, {"input": value, "max_output_tokens": 16, "temperature": 0, **fields})
        self.assertEqual(reply.status, 200, reply.body[:300])
        return events_of(reply.body) if fields.get("stream") else reply.json

    @staticmethod
    def without_ids(items):
        return [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in items]

    def same(self, value="Hello", **fields):
        """Streamed and whole are equal; returns the whole."""
        whole, events = self.respond(value, **fields), self.respond(value, stream=True, **fields)
        self.assertEqual([e["type"] for e in events[:2]], ["response.created", "response.in_progress"])
        last = events[-1]
        self.assertEqual(last["type"], "response." + whole["status"])
        self.assertEqual(output_of(events), last["response"]["output"])
        self.assertEqual(self.without_ids(last["response"]["output"]), self.without_ids(whole["output"]))
        for name in set(whole) - {"id", "created_at", "output", "usage"}:
            self.assertEqual(last["response"][name], whole[name], name)
        self.assertEqual(last["response"]["usage"]["total_tokens"], whole["usage"]["total_tokens"])
        return whole

    def test_text(self):
        whole = self.same(instructions="Be brief.")
        self.assertEqual((whole["object"], whole["status"], whole["incomplete_details"]), ("response", "incomplete", {"reason": "max_output_tokens"}))
        message, = whole["output"]
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
        chat = self.server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 16, "temperature": 0}).json
        self.assertEqual(message["content"][0]["text"], chat["choices"][0]["message"]["content"])
        self.assertEqual(whole["usage"]["input_tokens"], chat["usage"]["prompt_tokens"])
        self.assertEqual(whole["instructions"], "Be brief.")

    def test_thoughts(self):
        whole = self.same(guided_regex="<think>ab</think>cd", max_output_tokens=30)
        self.assertEqual([(item["type"], item["content"][0]["text"]) for item in whole["output"]], [("reasoning", "ab"), ("message", "cd")])

    def test_items(self):
        plain = self.respond("Hello")["output"]
        for value in ([{"role": "user", "content": "Hello"}], [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]):
            self.assertEqual(self.without_ids(self.respond(value)["output"]), self.without_ids(plain))
        talk = [{"role": "user", "content": "Hello"}, *plain, {"role": "user", "content": "And then?"}]
        chat = self.server.post("/v1/chat/completions", {"temperature": 0, "max_tokens": 16, "messages": [
            talk[0], {"role": "assistant", "content": plain[0]["content"][0]["text"]}, talk[-1]]}).json
        self.assertEqual(self.respond(talk)["output"][0]["content"][0]["text"], chat["choices"][0]["message"]["content"])

    def test_tools(self):
        whole = self.same("What is the weather in Oslo?", tools=[TOOL], tool_choice={"type": "function", "name": "get_weather"},
                          parallel_tool_calls=False, max_output_tokens=120)
        call = next(item for item in whole["output"] if item["type"] == "function_call")
        self.assertEqual((call["name"], list(json.loads(call["arguments"]))), ("get_weather", ["city"]))
        talk = [{"role": "user", "content": "What is the weather in Oslo?"}, call,
                {"type": "function_call_output", "call_id": call["call_id"], "output": "3 degrees"}]
        self.assertTrue(self.respond(talk, tools=[TOOL], tool_choice="none")["output"])

    def test_formats(self):
        for form in ({"type": "json_schema", "name": "a", "schema": {"const": 7}}, {"type": "text"}):
            whole = self.same("Answer.", text={"format": form}, max_output_tokens=40)
            if form["type"] == "json_schema":
                self.assertEqual((whole["status"], json.loads(whole["output"][0]["content"][0]["text"])), ("completed", 7))

    def test_refusals(self):
        for fields, param in (({"input": []}, "input"), ({"input": None}, "input"), ({"input": 5}, "input"), ({"input": [{"content": "x"}]}, "input[0]"),
                              ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"), ({"previous_response_id": "resp_1"}, "previous_response_id"),
                              ({"background": True}, "background"), ({"truncation": "auto"}, "truncation"), ({"tools": [{"type": "web_search"}]}, "tools"),
                              ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0]"),
                              ({"max_output_tokens": 0}, "max_output_tokens"), ({"text": {"format": {"type": "x"}}}, "text.format"),
                              ({"tool_choice": "some"}, "tool_choice"), ({"conversation": "c"}, "conversation")):
            with self.subTest(str(fields)):
                self.refused(self.server.post(RESPONSES, {"input": "x", "max_output_tokens": 1, **fields}), param=param)


class Client(Case):
    """The real package."""

    def test_all(self):
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.server.port}/v1", api_key="none", max_retries=0)
        fields = {"model": "SmolLM2-135M-Instruct.Q4_1", "input": "Hello", "max_output_tokens": 16, "temperature": 0}
        whole = client.responses.create(**fields)
        with client.responses.stream(**fields) as stream:
            text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        self.assertEqual(text, whole.output_text)
        vectors = client.embeddings.create(model=fields["model"], input=["a", "b"])
        self.assertEqual([len(d.embedding) for d in vectors.data], [576, 576])
        with self.assertRaises(openai.BadRequestError):
            client.responses.create(**fields, previous_response_id="x")
