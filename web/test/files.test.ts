import { describe, expect, it } from "vitest";
import { ApiError } from "../src/api/errors";
import { projectOf } from "../src/files/connection";
import { readDirectory } from "../src/files/directory";
import { languageOf, loadLanguage } from "../src/files/editor/languages";
import { changeBetween, endingsOf, hasLongLine, indentOf, linesOf, textOf } from "../src/files/editor/text";
import { Explorer } from "../src/files/explorer";
import { canBeNamed, imageTypeOf, joined, movedPath, nameOf, otherName, parentOf, problemOfName, problemOfPath, savedName, shownName } from "../src/files/names";
import { projectFor } from "../src/files/open_folder";
import { outerRow, rowNamed, stepBy } from "../src/files/tree";
import type { Message } from "../src/workspace/protocol";

describe("names", () => {
  it("have a folder and a last part", () => {
    expect([nameOf("a/b/c.txt"), parentOf("a/b/c.txt"), nameOf("c"), parentOf("c"), joined("", "c"), joined("a", "c")]).toEqual(["c.txt", "a/b", "c", "", "c", "a/c"]);
    expect([movedPath("a/b", "a", "x/y"), movedPath("a", "a", "z"), movedPath("ab/c", "a", "z")]).toEqual(["x/y/b", "z", "ab/c"]);
  });

  it("hide nothing when they are shown, and nothing odd when they are saved", () => {
    expect(shownName("a\nb\u202egpj.exe\u200b")).toBe("a␊b‹U+202E›gpj.exe‹U+200B›");
    expect(shownName("grüße 日本 <b>.txt")).toBe("grüße 日本 <b>.txt");
    expect(savedName("a\n\u202eb")).toBe("a__b");
    expect(canBeNamed("a\ufffdb")).toBe(false);
  });

  it("that cannot be are told why", () => {
    for (const name of ["", ".", "..", "a/b", "a\0", "é".repeat(128)]) expect(problemOfName(name)).not.toBe("");
    for (const name of ["a", "...", "é".repeat(127), " "]) expect(problemOfName(name)).toBe("");
    expect([problemOfPath("a/b"), problemOfPath("/a") && 1, problemOfPath("a//b") && 1, problemOfPath("../a") && 1]).toEqual(["", 1, 1, 1]);
  });

  it("of second files, and of pictures", () => {
    expect([otherName("a.tar.gz", 2), otherName(".env", 2), otherName("a", 3)]).toEqual(["a.tar (2).gz", ".env (2)", "a (3)"]);
    expect([imageTypeOf("A.PNG"), imageTypeOf("a.svg"), imageTypeOf("a.txt"), imageTypeOf("png")]).toEqual(["image/png", "image/svg+xml", null, null]);
  });
});

/** A server's folders, as the protocol tells them, in parts of three. */
function folders(tree: Record<string, string[]>, asked: string[] = []) {
  return async (message: Message): Promise<Message> => {
    const path = message["path"] === "." ? "" : String(message["path"]);
    asked.push(`${path}>${String(message["after"])}`);
    const names = tree[path];
    if (!names) throw new ApiError("no such file or directory", 400);
    const from = message["after"] ? names.indexOf(String(message["after"]).slice(1)) + 1 : 0;
    const part = names.slice(from, from + 3);
    const entries = part.map((name) => ({ name: name.replace("/", ""), path: joined(path, name.replace("/", "")), kind: name.endsWith("/") ? "dir" : "file", size: 1 }));
    return { type: "project_file_list", path, entries, next: from + 3 < names.length ? `f${part.at(-1)}` : null };
  };
}

const shape = (explorer: Explorer) => explorer.rows.value.map((row) => "  ".repeat(row.level - 1) + (row.is === "entry" ? row.entry.name + (row.expanded ? " -" : row.expanded === false ? " +" : "") : row.is === "note" ? `(${row.words})` : "…"));

describe("a tree", () => {
  it("expands, goes on with large folders, and is read again without collapsing", async () => {
    const tree: Record<string, string[]> = { "": ["d/", "a", "b", "c"], d: ["x", "y"] };
    const explorer = new Explorer("p", folders(tree));
    expect(shape(explorer)).toEqual(["(Reading…)"]);
    await explorer.read("");
    expect(shape(explorer)).toEqual(["d +", "a", "b", "…"]);
    await explorer.readMore("");
    expect(shape(explorer)).toEqual(["d +", "a", "b", "c"]);
    explorer.expand("d");
    await explorer.read("d");
    expect(shape(explorer)).toEqual(["d -", "  x", "  y", "a", "b", "c"]);
    tree["d"] = [];
    tree[""] = ["d/", "a", "b", "bb", "c"];
    await explorer.read("d");
    await explorer.read("");
    expect(shape(explorer)).toEqual(["d -", "  (Empty)", "a", "b", "bb", "c"]);
    delete tree["d"];
    tree[""] = ["a"];
    await explorer.read("");
    await explorer.read("d");
    expect([shape(explorer), explorer.expanded.value.size]).toEqual([["a"], 0]);
  });

  it("keeps what it knows while nobody answers, and says why nothing can be read", async () => {
    let error: ApiError | null = null;
    const ask = folders({ "": ["a"] });
    const explorer = new Explorer("p", async (message) => { if (error) throw error; return ask(message); });
    await explorer.read("");
    error = new ApiError("lost", 0);
    await explorer.read("");
    expect(shape(explorer)).toEqual(["a"]);
    error = new ApiError("permission denied", 400);
    await explorer.read("");
    expect(shape(explorer)).toEqual(["(permission denied)"]);
  });

  it("reveals a path, and follows a folder that is moved", async () => {
    const tree: Record<string, string[]> = { "": ["d/"], d: ["e/"], "d/e": ["x"] };
    const explorer = new Explorer("p", folders(tree));
    await explorer.reveal("d/e/x");
    expect([shape(explorer), explorer.active.value]).toEqual([["d -", "  e -", "    x"], "d/e/x"]);
    Object.assign(tree, { "": ["f/"], f: ["e/"], "f/e": ["x"] });
    explorer.moved("d", "f");
    for (const path of ["", "f", "f/e"]) await explorer.read(path);
    expect(shape(explorer)).toEqual(["f -", "  e -", "    x"]);
  });

  it("is gone through by keys", async () => {
    const explorer = new Explorer("p", folders({ "": ["d/", "ab", "ac"], d: ["x"] }));
    await explorer.reveal("d/x");
    const rows = explorer.rows.value;
    expect([stepBy("ArrowDown", rows, 3, 9), stepBy("ArrowUp", rows, 0, 9), stepBy("End", rows, 0, 9), stepBy("PageDown", rows, 0, 2), stepBy("a", rows, 0, 9)]).toEqual([3, 0, 3, 2, null]);
    expect([outerRow(rows, 1), outerRow(rows, 2)]).toEqual([0, 2]);
    expect([rowNamed(rows, 0, "a"), rowNamed(rows, 2, "a"), rowNamed(rows, 2, "ac"), rowNamed(rows, 0, "q")]).toEqual([2, 3, 3, null]);
  });
});

