// server/page/engine-state.js - what the engine's events say, kept: pages, requests, turns, rates. Pure data.
//
// An event: {full, page, n_pages, pages: [i, state, users, link, …] of those that changed, requests: [{number, phase, …}],
// turns: [{number, ms, parts: [request, tokens, is_prompt, …]}], missed, figures}. link: in the tree the page before (-1: none),
// of a request's own page its sequence.

export const FREE = 0,
  CACHED = 1,
  PINNED = 2,
  OWN = 3;
const KEPT_TURNS = 400,
  KEPT_SECONDS = 60,
  WINDOW = 2; // seconds that a rate is taken over

export class EngineState {
  constructor() {
    this.nPages = 0;
    this.pageSize = 32;
    this.reach = 0; // one more than the highest page that was in use
    this.requests = [];
    this.turns = [];
    this.samples = []; // {t, prompts, answers}: tokens in all
    this.rates = []; // {t, prompts, answers}: tokens/s
    this.totals = { prompts: 0, answers: 0 };
    this.figures = null;
  }

  apply(event, now) {
    if (event.full || event.n_pages !== this.nPages) {
      this.nPages = event.n_pages;
      this.pageSize = event.page;
      this.state = new Uint8Array(this.nPages);
      this.users = new Uint32Array(this.nPages);
      this.link = new Int32Array(this.nPages).fill(-1);
    }
    for (let i = 0; i < event.pages.length; i += 4) {
      const [page, state, users, link] = event.pages.slice(i, i + 4);
      this.state[page] = state;
      this.users[page] = users;
      this.link[page] = link;
      if (state !== FREE) this.reach = Math.max(this.reach, page + 1);
    }
    this.requests = event.requests;
    this.figures = event.figures;
    for (const turn of event.turns) this.takeTurn(turn);
    if (this.turns.length > KEPT_TURNS) this.turns.splice(0, this.turns.length - KEPT_TURNS);
    this.takeRates(now);
    this.findHolders();
  }

  takeTurn({ number, ms, parts }) {
    if (!parts.length) return;
    const turn = { number, ms, parts: [], prompts: 0, answers: 0 };
    for (let i = 0; i < parts.length; i += 3) {
      turn.parts.push({ request: parts[i], tokens: parts[i + 1], isPrompt: parts[i + 2] === 1 });
      turn[parts[i + 2] === 1 ? "prompts" : "answers"] += parts[i + 1];
    }
    this.totals.prompts += turn.prompts;
    this.totals.answers += turn.answers;
    this.turns.push(turn);
  }

  takeRates(now) {
    this.samples.push({ t: now, ...this.totals });
    while (this.samples.length > 2 && this.samples[1].t < now - WINDOW) this.samples.shift();
    const [from] = this.samples,
      seconds = Math.max(0.25, now - from.t);
    this.rates.push({
      t: now,
      prompts: (this.totals.prompts - from.prompts) / seconds,
      answers: (this.totals.answers - from.answers) / seconds,
    });
    while (this.rates.length && this.rates[0].t < now - KEPT_SECONDS) this.rates.shift();
  }

  // Which running requests use a page: holders[page] is a list of them, or undefined.
  findHolders() {
    this.holders = [];
    this.bySeq = new Map();
    for (const r of this.requests) {
      if (r.phase === "waiting") continue;
      this.bySeq.set(r.seq, r);
      r.depth = 0;
      for (let page = r.page, left = this.nPages; page >= 0 && left > 0; page = this.link[page], left--) {
        (this.holders[page] ??= []).push(r);
        r.depth++;
      }
    }
    for (let page = 0; page < this.nPages; page++) {
      const r = this.state[page] === OWN && this.bySeq.get(this.link[page]);
      if (r) this.holders[page] = [r];
    }
  }

  counts() {
    const n = [0, 0, 0, 0];
    let shared = 0;
    for (let page = 0; page < this.nPages; page++) {
      n[this.state[page]]++;
      if (this.users[page] > 1) shared++;
    }
    return { free: n[FREE], cached: n[CACHED], pinned: n[PINNED], own: n[OWN], shared };
  }

  // The tree, chains of single children drawn together: [{from, to (in pages), lane, lanes, holders, pages, isOwn}], and its size.
  tree(maxLanes) {
    const below = new Map([[-1, []]]);
    for (let page = 0; page < this.nPages; page++)
      if (this.state[page] === CACHED || this.state[page] === PINNED) {
        if (!below.has(this.link[page])) below.set(this.link[page], []);
        below.get(this.link[page]).push(page);
      }
    const tails = new Map(); // own pages, behind the last one that is in the tree
    for (const r of this.bySeq.values()) {
      if (r.n_pages <= r.depth) continue;
      if (!tails.has(r.page)) tails.set(r.page, []);
      tails.get(r.page).push(r);
    }
    const nodes = [],
      open = [[-1, 0]];
    let lanes = 0,
      deepest = 1,
      hidden = 0;
    const held = (page) => this.holders[page]?.length ?? 0;
    while (open.length) {
      // depth first; a node's lanes end where its last descendant's do
      const [page, depth, parent] = open.pop();
      if (page === "end") {
        parent.lanes = lanes - parent.lane;
        continue;
      }
      let at = page,
        to = depth;
      const chain = [];
      if (at >= 0)
        for (chain.push(at), to++; below.get(at)?.length === 1 && !tails.has(at) && held(below.get(at)[0]) === held(at);) {
          [at] = below.get(at);
          chain.push(at);
          to++;
        }
      const next = (below.get(at) ?? []).sort((a, b) => held(b) - held(a)),
        own = tails.get(at) ?? [];
      deepest = Math.max(deepest, to);
      const isLeaf = !next.length && !own.length;
      if (isLeaf && lanes >= maxLanes) {
        hidden++;
        continue;
      }
      const node = { from: depth, to, lane: lanes, lanes: 1, holders: this.holders[at] ?? [], pages: chain };
      if (at >= 0) nodes.push(node);
      if (isLeaf) {
        lanes += at >= 0 ? 1 : 0;
        continue;
      }
      open.push(["end", 0, node]);
      for (const child of next.reverse()) open.push([child, to]);
      for (const r of own) {
        if (lanes >= maxLanes) continue;
        nodes.push({ from: to, to: to + r.n_pages - r.depth, lane: lanes++, lanes: 1, holders: [r], pages: [], isOwn: true });
        deepest = Math.max(deepest, to + r.n_pages - r.depth);
      }
    }
    return { nodes: nodes.filter((n) => n.lanes > 0), lanes, deepest, hidden };
  }
}
