import { safeHref } from "./links";
import type { Inline } from "./tree";

/** Marks may stand in marks this deep; deeper ones are plain text. */
const MAX_DEPTH = 8;

/** After so many brackets that turn out to be no links the rest of a text has none: looking costs time. */
const MAX_FAILED_LINKS = 100;

/** The longest address of a link, in characters. */
const MAX_HREF = 2000;

const MARKS: Record<string, "strong" | "em" | "strike"> = {
  "**": "strong",
  __: "strong",
  "*": "em",
  _: "em",
  "~~": "strike",
};

interface Frame {
  mark: string;
  inner: Inline[];
}

/**
 * The pieces of a text: code, emphasis, links, breaks. HTML is text like any other. With `open` a mark that has no
 * end yet counts as ended by the text's end, so that a text that is still coming does not change its look.
 *
 * Time is linear in the text's length, whatever the text is.
 */
export function parseInline(text: string, open = false): Inline[] {
  return new Scanner(text, open, 0).run();
}

class Scanner {
  private at = 0;
  private plain = "";
  private readonly frames: Frame[] = [{ mark: "", inner: [] }];
  private readonly noCodeEnd = new Set<number>();
  private brackets: Map<number, number> | null = null;
  private failedLinks = 0;

  constructor(
    private readonly text: string,
    private readonly open: boolean,
    private readonly depth: number,
  ) {}

  run(): Inline[] {
    while (this.at < this.text.length) this.step();
    this.flush();
    while (this.frames.length > 1) this.leaveOpen();
    return this.frames[0]!.inner;
  }

  private step(): void {
    const c = this.text[this.at]!;
    if (c === "\\") return this.escape();
    if (c === "\n") return this.lineBreak();
    if (c === "`" && this.code()) return;
    if ((c === "[" || c === "!") && this.link()) return;
    if (c === "<" && this.angle()) return;
    if (c === "h" && this.bare()) return;
    if ((c === "*" || c === "_" || c === "~") && this.mark()) return;
    this.take(1);
  }

  private take(length: number): void {
    this.plain += this.text.slice(this.at, this.at + length);
    this.at += length;
  }

  private flush(): void {
    if (this.plain) this.add({ kind: "text", text: this.plain }, false);
    this.plain = "";
  }

  private add(piece: Inline, flush = true): void {
    if (flush) this.flush();
    this.frames.at(-1)!.inner.push(piece);
  }

