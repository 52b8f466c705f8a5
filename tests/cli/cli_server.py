"""nib chat --server and nib bench --serve: what they send, and what they make of all that may come back. The real server:
tests/serve/serve_client.py."""
import json
import os
import re
import signal
import socket
import time

from fake_server import Server, chunk, cut, said, slowly
from harness import Case, Config

USAGE = {"prompt_tokens": 30, "completion_tokens": 2, "total_tokens": 32, "prompt_tokens_details": {"cached_tokens": 24}}


class Remote(Case):
    def serve(self, *answers, **how):
        server = Server(*answers, **how)
        self.addCleanup(server.close)
        return server

    def chat(self, server, *args, **how):
        return self.nib("chat", "--server", server.url, *args, **how)

    def file(self, name, content):
        path = os.path.join(Config.scratch, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(content if isinstance(content, str) else json.dumps(content))
        return path


class Requests(Remote):
    def test_only_what_was_given(self):
        server = self.serve(said("Hi"))
        self.chat(server, "-p", "Hello")
        self.assertEqual(server.requests[0], {"messages": [{"role": "user", "content": "Hello"}], "model": "fake", "stream": True,
                                              "stream_options": {"include_usage": True}})
        self.assertEqual(server.paths, ["/v1/models", "/v1/chat/completions"])

    def test_options(self):
        server = self.serve(said("Hi"))
        tools = [{"type": "function", "function": {"name": "now"}}]
        self.chat(server, "-p", "x", "--system", "Be brief.", "--temp", 0.2, "-n", 7, "-s", 3, "--top-k", 9, "-r", "END", "-l", "5-inf",
                  "--repeat-penalty", 1.5, "--ignore-eos", "--reasoning", "off", "--tools", self.file("tools.json", tools),
                  "--chat-template-kwargs", '{"a": 1}', "-m", "other")
        want = {"temperature": 0.2, "max_tokens": 7, "seed": 3, "top_k": 9, "stop": ["END"], "logit_bias": {"5": -100},
                "repeat_penalty": 1.5, "ignore_eos": True, "chat_template_kwargs": {"a": 1, "enable_thinking": False},
                "tools": tools, "model": "other"}
        got = server.requests[0]
        self.assertEqual({k: got[k] for k in want}, want)
        self.assertEqual([m["role"] for m in got["messages"]], ["system", "user"])

    def test_numbers_stay_what_they_are(self):
        server = self.serve(said("Hi"))
        schema = {"enum": [123456789.5, 0.1, 3.14159265358979, 0.30000000000000004]}
        self.chat(server, "-p", "x", "--temp", 0.7, "--json-schema", json.dumps(schema))
        self.assertEqual(server.requests[0]["response_format"]["json_schema"]["schema"], schema)
        self.assertEqual(server.requests[0]["temperature"], 0.7)

    def test_defaults_that_are_typed(self):
        server = self.serve(said("Hi"))
        self.chat(server, "-p", "x", "-s", -1, "-n", -1)
        self.assertNotIn("seed", server.requests[0])
        self.assertNotIn("max_tokens", server.requests[0])

    def test_keys(self):
        server = self.serve(said("Hi"))
        self.chat(server, "-p", "x", "--api-key", "k1")
        self.chat(server, "-p", "x", "--api-key-file", self.file("key", "# mine\nk2\nk3\n"))
        self.assertEqual(server.keys, ["Bearer k1", "Bearer k2"])
        self.usage("chat", "--server", server.url, "-p", "x", "--api-key", "a\nb", says="control character")
        self.usage("chat", "--server", server.url, "-p", "x", "--api-key-file", self.file("none", "#\n"), says="no key")

    def test_urls(self):
        server = self.serve(said("Hi"))
        for end in ("/", "/v1", "/v1/", "/deep/v1"):
            self.nib("chat", "--server", server.url + end, "-p", "x")
        self.assertEqual(server.paths[1::2], ["/v1/chat/completions"] * 3 + ["/deep/v1/chat/completions"])
        self.assertEqual(self.nib("chat", "--server", server.url[7:], "-p", "x").out, "Hi\n")
        for url in ("ftp://x", "http://", "http://a:b", "http://a?b", "http://u@h", "http://a b"):
            self.usage("chat", "--server", url, "-p", "x", says=url)
        self.assertIn("https", self.nib("chat", "--server", "https://a", "-p", "x", code=1).err)

    def test_what_needs_a_model_here(self):
        for args in (("-c", 100), ("-t", 1), ("--samplers", "top_k"), ("--chat-template", "chatml"), ("--logits-hash",),
                     ("--overflow", "stop"), ("--permissive",)):
            self.usage("chat", "--server", "http://127.0.0.1:1", "-p", "x", *args, says="for a model of this machine")

    def test_what_needs_a_server(self):
        self.usage("chat", "-m", self.model, "-p", "x", "--api-key", "k", says="--api-key needs --server")
        self.usage("bench", "-m", self.model, "--concurrency", 2, says="--concurrency needs --serve")
        for args in (("-p", 8), ("--threads", 1), ("--type", "F16")):
            self.usage("bench", "--serve", "http://127.0.0.1:1", *args, says="with --serve leave it out")

    def test_model_that_is_not_listed(self):
        server = self.serve(said("Hi"), models=None)
        self.assertEqual(self.chat(server, "-p", "x", "-m", "mine").out, "Hi\n")
        self.assertIn("no such page", self.chat(server, "-p", "x", code=1).err)
        self.assertIn("-m names one", self.chat(self.serve(said("Hi"), models=()), "-p", "x", code=1).err)


class Answers(Remote):
    def test_json(self):
        server = self.serve([chunk({"role": "assistant", "content": ""}), chunk({"reasoning_content": "Hm"}), *said("Hé", "llo", usage=USAGE)])
        r = self.chat(server, "-p", "x", "--json").json
        self.assertEqual(r["message"], {"role": "assistant", "content": "Héllo", "reasoning_content": "Hm"})
        self.assertEqual((r["finish_reason"], r["model"], r["server"]), ("stop", "fake", server.url))
        self.assertEqual(r["usage"]["prompt_tokens_details"]["cached_tokens"], 24)
        self.assertEqual((r["usage"]["completion_tokens"], r["usage"]["completion_tokens_details"]["reasoning_tokens"]), (2, 1))
        self.assertIn("24 reused", self.chat(server, "-p", "x", "--stats").err)

    def test_no_usage(self):
        self.assertEqual(self.chat(self.serve(said("a", "b", "c")), "-p", "x", "--json").json["usage"]["completion_tokens"], 3)

    def test_calls_in_parts(self):
        def part(**call):
            return chunk({"tool_calls": [call]})
        server = self.serve([part(index=0, id="c1", type="function", function={"name": "now", "arguments": ""}),
                             part(index=0, function={"arguments": '{"a":'}), part(index=0, function={"arguments": "1}"}),
                             part(index=1, id="c2", function={"name": "then", "arguments": "{}"}), chunk(finish="tool_calls")])
        r = self.chat(server, "-p", "x", "--json").json
        self.assertEqual(r["finish_reason"], "tool_calls")
        self.assertEqual([(c["id"], c["function"]["name"], c["function"]["arguments"]) for c in r["message"]["tool_calls"]],
                         [("c1", "now", '{"a":1}'), ("c2", "then", "{}")])
        self.assertEqual(json.loads(self.chat(server, "-p", "x").out)[1]["id"], "c2")

    def test_whole_though_a_stream_was_asked_for(self):
        body = {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}], "usage": USAGE}
        self.assertEqual(self.chat(self.serve((200, body)), "-p", "x").out, "Hi\n")

    def test_session(self):
        server = self.serve(said("Ada."))
        path = os.path.join(Config.scratch, "remote.nib")
        self.chat(server, "--session", path, "-p", "one")
        self.chat(server, "--session", path, "-p", "two")
        self.assertEqual([m["content"] for m in server.requests[1]["messages"]], ["one", "Ada.", "two"])
        with open(path, encoding="utf-8") as f:
            self.assertEqual(len(json.loads(f.read())["messages"]), 4)


