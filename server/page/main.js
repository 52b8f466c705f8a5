// server/page/main.js - begins here: storage, model, views, colours, shortcuts.
import { $, announce, ask, h, setIcon, toast } from "./dom.js";
import { json, onKeyNeeded, setKey } from "./api.js";
import * as chat from "./chat.js";
import * as engine from "./engine.js";
import { openSettings } from "./settings.js";
import * as sidebar from "./sidebar.js";
import * as store from "./store.js";

const SHORTCUTS = [
  ["Enter", "Send the message"],
  ["Shift Enter", "New line"],
  ["↑", "Edit the last message, when the field is empty"],
  ["Esc", "Stop the answer; leave what is open"],
  ["Alt N", "New conversation"],
  ["Alt K", "Search conversations"],
  ["Alt E", "Chat or engine"],
  ["Alt S", "Settings"],
  ["Alt T", "Colours"],
  ["Alt M", "To the message field"],
  ["?", "This list"],
];

// ---- views

function showView() {
  const isEngine = location.hash === "#engine";
  $("chat").hidden = isEngine;
  $("engine").hidden = !isEngine;
  for (const name of ["chat", "engine"]) {
    const isShown = (name === "engine") === isEngine;
    if (isShown) $(`view-${name}`).setAttribute("aria-current", "page");
    else $(`view-${name}`).removeAttribute("aria-current");
  }
  engine.show(isEngine);
  if (!isEngine) chat.focusField();
}

const toggleView = () => (location.hash = location.hash === "#engine" ? "#chat" : "#engine");

// ---- the list on narrow screens

function showSidebar(isOpen) {
  $("app").classList.toggle("with-sidebar", isOpen);
  $("shade").hidden = !isOpen;
  $("sidebar-open").setAttribute("aria-expanded", String(isOpen));
  if (isOpen) $("sidebar-close").focus();
}

// ---- colours

const THEMES = { "": ["contrast", "as the system"], light: ["sun", "light"], dark: ["moon", "dark"] };

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  const label = `Colours: ${THEMES[theme][1]}`;
  setIcon($("theme-toggle"), THEMES[theme][0]);
  $("theme-toggle").setAttribute("aria-label", label);
  $("theme-toggle").title = label;
  engine.recolour();
  try {
    localStorage.setItem("nib.theme", theme);
  } catch {
    // Until the page is left.
  }
}

function nextTheme() {
  const names = Object.keys(THEMES),
    at = names.indexOf(document.documentElement.dataset.theme ?? "");
  setTheme(names[(at + 1) % names.length]);
  announce($("theme-toggle").title);
}

// ---- help and key

function openHelp() {
  const dialog = $("help");
  dialog.replaceChildren(
    h(
      "form",
      { method: "dialog" },
      h("h2", { id: "help-title" }, "Keyboard"),
      h(
        "dl.shortcuts",
        {},
        SHORTCUTS.map(([keys, what]) => [
          h(
            "dt",
            {},
            keys.split(" ").map((k) => h("kbd", {}, k)),
          ),
          h("dd", {}, what),
        ]),
      ),
      h("p.note", {}, h("a", { href: "/assets/licenses.txt", target: "_blank" }, "Licences of the libraries in this page")),
      h("div.actions", {}, h("button.button.primary", {}, "Close")),
    ),
  );
  dialog.showModal();
}

let asking = null;
async function askForKey(wasWrong) {
  asking ??= ask(
    "API key",
    wasWrong ? "The server does not know this key." : "This server answers to those who have a key.",
    [
      { name: "key", label: "Key", type: "password" },
      { name: "keep", label: "Keep it in this browser", type: "checkbox" },
    ],
    "Use it",
  );
  const values = await asking;
  asking = null;
  if (!values?.key) return false;
  setKey(values.key.trim(), values.keep);
  return true;
}

// ---- shortcuts

const ALT = {
  n: () => newChat(),
  k: () => (showSidebar(true), $("search").focus()),
  e: toggleView,
  t: nextTheme,
  s: () => settings(),
  m: () => ((location.hash = "#chat"), $("composer-text").focus()),
};

function onKey(event) {
  if (document.querySelector("dialog[open]")) return;
  const isTyping = event.target.closest("input, textarea, select");
  const letter = event.code.startsWith("Key") ? event.code.slice(3).toLowerCase() : "";
  if (event.altKey && !event.ctrlKey && !event.metaKey && ALT[letter]) {
    event.preventDefault();
    ALT[letter]();
  } else if (event.key === "Escape") {
    if ($("app").classList.contains("with-sidebar")) (showSidebar(false), $("sidebar-open").focus());
    else chat.stop();
  } else if (event.key === "?" && !isTyping) openHelp();
}

function newChat() {
  location.hash = "#chat";
  showSidebar(false);
  chat.open(null);
}

const settings = () => openSettings(chat.current(), chat.saveCurrent);

async function findModel() {
  try {
    const { data } = await json("/v1/models");
    const [first] = data;
    const context = first.max_model_len ?? first.context_length ?? first.meta?.n_ctx ?? 0;
    $("model").textContent = first.id;
    chat.setModel({ id: first.id, context });
  } catch (error) {
    $("model").textContent = error.status === 503 ? "the model is being loaded …" : "not connected";
    if (error.status === 503) setTimeout(findModel, 1000);
    else toast(error.message);
  }
}

async function main() {
  for (const button of document.querySelectorAll("[data-icon]")) setIcon(button, button.dataset.icon);
  onKeyNeeded(askForKey);
  if (!(await store.open())) toast("This browser keeps no conversations in this window: they are gone when the page is closed.");
  sidebar.start({ open: (id) => ((location.hash = "#chat"), showSidebar(false), chat.open(id)), change: chat.change });
  $("new-chat").addEventListener("click", newChat);
  $("sidebar-open").addEventListener("click", () => showSidebar(true));
  $("sidebar-close").addEventListener("click", () => (showSidebar(false), $("sidebar-open").focus()));
  $("shade").addEventListener("click", () => showSidebar(false));
  $("settings-open").addEventListener("click", settings);
  $("theme-toggle").addEventListener("click", nextTheme);
  $("help-open").addEventListener("click", openHelp);
  addEventListener("hashchange", showView);
  addEventListener("keydown", onKey);
  setTheme(document.documentElement.dataset.theme ?? "");
  await chat.start();
  showView();
  await findModel();
}

main();
