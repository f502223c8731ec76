// Large, many and hostile files in a real browser, with a real server.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assertAccessible, assertQuiet, shot, until } from "./browser.mjs";
import { answer, opened, row, save, text, typeFirst } from "./files.mjs";
import { place } from "./place.mjs";

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

test("files are dropped and fetched byte for byte, small ones and a large one, also over a lost connection", async () => {
  const large = randomBytes(30 * 1024 * 1024);
  const { page, directory } = await opened(place, "transfers", { "large.bin": large, "into/there.txt": "old" });
  await row(page, "into, folder").click();
  const small = randomBytes(70_000);
  const drop = async (target, files) => {
    const data = await page.evaluateHandle((files) => {
      const data = new DataTransfer();
      for (const { name, bytes } of files) data.items.add(new File([Uint8Array.from(atob(bytes), (byte) => byte.charCodeAt(0))], name));
      return data;
    }, files.map(({ name, bytes }) => ({ name, bytes: bytes.toString("base64") })));
    await target.dispatchEvent("drop", { dataTransfer: data });
  };
  await drop(row(page, "into, folder"), [{ name: "small.bin", bytes: small }, { name: "empty", bytes: Buffer.alloc(0) }, { name: "there.txt", bytes: Buffer.from("new") }]);
  await row(page, "small.bin").waitFor();
  assert.ok((await readFile(join(directory, "into/small.bin"))).equals(small));
  assert.equal((await stat(join(directory, "into/empty"))).size, 0);
  await page.getByText("There is a file or folder of this name.").waitFor();
  await assertAccessible(page, "uploads");
  await shot(page, "files-transfers");
  await page.getByRole("button", { name: "Other name" }).click();
  await answer(page, "Upload under another name", { Name: "there (2).txt" }, "Upload it");
  await row(page, "there (2).txt").waitFor();
  await drop(row(page, "into, folder"), [{ name: "there.txt", bytes: Buffer.from("newer") }]);
  await page.getByRole("button", { name: "Replace" }).click();
  assert.equal(await readFile(join(directory, "into/there.txt"), "utf8"), "old");
  await answer(page, "Replace there.txt?", {}, "Replace it");
  await until(async () => (await readFile(join(directory, "into/there.txt"), "utf8").catch(() => "")) === "newer", "the new file");
  assert.deepEqual((await readdir(join(directory, "into"))).sort(), ["empty", "small.bin", "there (2).txt", "there.txt"]);

  await page.evaluate(() => delete window.showSaveFilePicker);
  await row(page, "large.bin").click();
  await page.getByText("It is too large to be edited here").waitFor();
  const coming = page.waitForEvent("download", { timeout: 60_000 });
  await page.locator(".shown-nothing").getByRole("button", { name: "Download" }).click();
  await page.getByText(/ of 30 MiB/).waitFor();
  place.site.cut();
  const download = await coming;
  assert.equal(download.suggestedFilename(), "large.bin");
  assert.equal(digest(await readFile(await download.path())), digest(large));

  await writeFile(join(place.home, "sent.bin"), large);
  await page.getByLabel("Files to upload").setInputFiles(join(place.home, "sent.bin"));
  const sent = page.locator(".transfer").filter({ hasText: "sent.bin" });
  await sent.getByText(/MiB of 30 MiB|This server takes files of up to 25 MiB/).waitFor();
  if (await partsAreKnown(page)) {
    place.site.cut();
    await sent.getByText("Uploaded, 30 MiB").waitFor({ timeout: 60_000 });
    assert.equal(digest(await readFile(join(directory, "sent.bin"))), digest(large));
  }
  assertQuiet(page);
  await page.context().close();
});

/** Whether the server takes uploads in parts, as newer ones do. */
async function partsAreKnown(page) {
  return (await page.getByText("This server takes files of up to 25 MiB").count()) === 0;
}

