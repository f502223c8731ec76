// The page in a real browser, before a real Warren with its demo model.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, charted, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { longestTasks, startTasks } from "./tasks.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, site;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  site = await serveSite({ warren: () => warren, base: "/warren/" });
});

after(async () => {
  await browser?.close();
  site?.close();
  await warren?.remove();
});

const question = (page) => page.getByRole("textbox", { name: "Question" });
const stopButton = (page) => page.getByRole("button", { name: "Stop", exact: true });

async function ask(page, text) {
  await question(page).fill(text);
  await page.getByRole("button", { name: "Send" }).click();
}

async function answered(page) {
  await page.locator(".answer.done .numbers").last().filter({ hasText: "tok/s" }).waitFor();
}

async function signIn(page, token) {
  await page.getByRole("button", { name: "Sign in as one" }).click();
  await page.getByLabel("Token, or login address").fill(token);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
}

test("a local server lets the page in without a token, below a path", async () => {
  const page = await openPage(browser, site.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("warren-demo").first().waitFor();
  await page.getByText("are for administrators").waitFor();
  await assertAccessible(page, "the overview without administration");
  assertQuiet(page);
  await page.context().close();
});

test("an answer streams, and stop stops the machine", async () => {
  const page = await openPage(browser, `${site.url}#/play`);
  await ask(page, "What is Warren?");
  await stopButton(page).waitFor();
  await page.locator(".answer.coming .prose p").first().waitFor();
  await shot(page, "play-streaming");
  await answered(page);
  assert.match(await page.locator(".numbers").innerText(), /tok\/s · first token .* → \d+ tokens/);
  await assertAccessible(page, "the playground");
  await shot(page, "play");

  await ask(page, "And again, at length?");
  await page.locator(".answer.coming .prose p").first().waitFor();
  await page.keyboard.press("Escape");
  await page.getByText("stopped").waitFor();
  const ended = await until(
    async () => (await warren.admin("/admin/requests?limit=1")).requests.find(({ outcome }) => outcome === "client_gone"),
    "the server has noticed that the page hung up",
  );
  assert.ok(ended.completion_tokens < 100);
  assert.equal((await warren.admin("/admin/stats")).in_flight, 0);
  assertQuiet(page);
  await page.context().close();
});

test("conversations and drafts are there after a reload, can be exported and deleted", async () => {
  const page = await openPage(browser, `${site.url}#/play`);
  await ask(page, "Remember **this** <img src=x onerror=alert(1)>");
  await answered(page);
  await question(page).fill("half a thou");
  await page.reload();
  await page.getByText("Remember **this** <img").first().waitFor();
  await until(async () => (await question(page).inputValue()) === "half a thou", "the draft");
  assert.match(page.url(), /#\/play\/[0-9a-f]+$/);

  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export all conversations" }).click();
  const exported = JSON.parse(await readFile(await (await download).path(), "utf8"));
  assert.equal(exported.conversations[0].turns[0].text, "Remember **this** <img src=x onerror=alert(1)>");

  page.on("dialog", (dialog) => dialog.accept());
  await page.getByRole("button", { name: /^Delete Remember/ }).click();
  await page.getByRole("heading", { name: "Ask a model" }).waitFor();
  await page.locator("input[type=file][accept*=json]").setInputFiles({ name: "c.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify(exported)) });
  await page.getByRole("link", { name: /Remember/ }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a conversation of 2,000 messages opens, scrolls and streams without a task over 50 ms", async () => {
  const page = await openPage(browser, `${site.url}#/play`);
  const answer = { model: "warren-demo", state: "done", text: "Some **words**, `code`\n\n- and\n- a list\n\n```js\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |" };
  const turns = Array.from({ length: 1000 }, (_, i) => ({ text: `Question ${i}`, answers: [answer] }));
  const file = JSON.stringify({ form: "warren-conversations", version: 1, conversations: [{ title: "Long", lanes: ["warren-demo"], turns }] });
  await page.locator("input[type=file][accept*=json]").setInputFiles({ name: "long.json", mimeType: "application/json", buffer: Buffer.from(file) });
  await page.getByRole("link", { name: "Long" }).waitFor();
  await startTasks(browser, page);
  await page.getByRole("link", { name: "Long" }).click();
  await page.getByText("Question 999").waitFor();
  await ask(page, "One more?");
  await page.locator(".answer.coming .prose p").first().waitFor();
  await page.locator(".thread").hover();
  for (let i = 0; i < 30; i += 1) {
    await page.mouse.wheel(0, -1500);
    await page.waitForTimeout(50);
  }
  await answered(page);
  const tasks = await longestTasks(browser);
  console.log(`the longest tasks took ${tasks.join(", ")} ms of the processor`);
  assert.ok(tasks[0] < 50, `a task took ${tasks[0]} ms`);
  assert.ok((await page.locator(".turn").count()) > 60);
  assertQuiet(page);
  await page.context().close();
});

test("two models answer side by side, with parameters and as code", async () => {
  const page = await openPage(browser, `${site.url}#/play`);
  await page.getByRole("button", { name: "Compare with a second model" }).click();
  await page.getByRole("button", { name: "Settings of this conversation" }).click();
  await page.getByLabel("System prompt").fill("Be brief.");
  await page.getByLabel("Most tokens").fill("20");
  await page.getByLabel("Most tokens").press("Tab");
  await ask(page, "Compare yourselves.");
  await page.locator(".answer.done").nth(1).waitFor();
  await shot(page, "play-two");
  await assertAccessible(page, "the playground with two models and settings");
  await page.getByRole("button", { name: "Show as code" }).click();
  const code = page.getByRole("dialog").locator("pre");
  assert.match(await code.innerText(), /curl -N '.*\/warren\/v1\/chat\/completions'[^]*"max_tokens": 20/);
  await page.getByText("Python").click();
  assert.match(await code.innerText(), /OpenAI\(base_url=/);
  await shot(page, "play-code");
  await assertAccessible(page, "the examples");
  assertQuiet(page);
  await page.context().close();
});

test("an administrator sees requests and usage, and drains a machine", async () => {
  const page = await openPage(browser, site.url);
  await signIn(page, await warren.adminToken());
  await page.getByRole("table", { name: "Requests" }).getByText("answered").first().waitFor();
  await page.getByText("Together").waitFor();
  const chat = (text) => fetch(`http://127.0.0.1:${warren.port}/v1/chat/completions`, {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "warren-demo", messages: [{ role: "user", content: text }] }),
  });
  await Promise.all([chat("one"), chat("two"), chat("three")]);
  await charted(page);
  await shot(page, "overview");
  await page.setViewportSize({ width: 1360, height: 1500 });
  await shot(page, "overview-tall");
  await assertAccessible(page, "the overview of an administrator");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("was asked for its models").waitFor();
  await page.getByRole("button", { name: "Drain" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
  await page.getByText(/drains\.$/).waitFor();
  await page.getByText("Almost there").waitFor();
  await page.getByText("Models", { exact: true }).first().waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("the palette does by keys what the page does by buttons", async () => {
  const page = await openPage(browser, site.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command" }).waitFor();
  await assertAccessible(page, "the palette");
  await shot(page, "palette");
  await page.keyboard.type("theme dark");
  await page.keyboard.press("Enter");
  await until(() => page.evaluate(() => document.documentElement.dataset.theme === "dark"), "the dark theme");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Command" }).waitFor();
  await page.keyboard.type("chat demo");
  await page.keyboard.press("Enter");
  await question(page).waitFor();
  await question(page).fill("In the dark?");
  await question(page).press("Enter");
  await answered(page);
  await shot(page, "play-dark");
  await assertAccessible(page, "the dark playground");
  await page.goto(site.url);
  await page.getByText("warren-demo").first().waitFor();
  await charted(page);
  await shot(page, "overview-dark");
  await assertAccessible(page, "the dark overview");
  assertQuiet(page);
  await page.context().close();
});

test("a phone shows all of it in 360 pixels", async () => {
  const page = await openPage(browser, site.url, { viewport: PHONE, touch: true });
  await signIn(page, await warren.adminToken());
  await page.getByRole("table", { name: "Requests" }).waitFor();
  await charted(page);
  await assertFits(page);
  await shot(page, "phone-overview");
  await assertAccessible(page, "the overview on a phone");
  await page.getByRole("link", { name: "Playground" }).click();
  await ask(page, "Do you fit into my pocket?");
  await answered(page);
  await assertFits(page);
  await shot(page, "phone-play");
  await assertAccessible(page, "the playground on a phone");
  await page.getByRole("button", { name: "Conversations" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "New conversation" }).waitFor();
  await shot(page, "phone-list");
  await assertAccessible(page, "the list on a phone");
  assertQuiet(page);
  await page.context().close();
});
