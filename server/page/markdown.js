// server/page/markdown.js - Markdown of a model -> elements. The text is not trusted: of its HTML only plain tags count, the rest
// is text; then everything goes through DOMPurify with a short list of what may stay, no class but the highlighter's, no
// picture that would have to be fetched.
//
// A text that is still growing is cut into its blocks; only blocks that changed are made again.
// The libraries come from the build; without them (they are null then) text is shown as it is.
import { DOMPurify, hljs, marked } from "./libraries.js";
import { copyText, h, iconButton } from "./dom.js";

export const isRich = Boolean(marked && DOMPurify);

const MAX_HIGHLIGHT = 60000; // characters of a block of code
const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (c) => escapes[c]);

// Tags that may stand in Markdown, without attributes; any other is shown as the text that it is.
const PLAIN = (
  "b blockquote br code dd del details dl dt em h1 h2 h3 h4 h5 h6 hr i " +
  "kbd li mark ol p pre s strong sub summary sup table tbody td th thead tr u ul"
).split(" ");
const TAGS = new RegExp(`&lt;(/?(?:${PLAIN.join("|")}))\\s*/?&gt;`, "gi");

const renderer = {
  html({ text }) {
    return escape(text).replace(TAGS, "<$1>");
  },
  code({ text, lang }) {
    const name = (lang ?? "").trim().split(/\s+/)[0].toLowerCase();
    const known = hljs && text.length <= MAX_HIGHLIGHT && hljs.getLanguage(name);
    const html = known ? hljs.highlight(text, { language: name, ignoreIllegals: true }).value : escape(text);
    return `<pre><code class="language-${escape(name)}">${html}</code></pre>`;
  },
  image({ href, text }) {
    return /^data:image\/(png|jpeg|gif|webp);/i.test(href)
      ? `<img src="${escape(href)}" alt="${escape(text)}">`
      : `<a href="${escape(href)}">${escape(text || "picture")}</a>`;
  },
};

const CLEAN = {
  ALLOWED_TAGS: [...PLAIN, "a", "img", "input", "span"],
  ALLOWED_ATTR: ["href", "class", "alt", "src", "start", "align", "colspan", "rowspan", "type", "checked", "disabled", "open"],
  ADD_URI_SAFE_ATTR: ["start", "align", "colspan", "rowspan", "type", "checked", "disabled", "open"], // no addresses
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|data:image\/(?:png|jpeg|gif|webp);)/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

if (isRich) {
  marked.use({ gfm: true, renderer });
  DOMPurify.addHook("uponSanitizeAttribute", (node, data) => {
    if (data.attrName === "class")
      data.attrValue = data.attrValue
        .split(/\s+/)
        .filter((c) => /^(hljs|language)-[\w+#.-]*$/.test(c))
        .join(" ");
    if (data.attrName === "src" && !/^data:image\//i.test(data.attrValue)) data.keepAttr = false;
    if (data.attrName === "href" && /^data:/i.test(data.attrValue)) data.keepAttr = false;
  });
  DOMPurify.addHook("afterSanitizeAttributes", (node) => {
    if (node.nodeName === "INPUT") {
      if (node.getAttribute("type") !== "checkbox") node.remove();
      node.disabled = true;
    }
    if (node.nodeName === "IMG" && !node.getAttribute("src")) node.replaceWith(node.getAttribute("alt") ?? "");
    if (node.nodeName === "A" && node.hasAttribute("href")) {
      node.target = "_blank";
      node.rel = "noopener noreferrer nofollow";
    }
  });
}

function frameCode(pre) {
  const code = pre.querySelector("code") ?? pre;
  const language = /language-([^\s]*)/.exec(code.className)?.[1] ?? "";
  const copy = iconButton("copy", "Copy this code", () => copyText(code.textContent, copy));
  const frame = h("div.code", {}, h("div.code-head", {}, h("span", {}, language || "text"), copy));
  pre.replaceWith(frame);
  pre.tabIndex = 0;
  frame.append(pre);
}

function toBlock(html) {
  const fragment = DOMPurify.sanitize(html, CLEAN);
  for (const pre of fragment.querySelectorAll("pre")) frameCode(pre);
  for (const table of fragment.querySelectorAll("table")) {
    const frame = h("div.table", { tabindex: "0" });
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const box of fragment.querySelectorAll("input")) box.setAttribute("aria-label", box.checked ? "done" : "not done");
  return h("div.block", {}, fragment);
}

function htmlOf(token, links) {
  const tokens = [token];
  tokens.links = links;
  return marked.parser(tokens);
}

// Shows `text` in `element`, which keeps what it showed before in `element.blocks`.
export function render(element, text) {
  if (!isRich) {
    element.classList.add("plain");
    element.textContent = text;
    return;
  }
  const tokens = marked.lexer(text),
    links = tokens.links;
  const shown = element.blocks ?? [],
    next = [];
  const isLinked = Object.keys(links).length > 0; // a definition below may change what is above
  let isSame = !isLinked;
  for (const [i, token] of tokens.filter((t) => t.type !== "space").entries()) {
    isSame &&= shown[i]?.raw === token.raw;
    next.push(isSame ? shown[i] : { raw: token.raw, element: toBlock(htmlOf(token, links)) });
    if (isSame) continue;
    if (shown[i]) shown[i].element.replaceWith(next[i].element);
    else element.append(next[i].element);
  }
  for (const { element: old } of shown.slice(next.length)) old.remove();
  element.blocks = next;
}
