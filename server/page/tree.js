// server/page/tree.js - a conversation is a tree of messages, of which one path is shown. Pure data: no page, no storage.
//
//   {v, id, title, created, updated, system, nodes: [node], chosen: {parent id or "": child id}}
//   node: {id, parent, role: user|assistant|tool, content, reasoning, calls, callId, files, stats, finish, error, created}
//
// A node stands behind its parent in the list, so there are no circles. Editing and asking again add siblings.

export const newId = () =>
  crypto.randomUUID?.() ?? Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16)).join("");

export function newConversation(system = "") {
  const now = Date.now();
  return { v: 1, id: newId(), title: "", created: now, updated: now, system, nodes: [], chosen: {} };
}

export const find = (talk, id) => talk.nodes.find((node) => node.id === id);
export const children = (talk, parent) => talk.nodes.filter((node) => node.parent === parent);
export const siblings = (talk, node) => children(talk, node.parent);

// Adds a message behind `parent` ("": the first) and shows it.
export function add(talk, parent, node) {
  const added = { id: newId(), parent, content: "", created: Date.now(), ...node };
  talk.nodes.push(added);
  talk.chosen[parent] = added.id;
  return added;
}

export function choose(talk, node) {
  talk.chosen[node.parent] = node.id;
}

// The path that is shown, from the first message on.
export function path(talk) {
  const byParent = new Map();
  for (const node of talk.nodes) {
    if (!byParent.has(node.parent)) byParent.set(node.parent, []);
    byParent.get(node.parent).push(node);
  }
  const shown = [];
  for (let at = byParent.get(""); at; at = byParent.get(shown.at(-1).id))
    shown.push(at.find((node) => node.id === talk.chosen[at[0].parent]) ?? at.at(-1));
  return shown;
}

// From the first message to this one.
export function pathTo(talk, node) {
  const up = [];
  for (let at = node; at; at = find(talk, at.parent)) up.unshift(at);
  return up;
}

export function remove(talk, node) {
  const gone = new Set([node.id]);
  for (const other of talk.nodes) if (gone.has(other.parent)) gone.add(other.id);
  talk.nodes = talk.nodes.filter((other) => !gone.has(other.id));
  for (const [parent, child] of Object.entries(talk.chosen)) if (gone.has(parent) || gone.has(child)) delete talk.chosen[parent];
}

// A conversation of its own that ends with this message.
export function branch(talk, node) {
  const copy = newConversation(talk.system);
  copy.title = talk.title;
  let parent = "";
  for (const from of pathTo(talk, node)) parent = add(copy, parent, { ...structuredClone(from), id: newId(), parent }).id;
  return copy;
}

export function titleOf(talk) {
  if (talk.title) return talk.title;
  const first = talk.nodes.find((node) => node.role === "user");
  const text = (first?.content || first?.files?.[0]?.name || "").replace(/\s+/g, " ").trim();
  return text ? (text.length > 60 ? `${text.slice(0, 59)}…` : text) : "New conversation";
}

// A fence that is longer than any in the text.
function fence(text) {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`{3,}/g), (m) => m[0].length));
  return "`".repeat(longest + 1);
}

// What the model reads of a user's message: files first, each in a block with its name.
export function contentOf(node) {
  const files = (node.files ?? []).map((f) => `${f.name}:\n${fence(f.text)}\n${f.text.replace(/\n$/, "")}\n${fence(f.text)}\n\n`);
  return files.join("") + node.content;
}

// The `messages` of a request.
export function toMessages(talk, nodes) {
  const messages = talk.system.trim() ? [{ role: "system", content: talk.system }] : [];
  for (const node of nodes) {
    if (node.role === "tool") messages.push({ role: "tool", tool_call_id: node.callId, content: node.content });
    else if (node.role === "user") messages.push({ role: "user", content: contentOf(node) });
    else {
      const message = { role: "assistant", content: node.content };
      if (node.calls?.length)
        message.tool_calls = node.calls.map((c) => ({
          id: c.id,
          type: "function",
          function: { name: c.name, arguments: c.arguments },
        }));
      messages.push(message);
    }
  }
  return messages;
}

export function toMarkdown(talk) {
  const heads = { user: "You", assistant: "Assistant", tool: "Result of a tool" };
  const parts = [`# ${titleOf(talk)}`];
  if (talk.system.trim()) parts.push(`> ${talk.system.trim().replace(/\n/g, "\n> ")}`);
  for (const node of path(talk)) parts.push(`## ${heads[node.role]}`, contentOf(node));
  return `${parts.join("\n\n")}\n`;
}

// ---- files of conversations

export function toFile(talks) {
  return JSON.stringify({ format: "nib conversations", version: 1, conversations: talks }, null, 1);
}

const text = (value) => (typeof value === "string" ? value : "");
const time = (value) => (Number.isFinite(value) && Math.abs(value) < 8.64e15 ? value : Date.now());
const number = (value) => (Number.isFinite(value) ? value : undefined);

function checkNode(raw, ids) {
  if (!raw || typeof raw !== "object" || !["user", "assistant", "tool"].includes(raw.role)) return null;
  const parent = text(raw.parent);
  if (!text(raw.id) || ids.has(raw.id) || (parent && !ids.has(parent))) return null;
  ids.add(raw.id);
  const node = { id: raw.id, parent, role: raw.role, content: text(raw.content), created: time(raw.created) };
  for (const name of ["reasoning", "callId", "finish", "error", "model"]) if (text(raw[name])) node[name] = raw[name];
  if (Array.isArray(raw.files))
    node.files = raw.files
      .filter((f) => f && text(f.name))
      .map((f) => ({ name: f.name, text: text(f.text), size: text(f.text).length }));
  if (Array.isArray(raw.calls))
    node.calls = raw.calls
      .filter((c) => c && text(c.name))
      .map((c) => ({ id: text(c.id), name: c.name, arguments: text(c.arguments) }));
  if (raw.stats && typeof raw.stats === "object")
    node.stats = Object.fromEntries(
      ["prompt", "cached", "generated", "ttft", "tpot", "total"].map((k) => [k, number(raw.stats[k])]),
    );
  return node;
}

// The conversations of a file, cleaned of whatever does not belong there; throws what is wrong, for a person to read.
export function fromFile(json) {
  let data;
  try {
    data = JSON.parse(json);
  } catch {
    throw new Error("This is no JSON file.");
  }
  if (data?.format !== "nib conversations" || !Array.isArray(data.conversations))
    throw new Error("This file holds no conversations of nib.");
  return data.conversations.map((raw, i) => {
    if (!raw || typeof raw !== "object" || !Array.isArray(raw.nodes))
      throw new Error(`Conversation ${i + 1} of the file is damaged.`);
    const talk = newConversation(text(raw.system));
    const ids = new Set([]);
    talk.id = text(raw.id) || talk.id;
    talk.title = text(raw.title);
    talk.created = time(raw.created);
    talk.updated = time(raw.updated);
    talk.nodes = raw.nodes.map((node) => checkNode(node, ids));
    if (talk.nodes.includes(null)) throw new Error(`Conversation ${i + 1} of the file has a message that is damaged.`);
    for (const node of talk.nodes) if (raw.chosen?.[node.parent] === node.id) talk.chosen[node.parent] = node.id;
    return talk;
  });
}
