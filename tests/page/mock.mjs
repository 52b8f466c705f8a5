// tests/page/mock.mjs - a server that answers the page as nib does, with answers that the last message asks for by a word, and
// an engine that is played. It serves the files that the build embeds, with the headers of server/page.c.
import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";

export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify";
const TYPES = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".txt": "text/plain",
};

export const RICH = `## A list, twice as fast

Reversing a **linked list** turns each \`next\` around:

\`\`\`c
/* Reverses in place; returns the new head. */
node *reverse(node *head) {
    node *before = NULL;
    while (head) {
        node *next = head->next; // 1 of 3
        head->next = before;
        before = head, head = next;
    }
    return before;
}
\`\`\`

| step | before | head |
|------|--------|------|
| 1 | NULL | a |
| 2 | a | b |

- [x] constant memory
- [ ] no recursion, see [the manual](https://example.org/list)

> Time is *linear* in the length.
`;

export const EVIL = `<script>window.pwned = 1</script><img src=x onerror="window.pwned=2"><svg onload="window.pwned=3"></svg>
<a href="javascript:window.pwned=4">click</a> [link](javascript:window.pwned=5) ![pic](https://evil.example/pixel.png)
<img src="https://evil.example/raw.png"><iframe src="https://evil.example/"></iframe><form action="https://evil.example/"><button>go</button></form>
<style>body { display: none }</style><p style="position:fixed" id="messages" class="toast shown hljs-string">styled</p>
<math><mtext><table><mglyph><style><img src=x onerror="window.pwned=6">
\`\`\`"><img src=x onerror="window.pwned=7">
</code></pre><script>window.pwned = 8</script>
\`\`\`
<details open ontoggle="window.pwned=9"><summary>more</summary>text</details>`;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const pieces = (text) => text.match(/\S*\s*/g).filter(Boolean);

// What the last message asks for: {reasoning, content, calls, delay, error}.
function script(messages) {
  const last = messages.at(-1),
    text = last.role === "user" ? last.content : "";
  if (last.role === "tool") return { content: `The tool said ${last.content}.` };
  if (text.includes("markdown")) return { content: RICH };
  if (text.includes("evil")) return { content: EVIL, reasoning: "<img src=x onerror=window.pwned=10>" };
  if (text.includes("think")) return { reasoning: "First I look at the question.\nThen I answer it.", content: "Forty-two." };
  if (text.includes("tool"))
    return { content: "", calls: [{ id: "call_1", name: "weather", arguments: '{"city":"Paris","days":2}' }] };
  if (text.includes("endless")) return { content: "again and ".repeat(5000), delay: 2 };
  if (text.includes("midway")) return { content: "So far so good", error: "the model produced NaN" };
  return { content: `Answer ${messages.length}: ${text.slice(0, 40)}` };
}

