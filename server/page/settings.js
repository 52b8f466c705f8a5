// server/page/settings.js - the dialog of settings: the system prompt of the conversation, sampling and tools of this browser.
// A field that is left empty is not sent: the server's default holds.
import { $, h, toast } from "./dom.js";

// [name, label, least, most, what it does]
const FIELDS = [
  ["temperature", "Temperature", 0, 5, "0: always the likeliest token"],
  ["top_p", "Top p", 0, 1, "The likeliest tokens that have this share together"],
  ["top_k", "Top k", 0, 100000, "So many of the likeliest; 0: all"],
  ["min_p", "Min p", 0, 1, "At least this share of the likeliest"],
  ["repetition_penalty", "Repetition penalty", 0, 5, "1: none"],
  ["presence_penalty", "Presence penalty", -2, 2, "0: none"],
  ["frequency_penalty", "Frequency penalty", -2, 2, "0: none"],
  ["max_tokens", "Longest answer", 1, 10000000, "Tokens"],
  ["seed", "Seed", 0, 4294967295, "The same one gives the same answer"],
];
const INTEGERS = new Set(["top_k", "max_tokens", "seed"]);
const EFFORTS = ["", "none", "low", "medium", "high"];
const KEY = "nib.settings";

let settings = {};
try {
  settings = JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
} catch {
  settings = {};
}

// The part of a request's body that comes from the settings.
export function toBody() {
  const body = {};
  for (const [name] of FIELDS) if (Number.isFinite(settings[name])) body[name] = settings[name];
  if (settings.reasoning_effort) body.reasoning_effort = settings.reasoning_effort;
  if (Array.isArray(settings.stop) && settings.stop.length) body.stop = settings.stop;
  if (Array.isArray(settings.tools) && settings.tools.length) body.tools = settings.tools;
  return body;
}

export const defaultSystem = () => (typeof settings.system === "string" ? settings.system : "");

function store() {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    toast("The browser does not keep settings.");
  }
}

function field(id, label, input, hint) {
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return h("div.field", {}, h("label", { for: id }, label), input, hint ? h("small", { id: `${id}-hint` }, hint) : null);
}

function checkTools(text) {
  if (!text.trim()) return [];
  const tools = JSON.parse(text);
  if (!Array.isArray(tools) || tools.some((t) => typeof t?.function?.name !== "string")) throw new Error();
  return tools;
}

// talk: its system prompt is edited; save(): called when it changed.
export function openSettings(talk, save) {
  const dialog = $("settings");
  const system = h("textarea", { rows: "4", value: talk.system, placeholder: "What the model should be and do" });
  const isDefault = h("input", { type: "checkbox", checked: talk.system !== "" && talk.system === defaultSystem() });
  const inputs = new Map(
    FIELDS.map(([name, , min, max]) => [
      name,
      h("input", {
        type: "number",
        step: INTEGERS.has(name) ? "1" : "any",
        min,
        max,
        placeholder: "server’s",
        inputmode: "decimal",
        value: settings[name] ?? "",
      }),
    ]),
  );
  const effort = h(
    "select",
    {},
    EFFORTS.map((value) => h("option", { value }, value || "server’s")),
  );
  effort.value = settings.reasoning_effort ?? "";
  const stops = h("input", { type: "text", value: (settings.stop ?? []).join(" | "), spellcheck: "false" });
  const tools = h("textarea.mono", {
    rows: "4",
    spellcheck: "false",
    value: settings.tools?.length ? JSON.stringify(settings.tools, null, 2) : "",
    placeholder: '[{"type": "function", "function": {"name": "weather", "parameters": {…}}}]',
  });
  const fault = h("p.field-fault", { role: "alert" });

  const form = h(
    "form",
    {
      method: "dialog",
      onsubmit: (event) => {
        try {
          settings.tools = checkTools(tools.value);
        } catch {
          event.preventDefault();
          fault.textContent = "Tools must be a JSON list of functions, each with a name.";
          tools.setAttribute("aria-invalid", "true");
          tools.focus();
          return;
        }
        for (const [name, input] of inputs) settings[name] = input.value === "" ? undefined : Number(input.value);
        settings.reasoning_effort = effort.value;
        settings.stop = stops.value
          .split("|")
          .map((s) => s.trim())
          .filter(Boolean);
        if (isDefault.checked) settings.system = system.value;
        else if (settings.system === talk.system) delete settings.system;
        store();
        if (talk.system !== system.value) {
          talk.system = system.value;
          save();
        }
      },
    },
    h("h2", { id: "settings-title" }, "Settings"),
    h(
      "fieldset",
      {},
      h("legend", {}, "This conversation"),
      field("set-system", "System prompt", system),
      h("label.check", {}, isDefault, "Use it for new conversations, too"),
    ),
    h(
      "fieldset",
      {},
      h("legend", {}, "Sampling"),
      h(
        "div.grid",
        {},
        FIELDS.map(([name, label, , , hint]) => field(`set-${name}`, label, inputs.get(name), hint)),
        field("set-effort", "Thinking", effort, "For models that think"),
        field("set-stop", "Stop strings", stops, "With | between them"),
      ),
    ),
    h(
      "fieldset",
      {},
      h("legend", {}, "Tools"),
      field("set-tools", "Functions that the model may call", tools, "You give their results by hand."),
      fault,
    ),
    h(
      "div.actions",
      {},
      h(
        "button.button.quiet",
        {
          type: "button",
          onclick: () => {
            for (const input of [...inputs.values(), stops, tools, effort]) input.value = "";
          },
        },
        "Server’s defaults",
      ),
      h("span.spring"),
      h("button.button.quiet", { type: "button", onclick: () => dialog.close() }, "Cancel"),
      h("button.button.primary", {}, "Save"),
    ),
  );
  dialog.replaceChildren(form);
  dialog.showModal();
}
