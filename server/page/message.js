// server/page/message.js - one message on the page: its text, thinking, tool calls, files, figures, and what can be done with it.
import { bytes, copyText, count, h, icon, iconButton, milliseconds, plural } from "./dom.js";
import { render } from "./markdown.js";

const ROLES = { user: "You", assistant: "Assistant", tool: "Result" };
const FINISH = {
  length: "Cut: it has the length that was asked for, or fills the context.",
  stopped: "Stopped.",
  timeout: "Cut: it took too long.",
  content_filter: "Cut by a filter.",
};

const pretty = (json) => {
  try {
    return JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
};

// The figures of an answer in words: [[text, explanation]].
export function figures(stats) {
  const parts = [];
  if (stats?.ttft !== undefined) parts.push([`TTFT ${milliseconds(stats.ttft)}`, "Time to the first token"]);
  if (stats?.tpot > 0.01) {
    parts.push([`TPOT ${milliseconds(stats.tpot)}`, "Time per token of the answer, after the first"]);
    parts.push([`${(1000 / stats.tpot).toFixed(1)} tokens/s`, "Tokens of the answer per second, after the first"]);
  }
  if (stats?.generated) parts.push([plural(stats.generated, "token"), "Tokens of the answer"]);
  if (stats?.prompt)
    parts.push([
      `prompt ${count(stats.prompt)}, ${count(stats.cached ?? 0)} cached`,
      "Tokens of the prompt, and those of them that were found computed",
    ]);
  return parts;
}

export class MessageView {
  constructor(node, actions) {
    this.node = node;
    this.actions = actions;
    this.body = h("div.md");
    this.thinking = null;
    this.calls = [];
    this.foot = h("div.message-foot");
    this.files = h(
      "ul.files",
      { "aria-label": "Files of this message" },
      (node.files ?? []).map((f) =>
        h("li", {}, icon("file"), h("span", {}, f.name), h("small", {}, bytes(f.size ?? f.text.length))),
      ),
    );
    const name = ROLES[node.role];
    this.element = h(
      `article.message.${node.role}`,
      { "aria-label": name, "data-id": node.id },
      h("h2.visually-hidden", {}, name),
      node.files?.length ? this.files : null,
      this.body,
      this.foot,
    );
    this.update();
  }

  get isLive() {
    return this.actions.isLive(this.node);
  }

  update() {
    const { node, isLive } = this;
    this.element.classList.toggle("live", isLive);
    this.element.setAttribute("aria-busy", String(isLive));
    if (node.role === "user") this.body.textContent = node.content;
    else if (node.role === "tool") this.body.replaceChildren(h("pre", { tabindex: "0" }, pretty(node.content)));
    else this.updateAnswer();
    this.updateFoot();
  }

  updateAnswer() {
    const { node, isLive } = this;
    if (node.reasoning) this.updateThinking();
    this.element.classList.toggle("waits", isLive && !node.content && !node.reasoning && !node.calls?.length);
    render(this.body, node.content);
    for (const [i, call] of (node.calls ?? []).entries()) this.updateCall(i, call);
    this.note?.remove();
    this.note = null;
    if (node.error) {
      this.note = h(
        "div.fault",
        { role: "group", "aria-label": "Error" },
        h("p", {}, node.error),
        h("button.button", { type: "button", onclick: () => this.actions.again(node) }, icon("again"), "Try again"),
      );
    } else if (!isLive && FINISH[node.finish])
      this.note = h(
        "p.finish",
        {},
        FINISH[node.finish],
        node.content && node.finish !== "content_filter"
          ? h("button.button", { type: "button", onclick: () => this.actions.goOn(node) }, "Go on")
          : null,
      );
    if (this.note) this.foot.before(this.note);
  }

  updateThinking() {
    const { node, isLive } = this;
    if (!this.thinking) {
      this.thought = h("div.thought");
      this.thinkingLabel = h("span");
      this.thinking = h("details.thinking", {}, h("summary", {}, icon("right"), this.thinkingLabel), this.thought);
      this.body.before(this.thinking);
    }
    const isThinking = isLive && !node.content && !node.calls?.length;
    this.thinking.classList.toggle("now", isThinking);
    this.thinkingLabel.textContent = isThinking ? "Thinking …" : "Thoughts";
    this.thought.textContent = node.reasoning;
  }

  updateCall(i, call) {
    if (!this.calls[i]) {
      const code = h("pre", { tabindex: "0" }),
        name = h("code");
      const box = h("section.call", { "aria-label": "Tool call" }, h("div.call-head", {}, icon("tool"), "calls ", name), code);
      this.calls[i] = { box, code, name };
      this.foot.before(box);
    }
    const { box, code, name } = this.calls[i];
    name.textContent = call.name;
    code.textContent = this.isLive ? call.arguments : pretty(call.arguments);
    if (!this.isLive && this.actions.wantsResult(this.node, call)) this.askResult(box, call);
    else box.querySelector(".call-result")?.remove();
  }

  askResult(box, call) {
    if (box.querySelector(".call-result")) return;
    const text = h("textarea", { rows: "2", "aria-label": `Result of ${call.name}`, placeholder: "What the tool answers" });
    box.append(
      h(
        "form.call-result",
        {
          onsubmit: (event) => {
            event.preventDefault();
            this.actions.result(this.node, call, text.value);
          },
        },
        text,
        h("button.button", {}, "Give the result"),
      ),
    );
  }

  updateFoot() {
    const { node, isLive, actions } = this;
    const parts = isLive ? [] : [this.siblings(), this.buttons()];
    if (node.role === "assistant") {
      this.stats ??= h("div.stats");
      this.stats.replaceChildren(...figures(actions.stats(node)).map(([text, title]) => h("span", { title }, text)));
      parts.splice(1, 0, this.stats);
    }
    if (isLive && this.foot.contains(this.stats)) return; // only the figures changed
    this.foot.replaceChildren(...parts.filter(Boolean));
  }

  siblings() {
    const all = this.actions.siblings(this.node),
      at = all.indexOf(this.node);
    if (all.length < 2) return null;
    const go = (step) => () => this.actions.show(all[at + step], step);
    return h(
      "div.siblings",
      { role: "group", "aria-label": "Versions" },
      iconButton("left", "Version before", go(-1), { disabled: at === 0 }),
      h("span", {}, `${at + 1}/${all.length}`),
      iconButton("right", "Next version", go(1), { disabled: at === all.length - 1 }),
    );
  }

  buttons() {
    const { node, actions } = this;
    const copy = iconButton("copy", "Copy", () => copyText(node.content, copy));
    const again = node.role === "assistant" ? iconButton("again", "Answer again", () => actions.again(node)) : null;
    const edit = node.role === "tool" ? null : iconButton("edit", "Edit", () => this.edit());
    return h(
      "div.buttons",
      { role: "group", "aria-label": "Actions" },
      copy,
      edit,
      again,
      iconButton("branch", "Go on in a new conversation", () => actions.branch(node)),
      iconButton("trash", "Delete from here on", () => actions.remove(node)),
    );
  }

  edit() {
    const { node, actions } = this;
    const text = h("textarea", {
      value: node.content,
      rows: String(Math.min(16, node.content.split("\n").length + 1)),
      "aria-label": "Edit the message",
    });
    const close = () => {
      form.replaceWith(this.body);
      this.foot.hidden = false;
    };
    const form = h(
      "form.edit",
      {
        onsubmit: (event) => {
          event.preventDefault();
          close();
          actions.edit(node, text.value);
        },
        onkeydown: (event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            close();
          } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
        },
      },
      text,
      h(
        "div.actions",
        {},
        h("button.button.quiet", { type: "button", onclick: close }, "Cancel"),
        h("button.button.primary", {}, node.role === "user" ? "Send" : "Keep"),
      ),
    );
    this.body.replaceWith(form);
    this.foot.hidden = true;
    text.focus();
  }
}
