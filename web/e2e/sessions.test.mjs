// The list of sessions in a real browser, with a real server: finding, renaming, adopting and moving them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, openPage, PHONE, shot, until } from "./browser.mjs";
import { browser, place } from "./place.mjs";
import { longestTasks, startTasks } from "./tasks.mjs";
import { anotherPlace, make, makeShell, tell } from "./workspace.mjs";

const rows = (page) => page.getByRole("list", { name: "Sessions" }).getByRole("listitem");

test("a session is renamed for everybody, and found by its words", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "first");
  await page.getByRole("button", { name: "Back to the sessions" }).click();
  await makeShell(place, page, "second");
  const other = await place.signedIn({ viewport: PHONE, touch: true, scheme: "dark" });
  await other.getByRole("link", { name: /second/ }).waitFor();
  await page.getByRole("button", { name: "More about second" }).click();
  await shot(page, "session-more");
  await assertAccessible(page, "more about a session");
  const name = page.getByRole("dialog").getByLabel("Name");
  assert.ok(await page.getByRole("button", { name: "Rename" }).isDisabled());
  await name.fill("<b>Third</b>");
  await name.press("Enter");
  await page.getByText("It has the new name.").waitFor();
  await other.getByRole("link", { name: /<b>Third<\/b>/ }).waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  await page.getByRole("heading", { name: "<b>Third</b>" }).waitFor();

  await other.getByRole("searchbox", { name: "Filter sessions" }).fill("third nobody");
  await other.getByText("No session matches.").waitFor();
  await other.getByRole("searchbox", { name: "Filter sessions" }).fill("THIRD runs");
  await other.getByText("1 session", { exact: true }).waitFor();
  await other.getByRole("link", { name: /Third/ }).click();
  await other.getByRole("button", { name: "Back to the sessions" }).click();
  assert.equal(await other.getByRole("searchbox", { name: "Filter sessions" }).inputValue(), "THIRD runs");
  await assertFits(other);
  await assertAccessible(other, "a filtered list on a phone");
  await shot(other, "phone-sessions-filter");
  for (const each of [page, other]) {
    assertQuiet(each);
    await each.context().close();
  }
});

test("hidden sessions are shown when they are wanted, and opened", async () => {
  const page = await place.signedIn();
  const { session } = await tell(page, { type: "open_terminal", working_dir: place.home, command: "sh", args: ["-c", "echo in-hiding; exec cat"], name: "secret", hidden: true }, "terminal_opened");
  await page.reload();
  await page.getByRole("link", { name: /first/ }).waitFor();
  assert.equal(await page.getByRole("link", { name: /secret/ }).count(), 0);
  await page.getByRole("checkbox", { name: "Hidden ones" }).check();
  await page.getByRole("link", { name: /secret/ }).click();
  await page.locator(".xterm-rows").getByText("in-hiding").waitFor();
  // A new page knows the session by its address.
  await page.reload();
  await page.locator(".xterm-rows").getByText("in-hiding").waitFor();
  await page.locator(".xterm").click();
  await page.keyboard.press("Control+d");
  await page.getByText("The program has ended.").waitFor();
  assert.ok(page.url().endsWith(session.id));
  assertQuiet(page);
  await page.context().close();
});

