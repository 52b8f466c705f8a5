// tests/page/test_page.mjs - the web page in a real Chromium, against a played server (mock.mjs) and, where one is given, against
// nib itself. Every test begins with a fresh browser context; a request that leaves the origin, an error on the console or a
// violation of the policy fails whatever test it happens in.
// usage: node test_page.mjs MODULES_DIR PAGE_DIR [NIB MODEL]     without a model only against the played server
// NIB_PAGE_SHOTS=DIR keeps screenshots to look at.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { CSP, EVIL, start } from "./mock.mjs";

const [modules, assets, nib, model] = process.argv.slice(2);
const { chromium } = createRequire(resolve(modules, "x"))("playwright-core");
const axe = readFileSync(join(modules, "node_modules/axe-core/axe.min.js"), "utf8");
const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const mock = await start(assets),
  browser = await chromium.launch({ executablePath: program, args: ["--no-sandbox"] });
const temporary = mkdtempSync(join(tmpdir(), "nib-page-"));
const isRich = !readFileSync(join(assets, "assets/libraries.js"), "utf8").includes("null");
const tests = [];
const test = (name, run, options = {}) => tests.push({ name, run, ...options });

// ---- what tests do

const field = "#composer-text";
async function say(page, text) {
  await page.fill(field, text);
  await page.keyboard.press("Enter");
  await answered(page);
}
const answered = (page) => page.waitForFunction(() => document.getElementById("stop").hidden);
const texts = (page, role) => page.locator(`.message.${role} .md`).allInnerTexts();
const button = (page, message, name) => page.locator(".message").nth(message).getByRole("button", { name, exact: true });
const shot = (page, name) =>
  process.env.NIB_PAGE_SHOTS && page.screenshot({ path: join(process.env.NIB_PAGE_SHOTS, `${name}.png`) });

async function checkAxe(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  const faults = violations.map((v) => `${v.impact} ${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3)}`);
  assert.deepEqual(faults, [], what);
}

// ---- the chat

test("an answer streams, with its figures", async (page) => {
  await page.fill(field, "endless");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".assistant .md")?.innerText.length > 40);
  assert.equal(await page.locator(".assistant").getAttribute("aria-busy"), "true");
  const early = (await texts(page, "assistant"))[0].length;
  await page.waitForFunction((n) => document.querySelector(".assistant .md").innerText.length > n, early);
  assert.match(await page.locator(".stats").innerText(), /TTFT .*TPOT .*tokens\/s/s);
  const aborted = mock.aborted;
  await page.keyboard.press("Escape");
  await answered(page);
  assert.match(await page.locator(".finish").innerText(), /Stopped/);
  assert.equal(mock.aborted, aborted + 1);
  assert.equal(await page.evaluate(() => document.getElementById("status").textContent), "Stopped");
  const [cut] = await texts(page, "assistant");
  await page.getByRole("button", { name: "Go on", exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".assistant .md").innerText.endsWith("the end."));
  await answered(page);
  assert.equal((await texts(page, "assistant"))[0], `${cut.trimEnd()} the end.`);
  assert.deepEqual(
    mock.requests.at(-1).messages.map((m) => m.role),
    ["user", "assistant"],
  );
  await say(page, "hello");
  assert.match(await page.locator(".assistant .stats").last().innerText(), /prompt 158, 128 cached/);
  assert.match(await page.locator("#meter-tokens").innerText(), /^16\d of 8,192 tokens$/);
});

