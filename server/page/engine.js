// server/page/engine.js - the view of the engine: listens while it is looked at, and shows pages, prefixes, turns, requests.
import { $, count, h, iconButton, milliseconds, setIcon } from "./dom.js";
import { events, request } from "./api.js";
import * as draw from "./engine-draw.js";
import { EngineState } from "./engine-state.js";

let state = new EngineState();
let listening = null; // AbortController
let isShown = false,
  isFrozen = false;
let chosen = null; // number of a request that is pointed at
const parts = {};

// ---- the frame, made when the view is first shown

function tile(name, label) {
  parts[name] = h("dd", {}, "–");
  parts[`${name}Note`] = h("dd.tile-note");
  return h("div.tile", {}, h("dt", {}, label), parts[name], parts[`${name}Note`]);
}

function panel(name, title, note, legend) {
  const canvas = h("canvas", { role: "img", "aria-label": title }),
    words = h("div.words", { hidden: true });
  parts[name] = canvas;
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect(),
      text = draw.wordsAt(canvas, event.clientX - box.left, event.clientY - box.top);
    words.hidden = !text;
    words.textContent = text ?? "";
    words.style.left = `${Math.min(event.clientX - box.left, box.width - 220)}px`;
    words.style.top = `${event.clientY - box.top + 16}px`;
  });
  canvas.addEventListener("pointerleave", () => (words.hidden = true));
  return h(
    `section.panel.panel-${name}`,
    { "aria-label": title },
    h("div.panel-head", {}, h("h2", {}, title), legend ?? null),
    h("p.note", {}, note),
    h("div.canvas", {}, canvas, words),
  );
}

const key = (kind, text) => h("span.key", {}, h(`i.${kind}`, { "aria-hidden": "true" }), text);

function build() {
  const freeze = iconButton(
    "pause",
    "Freeze the picture",
    () => {
      isFrozen = !isFrozen;
      freeze.setAttribute("aria-pressed", String(isFrozen));
      setIcon(freeze, isFrozen ? "play" : "pause");
    },
    { "aria-pressed": "false" },
  );
  parts.fault = h("p.fault", { role: "status", hidden: true });
  parts.rows = h("tbody");
  const heads = ["Request", "State", "Prompt", "Cached", "Answer", "Pages", "Age", "First token"];
  $("engine").replaceChildren(
    h(
      "div.engine-head",
      {},
      h("h1", {}, "Engine"),
      h("p.note", {}, "One batch, many requests: live, drawn only while you look."),
      h("span.spring"),
      freeze,
    ),
    parts.fault,
    h(
      "dl.tiles",
      {},
      tile("answers", "Answers"),
      tile("prompts", "Prompts"),
      tile("requests", "Requests"),
      tile("pages", "Pages in use"),
      tile("cache", "Found in cache"),
      tile("turn", "Last turn"),
    ),
    panel(
      "turns",
      "The batch, turn by turn",
      "Each column is a turn. Above, its time; below, who rode in it: blocks are parts of prompts, dots are tokens of answers.",
      h("div.legend", {}, key("answer", "answers"), key("prompt", "prompts")),
    ),
    panel(
      "tree",
      "Who shares what",
      "Prompts and answers from their first token on. What begins alike is kept once; bands show who uses it now.",
      h("div.legend", {}, key("cached", "cached"), key("used", "used"), key("own", "own, not shared yet")),
    ),
    panel(
      "map",
      "Pages of the KV cache",
      "Each square holds the keys and values of a page of tokens.",
      h("div.legend", {}, key("free", "free"), key("cached", "cached"), key("used", "used by requests, in their colours")),
    ),
    panel(
      "rates",
      "Tokens per second",
      "The last minute.",
      h("div.legend", {}, key("answer", "answers"), key("prompt", "prompts")),
    ),
    h(
      "section.panel",
      { "aria-label": "Requests" },
      h("div.panel-head", {}, h("h2", {}, "Requests")),
      h(
        "div.table",
        { tabindex: "0", role: "region", "aria-label": "Table of requests" },
        h(
          "table.requests",
          {},
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              heads.map((text) => h("th", { scope: "col" }, text)),
            ),
          ),
          parts.rows,
        ),
      ),
    ),
  );
}

// ---- what is drawn

