import { describe, expect, it } from "vitest";
import { compare, textOfWhole, wholeText } from "../src/git/compare";
import { besideEdits, editsOf } from "../src/git/edits";
import { readPatch } from "../src/git/patch";
import { firstLines, linesOf, rowsOf, wordsOf, type Row } from "../src/git/rows";
import { statusOf, wordsOfBranch, wordsOfChange } from "../src/git/status";
import { visible } from "../src/git/visible";

const HEAD = "diff --git a/f b/f\nindex 1..2 100644\n--- a/f\n+++ b/f\n";

/** Rows as one sees them: what is left, and what is right. */
function seen(rows: Row[]): string[] {
  const side = (shown: { line: { text: string; kind: string; before: number | null; now: number | null } } | null, number: "before" | "now") =>
    shown ? `${shown.line[number] ?? ""}${{ same: " ", added: "+", removed: "-" }[shown.line.kind]}${shown.line.text}` : "";
  return rows.map((row) => (row.kind === "heading" ? `@ ${row.text}` : `${side(row.left, "before")}|${side(row.right, "now")}`));
}

describe("a patch", () => {
  const patch = `${HEAD}@@ -1,4 +1,4 @@\n a\n-b\n-c\n+B\n d\n@@ -10,2 +9,3 @@ fn main() {\n x\n+y\n z\n`;

  it("is read with the numbers of its lines", () => {
    const [file, ...more] = readPatch(patch);
    expect(more).toEqual([]);
    expect(file!.hunks.map(({ heading }) => heading)).toEqual(["", "fn main() {"]);
    expect(file!.hunks[1]!.lines).toEqual([
      { kind: "same", text: "x", before: 10, now: 9 },
      { kind: "added", text: "y", before: null, now: 10 },
      { kind: "same", text: "z", before: 11, now: 11 },
    ]);
  });

  it("becomes rows, side by side and one under the other", () => {
    const { hunks } = readPatch(patch)[0]!;
    expect(seen(rowsOf(hunks, true))).toEqual(["1 a|1 a", "2-b|2+B", "3-c|", "4 d|3 d", "@ fn main() {", "10 x|9 x", "|10+y", "11 z|11 z"]);
    expect(seen(rowsOf(hunks, false))).toEqual(["1 a|1 a", "2-b|", "3-c|", "|2+B", "4 d|3 d", "@ fn main() {", "10 x|9 x", "|10+y", "11 z|11 z"]);
    expect(rowsOf(hunks, true).filter((row) => row.kind === "lines" && row.isFirst)).toHaveLength(2);
  });

  it("keeps what looks like a header within a hunk", () => {
    const [file] = readPatch(`${HEAD}@@ -1,2 +1,2 @@\n--- old\n+++ new\n @@ -9 +9 @@\n`);
    expect(file!.hunks[0]!.lines.map(({ kind, text }) => [kind, text])).toEqual([["removed", "-- old"], ["added", "++ new"], ["same", "@@ -9 +9 @@"]]);
  });

  it("says what is special of a file", () => {
    const notes = (head: string) => readPatch(`diff --git a/f b/f\n${head}`)[0]!.notes;
    expect(notes("new file mode 100755\nindex 0..1\n")).toEqual(["New file, may be run"]);
    expect(notes("deleted file mode 100644\n")).toEqual(["Deleted file"]);
    expect(notes("old mode 100644\nnew mode 100755\n")).toEqual(["Mode before: 100644", "Mode now: 100755"]);
    expect(notes("similarity index 90%\nrename from a b\nrename to c\n")).toEqual(["Renamed from a b"]);
    expect(notes("index 1..2 100644\nBinary files a/f and b/f differ\n")).toEqual(["Binary file: its content is not shown"]);
    expect(readPatch("* Unmerged path f\n")[0]!.notes).toEqual(["Two changes of this file have to be merged"]);
  });

  it("marks the end of a file without a newline", () => {
    const lines = readPatch(`${HEAD}@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n`)[0]!.hunks[0]!.lines;
    expect(lines.map(({ isUnended }) => isUnended ?? false)).toEqual([true, false]);
  });

  it("of two changes that have to be merged shows their marks", () => {
    const lines = readPatch("diff --cc f\nindex 1,2..0\n--- a/f\n+++ b/f\n@@@ -1,2 -1,2 +1,6 @@@\n  a\n++<<<<<<< ours\n +b\n++=======\n+ c\n++>>>>>>> theirs\n- d\n").flatMap(({ hunks }) => hunks)[0]!.lines;
    expect(lines.map(({ kind, text, now, isConflict }) => [kind, text, now, isConflict ?? false])).toEqual([
      ["same", "a", 1, false], ["added", "<<<<<<< ours", 2, true], ["added", "b", 3, false], ["added", "=======", 4, true], ["added", "c", 5, false], ["added", ">>>>>>> theirs", 6, true], ["removed", "d", null, false],
    ]);
  });

  it("keeps carriage returns", () => {
    const lines = readPatch(`${HEAD}@@ -1 +1 @@\n-a\r\n+a\n`)[0]!.hunks[0]!.lines;
    expect(lines.map(({ text }) => text)).toEqual(["a\r", "a"]);
  });

  it("that is none, or broken, is read as well as it can be", () => {
    for (const text of ["", "\n\n", "hello", "@@ nonsense @@", "@@ -1 +1 @@", "diff --git", "\\ No newline", "+++ b", "@@@@@@@ -1 +1 @@@@@@@\n+a"]) expect(() => readPatch(text)).not.toThrow();
    expect(readPatch("@@ -99999999999999999999 +1 @@\n-a\n")[0]!.hunks[0]!.lines[0]!.text).toBe("a");
    expect(readPatch("@@ -1 +1 @@\n+<img src=x onerror=alert(1)>\n")[0]!.hunks[0]!.lines[0]!.text).toBe("<img src=x onerror=alert(1)>");
  });

  it("of eight megabytes is read in little time, and drawn in parts", () => {
    const huge = `${HEAD}@@ -1,0 +1,200000 @@\n${"+a line of forty characters, or nearly so\n".repeat(200_000)}`;
    const begun = performance.now();
    const files = readPatch(huge);
    expect(performance.now() - begun).toBeLessThan(3000);
    expect(linesOf(files)).toBe(200_000);
    expect(rowsOf(firstLines(files[0]!.hunks, 2000), true)).toHaveLength(2000);
  });

  it("of many hunks is cut at a line, whichever hunk it is in", () => {
    const { hunks } = readPatch(patch)[0]!;
    expect(firstLines(hunks, 6).map(({ lines }) => lines.length)).toEqual([5, 1]);
    expect(firstLines(hunks, 5).map(({ lines }) => lines.length)).toEqual([5]);
    expect(firstLines(hunks, 0)).toEqual([]);
  });
});