test(
  "Markdown becomes elements, code is coloured",
  async (page) => {
    await say(page, "markdown");
    assert.equal(await page.locator(".assistant h2 ~ .md h2, .assistant .md h2").innerText(), "A list, twice as fast");
    assert.ok((await page.locator(".code .hljs-keyword").count()) >= 2);
    assert.equal(await page.locator(".assistant table tr").count(), 3);
    assert.equal(await page.locator(".assistant input[type=checkbox]:disabled").count(), 2);
    assert.equal(await page.locator(".assistant .md a").getAttribute("rel"), "noopener noreferrer nofollow");
    const whole = await page.evaluate(async () => {
      const { render } = await import("/assets/markdown.js"),
        { RICH } = window;
      const element = document.createElement("div"),
        again = document.createElement("div");
      for (let n = 1; n <= RICH.length; n += 7) render(element, RICH.slice(0, n));
      render(element, RICH);
      render(again, RICH);
      return element.innerHTML === again.innerHTML;
    });
    assert.ok(whole, "streamed in pieces it looks as at once");
  },
  { needsLibraries: true },
);

test("what a model writes cannot act", async (page) => {
  await say(page, "evil");
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  const bad = await page.evaluate(() =>
    [...document.querySelectorAll(".assistant *")].flatMap((e) => {
      const names = e
        .getAttributeNames()
        .filter((n) => n.startsWith("on") || n === "style" || n === "srcset" || (n === "id" && e.closest(".md")));
      const isBad =
        ["SCRIPT", "IFRAME", "FORM", "STYLE", "OBJECT", "EMBED", "MATH", "LINK"].includes(e.tagName) ||
        (e.closest(".md") && e.tagName === "svg" && !e.matches(".icon"));
      const address = e.getAttribute("href") ?? e.getAttribute("src") ?? "";
      return [...names, ...(isBad ? [e.tagName] : []), ...(address && !/^(https:|data:image)/.test(address) ? [address] : [])];
    }),
  );
  assert.deepEqual(bad, []);
  assert.equal(await page.locator(".assistant .md .toast").count(), 0);
  await page.evaluate(async (html) => {
    const { render } = await import("/assets/markdown.js");
    for (let n = 0; n < html.length; n += 3) render(document.body.appendChild(document.createElement("div")), html.slice(0, n));
  }, EVIL);
  await page.waitForTimeout(200);
  assert.equal(await page.evaluate(() => window.pwned), undefined);
});

