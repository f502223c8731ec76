// The changes of a project in a real browser: a real repository, a real server.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { promisify } from "node:util";
import { assertAccessible, assertFits, assertQuiet, PHONE, shot, until } from "./browser.mjs";
import { place } from "./place.mjs";
import { make } from "./workspace.mjs";

const run = promisify(execFile);
const lines = (count, word) => Array.from({ length: count }, (_, at) => `${word} ${at + 1}\n`).join("");

const app = join(place.home, "app");
let project;

before(async () => {
  await makeRepository();
  project = await makeProject("app", app);
});

/** Git in the repository, with no settings but these. */
async function git(...args) {
  const env = { PATH: process.env.PATH, HOME: place.home, GIT_CONFIG_NOSYSTEM: "1" };
  return run("git", ["-C", app, "-c", "user.name=Tester", "-c", "user.email=tester@example.org", ...args], { env });
}

/** One change of each kind. */
async function makeRepository() {
  await mkdir(join(app, "src"), { recursive: true });
  await git("init", "-q", "-b", "main");
  const files = { "src/lib.rs": lines(60, "line"), "old name.txt": lines(30, "kept"), "gone.txt": "gone\n", "run.sh": "#!/bin/sh\n", "ends.txt": "a\r\nb\r\n", "picture.bin": Buffer.from([0, 1, 2, 0]), "staged.txt": "one\n" };
  for (const [name, content] of Object.entries(files)) await writeFile(join(app, name), content);
  await git("add", ".");
  await git("commit", "-q", "-m", "first");
  await rename(join(app, "old name.txt"), join(app, "new name.txt"));
  await writeFile(join(app, "new name.txt"), lines(30, "kept").replace("kept 15", "kept fifteen"));
  await writeFile(join(app, "staged.txt"), "two");
  await git("rm", "-q", "gone.txt");
  await git("add", "new name.txt", "old name.txt", "staged.txt");
  await writeFile(join(app, "src/lib.rs"), lines(60, "line").replace("line 10\n", "line 10 is <b>longer</b>\n").replace("line 40\n", "line 40\nadded \u202e line\n"));
  await writeFile(join(app, "picture.bin"), Buffer.from([0, 9, 2, 0]));
  await writeFile(join(app, "ends.txt"), "a\r\nb\n");
  await chmod(join(app, "run.sh"), 0o755);
  await mkdir(join(app, "fresh/deep"), { recursive: true });
  await writeFile(join(app, "fresh/deep/one.txt"), "fresh\n");
  await writeFile(join(app, "unknown.txt"), "first\nsecond");
  await writeFile(join(app, "unknown.bin"), Buffer.from([0, 1, 2]));
}

async function makeProject(name, dir) {
  const env = { PATH: process.env.PATH, HOME: place.home, WARREN_DATA_DIR: join(place.home, "data"), WARREN_SERVER: `http://127.0.0.1:${place.warren.port}`, WARREN_TOKEN: await place.warren.adminToken() };
  const { stdout } = await run(process.env.WARREN, ["project", "create", name, "--dir", dir, "--json"], { env });
  return JSON.parse(stdout).id;
}

/** The tab *Changes* of a project. */
async function openChanges(id, options) {
  const page = await place.signedIn(options);
  await page.evaluate((to) => (location.hash = `#/files/${to}/changes`), id);
  return page;
}

const choose = (page, name) => page.getByRole("region", { name: "Changed files" }).getByRole("button", { name }).click();
const diff = (page) => page.getByRole("region", { name: "What changed" });