function drawTiles() {
  const f = state.figures,
    c = state.counts(),
    rate = state.rates.at(-1),
    n = Math.max(1, state.nPages);
  const set = (name, value, note) => {
    parts[name].textContent = value;
    parts[`${name}Note`].textContent = note;
  };
  set("answers", `${rate.answers.toFixed(rate.answers < 10 ? 1 : 0)}`, "tokens/s");
  set("prompts", `${rate.prompts.toFixed(rate.prompts < 10 ? 1 : 0)}`, "tokens/s");
  set("requests", `${count(f.running)}`, `running, ${count(f.waiting)} waiting`);
  set(
    "pages",
    `${Math.round((100 * (c.pinned + c.own)) / n)} %`,
    `${count(c.shared)} shared, ${count(c.cached)} cached, ${count(c.free)} free`,
  );
  set("cache", f.prompt ? `${Math.round((100 * f.reused) / f.prompt)} %` : "–", `of ${count(f.prompt)} tokens of prompts`);
  set("turn", milliseconds(f.last_turn_ms), `longest ${milliseconds(f.longest_turn_ms)}`);
  parts.map.setAttribute(
    "aria-label",
    `${count(state.nPages)} pages: ${count(c.free)} free, ${count(c.cached)} cached, ${count(c.pinned + c.own)} in use, ${count(c.shared)} shared`,
  );
  parts.rates.setAttribute(
    "aria-label",
    `Answers ${Math.round(rate.answers)} tokens per second, prompts ${Math.round(rate.prompts)}`,
  );
  parts.turns.setAttribute(
    "aria-label",
    `The last ${count(state.turns.length)} turns; the newest took ${milliseconds(f.last_turn_ms)}`,
  );
}

const PHASES = {
  waiting: { name: "waits", share: () => null },
  prefill: { name: "reads its prompt", share: (r) => r.n_computed / r.n_prompt },
  decode: { name: "answers", share: (r) => r.n_generated / Math.max(1, r.n_max) },
};

function rowOf(r) {
  const { name, share } = PHASES[r.phase];
  const swatch = h("i.swatch", { "aria-hidden": "true" });
  const bar = share(r) === null ? null : h("span.bar", { "aria-hidden": "true" }, h(`span.bar-used.${r.phase}`));
  if (bar) {
    swatch.style.background = draw.colourOf(r.number);
    bar.firstChild.style.width = `${Math.min(100, 100 * share(r))}%`;
  }
  return h(
    "tr",
    { onpointerenter: () => point(r.number), onpointerleave: () => point(null) },
    h("th", { scope: "row" }, swatch, `#${r.number}`),
    h("td", {}, h("span.phase", {}, name), bar, r.n_preempted ? ` made way ${r.n_preempted} ×` : null),
    h("td", {}, count(r.n_prompt)),
    h("td", {}, count(r.n_cached)),
    h("td", {}, count(r.n_generated)),
    h("td", {}, count(r.n_pages)),
    h("td", {}, milliseconds(r.age_ms)),
    h("td", {}, r.ttft_ms ? milliseconds(r.ttft_ms) : "–"),
  );
}

function drawRows() {
  const rows = state.requests.slice(0, 64).map(rowOf);
  if (!rows.length)
    rows.push(h("tr", {}, h("td.none", { colspan: "8" }, "Nothing runs. Ask something in the chat, or from a program.")));
  parts.rows.replaceChildren(...rows);
}

function drawAll() {
  if (!isShown || !state.figures) return;
  drawTiles();
  draw.drawRates(parts.rates, state, performance.now() / 1000);
  draw.drawTurns(parts.turns, state, chosen);
  const t = draw.drawTree(parts.tree, state, chosen);
  parts.tree.setAttribute("aria-label", `A tree of ${count(t.nodes.length)} runs of pages, ${count(t.lanes)} ends`);
  draw.drawPages(parts.map, state, chosen);
}

function point(number) {
  if (chosen === number) return;
  chosen = number;
  requestAnimationFrame(drawAll);
}

// ---- listening

function fail(text) {
  parts.fault.hidden = !text;
  parts.fault.textContent = text;
}

async function listen() {
  const mine = (listening = new AbortController());
  while (listening === mine) {
    try {
      const response = await request("/engine/events", { signal: mine.signal });
      fail("");
      await events(response, (data) => {
        if (isFrozen || listening !== mine) return;
        state.apply(JSON.parse(data), performance.now() / 1000);
        requestAnimationFrame(drawAll);
        if (chosen === null) drawRows();
      });
    } catch (error) {
      if (error.name === "AbortError") return;
      fail(error.status === 401 ? "The engine is shown to those who have a key." : `${error.message} Trying again …`);
      if (error.status === 401) return;
    }
    await new Promise((resolve) => setTimeout(resolve, 1500));
  }
}

// Only while it is looked at: the engine notes nothing otherwise.
function update() {
  const isWanted = isShown && !document.hidden;
  if (isWanted && !listening) {
    state = new EngineState();
    listen();
  } else if (!isWanted && listening) {
    listening.abort();
    listening = null;
  }
}

export function show(isOpen) {
  isShown = isOpen;
  if (isOpen && !parts.rows) {
    build();
    draw.recolour();
    new ResizeObserver(drawAll).observe($("engine"));
  }
  update();
}

export function recolour() {
  draw.recolour();
  drawAll();
}

document.addEventListener("visibilitychange", update);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