describe("the words of two lines", () => {
  const changed = (pieces: { text: string; isChanged: boolean }[]) => pieces.filter(({ isChanged }) => isChanged).map(({ text }) => text);

  it("are marked where they differ", () => {
    const [before, now] = wordsOf("let total = count(items);", "let total = sum(items);")!;
    expect([changed(before), changed(now)]).toEqual([["count"], ["sum"]]);
    expect(before.map(({ text }) => text).join("")).toBe("let total = count(items);");
    expect(now.map(({ text }) => text).join("")).toBe("let total = sum(items);");
  });

  it("are not compared in long lines, nor in lines that have nothing in common", () => {
    expect(wordsOf("a".repeat(501), "a")).toBeNull();
    expect(wordsOf("alpha beta gamma", "entirely other words here")).toBeNull();
    expect(wordsOf("", "new")).toBeNull();
  });

  it("are looked for in bounded time, however the lines are", () => {
    const noise = (kind: "added" | "removed") => Array.from({ length: 1000 }, (_, line) => ({ kind, text: Array.from({ length: 480 }, (_, at) => "(){}[];,."[(at * at * 7 + line * 31 + at * (kind === "added" ? 5 : 3)) % 9]).join(""), before: null, now: null }));
    const begun = performance.now();
    expect(rowsOf([{ heading: "", lines: [...noise("removed"), ...noise("added")] }], true)).toHaveLength(1000);
    expect(performance.now() - begun).toBeLessThan(2000);
  });

  it("are marked in a line that only grew", () => {
    expect(changed(wordsOf("line 10", "line 10 is now much longer")![1]).join("")).toBe(" is now much longer");
  });
});

describe("two texts", () => {
  it("are compared line by line", () => {
    const { hunks } = compare("a\nb\nc\n", "a\nB\nc\n");
    expect(seen(rowsOf(hunks, true))).toEqual(["1 a|1 a", "2-b|2+B", "3 c|3 c"]);
  });

  it("of which nothing is alike are shown one after the other", () => {
    const text = (word: string) => Array.from({ length: 3000 }, (_, at) => `${word} ${at}\n`).join("");
    const { hunks } = compare(text("a"), text("b"));
    expect(linesOf([{ name: "", notes: [], hunks }])).toBe(6000);
  });

  it("that are whole come back from their patches", () => {
    for (const text of ["a\nb\n", "a\nb", "a\r\n", "\n"]) expect(textOfWhole([wholeText(text, "added")], "added")).toBe(text);
    expect(textOfWhole(readPatch(`${HEAD}@@ -1 +1 @@\n-a\n+b\n`), "added")).toBeNull();
    expect(textOfWhole([], "added")).toBeNull();
    expect(wholeText("", "added").notes).toEqual(["Empty file"]);
  });
});

