import { describe, expect, test } from "vitest";
import { GrowingText, parseBlocks } from "../src/markdown/blocks";
import { parseInline } from "../src/markdown/inline";
import { hiddenHost, safeHref } from "../src/markdown/links";
import type { Block, Inline } from "../src/markdown/tree";

/** Inlines in short: `b(…)`, `i(…)`, `s(…)`, `c(…)`, `a[address](…)`, `/` for a break. */
function line(pieces: Inline[]): string {
  const names = { strong: "b", em: "i", strike: "s" };
  return pieces
    .map((piece) => {
      if (piece.kind === "text") return piece.text;
      if (piece.kind === "code") return `c(${piece.text})`;
      if (piece.kind === "break") return "/";
      if (piece.kind === "link") return `a[${piece.href}](${line(piece.inner)})`;
      return `${names[piece.kind]}(${line(piece.inner)})`;
    })
    .join("");
}

const inline = (text: string, open = false) => line(parseInline(text, open));

describe("a line", () => {
  test.each([
    ["plain", "plain"],
    ["**bold** and *it* and _it_ and ~~no~~", "b(bold) and i(it) and i(it) and s(no)"],
    ["***both***", "b(i(both))"],
    ["**a *b* c**", "b(a i(b) c)"],
    ["snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"],
    ["`a * b` and ``x ` y``", "c(a * b) and c(x ` y)"],
    ["one\ntwo", "one/two"],
    ["\\*not\\* \\`it\\`", "*not* `it`"],
    ["[words](https://example.org/a_(b) \"title\")", "a[https://example.org/a_(b)](words)"],
    ["<https://example.org/x>", "a[https://example.org/x](https://example.org/x)"],
    ["see https://example.org/x_y. Yes", "see a[https://example.org/x_y](https://example.org/x_y). Yes"],
    ["**open", "**open"],
    ["[a] (b) [c](", "[a] (b) [c]("],
  ])("%s", (text, expected) => expect(inline(text)).toBe(expected));

  test("that is still coming looks as it will", () => {
    expect(inline("so **bo", true)).toBe("so b(bo)");
    expect(inline("so `co", true)).toBe("so c(co)");
    expect(inline("so `co", false)).toBe("so `co");
  });
});

describe("hostile text", () => {
  test.each(["<script>alert(1)</script>", '<img src=x onerror="alert(1)">', "<a href='javascript:x'>y</a>", "&lt;b&gt;", "<!-- -->"])(
    "with HTML is text: %s",
    (text) => {
      expect(inline(text)).toBe(text);
      expect(parseBlocks(text)).toEqual([{ kind: "paragraph", text }]);
    },
  );

  test.each([
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\nscript:alert(1)", "java\tscript:x", "\u0001javascript:x",
    "data:text/html,<script>", "vbscript:x", "file:///etc/passwd", "blob:https://x/y", "//evil.example", "/admin/keys", "#/play", "admin/stop", "https:evil", "https://", "",
  ])("has no link to %j", (href) => expect(safeHref(href)).toBeNull());

  test("in a link keeps its words only", () => {
    expect(inline("[click](javascript:alert(1)) [x](/admin/stop)")).toBe("click x");
    expect(inline("[a](<javascript:x>)")).toBe("a");
  });

  test("asks for no picture of another host", () => {
    expect(inline("![pixel](https://evil.example/p.png?secret)")).toBe("a[https://evil.example/p.png?secret](pixel)");
    expect(inline("![](data:image/png;base64,AA)")).toBe("data:image/png;base64,AA");
  });

  test("cannot hide where a link leads", () => {
    expect(hiddenHost("https://evil.example/x", "https://bank.example/login")).toBe("evil.example");
    expect(hiddenHost("https://evil.example/x", "bank.example")).toBe("evil.example");
    expect(hiddenHost("https://www.bank.example/x", "bank.example")).toBeNull();
    expect(hiddenHost("https://example.org/x", "read this")).toBeNull();
  });

  const N = 30_000;
  test.each([
    ["*", "*".repeat(N)], ["**a", "**a ".repeat(N)], ["_a*", "_a*".repeat(N)], ["[", "[".repeat(N)], ["[](", "[](".repeat(N)],
    ["[x](y", "[x](y".repeat(N)], ["((", `[x](${"(".repeat(N)}`], ["`", Array.from({ length: 250 }, (_, i) => "`".repeat(i + 1)).join(" ")],
    ["![", "![".repeat(N)], ["<http", "<http://".repeat(N)], ["http://", "http://".repeat(N)], ["spaces", `a${" ".repeat(N)}\n`.repeat(4)], ["\\", "\\".repeat(N)],
    ["]", `${"[".repeat(N)}${"]".repeat(N)}`], ["nested", "[a".repeat(500) + "](https://x.example)".repeat(500)],
  ])("in a line takes time in proportion: %s", (_, text) => {
    const began = performance.now();
    parseInline(text);
    parseInline(text, true);
    expect(performance.now() - began).toBeLessThan(1500);
  });

  test.each([
    ["quotes", ">".repeat(N)], ["lists", "- ".repeat(N)], ["numbers", "1. ".repeat(N)], ["fences", "```\n".repeat(N)], ["one fence", `\`\`\`${"a".repeat(N)}\``],
    ["bars", "|".repeat(N)], ["rows", `|a|b|\n|-|-|\n${"|x|y|\n".repeat(5000)}`], ["dashes", "- ".repeat(N) + "x"], ["delimiter", `a|b\n${"-|".repeat(N)}x`],
    ["headings", `# ${"# ".repeat(N)}\u2028`], ["lines", "a\n".repeat(N)], ["empty", "\n".repeat(N)], ["deep", Array.from({ length: 400 }, (_, i) => `${" ".repeat(i)}- x`).join("\n")],
  ])("in blocks takes time in proportion: %s", (_, text) => {
    const began = performance.now();
    parseBlocks(text);
    expect(performance.now() - began).toBeLessThan(1500);
  });
});

