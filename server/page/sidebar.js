// server/page/sidebar.js - the list of conversations: open, rename, delete, export, import, search.
import { $, announce, ask, h, iconButton, plural, saveFile, toast } from "./dom.js";
import * as store from "./store.js";
import { fromFile, newId, titleOf, toFile, toMarkdown } from "./tree.js";

let entries = [],
  current = "",
  handlers = {};

const fileName = (title) =>
  title
    .replace(/[^\p{L}\p{N} _-]+/gu, "")
    .trim()
    .slice(0, 60) || "conversation";
const today = () => new Date().toISOString().slice(0, 10);

function dayOf(time) {
  const days = Math.floor((new Date().setHours(0, 0, 0, 0) - new Date(time).setHours(0, 0, 0, 0)) / 86400000 + 0.5);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  return days < 7 ? "Last seven days" : days < 31 ? "Last month" : "Older";
}

async function rename(entry) {
  const values = await ask("Rename", "", [{ name: "title", label: "Title", value: entry.title }], "Rename");
  if (!values) return;
  await handlers.change(entry.id, (talk) => (talk.title = values.title.trim()));
}

async function remove(entry) {
  if (!(await ask("Delete this conversation?", `“${entry.title}” will be gone from this browser.`, [], "Delete"))) return;
  await store.remove(entry.id);
  announce("Deleted");
  await refresh();
  if (entry.id === current) handlers.open(null);
}

async function exportOne(entry) {
  const values = await ask(
    "Export",
    entry.title,
    [{ name: "markdown", label: "As Markdown, to read (only what is shown)", type: "checkbox" }],
    "Export",
  );
  const talk = values && (await store.load(entry.id));
  if (!talk) return;
  if (values.markdown) saveFile(`${fileName(titleOf(talk))}.md`, "text/markdown", toMarkdown(talk));
  else saveFile(`${fileName(titleOf(talk))}.json`, "application/json", toFile([talk]));
}

function row(entry) {
  const open = h(
    "button.conversation",
    {
      type: "button",
      "aria-current": entry.id === current ? "true" : null,
      onclick: () => handlers.open(entry.id),
      title: entry.title,
    },
    entry.title,
  );
  return h(
    "li",
    { class: entry.id === current ? "current" : "" },
    open,
    h(
      "div.row-tools",
      {},
      iconButton("edit", `Rename ${entry.title}`, () => rename(entry)),
      iconButton("download", `Export ${entry.title}`, () => exportOne(entry)),
      iconButton("trash", `Delete ${entry.title}`, () => remove(entry)),
    ),
  );
}

function draw() {
  const wanted = $("search").value.trim().toLowerCase();
  const shown = entries.filter((entry) => entry.title.toLowerCase().includes(wanted));
  const items = [];
  let day = "";
  for (const entry of shown) {
    if (dayOf(entry.updated) !== day) items.push(h("li.day", {}, (day = dayOf(entry.updated))));
    items.push(row(entry));
  }
  if (!shown.length) items.push(h("li.none", {}, wanted ? "Nothing found" : "Nothing yet"));
  $("conversations").replaceChildren(...items);
}

export async function refresh(id = current) {
  current = id;
  entries = await store.list();
  draw();
}

async function importFile(file) {
  try {
    const talks = fromFile(await file.text());
    const taken = new Set(entries.map((entry) => entry.id));
    for (const talk of talks) {
      if (taken.has(talk.id)) talk.id = newId();
      taken.add(talk.id);
      await store.save(talk);
    }
    await refresh();
    toast(`${plural(talks.length, "conversation")} imported`);
    if (talks.length === 1) handlers.open(talks[0].id);
  } catch (error) {
    toast(`Not imported. ${error.message}`);
  }
}

// handlers: open(id or null), change(id, edit)
export function start(given) {
  handlers = given;
  $("search").addEventListener("input", draw);
  $("export-all").addEventListener("click", async () => {
    const talks = await store.all();
    if (talks.length) saveFile(`nib-conversations-${today()}.json`, "application/json", toFile(talks));
    else toast("There is nothing to export yet.");
  });
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", async ({ target }) => {
    const [file] = target.files;
    if (file) await importFile(file);
    target.value = "";
  });
  store.onOtherTab(() => refresh());
}
