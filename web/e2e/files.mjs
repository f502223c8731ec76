// What tests do with the files of a project, in a real browser and on the disk.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Makes a folder with these files in it, and opens it as a project; returns the page and what tests do in the folder. */
export async function opened(place, name, files, options) {
  const directory = join(place.home, name);
  await mkdir(directory, { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(directory, path, ".."), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  const page = await place.signedIn(options);
  await page.goto(`${place.site.url}#/files`);
  await page.getByRole("button", { name: "Open a folder" }).click();
  await page.getByRole("list", { name: /^Folders in/ }).waitFor();
  await page.getByLabel("Path of the folder").fill(directory);
  await page.getByRole("button", { name: "Open this folder" }).click();
  await page.getByRole("tree").waitFor();
  return { page, directory, read: (path) => readFile(join(directory, path), "utf8"), write: (path, content) => writeFile(join(directory, path), content) };
}

export const row = (page, name) => page.getByRole("treeitem", { name });
export const editor = (page) => page.locator(".editor-host .cm-content");

/** The text that the editor shows; of a long one the lines in sight. */
export const text = (page) => editor(page).innerText();

export async function save(page) {
  await page.keyboard.press("Control+s");
  await page.locator(".file-state").filter({ hasText: /^Saved$/ }).waitFor();
}

export const unsaved = (page) => page.locator(".file-state").filter({ hasText: /^Not saved$/ }).waitFor();

/** Types at the beginning of the text. */
export async function typeFirst(page, words) {
  await editor(page).click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type(words);
}

export async function answer(page, dialog, fields, button) {
  const box = page.getByRole("dialog", { name: dialog });
  for (const [label, value] of Object.entries(fields)) await box.getByLabel(label).fill(value);
  await box.getByRole("button", { name: button, exact: true }).click();
}