describe("blocks", () => {
  const kinds = (text: string) => parseBlocks(text).map(({ kind }) => kind);

  test("are told apart", () => {
    expect(kinds("# Title\ntext\nmore\n\n---\n> said\n\n- a\n- b\n\n```js\ncode\n```\n\n|a|b|\n|-|-:|\n|1|2|")).toEqual([
      "heading", "paragraph", "rule", "quote", "list", "code", "table",
    ]);
  });

  test("of code hold what is in them, and need no end yet", () => {
    expect(parseBlocks("```py\n# x\n\n  y\n")).toEqual([{ kind: "code", language: "py", text: "# x\n\n  y\n", closed: false }]);
    expect(parseBlocks("~~~\n```\n~~~~\nafter")).toEqual([
      { kind: "code", language: "", text: "```", closed: true },
      { kind: "paragraph", text: "after" },
    ]);
    expect(kinds("```not``` a fence")).toEqual(["paragraph"]);
  });

  test("of lists hold lists, code and tasks", () => {
    const [list] = parseBlocks("3. one\n\n   more\n   - [x] done\n   - [ ] open\n4. two\n   ```\n   code\n   ```\nend?\n\nafter") as [Extract<Block, { kind: "list" }>];
    expect(list.start).toBe(3);
    expect(list.items).toHaveLength(2);
    expect(list.items[0]!.blocks.map(({ kind }) => kind)).toEqual(["paragraph", "paragraph", "list"]);
    const inner = list.items[0]!.blocks[2] as Extract<Block, { kind: "list" }>;
    expect(inner.items.map(({ done }) => done)).toEqual([true, false]);
    expect(list.items[1]!.blocks[1]).toMatchObject({ kind: "code", text: "code" });
  });

  test("of lists that are indented by two hold together", () => {
    const [list] = parseBlocks("1. one\n  - inner\n2. two") as [Extract<Block, { kind: "list" }>];
    expect(list.items).toHaveLength(2);
    expect(list.items[0]!.blocks[1]!.kind).toBe("list");
  });

  test("of tables are aligned, and their bars can be escaped", () => {
    expect(parseBlocks("| a | b |\n|:-:|--:|\n| x \\| y | 2 | 3 |\nend")).toEqual([
      { kind: "table", align: ["center", "right"], head: ["a", "b"], rows: [["x | y", "2"]] },
      { kind: "paragraph", text: "end" },
    ]);
  });
});

describe("a text that grows", () => {
  const text = "# A\n\npara **b**\nmore\n\n- a\n  - b\n\n- c\n\n```js\nx\n\ny\n```\nend\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> q\nlazy\n\n1. x\r\n2. y\n";

  test("gives at each length what the whole gives", () => {
    const growing = new GrowingText();
    for (let length = 0; length <= text.length; length += 1) {
      const part = text.slice(0, length);
      expect(growing.read(part).map(({ block }) => block), JSON.stringify(part)).toEqual(parseBlocks(part));
    }
  });

  test("that turns into another one is read anew", () => {
    const growing = new GrowingText();
    growing.read("# A\n\nb\n\nc");
    expect(growing.read("x").map(({ block }) => block)).toEqual([{ kind: "paragraph", text: "x" }]);
  });
});