test("names of files and conversations are text", async (page) => {
  const name = "<img src=x onerror=window.pwned=1>.txt";
  await page.setInputFiles("#attach-file", { name, mimeType: "text/plain", buffer: Buffer.from("the contents ``` of it") });
  await say(page, "<b>bold</b><img src=x onerror=window.pwned=2>");
  assert.equal(await page.locator(".message.user .files span").innerText(), name);
  assert.match((await texts(page, "user"))[0], /^<b>bold/);
  assert.match(mock.requests.at(-1).messages[0].content, /^<img.*\.txt:\n````\nthe contents ``` of it\n````\n\n<b>/);
  assert.match(await page.locator(".conversation").innerText(), /^<b>bold/);
  await page.hover(".conversation");
  await page.locator(".row-tools button").first().click();
  await page.fill("#ask-field-title", "<script>window.pwned=3</script>");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".conversation").textContent.startsWith("<script>"));
  assert.equal(await page.evaluate(() => window.pwned), undefined);
  await page.setInputFiles("#attach-file", {
    name: "a.bin",
    mimeType: "application/octet-stream",
    buffer: Buffer.from([0xff, 0xfe, 0]),
  });
  await page.waitForFunction(() => document.getElementById("toast").textContent.includes("a.bin is no text"));
});

test("thinking is folded", async (page) => {
  await say(page, "think");
  const thoughts = page.locator("details.thinking");
  assert.equal(await thoughts.getAttribute("open"), null);
  await thoughts.locator("summary").click();
  assert.match(await page.locator(".thought").innerText(), /First I look/);
  assert.equal((await texts(page, "assistant"))[0], "Forty-two.");
});

test("tool calls are shown and given results", async (page) => {
  await say(page, "tool");
  assert.equal(await page.locator(".call code").innerText(), "weather");
  assert.deepEqual(JSON.parse(await page.locator(".call pre").innerText()), { city: "Paris", days: 2 });
  await page.fill(".call-result textarea", "sunny");
  await page.click(".call-result button");
  await page.waitForFunction(() => document.querySelectorAll(".assistant").length === 2);
  await answered(page);
  const { messages } = mock.requests.at(-1);
  assert.deepEqual(messages.slice(1), [
    {
      role: "assistant",
      content: "",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris","days":2}' } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
  ]);
  assert.equal((await texts(page, "assistant"))[1], "The tool said sunny.");
});

test("edit, answer again, versions, delete", async (page) => {
  await say(page, "one");
  await say(page, "two");
  await page.locator(".message").nth(0).hover();
  await button(page, 0, "Edit").click();
  await page.fill(".edit textarea", "three");
  await page.keyboard.press("Control+Enter");
  await page.waitForFunction(() => document.querySelectorAll(".message").length === 2);
  await answered(page);
  assert.deepEqual(await texts(page, "user"), ["three"]);
  assert.deepEqual(await texts(page, "assistant"), ["Answer 1: three"]);
  await button(page, 0, "Version before").click();
  await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
  assert.deepEqual(await texts(page, "user"), ["one", "two"]);
  await button(page, 3, "Answer again").click();
  await page.waitForFunction(() => document.querySelectorAll(".siblings").length === 2);
  await answered(page);
  assert.match(await page.locator(".siblings span").last().innerText(), /2\/2/);
  assert.equal(mock.requests.at(-1).messages.length, 3);
  await button(page, 3, "Edit").click();
  await page.fill(".edit textarea", "my own words");
  await page.getByRole("button", { name: "Keep" }).click();
  assert.equal((await texts(page, "assistant"))[1], "my own words");
  assert.match(await page.locator(".siblings span").last().innerText(), /3\/3/);
  await button(page, 2, "Delete from here on").click();
  await page.waitForFunction(() => document.querySelectorAll(".message").length === 2);
  assert.equal(await page.evaluate(() => document.activeElement.id), "composer-text");
});

test("a branch is a conversation of its own", async (page) => {
  await say(page, "one");
  await say(page, "two");
  await button(page, 1, "Go on in a new conversation").click();
  await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 2);
  assert.deepEqual(await texts(page, "user"), ["one"]);
  await say(page, "other");
  await page.locator("li:not(.current) > .conversation").click();
  await page.waitForFunction(() => document.querySelectorAll(".message").length === 4);
  assert.deepEqual(await texts(page, "user"), ["one", "two"]);
});

test("conversations outlive the page, leave it and come back", async (page) => {
  await say(page, "keep me");
  await page.reload();
  await page.waitForSelector(".message.assistant");
  assert.deepEqual(await texts(page, "user"), ["keep me"]);
  const waiting = page.waitForEvent("download");
  await page.click("#export-all");
  const path = join(temporary, "all.json");
  await (await waiting).saveAs(path);
  await page.hover(".conversation");
  await page.getByRole("button", { name: /^Delete keep me/ }).click();
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.waitForFunction(() => !document.querySelector(".message"));
  await page.setInputFiles("#import-file", path);
  await page.waitForSelector(".message.assistant");
  assert.deepEqual(await texts(page, "assistant"), ["Answer 1: keep me"]);
  await page.setInputFiles("#import-file", path); // once more: a copy, nothing is overwritten
  await page.waitForFunction(() => document.querySelectorAll(".conversation").length === 2);
  for (const [wrong, words] of [
    ["no json", "no JSON"],
    ["{}", "no conversations"],
    ['{"format":"nib conversations","conversations":[{"nodes":[{"id":"a","parent":"b","role":"user"}]}]}', "damaged"],
  ]) {
    writeFileSync(join(temporary, "wrong.json"), wrong);
    await page.setInputFiles("#import-file", join(temporary, "wrong.json"));
    await page.waitForFunction((w) => document.getElementById("toast").textContent.includes(w), words);
  }
  await page.fill("#search", "nothing like it");
  assert.equal(await page.locator(".conversation").count(), 0);
});

test("settings and the system prompt are sent and kept", async (page) => {
  await page.keyboard.press("Alt+s");
  await page.fill("#set-system", "Be brief.");
  await page.fill("#set-temperature", "0.5");
  await page.fill("#set-top_k", "40");
  await page.fill("#set-stop", "END | STOP");
  await page.fill("#set-tools", "[1]");
  await page.getByRole("button", { name: "Save" }).click();
  assert.match(await page.locator(".field-fault").innerText(), /JSON list/);
  await page.fill("#set-tools", "");
  await page.getByLabel("Use it for new conversations, too").check();
  await page.getByRole("button", { name: "Save" }).click();
  await say(page, "hello");
  const body = mock.requests.at(-1);
  assert.deepEqual(body.messages[0], { role: "system", content: "Be brief." });
  assert.deepEqual([body.temperature, body.top_k, body.stop, body.top_p], [0.5, 40, ["END", "STOP"], undefined]);
  await page.reload();
  await page.keyboard.press("Alt+n");
  await say(page, "again");
  assert.equal(mock.requests.at(-1).messages[0].content, "Be brief.");
  assert.equal(mock.requests.at(-1).temperature, 0.5);
});

test(
  "errors are told, and tried again",
  async (page) => {
    mock.busy = true;
    await say(page, "hello");
    assert.match(await page.locator(".fault p").innerText(), /try again later \(503\)/);
    mock.busy = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await answered(page);
    assert.equal(await page.locator(".fault").count(), 0);
    await say(page, "midway");
    assert.match(await page.locator(".fault p").innerText(), /NaN/);
    assert.equal((await texts(page, "assistant"))[1], "So far so good");
  },
  { allowed: /503/ },
);

test(
  "a key is asked for",
  async (page) => {
    mock.key = "secret";
    try {
      await page.reload();
      for (const key of ["wrong", "secret"]) {
        await page.waitForSelector("#ask[open] #ask-field-key");
        await page.fill("#ask-field-key", key);
        await page.keyboard.press("Enter");
        await page.waitForFunction(
          (k) =>
            k === "wrong"
              ? document.querySelector("#ask").innerText.includes("does not know")
              : document.getElementById("model").textContent.includes("SmolLM2"),
          key,
        );
      }
      await say(page, "hello");
      assert.match((await texts(page, "assistant"))[0], /^Answer/);
    } finally {
      mock.key = null;
    }
  },
  { allowed: /401/ },
);

test("keyboard: focus, shortcuts, last message", async (page) => {
  assert.equal(await page.evaluate(() => document.activeElement.id), "composer-text");
  await say(page, "first");
  await page.keyboard.press("ArrowUp");
  assert.equal(await page.inputValue(".edit textarea"), "first");
  await page.keyboard.press("Escape");
  assert.equal(await page.locator(".edit").count(), 0);
  await page.locator("#scroller").focus();
  await page.keyboard.press("?");
  assert.ok(await page.locator("#help").isVisible());
  await page.keyboard.press("Escape");
  await page.keyboard.press("Alt+t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.keyboard.press("Alt+t");
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), "rgb(22, 23, 25)");
  await page.reload();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("Alt+e");
  await page.waitForSelector("#engine:not([hidden])");
});

test("a long answer stays at its end until one scrolls away", async (page) => {
  await page.fill(field, "endless");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("scroller").scrollHeight > innerHeight + 200, null, {
    timeout: 20000,
  });
  const distance = () =>
    page.evaluate(() => {
      const s = document.getElementById("scroller");
      return s.scrollHeight - s.scrollTop - s.clientHeight;
    });
  assert.ok((await distance()) < 60);
  await page.evaluate(() => (document.getElementById("scroller").scrollTop = 0));
  await page.waitForSelector("#jump:not([hidden])");
  await page.waitForTimeout(150);
  assert.equal(await page.evaluate(() => document.getElementById("scroller").scrollTop), 0);
  await page.click("#jump");
  assert.ok((await distance()) < 60);
  await page.click("#stop");
  await answered(page);
});

// ---- the engine

test("the engine is drawn, and only while it is looked at", async (page) => {
  assert.equal(mock.engineViews, 0);
  await page.click("#view-engine");
  await page.waitForFunction(() => document.querySelectorAll(".requests tbody tr").length > 5);
  assert.equal(mock.engineViews, 1);
  assert.match(
    await page.locator("canvas").nth(2).getAttribute("aria-label"),
    /^320 pages: \d+ free, \d+ cached, \d+ in use, \d+ shared$/,
  );
  const painted = await page.evaluate(() =>
    [...document.querySelectorAll(".engine canvas")].map(
      (c) => new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size,
    ),
  );
  assert.ok(
    painted.every((n) => n > 3),
    `colours of the canvases: ${painted}`,
  );
  const box = await page.locator(".panel-map canvas").boundingBox();
  await page.locator(".panel-map canvas").hover({ position: { x: 5, y: 5 } });
  assert.match(await page.locator(".panel-map .words").innerText(), /^Page 0: in the tree, used by #/, `${box.width}`);
  await page.getByRole("button", { name: "Freeze the picture" }).click();
  const frozen = await page.locator(".requests tbody").innerText();
  await page.waitForTimeout(400);
  assert.equal(await page.locator(".requests tbody").innerText(), frozen);
  await page.click("#view-chat");
  await page.waitForTimeout(300);
  assert.equal(mock.engineViews, 0);
});

// ---- looks and access

for (const scheme of ["light", "dark"])
  test(
    `axe finds nothing, and nothing sticks out at 360 px: ${scheme}`,
    async (page) => {
      await say(page, "think");
      await say(page, "tool");
      await say(page, "markdown");
      await say(page, "midway");
      await checkAxe(page, "chat");
      await shot(page, `${scheme}-chat`);
      await page.keyboard.press("Alt+s");
      await checkAxe(page, "settings");
      await shot(page, `${scheme}-settings`);
      await page.keyboard.press("Escape");
      await page.click("#view-engine");
      await page.waitForFunction(() => document.querySelectorAll(".requests tbody tr").length > 5);
      await checkAxe(page, "engine");
      await shot(page, `${scheme}-engine`);
      await page.setViewportSize({ width: 360, height: 740 });
      await page.waitForTimeout(200);
      const isWide = () =>
        page.evaluate(
          () =>
            document.documentElement.scrollWidth > 360 ||
            ["scroller", "engine"].some(
              (id) => document.getElementById(id).scrollWidth > document.getElementById(id).clientWidth,
            ),
        );
      assert.equal(await isWide(), false, "engine");
      await shot(page, `${scheme}-engine-phone`);
      await page.click("#view-chat");
      assert.equal(await isWide(), false, "chat");
      await shot(page, `${scheme}-chat-phone`);
      await page.click("#sidebar-open");
      await page.waitForFunction(() => document.activeElement.id === "sidebar-close");
      await page.waitForTimeout(250);
      await checkAxe(page, "list on a phone");
      await page.keyboard.press("Escape");
      assert.equal(await page.evaluate(() => document.activeElement.id), "sidebar-open");
    },
    { scheme, bypassCSP: true },
  ); // axe is a script from outside

test(
  "axe finds nothing on an empty page and in the help",
  async (page) => {
    await checkAxe(page, "empty");
    await page.locator("#help-open").click();
    await checkAxe(page, "help");
  },
  { bypassCSP: true },
);

// ---- nib itself

// Starts nib serve; resolves to {url, stop} when it takes requests.
async function serve() {
  const child = spawn(nib, ["serve", "-m", model, "--port", "0", "-c", "4096"], { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (part) => (said += part));
  const ended = new Promise((resolve) => child.on("exit", resolve));
  for (
    const until = Date.now() + 60000;
    Date.now() < until && child.exitCode === null;
    await new Promise((r) => setTimeout(r, 50))
  ) {
    const [, url] = /listening on (\S+)/.exec(said) ?? [];
    if (url && (await fetch(`${url}/health`)).ok) return { url, stop: async () => (child.kill("SIGTERM"), await ended) };
  }
  child.kill("SIGKILL");
  throw new Error(`nib serve did not start: ${said}`);
}

const served = model && existsSync(model) ? await serve() : null,
  nibUrl = served?.url;
if (!served) console.log("skip  nib itself: no model");
else {
  test("nib serves the page, with its policy", async () => {
    const response = await fetch(`${nibUrl}/`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-security-policy"), CSP);
    assert.equal(response.headers.get("x-content-type-options"), "nosniff");
    assert.match(response.headers.get("content-type"), /^text\/html/);
    const tag = response.headers.get("etag");
    assert.equal((await fetch(`${nibUrl}/`, { headers: { "If-None-Match": tag } })).status, 304);
    assert.equal((await fetch(`${nibUrl}/assets/../cli/main.c`)).status, 404);
    assert.equal((await fetch(`${nibUrl}/assets/main.js`)).status, 200);
  });

  test(
    "nib answers the page and shows its engine",
    async (page) => {
      await page.waitForFunction(() => document.getElementById("model").textContent.length > 3);
      await page.keyboard.press("Alt+s");
      await page.fill("#set-max_tokens", "24");
      await page.fill("#set-temperature", "0");
      await page.getByRole("button", { name: "Save" }).click();
      await say(page, "Write a long story about a pen.");
      assert.ok((await texts(page, "assistant"))[0].length > 0, await page.locator("#messages").innerText());
      assert.match(await page.locator(".assistant .stats").innerText(), /TTFT .*prompt \d+, \d+ cached/s);
      const [cut] = await texts(page, "assistant");
      await page.getByRole("button", { name: "Go on", exact: true }).click();
      await page.waitForFunction((n) => document.querySelector(".assistant .md").innerText.length > n, cut.length);
      await answered(page);
      assert.equal(await page.locator(".fault").count(), 0);
      await page.click("#view-engine");
      await page.waitForFunction(() =>
        /\d+ pages: /.test(document.querySelector(".panel-map canvas")?.getAttribute("aria-label") ?? ""),
      );
      await page.waitForFunction(
        () => Number(/(\d+) cached/.exec(document.querySelector(".panel-map canvas")?.getAttribute("aria-label") ?? "")?.[1]) > 0,
      );
      await shot(page, "nib-engine");
    },
    { url: nibUrl },
  );
}

// ---- running them

const faults = [];
for (const { name, run, scheme = "light", allowed, bypassCSP = false, needsLibraries, url = mock.url } of tests) {
  if (needsLibraries && !isRich) {
    console.log(`skip  ${name}: built without libraries`);
    continue;
  }
  const context = await browser.newContext({ colorScheme: scheme, bypassCSP, viewport: { width: 1180, height: 820 } });
  const page = await context.newPage(),
    noise = [];
  page.setDefaultTimeout(10000);
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && !allowed?.test(m.text()) && noise.push(m.text()));
  page.on("pageerror", (error) => noise.push(error.stack));
  page.on("request", (r) => !r.url().startsWith(url) && !/^(blob|data):/.test(r.url()) && noise.push(`a request to ${r.url()}`));
  const began = Date.now();
  try {
    await page.addInitScript((rich) => (window.RICH = rich), (await import("./mock.mjs")).RICH);
    await page.goto(url);
    await page.waitForFunction(() => document.querySelector(".message, .empty"));
    await run(page);
    assert.equal(noise.length, 0, "something was reported");
    console.log(`ok    ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    faults.push(name);
    console.log(`FAIL  ${name}\n${error.stack}\n${[...new Set(noise)].slice(0, 5).join("\n")}`);
    await shot(page, `fail-${faults.length}`);
  }
  await context.close();
}
await browser.close();
if (served && (await served.stop()) !== 0) faults.push("nib serve ended with an error");
mock.close();
rmSync(temporary, { recursive: true });
console.log(faults.length ? `failed: ${faults.join("; ")}` : `${tests.length} passed`);
process.exit(faults.length ? 1 : 0);
