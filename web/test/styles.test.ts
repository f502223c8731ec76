import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const FOLDER = new URL("../src/style/", import.meta.url);

/** The sheets that are loaded with a page, once it is opened. All others are there from the beginning. */
const LATER: Record<string, string> = {
  "files.css": "files", "files_dialogs.css": "files", "open_files.css": "files", "editor.css": "files",
  "workspace.css": "workspace", "agent.css": "workspace", "terminal.css": "workspace", "sessions.css": "workspace", "git.css": "workspace", "teams.css": "workspace",
  "mesh.css": "mesh", "admin.css": "admin",
};

function selectorsOf(name: string): string[] {
  const css = readFileSync(new URL(name, FOLDER), "utf8").replace(/\/\*.*?\*\//gs, "");
  return [...css.matchAll(/(?:^|[{}])([^{}@]+)(?=\{)/g)].flatMap(([, list]) => list!.split(",")).map((each) => each.trim());
}

// The sheets of a page that was opened stay: a class of two meanings would change other pages after a visit to it.
test("a class that a page gives a look by its name alone is that page's own", () => {
  const sheets = readdirSync(FOLDER).map((name) => ({ page: LATER[name] ?? "first", selectors: selectorsOf(name) }));
  const shared = sheets.filter(({ page }) => page !== "first").flatMap(({ page, selectors }) => {
    // The page of files has the workspace's sheet, too.
    const others = sheets.filter((other) => other.page !== page && !(page === "workspace" && other.page === "files")).flatMap((other) => other.selectors);
    return selectors.filter((each) => /^\.[\w-]+$/.test(each) && others.some((other) => new RegExp(`\\${each}(?![\\w-])`).test(other)));
  });
  expect(shared).toEqual([]);
});