test("a folder of ten thousand files is smooth, and its watch shows what comes and goes", async () => {
  const directory = join(place.home, "many");
  await mkdir(join(directory, "full"), { recursive: true });
  await Promise.all(Array.from({ length: 10_000 }, (_, at) => writeFile(join(directory, "full", `file-${String(at).padStart(5, "0")}.txt`), "x")));
  const { page } = await opened(place, "many", { "first.txt": "1" });
  const began = Date.now();
  await row(page, "full, folder").click();
  await row(page, "file-00000.txt").waitFor();
  assert.ok(Date.now() - began < 5000, "it takes long to show them");
  assert.ok((await page.getByRole("treeitem").count()) < 120);
  assert.equal(await row(page, "file-00000.txt").getAttribute("aria-setsize"), "10000");
  await page.getByRole("tree").focus();
  await page.keyboard.press("End");
  await row(page, "first.txt").waitFor();
  await page.keyboard.press("ArrowUp");
  await row(page, "file-09999.txt").waitFor();
  await rm(join(directory, "full", "file-09998.txt"));
  await row(page, "file-09998.txt").waitFor({ state: "detached" });
  await writeFile(join(directory, "full", "zzz.txt"), "new");
  await row(page, "zzz.txt").waitFor();
  await assertAccessible(page, "many files");
  assertQuiet(page);
  await page.context().close();
});

test("hostile names and contents are text, and nothing else", async () => {
  const script = '<script>window.hacked=1</script><img src=x onerror="window.hacked=1">';
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><script>window.hacked=1;parent.hacked=1</script><rect width="40" height="30" fill="red"/></svg>`;
  const { page, directory, read } = await opened(place, "hostile", {
    '<img src=x onerror="hacked=1">.html': script, "line\nbreak.txt": "broken", "\u202egpj.exe": "turned", "'; quote\".txt": "quoted", "picture.svg": svg,
    "binary.dat": Buffer.from([0, 1, 2, 255]), "latin.txt": Buffer.from([0x66, 0xfc, 0x72]), "huge-line.js": `const a = "${"x".repeat(900_000)}";`, "png.png": "no picture", ["__proto__"]: "plain",
  });
  await writeFile(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0x61, 0xff, 0x62])]), "unsayable");
  await symlink("/etc", join(directory, "outside"));
  await row(page, /^<img/).click();
  await until(async () => (await text(page)).includes("<script>"), "the script as text");
  await row(page, "line␊break.txt").click();
  await until(async () => (await text(page)) === "broken", "the file of two lines");
  await typeFirst(page, "un");
  await save(page);
  assert.equal(await read("line\nbreak.txt"), "unbroken");
  await row(page, "‹U+202E›gpj.exe").click();
  await until(async () => (await text(page)) === "turned", "the file with a turned name");
  await row(page, "__proto__").click();
  await until(async () => (await text(page)) === "plain", "the file with an odd name");
  await row(page, "picture.svg").click();
  await until(() => page.locator(".picture img").evaluate((image) => image.complete && image.naturalWidth === 40), "the picture");
  await page.getByRole("button", { name: "Show it as text" }).click();
  await until(async () => (await text(page)).startsWith("<svg"), "the picture as text");
  await row(page, "png.png").click();
  await page.getByText("The browser cannot show this picture.").waitFor();
  await row(page, "binary.dat").click();
  await page.getByText("It is no text.").waitFor();
  await row(page, "latin.txt").click();
  await page.getByText("It is no UTF-8 text.").waitFor();
  await row(page, "huge-line.js").click();
  await until(async () => (await text(page)).startsWith("const a"), "the long line");
  await typeFirst(page, "/* still here */ ");
  await save(page);
  await row(page, /a\ufffdb/).click();
  await page.getByText("its name is not text on the disk").waitFor();
  await row(page, "outside, link").click();
  await page.getByText(/It leads out of the project's folder/).waitFor();
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await assertAccessible(page, "hostile names");
  await shot(page, "files-hostile");
  assertQuiet(page);
  await page.context().close();
});
