// server/page/dom.js - elements, icons, numbers, and words to people. Text goes into the page as text nodes only.

export const $ = (id) => document.getElementById(id);

// h("p.note", {onclick}, "text", element, …): properties that begin with "on" are listeners, others are attributes.
export function h(selector, properties, ...children) {
  const [tag, ...classes] = selector.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") element[name] = value;
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  upload: "M12 16V5M7.5 9.500L12 5l4.5 4.500M5 19h14",
  download: "M12 5v11M7.5 11.500L12 16l4.5-4.500M5 19h14",
  sliders: "M4 8h9M17 8h3M4 16h3M11 16h9M15 5.500v5M9 13.500v5",
  contrast: "M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16zM12 4v16M12 8.500h6.500M12 12h8M12 15.500h6.5",
  sun: "M12 8a4 4 0 1 0 0 8a4 4 0 1 0 0-8zM12 2.500v2M12 19.500v2M2.5 12h2M19.5 12h2M5.3 5.300l1.4 1.400M17.3 17.300l1.4 1.400M18.7 5.300l-1.4 1.400M6.7 17.300l-1.4 1.4",
  moon: "M19.5 14.500A8 8 0 0 1 9.5 4.500a8 8 0 1 0 10 10z",
  help: "M9 9.200a3 3 0 1 1 4.6 2.500c-1 .7-1.6 1.3-1.6 2.500M12 17.500v.1",
  clip: "M19 11.500l-7 7a4.5 4.5 0 0 1-6.4-6.400l7.5-7.500a3 3 0 0 1 4.3 4.300l-7.4 7.400a1.5 1.5 0 0 1-2.2-2.200l6.7-6.6",
  send: "M12 19V6M6.5 11.500L12 6l5.5 5.5",
  stop: "M8 8h8v8H8z",
  down: "M12 5v13M6.5 12.500L12 18l5.5-5.5",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  check: "M5 12.500l4.5 4.500L19 7.5",
  edit: "M5 19l1-4L16.5 4.500l3 3L9 18l-4 1z",
  again: "M19 12a7 7 0 1 1-2.2-5.100M19 4v4h-4",
  branch: "M7 5v14M7 15c0-4 10-2 10-7M5 5h4M5 19h4M15 6h4",
  left: "M14.5 6L9 12l5.5 6",
  right: "M9.5 6l5.5 6-5.5 6",
  trash: "M5 7h14M10 7V5h4v2M7 7l1 12h8l1-12",
  file: "M7 4h7l4 4v12H7zM14 4v4h4",
  tool: "M14.5 6.500a4 4 0 0 1 5-1l-2.7 2.7 1.8 1.800L21 7.500a4 4 0 0 1-5.5 4.700L8 19.5 4.5 16l7.3-7.500a4 4 0 0 1 2.7-2z",
  pause: "M9 6v12M15 6v12",
  play: "M8 5.500l10 6.5-10 6.500z",
};

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg"),
    path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("class", "icon");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

export function setIcon(button, name) {
  button.querySelector(":scope > .icon")?.remove();
  button.prepend(icon(name));
}

// A button that is an icon; its label is also its tooltip.
export function iconButton(name, label, onclick, properties) {
  return h("button.icon-button", { type: "button", title: label, "aria-label": label, onclick, ...properties }, icon(name));
}

const words = new Intl.NumberFormat("en");
export const count = (n) => words.format(n);
export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
export function milliseconds(ms) {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  return ms < 1000 ? `${Math.round(ms)} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : `${(ms / 60000).toFixed(1)} min`;
}
export function bytes(n) {
  return n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;
}

// For screen readers.
export function announce(text) {
  $("status").textContent = text;
}

let toastTimer = 0;
export function toast(text) {
  const box = $("toast");
  box.textContent = text;
  box.classList.add("shown");
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.classList.remove("shown"), 6000);
}

export async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without https the clipboard is closed to pages; selecting and copying is not.
    const area = h("textarea.visually-hidden", { value: text });
    (button.closest("dialog") ?? document.body).append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
    button.focus();
  }
  setIcon(button, "check");
  announce("Copied");
  setTimeout(() => setIcon(button, "copy"), 1500);
}

export function saveFile(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// Asks in a dialog; fields: [{name, label, type, value, hint}]. Gives {name: value} or null when it was left.
export function ask(title, text, fields, action) {
  const dialog = $("ask");
  const inputs = fields.map((f) =>
    h("input", {
      type: f.type ?? "text",
      name: f.name,
      value: f.value ?? "",
      checked: f.checked ?? false,
      id: `ask-field-${f.name}`,
      autocomplete: "off",
      spellcheck: "false",
    }),
  );
  const rows = fields.map((f, i) =>
    f.type === "checkbox"
      ? h("label.check", {}, inputs[i], f.label)
      : h("div.field", {}, h("label", { for: `ask-field-${f.name}` }, f.label), inputs[i]),
  );
  const form = h(
    "form",
    { method: "dialog" },
    h("h2", { id: "ask-title" }, title),
    text ? h("p", {}, text) : null,
    rows,
    h(
      "div.actions",
      {},
      h("button.button.quiet", { type: "button", onclick: () => dialog.close("") }, "Cancel"),
      h("button.button.primary", { value: "ok" }, action),
    ),
  );
  dialog.replaceChildren(form);
  dialog.returnValue = "";
  dialog.showModal();
  inputs[0]?.select?.();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        const values = Object.fromEntries(
          fields.map((f, i) => [f.name, f.type === "checkbox" ? inputs[i].checked : inputs[i].value]),
        );
        resolve(dialog.returnValue === "ok" ? values : null);
      },
      { once: true },
    );
  });
}
