// The files of a project in a real browser, with a real server and real files.
import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, openPage, PHONE, shot, until } from "./browser.mjs";
import { answer, editor, opened, row, save, text, typeFirst, unsaved } from "./files.mjs";
import { startPlace } from "./workspace.mjs";

let browser, place;

before(async () => {
  [browser, place] = await startPlace();
});

after(async () => {
  await browser?.close();
  await place?.remove();
});

test("a newcomer opens a folder, makes a file and a folder, writes and saves, and the file is on the disk", async () => {
  await mkdir(join(place.home, "plans", "inside"), { recursive: true });
  const page = await place.signedIn();
  await page.goto(`${place.site.url}#/files`);
  await page.getByText("No folder is open yet.").waitFor();
  await assertAccessible(page, "files without a project");
  await shot(page, "files-nothing");
  await page.getByRole("button", { name: "Open a folder" }).click();
  await page.getByRole("list", { name: /^Folders in/ }).getByRole("button", { name: "plans" }).click();
  await page.getByRole("button", { name: "inside" }).waitFor();
  await assertAccessible(page, "choosing a folder");
  await shot(page, "files-picker");
  await page.getByRole("button", { name: "Open this folder" }).click();
  await page.getByRole("heading", { name: "plans" }).waitFor();
  await page.getByRole("button", { name: "New file", exact: true }).click();
  await answer(page, "New file", { Name: "notes.md" }, "Make it");
  await editor(page).waitFor();
  await typeFirst(page, "# Plans\n\n- one");
  await unsaved(page);
  await save(page);
  assert.equal(await readFile(join(place.home, "plans", "notes.md"), "utf8"), "# Plans\n\n- one");
  await page.getByRole("button", { name: /^New folder/ }).click();
  await answer(page, /^New folder/, { Name: "later" }, "Make it");
  await row(page, "later, folder").waitFor();
  assert.ok((await stat(join(place.home, "plans", "later"))).isDirectory());
  await page.keyboard.press("Control+s");
  await assertAccessible(page, "a file that is open");
  await shot(page, "files");
  assert.equal(await page.locator("style").count(), 0);
  await page.getByRole("link", { name: "All projects" }).click();
  await page.getByRole("button", { name: "Remove plans from the list" }).click();
  await page.getByText("No file is deleted").waitFor();
  await page.getByRole("button", { name: "Remove it" }).click();
  await page.getByText("No folder is open yet.").waitFor();
  assert.deepEqual((await readdir(join(place.home, "plans"))).sort(), ["inside", "later", "notes.md"]);
  assertQuiet(page);
  await page.context().close();
});

test("a file that is changed elsewhere is read again, and what two have changed is settled in each of three ways", async () => {
  const { page, directory, read, write } = await opened(place, "conflict", { "a.txt": "one\ntwo\nthree\n", "crlf.txt": "a\r\nb\r\n", "mixed.txt": "a\r\nb\nc\r" });
  await row(page, "a.txt").click();
  await until(async () => (await text(page)).startsWith("one"), "the text");
  await editor(page).click();
  await page.keyboard.press("Control+End");
  await write("a.txt", "zero\none\ntwo\nthree\n");
  await until(async () => (await text(page)).startsWith("zero"), "the text of the disk");
  await page.getByText("5:1", { exact: true }).waitFor();

  const both = async (mine, theirs) => {
    await typeFirst(page, mine);
    await unsaved(page);
    await write("a.txt", theirs);
    await page.getByText("The file was changed on the disk by somebody else.").waitFor();
    await page.keyboard.press("Control+s");
    await page.getByRole("dialog", { name: "Two texts of a.txt" }).locator(".merge-host .cm-content").first().waitFor();
  };
  await both("mine ", "theirs\ntwo\n");
  await assertAccessible(page, "two texts");
  await shot(page, "files-conflict");
  await page.getByRole("button", { name: "Keep mine" }).click();
  await until(async () => (await read("a.txt")) === "mine zero\none\ntwo\nthree\n", "mine on the disk");
  await page.getByText("Saved", { exact: true }).waitFor();

  await both("again ", "theirs\ntwo\n");
  await page.getByRole("button", { name: "Take the one on the disk" }).click();
  await until(async () => (await text(page)).startsWith("theirs"), "theirs in the editor");
  assert.equal(await read("a.txt"), "theirs\ntwo\n");
  await page.getByText("Saved", { exact: true }).waitFor();

  await both("third ", "theirs\ntwo\nand more\n");
  await page.getByRole("dialog").getByLabel("Your text").click();
  await page.keyboard.press("Control+End");
  await page.keyboard.type("by hand");
  await page.getByRole("button", { name: "Save the merged text" }).click();
  await until(async () => (await read("a.txt")) === "third theirs\ntwo\nby hand", "the merged text on the disk");
  await page.getByText("Saved", { exact: true }).waitFor();

  await typeFirst(page, "kept ");
  await unsaved(page);
  await rm(join(directory, "a.txt"));
  await page.getByText("The file was deleted on the disk.").waitFor();
  await save(page);
  assert.equal(await read("a.txt"), "kept third theirs\ntwo\nby hand");

  for (const [name, after] of [["crlf.txt", "x a\r\nb\r\n"], ["mixed.txt", "x a\r\nb\nc\r"]]) {
    await row(page, name).click();
    await page.locator(".file-path").filter({ hasText: name }).waitFor();
    await until(async () => (await text(page)).startsWith("a"), name);
    await typeFirst(page, "x ");
    await save(page);
    assert.equal(await read(name), after);
  }
  assertQuiet(page);
  await page.context().close();
});

