// server/page/engine-draw.js - pictures of the engine on canvases: pages, the tree of prefixes, turns, rates.
// Each draws a state at the size of its element and leaves `canvas.spots`: rectangles with words for the pointer.
import { h, milliseconds, plural } from "./dom.js";
import { FREE, OWN } from "./engine-state.js";

let colours = {};

export function recolour() {
  const probe = document.body.appendChild(h("i", { hidden: true }));
  for (const name of ["ink", "ink-soft", "line", "page-free", "page-cached", "accent", "prompt", "raised"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.style.color = "light-dark(black, white)";
  const isDark = getComputedStyle(probe).color !== "rgb(0, 0, 0)";
  colours.request = isDark ? "0.76 0.12" : "0.6 0.13"; // lightness and chroma
  probe.remove();
}

// Of a request, by its number: neighbours differ most.
export const colourOf = (number) => `oklch(${colours.request} ${((number * 137.508 + 195) % 360).toFixed(1)})`;

function begin(canvas, height) {
  const width = canvas.parentElement.clientWidth,
    scale = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = `${height}px`;
  }
  const g = canvas.getContext("2d");
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = `11px ${getComputedStyle(document.body).fontFamily}`;
  g.textBaseline = "middle";
  canvas.spots = [];
  return { g, width };
}

// A rectangle in bands, one for each of the requests that use it.
function bands(g, x, y, w, high, holders) {
  const shown = holders.slice(0, Math.max(1, Math.floor(high / 2)));
  shown.forEach((r, i) => {
    g.fillStyle = colourOf(r.number);
    g.fillRect(x, y + (high * i) / shown.length, w, high / shown.length);
  });
}

const names = (holders) => holders.map((r) => `#${r.number}`).join(", ");
const words = ["free", "cached, used by nobody now", "in the tree", "own"];

export function drawPages(canvas, s, chosen) {
  const width = canvas.parentElement.clientWidth;
  let n = 256; // those beyond were never used since one looks
  while (n < s.reach) n *= 2;
  if (2 * n > s.nPages) n = Math.max(1, s.nPages);
  const rest = s.nPages - n;
  const cell = Math.max(4, Math.min(20, Math.floor(Math.sqrt((width * 200) / n))));
  const columns = Math.max(1, Math.floor(width / cell)),
    gap = cell > 6 ? 2 : 1,
    size = cell - gap;
  const bottom = Math.ceil(n / columns) * cell;
  const { g } = begin(canvas, bottom + (rest > 0 ? 18 : 0));
  for (let page = 0; page < Math.min(n, s.nPages); page++) {
    const x = (page % columns) * cell,
      y = Math.floor(page / columns) * cell,
      holders = s.holders[page] ?? [];
    g.globalAlpha = chosen !== null && !holders.some((r) => r.number === chosen) ? 0.25 : 1;
    if (holders.length) bands(g, x, y, size, size, holders);
    else {
      g.fillStyle = colours[s.state[page] === FREE ? "page-free" : "page-cached"];
      g.fillRect(x, y, size, size);
    }
    if (s.state[page] === OWN && size > 6) {
      // not in the tree yet
      g.fillStyle = colours.raised;
      g.fillRect(x + size / 2 - 1.5, y + size / 2 - 1.5, 3, 3);
    }
    canvas.spots.push([
      x,
      y,
      cell,
      cell,
      `Page ${page}: ${words[s.state[page]]}${holders.length ? `, used by ${names(holders)}` : ""}`,
    ]);
  }
  g.globalAlpha = 1;
  g.fillStyle = colours["ink-soft"];
  if (rest > 0) g.fillText(`and ${plural(rest, "more page")}, free`, 0, bottom + 10);
}

const MAX_LANES = 48;

export function drawTree(canvas, s, chosen) {
  const width = canvas.parentElement.clientWidth,
    t = s.tree(MAX_LANES);
  const lane = Math.max(7, Math.min(24, Math.floor(360 / Math.max(1, t.lanes)))),
    step = Math.min(28, width / t.deepest);
  const { g } = begin(canvas, Math.max(1, t.lanes) * lane + 18);
  g.fillStyle = colours["ink-soft"];
  if (!t.nodes.length) g.fillText("Nothing is kept yet.", 2, 9);
  const every = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].find((k) => k * step > 64) ?? 2048;
  for (let page = 0; t.nodes.length && page <= t.deepest; page += every) {
    g.fillRect(page * step, 12, 1, 4);
    if (page * step < width - 30) g.fillText(page ? `${page * s.pageSize}` : "0 tokens", page * step + 3, 7);
  }
  for (const node of t.nodes) {
    const x = node.from * step,
      y = 18 + node.lane * lane,
      w = (node.to - node.from) * step - 1,
      high = node.lanes * lane - 1;
    g.globalAlpha = chosen !== null && !node.holders.some((r) => r.number === chosen) ? 0.25 : 1;
    if (node.holders.length) bands(g, x, y, w, high, node.holders);
    else {
      g.fillStyle = colours["page-cached"];
      g.fillRect(x, y, w, high);
    }
    if (node.isOwn) {
      g.fillStyle = colours.raised;
      g.globalAlpha *= 0.55;
      g.fillRect(x + 1, y + 1, w - 2, high - 2);
    }
    const sharers = node.holders.length > 1 && w > 150 ? `, ${node.holders.length} requests` : "";
    const label = node.isOwn ? `#${node.holders[0].number}` : plural(node.pages.length, "page") + sharers;
    if (w > 60 && high > 12) {
      g.globalAlpha = 1;
      g.fillStyle = node.holders.length && !node.isOwn ? colours.raised : colours.ink;
      g.fillText(label, x + 6, y + high / Math.max(1, node.holders.length) / 2 + 0.5, w - 10);
    }
    canvas.spots.push([
      x,
      y,
      w,
      high,
      node.isOwn
        ? `#${node.holders[0].number}: ${plural(node.to - node.from, "page")} of its own`
        : `${plural(node.pages.length, "page")}, tokens ${node.from * s.pageSize} to ${node.to * s.pageSize - 1} at most: ` +
          (node.holders.length ? `used by ${names(node.holders)}` : "cached, used by nobody now"),
    ]);
  }
  g.globalAlpha = 1;
  return t;
}