describe("what an agent's tool changes", () => {
  const told = (tool: string, input: unknown) => editsOf(tool, input).map(({ name, hunks }) => [name, ...hunks.flatMap(({ lines }) => lines.map(({ kind, text }) => `${{ same: " ", added: "+", removed: "-" }[kind]}${text}`))]);

  it("is a text in place of another", () => {
    expect(told("Edit", { file_path: "/p/a.rs", old_string: "a\nb\n", new_string: "a\nc\n" })).toEqual([["/p/a.rs", " a", "-b", "+c"]]);
    expect(told("edit", { filePath: "a", oldString: "x", newString: "y" })).toEqual([["a", "-x", "+y"]]);
    expect(told("edit", [{ type: "diff", path: "a", oldText: null, newText: "y" }])).toEqual([["a", "+y"]]);
  });

  it("is several of them", () => {
    const edits = [{ old_string: "a", new_string: "b" }, { old_string: "c", new_string: "d" }];
    expect(told("MultiEdit", { file_path: "f", edits })).toEqual([["f", "-a", "+b"], ["f", "-c", "+d"]]);
  });

  it("is a whole file, if the tool writes one", () => {
    expect(told("Write", { file_path: "f", content: "a\nb\n" })).toEqual([["f", "+a", "+b"]]);
    expect(told("Search", { path: "f", content: "a" })).toEqual([]);
  });

  it("is a patch, in either form", () => {
    const patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@ fn main()\n x\n-y\n+z\n*** Add File: c\n+new\n*** Delete File: d\n*** End Patch\nrest";
    expect(told("apply_patch", { input: patch })).toEqual([["a.rs", " x", "-y", "+z"], ["c", "+new"], ["d"]]);
    expect(told("shell", { command: ["apply_patch", patch] })).toHaveLength(3);
    expect(told("patch", { changes: { "a.rs": { type: "update", unified_diff: "@@ -1 +1 @@\n-a\n+b\n" } } })).toEqual([["a.rs", "-a", "+b"]]);
  });

  it("is nothing for other tools, whatever their input is", () => {
    for (const input of [null, 7, "ls", [], {}, { command: "ls" }, { command: "ls @@ -1" }, { edits: 7 }, { changes: [{ path: "a", kind: "update" }] }, { file_path: "a" }, { new_string: "b" }]) expect(editsOf("Bash", input)).toEqual([]);
  });

  it("never hides what is sent beside it", () => {
    expect(besideEdits({ file_path: "a", old_string: "b", new_string: "c" })).toBeNull();
    expect(besideEdits({ file_path: "a", old_string: "b", new_string: "c", run: "rm" })).toEqual({ run: "rm" });
    expect(besideEdits({ command: "apply_patch …; rm -r ." })).toEqual({ command: "apply_patch …; rm -r ." });
  });

  it("is told to be incomplete where the server kept the beginning only", () => {
    const [file] = editsOf("Edit", { file_path: "a", old_string: `${"é".repeat(512)}…`, new_string: "b" });
    expect(file!.notes).toEqual(["Only the beginning of what it changes is known here"]);
    expect(editsOf("Edit", { file_path: "a", old_string: "wait…", new_string: "b" })[0]!.notes).toEqual([]);
  });
});

describe("a status", () => {
  it("is read, whatever is missing", () => {
    const status = statusOf({
      type: "git_status_result", is_repo: true, branch: "main", upstream: "origin/main", ahead: 2, behind: 1,
      staged: [{ path: "b", status: "R", from: "a" }, { status: "M" }, 7], unstaged: [{ path: "c", status: "of tomorrow" }], untracked: ["d/", "", 7],
    });
    expect(status.changes).toEqual([
      { area: "staged", path: "b", letter: "R", from: "a" }, { area: "unstaged", path: "c", letter: "M", from: null }, { area: "untracked", path: "d/", letter: "?", from: null },
    ]);
    expect(statusOf({ type: "git_status_result" })).toEqual({ isRepository: false, branch: null, upstream: null, ahead: 0, behind: 0, changes: [], more: 0 });
    expect(statusOf({ type: "", untracked: Array(4000).fill("a") })).toMatchObject({ more: 1000 });
  });

  it("has words", () => {
    const of = (fields: object) => wordsOfBranch({ ...statusOf({ type: "" }), ...fields });
    expect(of({})).toBe("follows no other branch");
    expect(of({ upstream: "origin/main" })).toBe("as origin/main");
    expect(of({ upstream: "origin/main", ahead: 1 })).toBe("1 commit ahead of origin/main");
    expect(of({ upstream: "origin/main", ahead: 2, behind: 3 })).toBe("2 commits ahead, 3 commits behind of origin/main");
    expect(wordsOfChange({ area: "staged", path: "b", letter: "R", from: "a" })).toBe("renamed from a");
    expect(wordsOfChange({ area: "unstaged", path: "b", letter: "U", from: null })).toBe("conflict");
  });
});

describe("what is not seen in a text", () => {
  it("is named", () => {
    expect(visible("a\u202eb\u0007\r")).toBe("a⟨U+202E⟩b⟨U+0007⟩⟨CR⟩");
    expect(visible("plain\ttext é 🐇")).toBe("plain\ttext é 🐇");
  });
});
