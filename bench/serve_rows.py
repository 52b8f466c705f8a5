#!/usr/bin/env python3
"""What nib serve promises, measured row by row: speed, stalls, the cache, hang-ups, overload, memory.

  serve_rows.py NIB MODEL [--only ROW]... [--rounds N] [--threads N] [--peer LLAMA_SERVER] [--soak MINUTES]

Every row prints what was measured, what is wanted, and whether it holds; exit status 1 when one does not. The rows `peer` and
`soak` run only where they are asked for. Clients run on the same machine, so times hold only where nothing else does."""
import argparse
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "serve"))
from harness import CHAT, COMPLETIONS, Config, Server  # noqa: E402

PAGE, TURN_MS, GRAMMARS = 32, 100, 12
ROWS = {}
OPT = None


def row(name, promise, asked_for=False):
    def keep(function):
        ROWS[name] = (promise, function, asked_for)
        return function
    return keep


def serve(*args, **how):
    """Without guesses, which give two tokens at a time. Rows that time single tokens add "--stream-ms", 0."""
    return Server("--turn-ms", TURN_MS, "--draft-max", 0, *(["-t", OPT.threads] if OPT.threads else []), *args, **how)


def nib(*args):
    return json.loads(subprocess.run([Config.nib, *map(str, args), "--json"], capture_output=True, text=True, check=True).stdout)


def load(server, clients, requests, workload="unique", **sizes):
    """The figures of nib bench --serve."""
    url = server if isinstance(server, str) else f"http://127.0.0.1:{server.port}"
    args = [f"--{key.replace('_', '-')}={value}" for key, value in sizes.items()]
    return nib("bench", "--serve", url, "--concurrency", clients, "--requests", requests, "--workload", workload, *args)[0]


def timed(send, *args, **how):
    """A reply, and the milliseconds that it took."""
    start = time.monotonic()
    reply = send(*args, **how)
    return reply, 1e3 * (time.monotonic() - start)


def ids(n, rnd=random):
    return [rnd.randrange(1000, 20000) for _ in range(n)]