describe("texts", () => {
  it("are joined as they were, however their lines end", () => {
    for (const text of ["", "a", "a\nb\n", "a\r\nb\r\n", "a\r\nb\nc\r", "\r", "\n\r\n", "\ufeffa\n"]) {
      const endings = endingsOf(text);
      expect(textOf(linesOf(text, endings), endings)).toBe(text);
    }
    expect(endingsOf("a\r\nb").join).toBe("\r\n");
  });

  it("change in one place", () => {
    const lines = (text: string) => linesOf(text, endingsOf(text));
    for (const [a, b] of [["one\ntwo\nthree", "one\nthree"], ["", "x"], ["aaa", "aa"], ["same", "same"], ["ab", "ba"], ["x\ny", "x\nz\ny"]] as const) {
      const { from, to, insert } = changeBetween(lines(a), lines(b)) as { from: number; to: number; insert: { toString(): string } };
      expect(a.slice(0, from) + insert.toString() + a.slice(to)).toBe(b);
    }
  });

  it("have long lines, and an indentation", () => {
    const lines = (text: string) => linesOf(text, endingsOf(text));
    expect([hasLongLine(lines("x".repeat(20_001))), hasLongLine(lines("x\n".repeat(20_001)))]).toEqual([true, false]);
    expect([indentOf(lines("a\n\tb")), indentOf(lines("a\n    b")), indentOf(lines("a\n  b")), indentOf(lines("a"))]).toEqual(["\t", "    ", "  ", "  "]);
  });

  it("have a language by their name", async () => {
    const names = { "a.ts": "typescript", "A.PY": "python", Dockerfile: "dockerfile", "dockerfile.dev": "dockerfile", "x.tar.rs": "rust", "main.go": "go", "a.h": "c", "a.unknown": null, constructor: null, "a.constructor": null, "": null };
    for (const [name, language] of Object.entries(names)) expect([name, languageOf(name)]).toEqual([name, language]);
    for (const name of ["a.toml", "a.rs", "a.md", "a.sql", "a.cpp", "nginx.conf"]) expect(await loadLanguage(name)).not.toEqual([]);
    expect(await loadLanguage("a.unknown")).toEqual([]);
  });
});

describe("projects", () => {
  it("are read whatever is missing", () => {
    expect(projectOf({ id: "1", name: "n", working_dir: "/d", node_id: "x" })).toEqual({ id: "1", name: "n", directory: "/d", node: "x" });
    expect(projectOf({ id: "1", working_dir: "/d" })).toMatchObject({ name: "/d", node: null });
    for (const value of [null, 7, {}, { name: "n" }]) expect(projectOf(value)).toBeNull();
  });

  it("are found by their folder, or made", async () => {
    const asked: Message[] = [];
    const ask = async (message: Message): Promise<Message> => {
      asked.push(message);
      if (message.type === "list_projects") return { type: "project_list", projects: [{ id: "1", name: "n", working_dir: "/d" }] };
      return { type: "project_saved", project: { id: "2", name: message["name"], working_dir: message["working_dir"] } };
    };
    expect((await projectFor(ask, "/d/")).id).toBe("1");
    expect(asked.length).toBe(1);
    expect(await projectFor(ask, "/e/f/")).toMatchObject({ id: "2", name: "f", directory: "/e/f" });
    await expect(projectFor(ask, "/g", "elsewhere")).rejects.toThrow("another machine");
  });

  it("are chosen from folders, hidden ones last", async () => {
    const parts = [{ entries: [".x/", "a/"], next: "a/" }, { entries: ["b/", "file"], next: "file" }];
    const ask = async (message: Message): Promise<Message> => ({ type: "directory_listing", path: "/home", parent: "/", ...parts[message["after"] ? 1 : 0]! });
    expect(await readDirectory(ask, "")).toEqual({ path: "/home", parent: "/", folders: ["a", "b", ".x"], isCut: false });
  });
});
