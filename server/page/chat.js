// server/page/chat.js - the view of one conversation: shows its path, sends, streams, stops, edits, branches, counts.
import { $, announce, bytes, count, h, iconButton, icon, toast } from "./dom.js";
import { ApiError, chat as streamChat, json } from "./api.js";
import { isRich } from "./markdown.js";
import { MessageView } from "./message.js";
import { defaultSystem, toBody } from "./settings.js";
import * as sidebar from "./sidebar.js";
import * as store from "./store.js";
import * as tree from "./tree.js";

const MAX_FILE = 1 << 20;
const SAVE_EVERY = 1500; // ms, while an answer streams
const IDEAS = [
  "Explain what a KV cache is, with a small example.",
  "Write a C function that reverses a linked list.",
  "What can you help me with?",
];

let talk = tree.newConversation();
let views = new Map(); // by id of the node
let live = null; // {node, talk, abort, started, first, n, frame, saved}
let files = []; // attached, not sent yet
let model = { id: "", context: 0 };
let isStuck = true; // the newest text is kept in view

// ---- what is shown

const lastOf = (nodes) => nodes.at(-1) ?? null;

function draw() {
  const shown = tree.path(talk),
    list = $("messages"),
    next = new Map();
  for (const node of shown) next.set(node.id, views.get(node.id) ?? new MessageView(node, actions));
  for (const [id, view] of views) if (next.get(id) !== view) view.element.remove();
  let at = list.firstElementChild;
  for (const view of next.values()) {
    if (at === view.element) at = at.nextElementSibling;
    else list.insertBefore(view.element, at);
  }
  views = next;
  for (const view of views.values()) view.update();
  list.querySelector(".empty")?.remove();
  if (!shown.length) list.append(empty());
  document.title = shown.length ? `${tree.titleOf(talk)} · nib` : "nib";
  $("chat-title").textContent = tree.titleOf(talk);
  drawComposer();
  drawMeter();
  if (document.activeElement === document.body) focusField(); // what had the focus is gone
}

// Where there is no keyboard but on the screen, it stays away until it is wanted.
export function focusField() {
  if (matchMedia("(hover: hover)").matches && !$("chat").hidden) $("composer-text").focus({ preventScroll: true });
}

function empty() {
  return h(
    "div.empty",
    {},
    h("p.empty-title", {}, "What shall we think about?"),
    h("p", {}, "Everything stays between this browser and ", h("strong", {}, location.host), "."),
    isRich ? null : h("p.note", {}, "This build has no Markdown: answers are shown as plain text."),
    h(
      "div.ideas",
      {},
      IDEAS.map((idea) =>
        h(
          "button.idea",
          {
            type: "button",
            onclick: () => {
              $("composer-text").value = idea;
              resize();
              $("composer-text").focus();
            },
          },
          idea,
        ),
      ),
    ),
  );
}

function stick(isForced) {
  const box = $("scroller");
  if (isForced) isStuck = true;
  if (isStuck) box.scrollTop = box.scrollHeight;
  $("jump").hidden = isStuck;
}

// ---- the store

async function save(of = talk) {
  of.updated = Date.now();
  try {
    await store.save(of);
    await sidebar.refresh(talk.id);
  } catch (error) {
    toast(`The browser could not keep this conversation: ${error.message}`);
  }
}

export async function open(id) {
  const found = id && (live?.talk.id === id ? live.talk : await store.load(id));
  talk = found ?? tree.newConversation(defaultSystem());
  views = new Map();
  $("messages").replaceChildren();
  setPlace(found ? talk.id : "");
  draw();
  stick(true);
  await sidebar.refresh(talk.id);
  if (!found) focusField();
}

function setPlace(id) {
  try {
    if (id) sessionStorage.setItem("nib.open", id);
    else sessionStorage.removeItem("nib.open");
  } catch {
    // The page begins with a new conversation then.
  }
}

export const current = () => talk;
export const saveCurrent = () => talk.nodes.length && save();

export async function change(id, edit) {
  const of = id === talk.id ? talk : await store.load(id);
  if (!of) return;
  edit(of);
  await save(of);
  if (of === talk) draw();
}

// ---- answers

// What is known of a running answer: [time to the first token, per token, tokens].
function liveStats() {
  const now = performance.now(),
    { first, started, n } = live;
  if (!first) return { ttft: now - started };
  return { ttft: first - started, tpot: n > 1 ? (now - first) / (n - 1) : undefined, generated: n };
}

function finalStats(of, usage) {
  const { first, started, last, n } = of,
    generated = usage?.completion_tokens ?? n;
  return {
    ttft: first ? first - started : undefined,
    tpot: first && generated > 1 ? (last - first) / (generated - 1) : undefined,
    total: performance.now() - started,
    generated,
    prompt: usage?.prompt_tokens,
    cached: usage?.prompt_tokens_details?.cached_tokens,
  };
}