export async function start(assets, { key = null } = {}) {
  const state = { key, requests: [], aborted: 0, streams: 0, engineViews: 0, busy: false, delay: 4 };

  async function file(path, response) {
    const name = path === "/" ? "index.html" : path.slice(1);
    if (name.includes("..")) return response.writeHead(404).end();
    try {
      const body = await readFile(join(assets, name));
      response
        .writeHead(200, {
          "Content-Type": `${TYPES[extname(name)]}; charset=utf-8`,
          "Content-Security-Policy": CSP,
          "X-Content-Type-Options": "nosniff",
          "Cache-Control": "no-cache",
        })
        .end(body);
    } catch {
      response.writeHead(404).end();
    }
  }

  const json = (response, status, value) =>
    response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
  const fail = (response, status, message) =>
    json(response, status, { error: { message, type: "error", param: null, code: null } });

  async function answer(body, response) {
    state.requests.push(body);
    if (state.busy) return fail(response, 503, "256 requests are running and waiting, at most 256: try again later");
    const plan = body.continue_final_message ? { content: "the end." } : script(body.messages),
      send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
    const chunk = (delta, finish = null) =>
      send({ object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] });
    let gone = false,
      n = 0;
    response.on("close", () => {
      gone = true;
      if (!response.writableFinished) state.aborted++;
    });
    state.streams++;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    chunk({ role: "assistant" });
    for (const [name, text] of [
      ["reasoning_content", plan.reasoning ?? ""],
      ["content", plan.content],
    ])
      for (const piece of pieces(text)) {
        if (gone) return;
        n++;
        chunk({ [name]: piece });
        await sleep(plan.delay ?? state.delay);
      }
    if (plan.error) {
      send({ error: { message: plan.error, type: "server_error", param: null, code: null } });
      return response.end();
    }
    for (const [index, call] of (plan.calls ?? []).entries()) {
      chunk({ tool_calls: [{ index, id: call.id, type: "function", function: { name: call.name, arguments: "" } }] });
      for (const piece of call.arguments.match(/.{1,6}/g))
        (chunk({ tool_calls: [{ index, function: { arguments: piece } }] }), n++);
    }
    chunk({}, plan.calls ? "tool_calls" : "stop");
    send({ choices: [], usage: { prompt_tokens: 158, completion_tokens: n, prompt_tokens_details: { cached_tokens: 128 } } });
    response.end("data: [DONE]\n\n");
  }

  async function engine(response) {
    state.engineViews++;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.on("close", () => state.engineViews--);
    const play = new Engine();
    for (let i = 0; i < 160; i++) play.turn();
    for (let full = true; !response.destroyed; full = false) {
      for (let i = 0; i < 3; i++) play.turn();
      response.write(`data: ${JSON.stringify(play.event(full))}\n\n`);
      await sleep(150);
    }
  }

  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://x");
    let body = "";
    for await (const part of request) body += part;
    if (pathname === "/" || pathname.startsWith("/assets/")) return file(pathname, response);
    if (state.key && request.headers.authorization !== `Bearer ${state.key}`)
      return fail(response, 401, "Incorrect API key provided");
    if (pathname === "/v1/models")
      return json(response, 200, {
        object: "list",
        data: [{ id: "SmolLM2-135M-Instruct", object: "model", max_model_len: 8192 }],
      });
    if (pathname === "/v1/chat/completions") return answer(JSON.parse(body), response);
    if (pathname === "/tokenize")
      return json(response, 200, {
        tokens: JSON.parse(body)
          .content.match(/\w+|\W/g)
          .map((_, i) => i),
      });
    if (pathname === "/engine/events") return engine(response);
    fail(response, 404, "no such route");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  state.url = `http://127.0.0.1:${server.address().port}`;
  state.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return state;
}

// ---- an engine that is played: eight requests at most, of three kinds that begin alike, with 320 pages

class Engine {
  constructor() {
    this.n = 320;
    this.state = new Array(this.n).fill(0);
    this.link = new Array(this.n).fill(-1);
    this.users = new Array(this.n).fill(0);
    this.free = Array.from({ length: this.n }, (_, i) => this.n - 1 - i);
    this.children = new Map();
    this.requests = [];
    this.number = this.turnNumber = this.random = 0;
    this.turns = [];
    this.figures = {
      running: 0,
      waiting: 3,
      queued_tokens: 900,
      pages: this.n,
      turns: 0,
      prompt: 20000,
      reused: 14200,
      generated: 4000,
      preempted: 2,
      evicted: 31,
      refused: 0,
      last_turn_ms: 38,
      longest_turn_ms: 121,
    };
  }

  pick(n) {
    this.random = (this.random * 1103515245 + 12345) & 0x7fffffff;
    return Math.floor((this.random / 0x80000000) * n);
  }

  take(state) {
    if (!this.free.length) this.evict();
    const page = this.free.pop();
    this.state[page] = state;
    return page;
  }

  evict() {
    for (const [key, page] of [...this.children].reverse()) {
      if (this.users[page] || [...this.children.keys()].some((k) => k.startsWith(`${page}:`))) continue;
      this.children.delete(key);
      this.state[page] = 0;
      this.link[page] = -1;
      this.free.push(page);
      if (this.free.length > 20) return;
    }
  }