  private escape(): void {
    const next = this.text[this.at + 1];
    if (next === "\n") this.at += 1;
    else if (next && /[!-/:-@[-`{-~]/.test(next)) {
      this.plain += next;
      this.at += 2;
    } else this.take(1);
  }

  private lineBreak(): void {
    this.plain = this.plain.replace(/ {1,99}$/, "");
    this.add({ kind: "break" });
    this.at += 1;
  }

  private code(): boolean {
    const ticks = runLength(this.text, this.at, "`");
    const from = this.at + ticks;
    const end = this.noCodeEnd.has(ticks) ? -1 : endOfCode(this.text, from, ticks);
    if (end < 0) {
      this.noCodeEnd.add(ticks);
      if (this.open && ticks === 1 && from < this.text.length) return this.addCode(from, this.text.length, 0);
      this.take(ticks);
      return true;
    }
    return this.addCode(from, end, ticks);
  }

  private addCode(from: number, end: number, ticks: number): boolean {
    const text = this.text.slice(from, end).replace(/\n/g, " ");
    const padded = text.length > 2 && text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
    this.add({ kind: "code", text: padded ? text.slice(1, -1) : text });
    this.at = end + ticks;
    return true;
  }

  /** `[words](address "title")`. A picture becomes a link: the page asks no other host for anything. */
  private link(): boolean {
    const start = this.text[this.at] === "!" ? this.at + 1 : this.at;
    if (this.text[start] !== "[" || this.depth >= MAX_DEPTH || this.failedLinks > MAX_FAILED_LINKS) return false;
    const close = this.closing(start);
    if (close === undefined || this.text[close + 1] !== "(") return false;
    const target = targetAt(this.text, close + 2);
    if (!target) {
      this.failedLinks += 1;
      return false;
    }
    const words = this.text.slice(start + 1, close) || target.href;
    const inner = new Scanner(words, false, this.depth + 1).run();
    const href = safeHref(target.href);
    if (href) this.add({ kind: "link", href, inner });
    else inner.forEach((piece) => this.add(piece));
    this.at = target.end;
    return true;
  }

  private closing(start: number): number | undefined {
    this.brackets ??= bracketPairs(this.text);
    return this.brackets.get(start);
  }

  private angle(): boolean {
    const found = sticky(/<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y, this.text, this.at);
    return found ? this.address(found[1]!, found[0].length) : false;
  }

  private bare(): boolean {
    if (/[\w]/.test(this.text[this.at - 1] ?? "")) return false;
    const found = sticky(/https?:\/\/[^\s<>"'`\])]{1,2000}/y, this.text, this.at);
    if (!found) return false;
    const href = found[0].replace(/[.,;:!?*_~]{1,20}$/, "");
    return this.address(href, href.length);
  }

  private address(words: string, length: number): boolean {
    const href = safeHref(words);
    if (!href) return false;
    this.add({ kind: "link", href, inner: [{ kind: "text", text: words }] });
    this.at += length;
    return true;
  }

  private mark(): boolean {
    const c = this.text[this.at]!;
    const run = runLength(this.text, this.at, c);
    if (run > 3) {
      this.take(run);
      return true;
    }
    // Of three marks at an end the inner one is ended first.
    const length = run > 2 && this.frames.at(-1)!.mark === c ? 1 : Math.min(run, 2);
    const mark = c.repeat(length);
    if (!MARKS[mark]) return false;
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + length] ?? " ";
    const within = c === "_" && /\w/.test(before) && /\w/.test(after);
    if (!within && !/\s/.test(before) && this.closeFrame(mark)) return true;
    if (within || /\s/.test(after) || this.depth + this.frames.length > MAX_DEPTH) return false;
    this.flush();
    this.frames.push({ mark, inner: [] });
    this.at += length;
    return true;
  }

  private closeFrame(mark: string): boolean {
    if (!this.frames.some((frame) => frame.mark === mark)) return false;
    this.flush();
    while (this.frames.at(-1)!.mark !== mark) this.leaveOpen();
    const { inner } = this.frames.pop()!;
    this.add({ kind: MARKS[mark]!, inner });
    this.at += mark.length;
    return true;
  }

  /** The innermost mark has no end: it becomes text, or holds to the end of a text that is still coming. */
  private leaveOpen(): void {
    const { mark, inner } = this.frames.pop()!;
    const outer = this.frames.at(-1)!.inner;
    if (this.open && this.at >= this.text.length) outer.push({ kind: MARKS[mark]!, inner });
    else outer.push({ kind: "text", text: mark }, ...inner);
  }
}

function runLength(text: string, at: number, c: string): number {
  let end = at;
  while (text[end] === c) end += 1;
  return end - at;
}

/** Where a run of exactly so many backticks begins. */
function endOfCode(text: string, from: number, ticks: number): number {
  for (let at = text.indexOf("`", from); at >= 0; at = text.indexOf("`", at)) {
    const length = runLength(text, at, "`");
    if (length === ticks) return at;
    at += length;
  }
  return -1;
}

/** For each `[` where its `]` is. */
function bracketPairs(text: string): Map<number, number> {
  const pairs = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) pairs.set(open.pop()!, at);
  }
  return pairs;
}

/** The address and title of a link, behind its opening parenthesis. */
function targetAt(text: string, from: number): { href: string; end: number } | null {
  const piece = text.slice(from, from + MAX_HREF);
  const found = /^\s{0,9}(?:<([^<>\n]*)>|((?:[^\s()]|\([^\s()]*\))*))(?:\s{1,9}(?:"[^"]*"|'[^']*'))?\s{0,9}\)/.exec(piece);
  if (!found) return null;
  return { href: found[1] ?? found[2] ?? "", end: from + found[0].length };
}

function sticky(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