def ask(server, prompt, n, **fields):
    reply = server.post(COMPLETIONS, {"prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True, **fields}, timeout=600)
    assert reply.status == 200, reply.body[:300]
    return reply.json


class Stream(threading.Thread):
    """A streamed completion and when its pieces came."""

    def __init__(self, server, prompt, n, reads=True, key=None, **fields):
        super().__init__(daemon=True)
        self.server, self.times, self.start_s = server, [], time.monotonic()
        body = {"prompt": prompt, "max_tokens": n, "temperature": 0, "ignore_eos": True, "stream": True, **fields}
        self.socket = server.send(COMPLETIONS, body, key)
        if reads:
            self.start()

    def run(self):
        try:
            for line in self.socket.makefile("rb"):
                if line == b"data: [DONE]\n":
                    return
                if line.startswith(b"data: {"):
                    self.times.append(time.monotonic())
        except OSError:
            pass

    def ttft_ms(self):
        while not self.times and self.is_alive():
            time.sleep(0.001)
        return 1e3 * (self.times[0] - self.start_s)

    def whole_ms(self):
        """From the first piece to the last."""
        self.join()
        return 1e3 * (self.times[-1] - self.times[0])

    def token_ms(self):
        """So far, on average: tokens may come several at a time."""
        return 1e3 * (self.times[-1] - self.times[0]) / (len(self.times) - 1)

    def gaps_ms(self, since=0.0, until=float("inf")):
        return [1e3 * (b - a) for a, b in zip(self.times, self.times[1:]) if b >= since and a <= until]


def metric(server, name, key=None):
    page = server.get("/metrics", headers={"Authorization": f"Bearer {key}"} if key else None).body
    return float(re.search(rb"^nib_%s ([-\d.e+]+)" % re.escape(name.encode()), page, re.M)[1])


def status(server, field):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{field}:\s+(\d+)", f.read(), re.M)[1])


def cpu_s(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def spread(values, digits=1):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


# ---- speed

@row("T2", "a token through HTTP at 0.97 of the program's speed, at least")
def through_http():
    ratios = []
    server = serve("-c", 4096)
    threads = ["-t", OPT.threads] if OPT.threads else []
    for _ in range(4 * OPT.rounds):
        alone = nib("-m", Config.model, "-p", "Once upon a time", "-n", 120, "--temp", 0, "--ignore-eos", *threads)
        s = Stream(server, "Once upon a time", 120)
        s.join()
        ratios.append(1e3 / s.token_ms() / alone["timings"]["decode_tok_s"])
    server.stop()
    return statistics.median(ratios) >= 0.97, f"{spread(ratios, 3)} of it"


def together(streams):
    """Tokens a second while all of them are answered."""
    for s in streams:
        s.join()
    begin, end = max(s.times[0] for s in streams), min(s.times[-1] for s in streams)
    return sum(begin < t <= end for s in streams for t in s.times) / (end - begin)


@row("T3", "N answers at once: 0.8 of the lesser of N times one and a prompt of N tokens, and 8 are more than 1")
def batches():
    server, told, good = serve("-c", 16384), [], True
    threads = ["-t", OPT.threads] if OPT.threads else []
    rates = {n: [] for n in (1, 2, 4, 8, 16)}
    shares = {n: [] for n in rates}
    for _ in range(OPT.rounds):
        for n in rates:
            rates[n].append(together([Stream(server, ids(16), 160) for _ in range(n)]))
            prompt = nib("bench", "-m", Config.model, "-p", n, "-n", 0, "-d", 100, "-r", 5, *threads)[0]["mean"]
            shares[n].append(rates[n][-1] / min(n * rates[1][-1], prompt))
    for n in rates:
        told.append(f"{n}: {statistics.median(rates[n]):.0f} tok/s, {statistics.median(shares[n]):.2f}")
        good &= n == 1 or statistics.median(shares[n]) >= 0.8
    server.stop()
    return good and statistics.median(rates[8]) > statistics.median(rates[1]), "; ".join(told)


@row("T4", "16 answers: what a turn takes beside the forward pass is at most 2 % or 0.2 ms")
def beside():
    server = serve("-c", 4096)
    load(server, 16, 48, prompt_tokens=16, max_tokens=200)  # a server that has run for a while: its memory was touched
    names = ("turns_total", "turn_seconds_total", "decode_seconds_total")
    before = [metric(server, name) for name in names]
    load(server, 16, 32, prompt_tokens=16, max_tokens=200)
    turns, all_s, decode_s = (metric(server, name) - old for name, old in zip(names, before))
    server.stop()
    share, ms = 1 - decode_s / all_s, 1e3 * (all_s - decode_s) / turns
    return share <= 0.02 or ms <= 0.2, f"{100 * share:.1f} %, {ms:.3f} ms of {1e3 * all_s / turns:.1f}"


@row("plan", "unique prompts, 16 clients: 0.8 of the tokens/s that nib plan foretells for this mix of reading and answering")
def foretold():
    n_prompt, n, rates, shares = 158, 64, [], []
    server = serve("-c", 8192, "-np", 16)
    threads = ["-t", OPT.threads] if OPT.threads else []
    load(server, 16, 48, prompt_tokens=n_prompt - 30, max_tokens=n)  # a server that has run for a while: its memory was touched
    for _ in range(OPT.rounds):
        plan = nib("plan", "-m", Config.model, "-p", n_prompt, "-n", n, "--concurrency", 16, "--refresh", *threads)
        figures = load(server, 16, 48, prompt_tokens=n_prompt - 30, max_tokens=n)
        n_prompt_now = figures["prompt_tokens"] / figures["requests"]
        rates.append(figures["output_tok_s"])
        shares.append(rates[-1] * (n_prompt_now / plan["prefill_tok_s"] + n / plan["decode_tok_s"]) / n)
    server.stop()
    return statistics.median(shares) >= 0.8, f"{spread(rates, 0)} tok/s, {spread(shares, 2)} of what was foretold"


# ---- stalls

@row("L1", f"a prompt of 4000 tokens stalls running answers for 1.25 x {TURN_MS} ms and a step at most")
def stall():
    server, worst, step = serve("-c", 16384, "-np", 8), [], []
    for _ in range(OPT.rounds):
        running = [Stream(server, ids(20), 700) for _ in range(4)]
        while any(len(s.times) < 40 for s in running):
            time.sleep(0.01)
        step.append(statistics.median(s.token_ms() for s in running))
        since = time.monotonic()
        other = Stream(server, ids(4000), 2)
        other.ttft_ms()
        until = time.monotonic()
        worst.append(max(g for s in running for g in s.gaps_ms(since, until)))
        for s in [*running, other]:
            s.socket.close()
        server.until(lambda: metric(server, "requests_running") == 0)
    server.stop()
    bound = 1.25 * TURN_MS + statistics.median(step)
    return statistics.median(worst) <= bound and max(worst) <= 2 * TURN_MS, f"longest {spread(worst)} ms; bound {bound:.0f}"


@row("L3", "/health answers within 50 ms (p99) while a prompt of 8000 tokens is read")
def health():
    server, ms = serve("-c", 16384), []
    c = server.connect()
    s = Stream(server, ids(8000), 2)
    while not s.times:
        reply, took = timed(server.get, "/health", connection=c)
        assert reply.status == 200
        ms.append(took)
        time.sleep(0.01)
    server.stop()
    ms.sort()
    return ms[len(ms) * 99 // 100] <= 50, f"p99 {ms[len(ms) * 99 // 100]:.1f} ms of {len(ms)}"


@row("L4", "idle: less than 1 % of a core")
def idle():
    server = serve("-c", 4096)
    ask(server, ids(20), 20)
    before = cpu_s(server)
    time.sleep(20)
    used = cpu_s(server) - before
    server.stop()
    return used < 0.2, f"{100 * used / 20:.2f} %"


# ---- the cache

@row("P1", "the same 2048 tokens again: first token 10 times as soon, all but the last token from the cache")
def again():
    server, ratios, cached = serve("-c", 16384), [], []
    for _ in range(OPT.rounds):
        prompt = ids(2048)
        ratios.append(Stream(server, prompt, 1).ttft_ms() / Stream(server, prompt, 1).ttft_ms())
        cached.append(ask(server, prompt, 1)["usage"]["prompt_tokens_details"]["cached_tokens"])
    server.stop()
    return statistics.median(ratios) >= 10 and min(cached) == 2047, f"{spread(ratios)} times; {min(cached)} tokens"


@row("P2", "ten questions of a chat: each computes its new tokens, and the last of the answer before")
def turns():
    server, messages, over, known = serve("-c", 16384), [], [], 0
    for turn in range(10):
        messages.append({"role": "user", "content": f"Question {turn}: tell me more of the {random.choice('sea sky sun moon'.split())}."})
        reply = server.post(CHAT, {"messages": messages, "max_tokens": 40, "temperature": 0}).json
        messages.append(reply["choices"][0]["message"])
        usage = reply["usage"]
        computed = usage["prompt_tokens"] - usage["prompt_tokens_details"]["cached_tokens"]
        over.append(computed - (usage["prompt_tokens"] - known))
        known = usage["total_tokens"]
    server.stop()
    return max(over) <= 1, f"at most {max(over)} more"


# ---- the same bits

@row("D1", "1000 greedy requests under changing load, preemption and cache hits: one output for each prompt, to the bit")
def same():
    rnd, n = random.Random(1), 80  # more than the page that a request is admitted with
    prompts = [ids(rnd.randrange(5, 400), rnd) for _ in range(20)]
    for i in range(0, 20, 2):  # that begin alike
        prompts[i + 1][:150] = prompts[i][:150]
    alone = serve("-c", 2048, "-np", 1, "--no-prefix-cache")
    want = [ask(alone, p, n, logprobs=2)["choices"][0] for p in prompts]
    alone.stop()
    server, different, done = serve("-c", 640, "-np", 16, "--turn-ms", 20), [], [0]
    todo = [rnd.randrange(20) for _ in range(1000)]

    def client():
        while todo:
            time.sleep(0.2 * rnd.random() ** 4)
            try:
                i = todo.pop()
            except IndexError:
                return
            if ask(server, prompts[i], n, logprobs=2)["choices"][0] != want[i]:
                different.append(i)
            done[0] += 1
    threads = [threading.Thread(target=client) for _ in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    preempted, hits = metric(server, "preemptions_total"), metric(server, "prefix_cache_hits_tokens_total")
    server.stop()
    good = done[0] == 1000 and not different and preempted > 0 and hits > 0
    return good, f"{done[0]} requests, {len(different)} different; {preempted:.0f} preemptions, {hits:.0f} tokens from the cache"


# ---- clients that go away, and too many

@row("M1", "a hang-up while queued, reading or answering is noticed within 250 ms")
def hang_up():
    server, worst = serve("-c", 16384, "-np", 2), {}
    def running():
        return metric(server, "requests_running") + metric(server, "requests_waiting")
    for _ in range(OPT.rounds):
        for phase, prompt, others in (("reading", ids(4000), 0), ("answering", ids(20), 0), ("queued", ids(20), 2)):
            busy = [Stream(server, ids(20), 4000) for _ in range(others)]
            for s in busy:
                s.ttft_ms()
            s = Stream(server, prompt, 4000)
            time.sleep(0.3)
            assert running() == others + 1
            start = time.monotonic()
            s.socket.shutdown(2)
            while running() > others:
                time.sleep(0.001)
            worst[phase] = max(worst.get(phase, 0), 1e3 * (time.monotonic() - start))
            for b in busy:
                b.socket.shutdown(2)
            server.until(lambda: running() == 0)
    server.stop()
    return max(worst.values()) <= 250, ", ".join(f"{phase} {ms:.0f} ms" for phase, ms in worst.items())


@row("M4", "a prompt that is too long is refused within 50 ms")
def too_long():
    server, ms = serve("-c", 2048), []
    for _ in range(20):
        reply, took = timed(server.post, COMPLETIONS, {"prompt": "word " * 200000, "max_tokens": 5})
        assert reply.status == 400 and reply.json["error"]["code"] == "context_length_exceeded", reply.body[:300]
        ms.append(took)
    server.stop()
    return statistics.median(ms) <= 50, f"{spread(ms)} ms for 1 MB"


@row("M5", f"pages of {PAGE}: 4 % of their positions are empty at most, at a mean length of {13 * PAGE}")
def waste():
    server, shares, lengths = serve("-c", 32768, "-np", 16), [], []
    prompts = [ids(random.randrange(4 * PAGE, 14 * PAGE)) for _ in range(16)]
    running = [Stream(server, p, 1000) for p in prompts]
    while any(not s.times for s in running):
        time.sleep(0.01)
    while not lengths or lengths[-1] < 18 * PAGE:
        before = [len(s.times) for s in running]
        used = metric(server, 'kv_pages{state="used"}')
        n_tokens = sum(len(p) + (old + len(s.times)) / 2 for p, old, s in zip(prompts, before, running))
        lengths.append(n_tokens / len(running))
        shares.append(1 - n_tokens / (used * PAGE))
        time.sleep(0.1)
    for s in running:
        s.socket.close()
    server.stop()
    shares = [x * n / (13 * PAGE) for x, n in zip(shares, lengths)]  # what is empty does not grow with the length
    return statistics.mean(shares) <= 0.04, f"{100 * statistics.mean(shares):.1f} %, measured at {spread(lengths, 0)} tokens each"


@row("M6", "memory at idle and at full load is what the server said, within 5 %")
def memory():
    server = serve("-c", 8192, "-np", 16)
    now, most = (float(x) for x in re.search(rb"memory: (\d+) MiB now.*? up to (\d+) in use", server.text()).groups())
    rss = status(server, "VmRSS") / 1024
    load(server, 16, 64, prompt_tokens=380, max_tokens=100)
    full = status(server, "VmHWM") / 1024
    server.stop()
    return abs(rss / now - 1) <= 0.05 and full <= 1.05 * most, f"idle {rss:.0f} MiB of {now:.0f}; full load {full:.0f} of {most:.0f}"


@row("O1", "three times as many clients more than there are places: refused within 10 ms (p99), and the others lose nothing (0.95)")
def overload():
    """The clients that are refused take turns in one thread, as if each came again after a quarter of a second."""
    n_places, n_more = 8, 24
    server = serve("-c", 16384, "-np", n_places, "--max-requests", n_places)
    shares, ms = [], []
    for _ in range(OPT.rounds):
        rates = []
        for is_crowded in (False, True):
            before, stop = metric(server, "generation_tokens_total"), time.monotonic() + 8

            def client():
                c = server.connect()
                while time.monotonic() < stop:
                    body = {"prompt": ids(60), "max_tokens": 40, "temperature": 0, "ignore_eos": True}
                    if server.post(COMPLETIONS, body, connection=c).status == 503:  # another one has its place
                        time.sleep(0.02)
            threads = [threading.Thread(target=client) for _ in range(n_places)]
            for t in threads:
                t.start()
            others = [server.connect() for _ in range(n_more)] if is_crowded else []
            while others and time.monotonic() < stop - 0.5:
                time.sleep(0.25 / n_more)
                others.append(others.pop(0))
                reply, took = timed(server.post, COMPLETIONS, {"prompt": "x", "max_tokens": 1}, connection=others[-1])
                if reply.status == 200:  # a place was free
                    continue
                assert reply.status == 503 and int(reply.headers["retry-after"]) >= 1 and reply.json["error"]["code"], reply.body
                ms.append(took)
            for t in threads:
                t.join()
            rates.append(metric(server, "generation_tokens_total") - before)
        shares.append(rates[1] / rates[0])
    server.stop()
    ms.sort()
    p99 = ms[len(ms) * 99 // 100]
    return p99 <= 10 and statistics.median(shares) >= 0.95, f"{len(ms)} refused, p99 {p99:.1f} ms; {spread(shares, 2)} of the work"


@row("O2", "a client that stops reading costs others less than 5 %")
def slow_reader():
    server, ratios = serve("-c", 16384, "--timeout", 60), []
    for _ in range(OPT.rounds):
        gaps = []
        for reads in (True, False):
            streams = [Stream(server, ids(20), 300, reads or i > 0) for i in range(4)]
            for s in streams[1:]:
                s.join()
            gaps.append(statistics.median(s.token_ms() for s in streams[1:]))
            streams[0].socket.close()
        ratios.append(gaps[1] / gaps[0])
    server.stop()
    return statistics.median(ratios) < 1.05, f"{spread(ratios, 3)} of the time of a token"


@row("O4", "one request beside 32 long ones of another key: first token within twice its time alone and a turn")
def fairness():
    server, alone, beside = serve("-c", 32768, "--api-key", "a", "--api-key", "b"), [], []

    def asker(key, n_prompt, n):
        return Stream(server, ids(n_prompt), n, key=key)
    for _ in range(OPT.rounds):
        s = asker("b", 100, 4)
        alone.append(s.ttft_ms())
        others = [asker("a", 100, 400) for _ in range(32)]
        while sum(bool(o.times) for o in others) < 16:
            time.sleep(0.01)
        s = asker("b", 100, 4)
        beside.append(s.ttft_ms())
        for o in others:
            o.socket.shutdown(2)
        server.until(lambda: metric(server, "requests_running", "a") + metric(server, "requests_waiting", "a") == 0)
    server.stop()
    return statistics.median(beside) <= 2 * statistics.median(alone) + TURN_MS, f"alone {spread(alone, 0)} ms, beside others {spread(beside, 0)}"


@row("S2", "guesses: 1.5 times as fast where a text is copied, if the machine reads 4 tokens in the time of one; 0.97 at least where one is invented")
def guesses():
    """How many tokens cost what one does, as reading the weights takes that long: tokens/s of a prompt of 16 by those of an answer."""
    threads = ["-t", OPT.threads] if OPT.threads else []
    ridges = []
    for _ in range(OPT.rounds):
        many, one = (t["mean"] for t in nib("bench", "-m", Config.model, "-p", 16, "-n", 64, "-r", 3, *threads))
        ridges.append(many / one)
    ridge = statistics.median(ridges)
    told, good = [f"{ridge:.1f} tokens in the time of one"], True
    text = " ".join(f"{random.choice('red blue old new big'.split())} {random.choice('fox cat tree house road'.split())} {i}," for i in range(40))
    kinds = {"copied": (f"{text}\n{text}\n", {"temperature": 0}, 1.5),  # what stands there once a small model does not copy
             "invented": ("Once upon a time in a far country", {"temperature": 1.0}, 0.97)}
    without, with_guesses = serve("-c", 8192), serve("-c", 8192, "--draft-max", 8)
    for kind, (prompt, fields, least) in kinds.items():
        ratios = []
        for i in range(4 * OPT.rounds):
            ms = [Stream(server, prompt, 160, seed=i, **fields).whole_ms() for server in (without, with_guesses)]
            ratios.append(ms[0] / ms[1])
        good &= statistics.median(ratios) >= least or (kind == "copied" and ridge < 4)
        told.append(f"{kind} {spread(ratios, 2)}")
    without.stop()
    with_guesses.stop()
    return good, ", ".join(told)


# ---- asked for

@row("peer", "16 clients against llama-server: unique prompts 2 x tokens/s and 0.5 x TTFT, a shared prefix 4 x and 0.15 x; "
     "1, 4 and 8 clients no worse; turn 4 within 1.3 of turn 1", asked_for=True)
def peer():
    threads = OPT.threads or os.cpu_count()
    server, port = serve("-c", 32768, "-np", 16), free_port()
    other = subprocess.Popen([OPT.peer, "-m", Config.model, "--port", str(port), "-t", str(threads), "-c", "32768", "-np", "16"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        until_healthy(url, other)
        few = {f"{n} at once": (n, 2 * n, "unique", {"prompt_tokens": 128}) for n in (1, 4, 8)}
        runs = {**few, "unique": (16, 32, "unique", {"prompt_tokens": 128}), "shared": (16, 32, "shared-prefix", {"prompt_tokens": 32}),
                "turns": (2, 32, "multi-turn", {"prompt_tokens": 64, "max_tokens": 48})}
        text = ask(server, ids(20), 48)["choices"][0]["text"]
        if abs(len(tokens_of(server, text)) - 48) > 4:  # random weights write no words, but pieces that are cut otherwise when they come back
            runs["turns"][3]["extra_body"] = json.dumps({"logit_bias": {token: 100 for token in words(server)}})
        got = {(who, name): [] for who in ("nib", "peer") for name in runs}
        for _ in range(OPT.rounds):
            for name, (clients, requests, workload, sizes) in runs.items():
                for who, where in (("nib", server), ("peer", url)):
                    got[who, name].append(load(where, clients, requests, workload, **sizes))
    finally:
        other.kill()
        other.wait()
        server.stop()
    good, told = True, []
    for name, least, most in (*((name, 1, 1) for name in few), ("unique", 2, 0.5), ("shared", 4, 0.15)):
        pairs = list(zip(got["nib", name], got["peer", name]))
        speed = [a["output_tok_s"] / b["output_tok_s"] for a, b in pairs]
        ttft = [a["ttft_ms"]["p50"] / b["ttft_ms"]["p50"] for a, b in pairs]
        told.append(f"{name}: {spread([a['output_tok_s'] for a, _ in pairs], 0)} against {spread([b['output_tok_s'] for _, b in pairs], 0)} tok/s, "
                    f"{spread(speed)} x; TTFT {spread([a['ttft_ms']['p50'] for a, _ in pairs], 0)} against "
                    f"{spread([b['ttft_ms']['p50'] for _, b in pairs], 0)} ms, {spread(ttft, 3)} x")
        good &= statistics.median(speed) >= least and statistics.median(ttft) <= most
    growth = {who: [r["ttft_ms_by_turn"][3] / r["ttft_ms_by_turn"][0] for r in got[who, "turns"]] for who in ("nib", "peer")}
    told.append(f"turn 4 of turn 1: {spread(growth['nib'], 2)} against {spread(growth['peer'], 2)}")
    return good and statistics.median(growth["nib"]) <= 1.3, "\n        ".join(told)


def tokens_of(server, text):
    return server.post("/tokenize", {"content": text, "add_special": False}).json["tokens"]


def words(server):
    """Ids of whole words with the space before them. Text of these alone is cut into the same ids when it comes back."""
    text = "time year people way day man thing woman life child world school state family student group country problem hand part"
    found = [tokens_of(server, " " + word) for word in text.split()]
    return [tokens[0] for tokens in found if len(tokens) == 1]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until_healthy(url, process):
    for _ in range(600):
        try:
            with urllib.request.urlopen(url + "/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
        if process.poll() is not None:
            sys.exit(f"serve_rows.py: {OPT.peer} ended with {process.returncode}")
    sys.exit(f"serve_rows.py: {OPT.peer} does not become ready")


@row("soak", "16 clients, a fifth of them hang up, some ask nonsense: no page, descriptor or memory is lost (1 % after the first third)",
     asked_for=True)
def soak():
    server = serve("-c", 8192, "-np", 16)
    texts, counts = [ids(random.randrange(1, 600)) for _ in range(200)], {}

    def listed(n):
        schema = {"type": "array", "items": {"enum": [n % GRAMMARS, "x"]}}
        return server.post(COMPLETIONS, {"prompt": "A list:", "max_tokens": n, "guided_json": schema}, timeout=600).status
    for n in range(120, 120 + 8 * GRAMMARS):  # what is kept is kept from the beginning: every page, grammars and their masks
        listed(n)
    load(server, 16, 48, prompt_tokens=200, max_tokens=100)
    end = time.monotonic() + 60 * OPT.soak

    def client():
        while time.monotonic() < end:
            prompt, n, kind = random.choice(texts), random.randrange(1, 120), random.random()
            if kind < 0.05:
                reply = server.post(COMPLETIONS, random.choice([b"{", {"prompt": 7.5}, {"prompt": "x", "n": -1}, {"prompt": ids(20000)},
                                                                {"prompt": "x", "guided_regex": "(?=a)"}]), timeout=600)
                result = reply.status
            elif kind < 0.25:
                s = Stream(server, prompt, n)
                time.sleep(0.3 * random.random())
                s.socket.shutdown(2)
                s.join()
                s.socket.close()
                result = "hung up"
            elif kind < 0.35:
                result = listed(n)
            else:
                reply = server.post(COMPLETIONS, {"prompt": prompt, "max_tokens": n, "ignore_eos": True, "n": random.choice([1, 1, 1, 2])}, timeout=600)
                result = reply.status
            counts[result] = counts.get(result, 0) + 1
    threads = [threading.Thread(target=client) for _ in range(16)]
    for t in threads:
        t.start()
    time.sleep(20 * OPT.soak)
    first = status(server, "VmRSS")
    for t in threads:
        t.join()
    last = status(server, "VmRSS")
    server.until(lambda: metric(server, "requests_running") + metric(server, "requests_waiting") == 0)
    pages = [float(x) for x in re.findall(rb'^nib_kv_pages\{state="(?:free|cached)"\} (\S+)', server.get("/metrics").body, re.M)]
    used = float(re.search(rb'^nib_kv_pages\{state="used"\} (\S+)', server.get("/metrics").body, re.M)[1])
    files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    fresh = serve("-c", 8192, "-np", 16)
    fresh.get("/health")
    files -= len(os.listdir(f"/proc/{fresh.process.pid}/fd"))
    fresh.stop()
    ended = server.stop()
    good = last <= 1.01 * first and used == 0 and len(pages) == 2 and files <= 0 and ended == 0 and not counts.get(500)
    return good, f"{counts}; {first / 1024:.1f} MiB, then {last / 1024:.1f}; {used:.0f} pages in use; {files:+d} descriptors; exit {ended}"


def main():
    global OPT
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("nib")
    p.add_argument("model")
    p.add_argument("--only", action="append", choices=ROWS)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--peer", metavar="LLAMA_SERVER")
    p.add_argument("--soak", type=float, default=0, metavar="MINUTES")
    OPT = p.parse_args()
    Config.nib, Config.model = os.path.abspath(OPT.nib), os.path.abspath(OPT.model)
    failed = 0
    with tempfile.TemporaryDirectory(prefix="nib-rows-") as Config.scratch:
        for name, (promise, function, asked_for) in ROWS.items():
            if (OPT.only and name not in OPT.only) or (asked_for and not getattr(OPT, name)):
                continue
            good, told = function()
            failed += not good
            print(f"{'ok    ' if good else 'MISSED'}  {name}: {promise}\n        {told}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
