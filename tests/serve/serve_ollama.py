"""Ollama's API: /api/chat, /api/generate, /api/embed, and what clients ask before."""
import json

import ollama

from harness import Case

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"], "additionalProperties": False}}}
TIMES = {"created_at", "total_duration", "prompt_eval_duration", "eval_duration"}


class Api(Case):
    def lines(self, path, body):
        reply = self.server.post(path, body)
        self.assertEqual((reply.status, reply.headers["content-type"]), (200, "application/x-ndjson"), reply.body[:300])
        lines = [json.loads(line) for line in reply.body.splitlines()]
        self.assertEqual([line["done"] for line in lines], [False] * (len(lines) - 1) + [True])
        return lines

    def same(self, path, part, **body):
        """The whole, of which the streamed parts are equal."""
        body["options"] = {"temperature": 0, "num_predict": 20, "repeat_penalty": 1, **body.get("options", {})}
        lines = self.lines(path, body)
        reply = self.server.post(path, {**body, "stream": False})
        self.assertEqual(reply.status, 200, reply.body[:300])
        whole = reply.json
        self.assertEqual("".join(part(line) for line in lines), part(whole))
        for name in set(whole) - TIMES - {"message", "response"}:
            self.assertEqual(lines[-1][name], whole[name], name)
        self.assertGreater(whole["total_duration"], whole["eval_duration"])
        return whole

    def test_chat(self):
        whole = self.same("/api/chat", lambda m: m["message"]["content"], model="SmolLM2-135M-Instruct.Q4_1:latest",
                          messages=[{"role": "user", "content": "Hello"}])
        chat = self.chat("Hello", max_tokens=20)
        self.assertEqual(whole["message"], {"role": "assistant", "content": chat["choices"][0]["message"]["content"]})
        self.assertEqual((whole["prompt_eval_count"], whole["eval_count"]), (chat["usage"]["prompt_tokens"], chat["usage"]["completion_tokens"]))

    def test_generate(self):
        whole = self.same("/api/generate", lambda m: m["response"], prompt="Hello")
        self.assertEqual(whole["response"], self.chat("Hello", max_tokens=20)["choices"][0]["message"]["content"])
        raw = self.same("/api/generate", lambda m: m["response"], prompt="Once upon a time", raw=True)
        other = self.server.post("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 20, "temperature": 0}).json
        self.assertEqual(raw["response"], other["choices"][0]["text"])
        self.same("/api/generate", lambda m: m["response"], prompt="Hello", system="Be brief.", options={"stop": ["a"]})

    def test_formats(self):
        for form in ("json", {"const": 7}):
            whole = self.same("/api/chat", lambda m: m["message"]["content"], messages=[{"role": "user", "content": "Answer"}], format=form,
                              options={"num_predict": 60})
            if whole["done_reason"] == "stop":
                json.loads(whole["message"]["content"])

    def test_tools(self):
        history = [{"role": "user", "content": "Weather in Oslo?"},
                   {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]},
                   {"role": "tool", "tool_name": "get_weather", "content": "3 degrees"}]
        self.same("/api/chat", lambda m: m["message"]["content"], messages=history, tools=[TOOL])

    def test_embed(self):
        want = [d["embedding"] for d in self.server.post("/v1/embeddings", {"input": ["a", "b"]}).json["data"]]
        reply = self.server.post("/api/embed", {"model": "", "input": ["a", "b"]}).json
        self.assertEqual(reply["embeddings"], want)

    def test_embeddings(self):
        """The older form: one vector, its length as the model has it."""
        want, = self.server.post("/v1/embeddings", {"input": "a", "normalize": False}).json["data"]
        self.assertEqual(self.server.post("/api/embeddings", {"prompt": "a"}).json, {"embedding": want["embedding"]})

    def test_nothing_loads(self):
        """What clients send to have a model loaded; it is there."""
        finished = lambda: [line for line in self.server.get("/metrics").body.decode().split("\n") if "finished_reason" in line]
        before = finished()
        for path, body, part in (("/api/chat", {"messages": []}, {"message": {"role": "assistant", "content": ""}}),
                                 ("/api/chat", {"keep_alive": -1, "stream": True}, {"message": {"role": "assistant", "content": ""}}),
                                 ("/api/generate", {}, {"response": ""}), ("/api/generate", {"prompt": "", "raw": True}, {"response": ""})):
            reply = self.server.post(path, body)
            self.assertEqual(reply.status, 200)
            answer = reply.json
            self.assertTrue(answer.pop("created_at") and answer.pop("model"))
            self.assertEqual(answer, {"done": True, "done_reason": "load", **part})
        for body in ({}, {"input": ""}, {"input": []}):
            self.assertEqual(self.server.post("/api/embed", body).json["embeddings"], [])
        self.assertEqual(self.server.post("/api/embeddings", {"prompt": ""}).json, {"embedding": []})
        self.assertEqual(finished(), before)

    def test_about(self):
        model, = self.server.get("/api/tags").json["models"]
        self.assertEqual((model["name"], model["details"]["family"]), ("SmolLM2-135M-Instruct.Q4_1:latest", "llama"))
        self.assertRegex(model["digest"], "^[0-9a-f]{64}$")
        self.assertEqual(self.server.get("/api/ps").json["models"][0]["name"], model["name"])
        show = self.server.post("/api/show", {"model": model["name"]}).json
        self.assertEqual(show["model_info"]["llama.embedding_length"], 576)
        self.assertIn("completion", show["capabilities"])
        self.assertRegex(self.server.get("/api/version").json["version"], r"^\d+\.\d+\.\d+$")

    def test_refusals(self):
        user = [{"role": "user", "content": "x"}]
        for path, body, status in (("/api/chat", {"messages": 1}, 400), ("/api/generate", {"prompt": 5}, 400), ("/api/chat", {"model": "llama3"}, 404),
                                   ("/api/chat", {"messages": user, "model": "llama3"}, 404), ("/api/chat", {"messages": user, "format": "xml"}, 400),
                                   ("/api/chat", {"messages": user, "options": {"temperature": "x"}}, 400),
                                   ("/api/chat", {"messages": [{"role": "user", "content": "x", "images": ["aGk="]}]}, 400),
                                   ("/api/generate", {"prompt": "x", "suffix": "y"}, 400), ("/api/generate", {"prompt": "x", "raw": "y"}, 400),
                                   ("/api/show", {"model": "llama3"}, 404), ("/api/nosuch", {}, 404), ("/api/tags", {}, 405), ("/api/embed", {"input": 1}, 400), ("/api/embeddings", {"prompt": ["a", "b"]}, 400), ("/api/chat", [], 400)):
            with self.subTest(f"{path} {body}"):
                reply = self.server.post(path, body)
                self.assertEqual((reply.status, list(reply.json)), (status, ["error"]))


class Client(Case):
    """The real package."""

    def test_all(self):
        client = ollama.Client(host=f"http://127.0.0.1:{self.server.port}")
        name = client.list().models[0].model
        fields = {"model": name, "messages": [{"role": "user", "content": "Hello"}], "options": {"temperature": 0, "num_predict": 12}}
        whole = client.chat(**fields)
        self.assertEqual("".join(part.message.content for part in client.chat(stream=True, **fields)), whole.message.content)
        self.assertTrue(client.generate(model=name, prompt="Hello", options={"num_predict": 4}).response)
        self.assertEqual(len(client.embed(model=name, input=["a", "b"]).embeddings), 2)
        self.assertEqual(len(client.embeddings(model=name, prompt="a").embedding), 576)
        self.assertEqual(client.generate(model=name).done_reason, "load")
        self.assertIn("completion", client.show(name).capabilities)
        with self.assertRaises(ollama.ResponseError):
            client.chat(model="nothing", messages=fields["messages"])