  begin() {
    const kind = this.pick(3),
      shared = [18, 9, 4][kind],
      own = 3 + this.pick(8);
    const r = {
      number: this.number++,
      seq: [0, 1, 2, 3, 4, 5, 6, 7].find((s) => !this.requests.some((o) => o.seq === s)),
      n_computed: 0,
      pages: [],
      page: -1,
      n_prompt: (shared + own) * 32 - this.pick(31),
      n_cached: 0,
      n_generated: 0,
      n_max: 60 + this.pick(120),
      n_preempted: this.pick(9) === 0 ? 1 : 0,
      age_ms: 0,
      ttft_ms: 0,
      keys: (i) => (i < shared ? `k${kind}` : `r${this.number - 1}`),
    };
    const number = r.number;
    r.keys = (i) => (i < shared ? `k${kind}` : `r${number}`);
    while (this.children.has(`${r.page}:${r.keys(r.pages.length)}`))
      this.hold(r, this.children.get(`${r.page}:${r.keys(r.pages.length)}`));
    r.n_cached = r.n_computed = r.pages.length * 32;
    this.requests.push(r);
  }

  hold(r, page) {
    r.pages.push(page);
    r.page = page;
    this.users[page]++;
    this.state[page] = 2;
  }

  compute(r, n) {
    r.n_computed += n;
    while (r.n_computed >= (r.pages.length + 1) * 32) {
      const key = `${r.page}:${r.keys(r.pages.length)}`;
      let page = this.children.get(key);
      if (page === undefined) {
        page = r.own ?? this.take(2);
        this.link[page] = r.page;
        this.children.set(key, page);
        this.users[page] = 0;
      } else if (r.own !== undefined) this.drop(r.own);
      r.own = undefined;
      this.hold(r, page);
    }
    if (r.n_computed > r.pages.length * 32 && r.own === undefined) {
      r.own = this.take(3);
      this.link[r.own] = r.seq;
      this.users[r.own] = 1;
    }
  }

  drop(page) {
    this.state[page] = 0;
    this.link[page] = -1;
    this.users[page] = 0;
    this.free.push(page);
  }

  end(r) {
    this.requests.splice(this.requests.indexOf(r), 1);
    for (const page of r.pages) if (--this.users[page] === 0) this.state[page] = 1;
    if (r.own !== undefined) this.drop(r.own);
  }

  turn() {
    while (this.requests.length < 3 || (this.requests.length < 8 && this.pick(12) === 0)) this.begin();
    const parts = [];
    let room = 96,
      ms = 21 + this.pick(3);
    for (const r of [...this.requests]) {
      const left = r.n_prompt - r.n_computed,
        isPrompt = left > 1,
        n = isPrompt ? Math.min(left, room) : 1;
      if (n <= 0) continue;
      parts.push(r.number, n, isPrompt ? 1 : 0);
      if (isPrompt) room -= n;
      ms += isPrompt ? n * 0.55 : 1.2;
      this.compute(r, n);
      r.age_ms += 40;
      if (r.n_computed >= r.n_prompt) r.n_generated++;
      if (r.n_generated === 1) r.ttft_ms = r.age_ms;
      if (r.n_generated >= r.n_max) this.end(r);
    }
    this.turns.push({ number: this.turnNumber++, ms, parts });
    this.figures.last_turn_ms = ms;
  }

  event(full) {
    const pages = [];
    for (let i = 0; i < this.n; i++) if (full ? this.state[i] : true) pages.push(i, this.state[i], this.users[i], this.link[i]);
    const requests = this.requests.map((r) => ({
      number: r.number,
      phase: r.n_computed < r.n_prompt - 1 ? "prefill" : "decode",
      owner: 0,
      priority: 0,
      n_prompt: r.n_prompt,
      n_cached: r.n_cached,
      n_computed: r.n_computed,
      n_generated: r.n_generated,
      n_max: r.n_max,
      n_preempted: r.n_preempted,
      seq: r.seq,
      page: r.page,
      n_pages: r.pages.length + (r.own !== undefined),
      age_ms: r.age_ms,
      ttft_ms: r.ttft_ms,
    }));
    for (let i = 0; i < 3; i++)
      requests.push({
        number: this.number + i,
        phase: "waiting",
        owner: 0,
        priority: 0,
        n_prompt: 300 + 100 * i,
        n_cached: 0,
        n_computed: 0,
        n_generated: 0,
        n_max: 100,
        n_preempted: 0,
        seq: -1,
        page: -1,
        n_pages: 0,
        age_ms: 900 - 200 * i,
        ttft_ms: 0,
      });
    const turns = this.turns;
    this.turns = [];
    this.figures.running = this.requests.length;
    return { full, page: 32, n_pages: this.n, pages, requests, turns, missed: 0, figures: this.figures };
  }
}