const LABELS = 44,
  TOP = 76,
  ROW = 16,
  MAX_ROWS = 18;

export function drawTurns(canvas, s, chosen) {
  const width = canvas.parentElement.clientWidth,
    step = 7,
    shown = Math.max(1, Math.floor((width - LABELS) / step));
  const turns = s.turns.slice(-shown),
    numbers = [...new Set(turns.flatMap((t) => t.parts.map((p) => p.request)))].sort((a, b) => a - b).slice(-MAX_ROWS);
  const row = new Map(numbers.map((number, i) => [number, TOP + 8 + i * ROW]));
  const { g } = begin(canvas, TOP + 8 + Math.max(3, numbers.length) * ROW);
  const longest = Math.max(1, ...turns.map((t) => t.ms));
  g.fillStyle = colours["ink-soft"];
  if (!turns.length) {
    g.fillText("No turn yet since you look.", 2, TOP / 2);
    return;
  }
  g.textAlign = "right";
  g.fillText(milliseconds(longest), LABELS - 6, 8, LABELS - 6);
  g.fillText("0", LABELS - 6, TOP - 4);
  for (const number of numbers) {
    g.fillStyle = colourOf(number);
    g.fillText(`#${number}`, LABELS - 6, row.get(number) + ROW / 2);
  }
  g.textAlign = "left";
  g.fillStyle = colours.line;
  g.fillRect(LABELS, TOP, width - LABELS, 1);
  turns.forEach((turn, i) => {
    const x = LABELS + i * step,
      high = Math.max(1, (turn.ms / longest) * (TOP - 6)),
      part = turn.prompts / Math.max(1, turn.prompts + turn.answers);
    g.fillStyle = colours.prompt;
    g.fillRect(x, TOP - high, step - 2, high * part);
    g.fillStyle = colours.accent;
    g.fillRect(x, TOP - high + high * part, step - 2, high * (1 - part));
    for (const p of turn.parts) {
      if (!row.has(p.request)) continue;
      const size = p.isPrompt ? Math.min(ROW - 3, 5 + 0.9 * Math.log2(p.tokens)) : 4;
      g.globalAlpha = chosen !== null && p.request !== chosen ? 0.25 : 1;
      g.fillStyle = colourOf(p.request);
      g.fillRect(x, row.get(p.request) + (ROW - size) / 2, step - (p.isPrompt ? 0 : 3), size);
    }
    g.globalAlpha = 1;
    canvas.spots.push([
      x,
      0,
      step,
      TOP + 8 + numbers.length * ROW,
      `Turn ${turn.number}: ${milliseconds(turn.ms)}, ` +
        `${plural(turn.prompts, "token")} of prompts, ${plural(turn.answers, "token")} of answers`,
    ]);
  });
}

export function drawRates(canvas, s, now) {
  const { g, width } = begin(canvas, 64),
    seconds = 60;
  const most = Math.max(10, ...s.rates.map((r) => Math.max(r.prompts, r.answers)));
  for (const name of ["prompts", "answers"]) {
    g.strokeStyle = colours[name === "prompts" ? "prompt" : "accent"];
    g.lineWidth = 1.5;
    g.beginPath();
    for (const r of s.rates) g.lineTo(width - ((now - r.t) / seconds) * width, 60 - (r[name] / most) * 54);
    g.stroke();
  }
  g.fillStyle = colours["ink-soft"];
  g.fillText(`${Math.round(most)} tokens/s`, 2, 7);
}

// What is said of a point, or null.
export function wordsAt(canvas, x, y) {
  return canvas.spots?.find(([left, top, w, high]) => x >= left && x < left + w && y >= top && y < top + high)?.[4] ?? null;
}