class Faults(Remote):
    def test_refusals(self):
        error = {"error": {"message": "top_p is 7", "type": "invalid_request_error"}}
        for answer, says in (((400, error), "refused (400): top_p is 7"),
                             ((503, error, {"Retry-After": "9"}), "try again in 9 s"),
                             ((401, {"detail": "who are you"}), "refused (401): who are you"),
                             ((500, b"oops"), "refused (500): oops"), ((502, b""), "no reason given")):
            r = self.chat(self.serve(answer), "-p", "x", code=1)
            self.assertIn(says, r.err)
            self.assertEqual(r.out, "")

    def test_no_server(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        self.assertIn("Connection refused", self.nib("chat", "--server", f"http://127.0.0.1:{port}", "-p", "x", code=1).err)
        self.assertIn("cannot find the host", self.nib("chat", "--server", "http://nowhere.invalid", "-p", "x", code=1).err)

    def test_the_middle(self):
        for then, says in ((cut, "in the middle"),
                           (lambda h: h.event({"error": {"message": "out of pages"}}), "gave up: out of pages"),
                           (lambda h: h.event(b"{nonsense"), "not JSON"),
                           (lambda h: h.wfile.write(b"zz\r\n"), "damaged"),
                           (lambda h: h.end(), "ends before")):
            path = os.path.join(Config.scratch, "middle.nib")
            r = self.chat(self.serve(slowly("Once", " upon", then=then)), "-p", "x", "--session", path, code=1)
            self.assertIn(says, r.err)
            self.assertEqual(r.out, "Once upon")

    def test_not_http(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        p = self.spawn("chat", "--server", f"http://127.0.0.1:{listener.getsockname()[1]}", "-p", "x", stderr=-1, stdout=-1)
        connection, _ = listener.accept()
        connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
        self.assertIn(b"does not speak HTTP", p.communicate(timeout=20)[1])
        connection.close()

    def test_silence(self):
        r = self.chat(self.serve(lambda h: time.sleep(4)), "-p", "x", "--timeout", 1, code=1)
        self.assertIn("for 1 seconds", r.err)

    def test_interrupted(self):
        server = self.serve(slowly("Once"))
        path = os.path.join(Config.scratch, "interrupted.nib")
        p = self.spawn("chat", "--server", server.url, "-p", "x", "--session", path, stdout=-1, stderr=-1)
        self.assertEqual(p.stdout.read(4), b"Once")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(10), 130)
        with open(path, encoding="utf-8") as f:
            self.assertTrue(json.load(f)["messages"][1]["content"].startswith("Once"))


class Bench(Remote):
    def test_json(self):
        server = self.serve(said("a", "b", "c", usage=USAGE))
        levels = self.nib("bench", "--serve", server.url, "--concurrency", "1,3", "--requests", 6, "--json").json
        self.assertEqual([(r["concurrency"], r["requests"], r["failed"]) for r in levels], [(1, 6, 0), (3, 6, 0)])
        for r in levels:
            self.assertEqual((r["prompt_tokens"], r["cached_tokens"], r["output_tokens"]), (180, 144, 12))
            for kind in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
                self.assertLessEqual(r[kind]["p50"], r[kind]["p90"])
                self.assertLessEqual(r[kind]["p99"], r[kind]["max"])
        first = {r["messages"][-1]["content"][:20] for r in server.requests}
        self.assertEqual(len(first), len(server.requests))
        self.assertLess(server.n_connections, 8)

    def test_workloads(self):
        server = self.serve(said("a", "b", usage=USAGE))
        self.nib("bench", "--serve", server.url, "--workload", "shared-prefix", "--requests", 4)
        asked = server.requests[2:]
        self.assertEqual(len({r["messages"][0]["content"] for r in asked}), 1)
        self.assertEqual(len({r["messages"][1]["content"] for r in asked}), 4)
        del server.requests[:]
        r = self.nib("bench", "--serve", server.url, "--workload", "multi-turn", "--turns", 3, "--requests", 4, "--json").json[0]
        self.assertEqual((r["requests"], len(r["ttft_ms_by_turn"])), (6, 3))
        self.assertEqual([len(q["messages"]) for q in server.requests[2:]], [1, 3, 5] * 2)
        self.assertEqual(server.requests[3]["messages"][:1], server.requests[2]["messages"])

    def test_extra_body(self):
        server = self.serve(said("a", "b", usage=USAGE))
        self.nib("bench", "--serve", server.url, "--requests", 2, "--extra-body", '{"temperature": 0.5, "logit_bias": {"7": 100}}')
        for r in server.requests:
            self.assertEqual((r["temperature"], r["logit_bias"], r["ignore_eos"]), (0.5, {"7": 100}, True))
        for bad in ("[]", "{", '{"a":1}x'):
            self.assertIn("--extra-body: ", self.nib("bench", "--serve", server.url, "--extra-body", bad, code=2).err)

    def test_table(self):
        r = self.nib("bench", "--serve", self.serve(said("a", "b", usage=USAGE)).url, "--requests", 2)
        self.assertRegex(r.out, re.compile(r"^ +1 +2 .* 80.0 %  TTFT ", re.M))

    def test_failures(self):
        good, bad = said("a", "b", usage=USAGE), (503, {"error": {"message": "full"}})
        r = self.nib("bench", "--serve", self.serve(good, good, good, bad, good).url, "--requests", 4, code=1)
        self.assertIn("refused (503): full", r.err)
        self.assertIn("1 of 4 requests failed", r.err)
        r = self.nib("bench", "--serve", self.serve(said("a", finish=None)).url, "--requests", 1, code=1)
        self.assertIn("ends before the model's", r.err)

    def test_usage(self):
        self.usage("bench", "--serve", "http://a", "--concurrency", 0, says="from 1 to 4096")
        self.usage("bench", "--serve", "http://a", "--workload", "odd", says="multi-turn")