test("what is typed while the connection is lost, or before a reload, is kept and saved afterwards", async () => {
  const { page, read } = await opened(place, "lost", { "a.txt": "text\n", "b.txt": "other\n" });
  await row(page, "a.txt").click();
  await until(async () => (await text(page)).startsWith("text"), "the text");
  await place.crash();
  await page.getByText("The connection is lost;").waitFor();
  await typeFirst(page, "typed ");
  await page.keyboard.press("Control+s");
  await page.getByText("Not saved yet: the connection is lost.").waitFor();
  await page.keyboard.type("and more ");
  await place.startAgain();
  await until(async () => (await read("a.txt")) === "typed and more text\n", "the text on the disk");
  await page.getByText("Saved", { exact: true }).waitFor();

  await typeFirst(page, "draft ");
  await unsaved(page);
  page.once("dialog", (dialog) => void dialog.accept());
  await page.reload();
  await until(async () => (await text(page)).startsWith("draft typed"), "the draft");
  await unsaved(page);
  assert.equal(await read("a.txt"), "typed and more text\n");
  await row(page, "b.txt").click();
  await page.getByRole("button", { name: "Close a.txt" }).click();
  await answer(page, "Close a.txt?", {}, "Save and close");
  await until(async () => (await read("a.txt")) === "draft typed and more text\n", "the draft on the disk");
  await page.getByRole("button", { name: "Close a.txt" }).waitFor({ state: "detached" });
  await until(async () => (await text(page)).startsWith("other"), "the other file");
  assertQuiet(page);
  await page.context().close();
});

test("entries are renamed, moved, copied, deleted, dragged and found by keys", async () => {
  const { page, directory, read } = await opened(place, "entries", { "src/main.rs": "fn main() {}\n", "src/deep/er/x.txt": "x", "readme.md": "# Read\n", "zoo.txt": "z" });
  const tree = page.getByRole("tree");
  await row(page, "src, folder").click();
  await row(page, "main.rs").click();
  await until(async () => (await text(page)).startsWith("fn main"), "the text");
  await row(page, "main.rs").click();
  await tree.focus();
  await page.keyboard.press("F2");
  await answer(page, "Rename main.rs", { "New name": "lib.rs" }, "Rename it");
  await row(page, "lib.rs").waitFor();
  await page.locator(".file-path").filter({ hasText: "src/lib.rs" }).waitFor();
  assert.equal(await read("src/lib.rs"), "fn main() {}\n");

  await tree.focus();
  await page.keyboard.press("z");
  await page.keyboard.press("Delete");
  await answer(page, "Delete zoo.txt?", {}, "Delete it");
  await row(page, "zoo.txt").waitFor({ state: "detached" });

  await row(page, "readme.md").click({ button: "right" });
  await assertAccessible(page, "what can be done with a file");
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  await answer(page, "Copy readme.md", { "Path of the copy, from the project's folder": "src/copy.md" }, "Copy it");
  await row(page, "copy.md").waitFor();
  await row(page, "copy.md").click({ button: "right" });
  await page.getByRole("button", { name: "Move", exact: true }).click();
  await answer(page, "Move copy.md", { "New path, from the project's folder": "readme.md" }, "Move it");
  await page.getByRole("alert").filter({ hasText: "already exists" }).waitFor();
  await answer(page, "Move copy.md", { "New path, from the project's folder": "src/deep/moved.md" }, "Move it");
  await row(page, "moved.md").waitFor();
  assert.equal(await read("src/deep/moved.md"), "# Read\n");

  await row(page, "readme.md").dragTo(row(page, "er, folder"));
  await until(async () => (await readdir(join(directory, "src/deep/er"))).includes("readme.md"), "the dragged file");
  await page.getByText("readme.md is in src/deep/er now.").waitFor();
  await tree.focus();
  await page.keyboard.press("Home");
  const active = () => tree.evaluate((element) => document.getElementById(element.getAttribute("aria-activedescendant"))?.getAttribute("aria-label"));
  await until(async () => (await active()) === "src, folder", "the first line");
  await page.keyboard.press("ArrowRight");
  await until(async () => (await active()) === "deep, folder", "the first line in it");
  await page.keyboard.press("ArrowLeft");
  await until(async () => (await row(page, "moved.md").count()) === 0, "a folder that is collapsed");
  await page.keyboard.press("ArrowLeft");
  await until(async () => (await active()) === "src, folder", "the folder around it");
  await page.reload();
  await row(page, "deep, folder").waitFor();
  assert.equal(await row(page, "moved.md").count(), 0);
  await row(page, "src, folder").click({ button: "right" });
  await page.getByRole("button", { name: "Delete", exact: true }).click();
  await page.getByText("The folder and everything that is in it is deleted").waitFor();
  await page.getByRole("button", { name: "Delete it" }).click();
  await row(page, "src, folder").waitFor({ state: "detached" });
  assert.deepEqual(await readdir(directory), []);
  await page.getByText("The file was deleted on the disk.").waitFor({ state: "detached" });
  assertQuiet(page);
  await page.context().close();
});