test("changes of all kinds are listed and shown side by side", async () => {
  const page = await openChanges(project);
  const list = page.getByRole("region", { name: "Changed files" });
  await list.getByRole("list", { name: /^Staged/ }).getByRole("button", { name: "new name.txt (renamed from old name.txt)" }).waitFor();
  assert.equal(await list.getByRole("list", { name: /^Staged/ }).getByRole("listitem").count(), 3);
  assert.equal(await list.getByRole("list", { name: /^Not staged/ }).getByRole("listitem").count(), 4);
  assert.equal(await list.getByRole("list", { name: /^Not known to git/ }).getByRole("listitem").count(), 3);
  await page.getByText("main", { exact: true }).waitFor();
  await page.getByText("follows no other branch").waitFor();

  await choose(page, "src/lib.rs");
  const table = diff(page).getByRole("table", { name: "Changes in src/lib.rs" });
  await table.getByText("line 10 is <b>longer</b>").waitFor();
  const row = table.getByRole("row").filter({ hasText: "line 10 is" });
  assert.deepEqual(await row.getByRole("cell").allTextContents(), ["10", "−line 10", "10", "+line 10 is <b>longer</b>"]);
  assert.deepEqual(await row.locator("mark").allTextContents(), [" is <b>longer</b>"]);
  await table.getByText("added ⟨U+202E⟩ line").waitFor();
  assert.equal(await table.getByText("line 25").count(), 0, "what is far from changes is not shown");
  await assertAccessible(page, "a diff side by side");
  await assertFits(page);
  await shot(page, "git-side-by-side");

  await page.keyboard.press("n");
  await page.locator("tr:focus").filter({ hasText: "line 10 is" }).waitFor();
  await page.keyboard.press("n");
  await page.locator("tr:focus").filter({ hasText: "added" }).waitFor();
  await page.getByRole("button", { name: "Previous change" }).focus();
  await page.keyboard.press("p");
  await page.getByRole("button", { name: "Side by side" }).click();
  await diff(page).locator("table.unified").waitFor();
  await shot(page, "git-unified");
  await page.reload();
  await choose(page, "src/lib.rs");
  await diff(page).locator("table.unified").waitFor();
  await page.getByRole("button", { name: "Side by side" }).click();
  await diff(page).locator("table.beside").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("renamed, new, deleted and binary files, modes and ends of lines are told", async () => {
  const page = await openChanges(project);
  await choose(page, /^new name.txt/);
  await diff(page).getByText("Renamed from old name.txt").waitFor();
  await diff(page).getByText("kept fifteen").waitFor();
  assert.equal(await diff(page).locator(".added mark").innerText(), "fifteen");
  assert.equal(await diff(page).getByText("kept 1", { exact: true }).count(), 0, "of a renamed file only what changed is shown");
  await choose(page, /^gone.txt/);
  await diff(page).getByText("Deleted file").waitFor();
  await choose(page, /^staged.txt/);
  await diff(page).getByText("no newline at the end").waitFor();
  await choose(page, /^picture.bin/);
  await diff(page).getByText("Binary file: its content is not shown").waitFor();
  await choose(page, /^run.sh/);
  await diff(page).getByText("Mode now: 100755").waitFor();
  await choose(page, /^ends.txt/);
  await diff(page).getByText("b⟨CR⟩").waitFor();
  await choose(page, /^unknown.txt/);
  await diff(page).getByText("New file, not known to git").waitFor();
  await diff(page).getByText("second").waitFor();
  await choose(page, /^unknown.bin/);
  await diff(page).getByText(/Its content is not shown: a binary file/).waitFor();
  await choose(page, /^fresh\//);
  await diff(page).getByRole("button", { name: "fresh/deep/" }).click();
  await diff(page).getByRole("button", { name: "fresh/deep/one.txt" }).click();
  await diff(page).getByText("New file, not known to git").waitFor();
  await choose(page, /^new name.txt/);
  await page.getByRole("heading", { name: "new name.txt" }).waitFor();
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "staged.txt" }).waitFor();
  await page.keyboard.press("k");
  await page.getByRole("heading", { name: "new name.txt" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("what changes is seen by itself, and a conflict is shown as one", async () => {
  const page = await openChanges(project);
  await choose(page, "src/lib.rs");
  await diff(page).getByText("line 10 is").waitFor();
  await writeFile(join(app, "src/lib.rs"), lines(60, "line").replace("line 20\n", "line twenty\n"));
  await diff(page).getByText("line twenty").waitFor();
  assert.equal(await diff(page).getByText("line 10 is").count(), 0);
  await git("add", "-A");
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByText("staged, changed").waitFor();
  await git("commit", "-q", "-m", "second");
  await page.getByRole("button", { name: "Look again" }).click();
  await page.getByRole("region", { name: "Changed files" }).getByText("Nothing changed since the last commit.").waitFor();

  for (const [branch, word] of [["theirs", "blue"], ["ours", "red"]]) {
    await git("checkout", "-q", "-B", branch, "main");
    await writeFile(join(app, "staged.txt"), `${word}\n`);
    await git("commit", "-q", "-am", word);
  }
  await git("merge", "-q", "theirs").catch(() => undefined);
  await page.getByRole("region", { name: "Changed files" }).getByRole("button", { name: "staged.txt (conflict)" }).click();
  await diff(page).locator(".conflict").filter({ hasText: "<<<<<<<" }).waitFor();
  await diff(page).getByText("blue").waitFor();
  await assertAccessible(page, "a conflict");
  await shot(page, "git-conflict");
  assertQuiet(page);
  await page.context().close();
});

test("a phone has the list and the diff in two steps, and huge files in parts", async () => {
  const long = "x".repeat(40_000);
  await writeFile(join(app, "huge.txt"), `${long}\n${lines(4000, "row")}`);
  const page = await openChanges(project, { viewport: PHONE, touch: true, scheme: "dark" });
  await page.getByRole("region", { name: "Changed files" }).waitFor();
  await assertFits(page);
  await assertAccessible(page, "changes on a phone");
  await shot(page, "phone-git");
  await choose(page, /^staged.txt/);
  await diff(page).locator(".conflict").first().waitFor();
  await assertAccessible(page, "a diff on a phone");
  await page.getByRole("button", { name: "Back to the changed files" }).click();
  await choose(page, /^huge.txt/);
  await diff(page).getByText("35,000 more characters").waitFor();
  assert.equal(await diff(page).getByRole("row").count(), 2001);
  await assertFits(page);
  await shot(page, "phone-git-diff");
  assert.equal(await page.getByRole("region", { name: "Changed files" }).isVisible(), false);
  await page.getByRole("button", { name: "Show more: 2,001 of" }).click();
  await until(async () => (await diff(page).getByRole("row").count()) === 4001, "the second part");
  await page.getByRole("button", { name: "Back to the changed files" }).click();
  await page.getByRole("region", { name: "Changed files" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a project without a repository is told as one, and a terminal opens in its folder", async () => {
  const bare = join(place.home, "bare");
  await mkdir(bare);
  const page = await openChanges(await makeProject("bare", bare));
  await page.getByText("in no git repository").waitFor();
  await assertAccessible(page, "a project without a repository");
  await page.evaluate((to) => (location.hash = `#/files/${to}/changes`), project);
  await page.getByRole("button", { name: "Terminal in this folder" }).click();
  await page.getByRole("region", { name: "app" }).waitFor();
  await page.getByText(`terminal · ${app}`).waitFor();
  assertQuiet(page);
  await page.context().close();
});

/** The fake agents use every tool with the same input: on its way to the page that of `Edit` becomes an edit. */
async function withEdits(page, edit) {
  const changed = (value) => {
    if (Array.isArray(value)) return value.map(changed);
    if (typeof value !== "object" || value === null) return value;
    const isEdit = (value.kind === "tool_started" && value.name === "Edit") || (value.type === "permission_request" && value.tool === "Edit");
    return isEdit ? { ...value, input: edit } : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, changed(each)]));
  };
  await page.routeWebSocket(/\/ws$/, (socket) => {
    const server = socket.connectToServer();
    server.onMessage((data) => socket.send(typeof data === "string" ? JSON.stringify(changed(JSON.parse(data))) : data));
  });
  await page.reload();
}

test("what an agent's tool changes is shown line by line, before it is allowed and when its use is unfolded", async () => {
  const page = await place.signedIn({ viewport: PHONE, touch: true });
  await withEdits(page, { file_path: "/src/<i>main</i>.rs", old_string: "let a = 1;\nlet b = 2;\n", new_string: "let a = 1;\nlet b = 3;\n", note: "beside" });
  await make(page, "New agent", { Name: "editor", Directory: place.home });
  await page.getByRole("textbox", { name: "Prompt" }).fill("ask Edit; say thanks");
  await page.getByRole("button", { name: "Send" }).click();
  const question = page.getByRole("region", { name: "May it use Edit?" });
  await question.getByText("/src/<i>main</i>.rs").first().waitFor();
  assert.equal(await question.locator(".removed mark").innerText(), "2");
  assert.equal(await question.locator(".added mark").innerText(), "3");
  await question.locator("pre").filter({ hasText: /^\{\s*"note": "beside"\s*\}$/ }).waitFor();
  await question.getByText("As it was sent").click();
  await question.locator("pre").filter({ hasText: "old_string" }).waitFor();
  await assertFits(page);
  await assertAccessible(page, "a question about an edit");
  await shot(page, "phone-agent-edit");
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Edit was allowed").waitFor();
  await page.locator(".agent-fold.tool > summary").filter({ hasText: "/src/<i>main</i>.rs" }).click();
  await page.locator(".agent-fold.tool .added mark").filter({ hasText: "3" }).waitFor();
  await assertAccessible(page, "an edit in a conversation");
  assertQuiet(page);
  await page.context().close();
});