function onChunk(of, answer) {
  const { node } = of;
  const length = answer.content.length + answer.reasoning.length + JSON.stringify(answer.calls).length;
  node.content = of.before + answer.content;
  if (answer.reasoning) node.reasoning = answer.reasoning;
  if (answer.calls.length) node.calls = answer.calls.filter(Boolean);
  if (length > of.length) {
    of.length = length;
    of.last = performance.now();
    of.first ??= of.last;
    of.n++;
  }
  of.frame ??= requestAnimationFrame(() => {
    of.frame = null;
    if (live !== of) return;
    views.get(node.id)?.update();
    drawMeter();
    stick();
  });
  if (performance.now() - of.saved > SAVE_EVERY) {
    of.saved = performance.now();
    store.save(of.talk).catch(() => {});
  }
}

function faultOf(error) {
  if (error instanceof ApiError) return error.status ? `${error.message} (${error.status})` : error.message;
  return `The page failed: ${error.message}`;
}

// Answers `parent`; cut: an answer that stopped too early, which goes on.
async function answer(parent, cut = null) {
  if (live) return;
  const of = {
    talk,
    node: cut ?? tree.add(talk, parent.id, { role: "assistant", model: model.id }),
    before: cut?.content ?? "",
    abort: new AbortController(),
    started: performance.now(),
    first: null,
    last: 0,
    n: 0,
    length: 0,
    frame: null,
    saved: performance.now(),
  };
  live = of;
  delete of.node.finish;
  setPlace(talk.id);
  draw();
  stick(true);
  announce("The answer is being written");
  await save();
  const body = { model: model.id || undefined, messages: tree.toMessages(talk, tree.pathTo(talk, cut ?? parent)), ...toBody() };
  if (cut) Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  let usage = null;
  try {
    const result = await streamChat(body, of.abort.signal, (part) => onChunk(of, part));
    usage = result.usage;
    of.node.finish = result.finish;
  } catch (error) {
    if (error.name === "AbortError") of.node.finish = "stopped";
    else of.node.error = faultOf(error);
  }
  of.node.stats = finalStats(of, usage);
  await save(of.talk); // what is shown as complete is kept
  live = null;
  if (of.talk === talk) {
    draw();
    stick();
  }
  announce(
    of.node.error
      ? `Error: ${of.node.error}`
      : of.node.finish === "stopped"
        ? "Stopped"
        : `Answer: ${of.node.content.slice(0, 500)}`,
  );
}

export function stop() {
  live?.abort.abort();
}

async function send() {
  const box = $("composer-text"),
    content = box.value.trim();
  if (live || (!content && !files.length)) return;
  const parent = lastOf(tree.path(talk))?.id ?? "";
  const node = tree.add(talk, parent, { role: "user", content, ...(files.length ? { files } : {}) });
  box.value = "";
  files = [];
  resize();
  drawFiles();
  await answer(node);
}

const actions = {
  isLive: (node) => live?.node === node,
  stats: (node) => (live?.node === node ? liveStats() : node.stats),
  siblings: (node) => tree.siblings(talk, node),
  wantsResult: (node, call) =>
    lastOf(tree.path(talk).filter((n) => n.role === "assistant")) === node &&
    !tree.path(talk).some((n) => n.role === "tool" && n.callId === call.id && n.created >= node.created),
  again: (node) => answer(tree.find(talk, node.parent)),
  goOn: (node) => answer(tree.find(talk, node.parent), node),
  async show(node, step) {
    tree.choose(talk, node);
    draw();
    await save();
    const [before, after] = views.get(node.id).element.querySelectorAll(".siblings button");
    const button = step > 0 ? after : before;
    (button?.disabled ? (step > 0 ? before : after) : button)?.focus();
  },
  async edit(node, text) {
    if (text === node.content || live) return;
    const { role, parent, files: kept, reasoning, calls } = node;
    const added = tree.add(talk, parent, {
      role,
      content: text,
      ...(kept ? { files: kept } : {}),
      ...(reasoning ? { reasoning } : {}),
      ...(calls ? { calls } : {}),
    });
    if (role === "user") await answer(added);
    else {
      draw();
      await save();
    }
  },
  async branch(node) {
    const copy = tree.branch(talk, node);
    await store.save(copy);
    await open(copy.id);
    toast("A copy up to here; the other conversation stays as it was.");
  },
  async remove(node) {
    if (live) return;
    tree.remove(talk, node);
    draw();
    await save();
  },
  async result(node, call, text) {
    if (live) return;
    const parent = lastOf(tree.path(talk));
    const added = tree.add(talk, parent.id, { role: "tool", callId: call.id, content: text });
    if (node.calls.every((c) => !actions.wantsResult(node, c))) await answer(added);
    else {
      draw();
      await save();
    }
  },
};

// ---- the field for messages