test("a phone shows the tree or a file, and a conflict one text below the other", async () => {
  const { page, read, write } = await opened(place, "phone", { "a-file-with-quite-a-long-name-that-does-not-fit.txt": "one\ntwo\n", "b/c.txt": "c" }, { viewport: PHONE, touch: true, scheme: "dark" });
  const name = "a-file-with-quite-a-long-name-that-does-not-fit.txt";
  await assertFits(page);
  await assertAccessible(page, "a tree on a phone");
  await shot(page, "phone-files");
  await row(page, name).tap();
  await until(async () => (await text(page)).startsWith("one"), "the text");
  assert.equal(await page.getByRole("tree").isVisible(), false);
  await editor(page).tap();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("zero ");
  await unsaved(page);
  await page.getByRole("button", { name: "Undo" }).tap();
  await page.locator(".file-state").filter({ hasText: /^Saved$/ }).waitFor();
  await page.getByRole("button", { name: "Redo" }).tap();
  await unsaved(page);
  await assertFits(page);
  await assertAccessible(page, "a file on a phone");
  await shot(page, "phone-file");
  await page.getByRole("button", { name: "Search in the file" }).tap();
  await page.locator(".cm-search").waitFor();
  await assertFits(page);
  await assertAccessible(page, "a search on a phone");
  await shot(page, "phone-search");
  await write(name, "one\nthree\n");
  await page.getByText("The file was changed on the disk by somebody else.").waitFor();
  await page.getByRole("button", { name: "Save", exact: true }).tap();
  await page.getByRole("dialog").locator(".cm-deletedChunk").first().waitFor();
  await assertAccessible(page, "a conflict on a phone");
  await shot(page, "phone-conflict");
  await page.getByRole("button", { name: "The disk's" }).tap();
  await page.getByRole("button", { name: "Mine", exact: true }).waitFor({ state: "detached" });
  await page.getByRole("dialog").getByLabel("Your text").tap();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("both ");
  await page.getByRole("button", { name: "Save the merged text" }).tap();
  await until(async () => (await read(name)) === "both one\nthree\n", "the merged text on the disk");
  await page.getByRole("button", { name: "Back to the files" }).tap();
  await page.getByRole("tree").waitFor();
  await page.getByRole("button", { name: `More for ${name}` }).tap();
  await page.getByRole("button", { name: "Rename" }).waitFor();
  await assertFits(page);
  await shot(page, "phone-sheet");
  assertQuiet(page);
  await page.context().close();
});

test("a session's folder is opened from its pane, and who may only look changes nothing", async () => {
  const { page: owner } = await opened(place, "looked", { "a.txt": "look\n" });
  await owner.goto(`${place.site.url}#/workspace`);
  await owner.getByRole("button", { name: "New terminal" }).click();
  await owner.getByRole("dialog").getByLabel("Directory").fill(join(place.home, "looked"));
  await owner.getByRole("button", { name: "Start it" }).click();
  await owner.getByRole("button", { name: "Files of its folder" }).click();
  await owner.getByRole("heading", { name: "looked" }).waitFor();
  await row(owner, "a.txt").waitFor();
  assertQuiet(owner);
  const address = owner.url();
  await owner.context().close();

  const { key } = await place.warren.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: "looker", scopes: ["inference", "workspace:read"] }) });
  const page = await openPage(browser, place.site.url);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(key);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Workspace" }).waitFor();
  await page.goto(address);
  await row(page, "a.txt").click();
  await page.getByText("You may look, not change it").waitFor();
  await until(async () => (await text(page)).startsWith("look"), "the text");
  await editor(page).click();
  await page.keyboard.type("typed");
  await page.keyboard.press("Control+s");
  await page.getByRole("tree").focus();
  await page.keyboard.press("F2");
  await page.keyboard.press("Delete");
  assert.equal(await page.getByRole("dialog").count(), 0);
  assert.equal(await page.getByRole("button", { name: /^(New|Upload|Save|Undo)/ }).count(), 0);
  assert.equal(await readFile(join(place.home, "looked", "a.txt"), "utf8"), "look\n");
  await row(page, "a.txt").click({ button: "right" });
  await page.getByRole("button", { name: "Download", exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^(Rename|Move|Delete)/ }).count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("without a sign-in the page says what to do, and opens no socket", async () => {
  const own = await place.serve();
  const page = await openPage(browser, `${own.url}#/files`);
  await page.getByRole("button", { name: "Sign in to the files" }).waitFor();
  assert.equal(own.links.size, 0);
  assertQuiet(page);
  await page.context().close();
  own.close();
});
