"""GET /metrics: the text format, and figures that add up."""
import json
import os
import re
import shutil
import subprocess
import time

from harness import CHAT, FOLDER, PATIENCE, Case

LINE = re.compile(r'(nib_[a-z0-9_]+)(\{(?:[a-z_]+="(?:[^"\\]|\\.)*",?)+\})? (\S+)$')


def parse(text):
    """{name: {labels: value}}, and the types; fails on lines that are none."""
    values, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in types, name
            types[name] = kind
        elif not line.startswith("# HELP "):
            found = LINE.match(line)
            assert found, line
            values.setdefault(found[1], {})[found[2] or ""] = float(found[3])
    return values, types


class Metrics(Case):
    def get(self, server):
        reply = server.get("/metrics")
        self.assertEqual((reply.status, reply.headers["content-type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        return parse(reply.body.decode())

    def until(self, server, condition):
        end = time.monotonic() + PATIENCE
        while not condition(values := self.get(server)[0]):
            self.assertLess(time.monotonic(), end, values)
            time.sleep(0.02)
        return values

    def test_sums(self):
        server = self.spawn("-c", 2048, "--max-requests", 4)
        before, types = self.get(server)
        text = "Tell me of the sea. " * 10
        first, second = self.chat(text, server, max_tokens=5), self.chat(text, server, max_tokens=1)
        self.chat("Hello", server, n=2, max_tokens=3, stream=True)
        self.assertEqual(server.post("/v1/embeddings", {"input": ["a", "b"]}).status, 200)
        self.assertEqual(server.post(CHAT, {"messages": []}).status, 400)
        self.assertEqual(server.post(CHAT, {"messages": [{"role": "user", "content": "x " * 5000}]}).status, 400)
        self.assertEqual(server.get("/nothing").status, 404)
        server.open_stream(CHAT, {"messages": [{"role": "user", "content": "Hi"}], "ignore_eos": True}).close()
        values = self.until(server, lambda v: v["nib_requests_running"][""] == 0 and '{reason="client"}' in v.get("nib_requests_aborted_total", {}))
        self.assertEqual(values["nib_requests_rejected_total"], {'{reason="invalid_request"}': 1, '{reason="context_length_exceeded"}': 1})
        self.assertEqual(values["nib_request_success_total"], {'{finished_reason="length"}': 4, '{finished_reason="stop"}': 2})
        self.assertEqual(values["nib_requests_aborted_total"], {'{reason="client"}': 1})
        self.assertEqual(values["nib_http_requests_total"]['{code="404"}'], 1)
        self.assertEqual(values["nib_http_requests_total"]['{code="400"}'], 2)
        by_source = values["nib_prompt_tokens_by_source_total"]
        self.assertEqual(sum(by_source.values()), values["nib_prompt_tokens_total"][""])
        cached = sum(a["usage"]["prompt_tokens_details"]["cached_tokens"] for a in (first, second))
        self.assertGreater(cached, 0)
        self.assertEqual(by_source['{source="cached"}'], values["nib_prefix_cache_hits_tokens_total"][""])
        self.assertGreaterEqual(by_source['{source="cached"}'], cached)
        pages = values["nib_kv_pages"]
        self.assertEqual(sum(pages.values()), sum(before["nib_kv_pages"].values()))
        self.assertEqual(pages['{state="used"}'], 0)
        self.assertEqual(values["nib_time_to_first_token_seconds_count"][""], 6)
        self.assertEqual(values["nib_request_generation_tokens_sum"][""], 5 + 1 + 3 + 3)
        self.assertEqual(values["nib_request_prompt_tokens_count"][""], 5)
        self.assertEqual(values["nib_time_per_output_token_seconds_count"][""], 3)
        self.assertGreaterEqual(values["nib_inter_token_latency_seconds_count"][""], 4 + 2 + 2)
        for name, kind in types.items():
            if kind == "counter":
                for labels, value in values.get(name, {}).items():
                    self.assertGreaterEqual(value, before.get(name, {}).get(labels, 0), name)
            if kind == "histogram":
                buckets = list(values[name + "_bucket"].values())
                self.assertEqual(buckets, sorted(buckets), name)
                self.assertEqual(buckets[-1], values[name + "_count"][""], name)

    def test_overload_is_counted(self):
        server = self.spawn("-c", 2048, "--max-requests", 1)
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1500, "ignore_eos": True}
        with server.open_stream(CHAT, body):
            self.assertEqual(server.post(CHAT, body).status, 503)
            values = self.until(server, lambda v: v["nib_requests_running"][""] == 1)
            self.assertEqual(values["nib_requests_rejected_total"], {'{reason="queue_full"}': 1})

    def test_a_name_is_escaped(self):
        server = self.spawn("-c", 512, "--alias", 'a "b" \\ c')
        self.assertIn('model_name="a \\"b\\" \\\\ c"', server.get("/metrics").body.decode())
        parse(server.get("/metrics").body.decode())

    def test_promtool(self):
        promtool = shutil.which("promtool") or os.environ.get("PROMTOOL")
        if not promtool:
            self.skipTest("promtool is not there")
        run = subprocess.run([promtool, "check", "metrics"], input=self.server.get("/metrics").body, capture_output=True)
        self.assertEqual((run.returncode, run.stdout + run.stderr), (0, b""))

    def test_dashboard_asks_what_there_is(self):
        with open(os.path.join(FOLDER, "..", "..", "docs", "grafana.json"), encoding="utf-8") as f:
            dashboard = json.load(f)
        self.chat()
        _, types = self.get(self.server)
        names = set(types) | {n + s for n, kind in types.items() if kind == "histogram" for s in ("_bucket", "_sum", "_count")}
        asked = {n for p in dashboard["panels"] for t in p.get("targets", []) for n in re.findall(r"nib_[a-z0-9_]+", t["expr"])}
        self.assertGreater(len(asked), 15)
        self.assertEqual(asked - names, set())