test("an administrator adopts a process, and ends it", async () => {
  const sleeper = spawn("sleep", ["600"]);
  try {
    const page = await place.signedIn({ viewport: PHONE, touch: true });
    await page.getByRole("button", { name: "Adopt a process" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Number of the process (pid)").fill("none");
    await dialog.getByRole("button", { name: "Adopt it" }).click();
    await dialog.getByText("That is no number of a process.").waitFor();
    await dialog.getByLabel("Number of the process (pid)").fill("2147483632");
    await dialog.getByRole("button", { name: "Adopt it" }).click();
    await dialog.getByRole("alert").filter({ hasNotText: "no number" }).waitFor();
    await assertFits(page);
    await assertAccessible(page, "adopting a process");
    await shot(page, "phone-session-adopt");
    await dialog.getByLabel("Number of the process (pid)").fill(String(sleeper.pid));
    await dialog.getByLabel("Name").fill("sleeper");
    await dialog.getByRole("button", { name: "Adopt it" }).click();
    await page.getByRole("heading", { name: "sleeper" }).waitFor();
    await page.getByRole("button", { name: "End sleeper" }).click();
    await page.getByRole("button", { name: "End it" }).click();
    await until(() => sleeper.signalCode ?? sleeper.exitCode, "the end of the process");
    assertQuiet(page);
    await page.context().close();
  } finally {
    sleeper.kill("SIGKILL");
  }
});

test("who may only look can neither rename nor adopt", async () => {
  const { key } = await place.warren.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: "looker", scopes: ["inference", "workspace:read"] }) });
  const page = await openPage(browser, place.site.url);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(key);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Workspace" }).click();
  await rows(page).first().waitFor();
  assert.equal(await page.getByRole("button", { name: /^(More about|Adopt)/ }).count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("a server without a workspace says so, and the page asks no more", async () => {
  const without = await anotherPlace(browser, ["--workspace=false"]);
  const page = await without.signedIn();
  await page.getByText("it was turned off with --workspace=false").waitFor();
  assertQuiet(page);
  await page.context().close();
  await without.remove();
});

test("each turn of an agent says what it used, and prompts that wait are shown", async () => {
  const page = await place.signedIn();
  await make(page, "New agent", { Name: "spender", Directory: place.home });
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.fill("slow 1500; say one");
  await page.keyboard.press("Enter");
  await page.getByText("The agent works…").waitFor();
  await prompt.fill("say two");
  await page.keyboard.press("Enter");
  await page.locator(".agent-prompt.waiting", { hasText: "say two" }).getByText("waits for its turn").waitFor();
  await shot(page, "agent-queue");
  await page.locator(".agent-turn-used").nth(1).waitFor();
  assert.equal(await page.locator(".agent-prompt.waiting").count(), 0);
  assert.deepEqual(await page.locator(".agent-prompt").allInnerTexts(), ["slow 1500; say one", "say two"]);
  assert.match(await page.locator(".agent-turn-used").last().innerText(), /^\d+ tokens read, \d+ written, \$\d/);
  assert.match(await page.locator(".agent-used").innerText(), /^Since this page was opened: \d+ tokens read/);
  await assertAccessible(page, "an agent's usage");
  await shot(page, "agent-used");
  assertQuiet(page);
  await page.context().close();
});

test("an agent moves to another machine, after it was said what that does", async () => {
  const machine = (name) => anotherPlace(browser, ["--peer-listen", "127.0.0.1:0", "--node-name", name]);
  const [here, there] = await Promise.all([machine("here"), machine("there")]);
  try {
    const [page, other] = [await here.signedIn(), await there.signedIn()];
    const { code } = await tell(page, { type: "cluster_invite" }, "cluster_invitation");
    const joined = await tell(other, { type: "cluster_join", code }, "cluster_action_ack");
    assert.equal(joined.ok, true, joined.message);
    await until(async () => (await tell(page, { type: "cluster_status" }, "cluster_status")).cluster.peers.some(({ connected }) => connected), "the other machine");
    await page.reload();
    await make(page, "New agent", { Name: "mover", Directory: here.home });
    await page.getByRole("textbox", { name: "Prompt" }).fill("say before");
    await page.keyboard.press("Enter");
    await page.locator(".agent-text", { hasText: "before" }).waitFor();
    await page.getByText("waits for a prompt").waitFor();
    await page.getByRole("button", { name: "More about mover" }).click();
    const dialog = page.getByRole("dialog");
    assert.deepEqual(await dialog.getByLabel("Machine").locator("option").allInnerTexts(), ["there"]);
    await dialog.getByLabel("Directory there; empty for the same").fill("/nowhere/at/all");
    await dialog.getByRole("button", { name: "Say what would happen" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Directory there; empty for the same").fill(there.home);
    await dialog.getByRole("button", { name: "Say what would happen" }).click();
    await dialog.getByText("It would move to there").waitFor();
    await shot(page, "session-move");
    await assertAccessible(page, "moving a session");
    await dialog.getByRole("button", { name: /^Move it/ }).click();
    await page.getByText("mover runs now on there.").waitFor();
    assert.equal(await page.getByRole("dialog").count(), 0);
    await page.locator(".pane-about", { hasText: `there · ${there.home}` }).waitFor();
    await page.getByRole("textbox", { name: "Prompt" }).fill("say after");
    await page.keyboard.press("Enter");
    await page.locator(".agent-text", { hasText: "after" }).waitFor();
    for (const each of [page, other]) {
      assertQuiet(each);
      await each.context().close();
    }
  } finally {
    await Promise.all([here.remove(), there.remove()]);
  }
});

/** Sessions as a server with many of them would tell. */
const many = Array.from({ length: 10_000 }, (_, n) => ({
  id: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`, name: `session ${n}`, mode: n % 3 ? "pty" : "sdk", status: ["running", "idle", "exited"][n % 3],
  working_dir: `/srv/project-${n % 50}`, last_active: new Date(Date.now() - n * 1000).toISOString(), kind: { type: "shell", command: "bash" },
}));

test("ten thousand sessions scroll, are searched and change without a long task", async () => {
  const page = await place.signedIn();
  let news = null;
  await page.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => {
      const list = typeof data === "string" && data.startsWith('{"type":"session_list"');
      socket.send(list ? JSON.stringify({ type: "session_list", sessions: many }) : data);
      if (list) news = (session) => socket.send(JSON.stringify({ type: "session_status_changed", session }));
    });
  });
  await page.reload();
  await page.getByText("10.0k sessions").waitFor();
  await shot(page, "sessions-many");
  await assertAccessible(page, "ten thousand sessions");
  await startTasks(browser, page);
  const list = page.getByRole("list", { name: "Sessions" });
  await list.hover();
  for (let turn = 0; turn < 40; turn += 1) {
    await page.mouse.wheel(0, 3000);
    const each = many[9000 - turn];
    news({ ...each, name: `changed ${turn}`, last_active: new Date().toISOString() });
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  const [longest] = await longestTasks(browser);
  assert.ok(longest < 50, `a task took ${longest} ms`);
  await page.getByRole("searchbox", { name: "Filter sessions" }).fill("changed");
  await page.getByText("40 sessions", { exact: true }).waitFor();
  assert.equal((await rows(page).allInnerTexts()).length, 40);
  await page.getByRole("searchbox", { name: "Filter sessions" }).fill("session 777 ");
  await page.getByRole("link", { name: /session 777\b/ }).waitFor();
  await page.setViewportSize(PHONE);
  await page.getByRole("searchbox", { name: "Filter sessions" }).fill("");
  await page.reload();
  await page.getByText("10.0k sessions").waitFor();
  await assertFits(page);
  await shot(page, "phone-sessions-many");
  assertQuiet(page);
  await page.context().close();
});