function resize() {
  const box = $("composer-text");
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, innerHeight * 0.4)}px`;
  drawComposer();
  countDraft();
}

function drawComposer() {
  $("send").hidden = live !== null;
  $("stop").hidden = live === null;
  $("send").disabled = !$("composer-text").value.trim() && !files.length;
}

function drawFiles() {
  $("files").replaceChildren(
    ...files.map((f, i) =>
      h(
        "li",
        {},
        icon("file"),
        h("span", {}, f.name),
        h("small", {}, bytes(f.size)),
        iconButton("close", `Remove ${f.name}`, () => {
          files.splice(i, 1);
          drawFiles();
          resize();
          $("composer-text").focus();
        }),
      ),
    ),
  );
}

async function attach(list) {
  for (const file of list) {
    if (file.size > MAX_FILE) {
      toast(`${file.name} has ${bytes(file.size)}; at most ${bytes(MAX_FILE)} can be attached.`);
      continue;
    }
    try {
      const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
      if (text.includes("\0")) throw new Error();
      files.push({ name: file.name, size: file.size, text });
    } catch {
      toast(`${file.name} is no text in UTF-8.`);
    }
  }
  drawFiles();
  resize();
}

// ---- the counter: what the conversation has, what the draft adds, what fits

let draft = { n: 0, timer: 0, isAble: true };

function countDraft() {
  const text = tree.contentOf({ content: $("composer-text").value, files });
  clearTimeout(draft.timer);
  if (!text.trim()) {
    draft.n = 0;
    drawMeter();
  } else if (draft.isAble)
    draft.timer = setTimeout(async () => {
      try {
        draft.n = (await json("/tokenize", { body: { content: text }, quiet: true })).tokens.length;
      } catch (error) {
        if (error.status === 404) draft.isAble = false;
        draft.n = 0;
      }
      drawMeter();
    }, 300);
}

function drawMeter() {
  const nodes = tree.path(talk);
  const node = nodes.findLast((n) => n.role === "assistant" && (n.stats?.prompt || live?.node === n));
  const stats = node && actions.stats(node);
  const before = nodes.findLast((n) => n.stats?.prompt)?.stats;
  const used = stats?.prompt
    ? stats.prompt + stats.generated
    : (before ? before.prompt + before.generated : 0) + (stats?.generated ?? 0);
  const parts = [];
  if (model.context) {
    const bar = h("span.bar", { "aria-hidden": "true" }, h("span.bar-used"), h("span.bar-draft"));
    bar.children[0].style.width = `${Math.min(100, (100 * used) / model.context)}%`;
    bar.children[1].style.width = `${Math.min(100, (100 * draft.n) / model.context)}%`;
    parts.push(bar);
  }
  parts.push(
    h(
      "span",
      { id: "meter-tokens" },
      `${count(used)}${draft.n ? ` + ${count(draft.n)}` : ""}${model.context ? ` of ${count(model.context)}` : ""} tokens`,
    ),
  );
  if (model.context && used + draft.n > model.context) parts.push(h("span.warn", {}, "too long for the context"));
  parts.push(h("span.spring"), h("span.keys", {}, h("kbd", {}, "Enter"), " sends, ", h("kbd", {}, "Shift Enter"), " new line"));
  $("meter").replaceChildren(...parts);
}

export function setModel(found) {
  model = found;
  drawMeter();
}

// The last message of the user, to be edited.
export function editLast() {
  const node = tree.path(talk).findLast((n) => n.role === "user");
  if (node && !live) views.get(node.id).edit();
}

export async function start() {
  const box = $("composer-text");
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  box.addEventListener("input", resize);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === "ArrowUp" && !box.value) {
      event.preventDefault();
      editLast();
    }
  });
  box.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length) {
      event.preventDefault();
      attach(event.clipboardData.files);
    }
  });
  $("stop").addEventListener("click", () => {
    stop();
    box.focus();
  });
  $("attach").addEventListener("click", () => $("attach-file").click());
  $("attach-file").addEventListener("change", async ({ target }) => {
    await attach(target.files);
    target.value = "";
    box.focus();
  });
  $("chat").addEventListener("dragover", (event) => event.preventDefault());
  $("chat").addEventListener("drop", (event) => {
    event.preventDefault();
    attach(event.dataTransfer.files);
  });
  $("scroller").addEventListener("scroll", () => {
    const s = $("scroller");
    isStuck = s.scrollHeight - s.scrollTop - s.clientHeight < 40;
    $("jump").hidden = isStuck;
  });
  new ResizeObserver(() => stick()).observe($("scroller"));
  $("jump").addEventListener("click", () => stick(true));
  setInterval(() => {
    if (live && !live.first) views.get(live.node.id)?.updateFoot(); // time runs while the prompt is computed
  }, 100);
  addEventListener("pagehide", () => live && store.save(live.talk).catch(() => {}));
  let id = null;
  try {
    id = sessionStorage.getItem("nib.open");
  } catch {
    // A new one.
  }
  await open(id);
}
