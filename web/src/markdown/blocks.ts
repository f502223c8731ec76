import type { Align, Block, Item } from "./tree";

/** Quotes and lists may stand in each other this deep; what is deeper is one paragraph. */
const MAX_DEPTH = 8;

/** The most columns of a table. */
const MAX_COLUMNS = 64;

/** Only so much of a line is looked at to tell what block it begins. */
const LOOK = 200;

const FENCE = /^ {0,3}(`{3,}|~{3,}) *([^`\s]{0,40})/;
const HEADING = /^ {0,3}(#{1,6})(?: |$)/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const BULLET = /^( {0,3})([-*+]|\d{1,9}[.)])( {1,4}|$)(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const DELIMITER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** A block at the top level, and the lines that it was read from: the same lines mean the same block. */
export interface TopBlock {
  block: Block;
  source: string;
}

/** The blocks of a text. Nothing that is written in it is taken for HTML. */
export function parseBlocks(text: string): Block[] {
  return new GrowingText().read(text).map(({ block }) => block);
}

/** Reads a text again and again while it grows at its end, each time only from its last block on. */
export class GrowingText {
  private text = "";
  private closed: TopBlock[] = [];
  private closedLines = 0;

  read(text: string): TopBlock[] {
    if (!text.startsWith(this.text)) [this.closed, this.closedLines] = [[], 0];
    this.text = text;
    const lines = text.replace(/\r\n?/g, "\n").replace(/\t/g, "    ").split("\n");
    let last: TopBlock | null = null;
    for (let at = this.closedLines; at < lines.length; ) {
      if (lines[at]!.trim() === "") {
        at += 1;
        continue;
      }
      if (last) this.closed.push(last);
      this.closedLines = at;
      const { block, next } = blockAt(lines, at, 0);
      last = { block, source: lines.slice(at, next).join("\n") };
      at = next;
    }
    return last ? [...this.closed, last] : [...this.closed];
  }
}

function blocksOf(lines: string[], depth: number): Block[] {
  if (depth > MAX_DEPTH) return [{ kind: "paragraph", text: lines.join("\n").trim() }];
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at]!.trim() === "") {
      at += 1;
      continue;
    }
    const { block, next } = blockAt(lines, at, depth);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

interface Found {
  block: Block;
  next: number;
}

function blockAt(lines: string[], at: number, depth: number): Found {
  return (
    fenceAt(lines, at) ??
    headingAt(lines, at) ??
    ruleAt(lines, at) ??
    quoteAt(lines, at, depth) ??
    listAt(lines, at, depth) ??
    tableAt(lines, at) ??
    paragraphAt(lines, at)
  );
}

/** A fence without an end holds to the end of the text: in a text that is still coming, code is code at once. */
function fenceAt(lines: string[], at: number): Found | null {
  const found = fenceIn(lines[at]!);
  if (!found) return null;
  const fence = found[1]!;
  const indent = lines[at]!.search(/\S/);
  let end = at + 1;
  while (end < lines.length && !endsFence(lines[end]!, fence)) end += 1;
  const text = lines.slice(at + 1, end).map((line) => unindented(line, indent)).join("\n");
  const block: Block = { kind: "code", language: found[2] ?? "", text, closed: end < lines.length };
  return { block, next: end + 1 };
}

/** Behind a fence of backticks there may be no backtick: then it is code within a line. */
function fenceIn(line: string): RegExpExecArray | null {
  const found = FENCE.exec(line.slice(0, LOOK));
  return found && found[1]![0] === "`" && line.includes("`", found[0].length) ? null : found;
}

function endsFence(line: string, fence: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed === fence[0]!.repeat(trimmed.length);
}

function unindented(line: string, by: number): string {
  const own = line.search(/\S|$/);
  return line.slice(Math.min(own, by));
}

function headingAt(lines: string[], at: number): Found | null {
  const found = HEADING.exec(lines[at]!);
  if (!found) return null;
  const text = lines[at]!.slice(found[0].length).trim().replace(/(?:^| )#{1,99}$/, "");
  return { block: { kind: "heading", level: found[1]!.length, text }, next: at + 1 };
}

function ruleAt(lines: string[], at: number): Found | null {
  return isRule(lines[at]!) ? { block: { kind: "rule" }, next: at + 1 } : null;
}

function isRule(line: string): boolean {
  return line.length <= LOOK && RULE.test(line);
}

function quoteAt(lines: string[], at: number, depth: number): Found | null {
  if (!QUOTE.test(lines[at]!)) return null;
  let end = at;
  while (end < lines.length && (QUOTE.test(lines[end]!) || goesOn(lines[end]!))) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return { block: { kind: "quote", blocks: blocksOf(inner, depth + 1) }, next: end };
}

/** Whether a line only goes on with the paragraph above it. */
function goesOn(line: string): boolean {
  return line.trim() !== "" && !startsBlock(line);
}

function startsBlock(line: string): boolean {
  return fenceIn(line) !== null || HEADING.test(line) || QUOTE.test(line) || BULLET.test(line) || isRule(line);
}

function listAt(lines: string[], at: number, depth: number): Found | null {
  const first = BULLET.exec(lines[at]!);
  if (!first) return null;
  const ordered = /\d/.test(first[2]!);
  const kind = first[2]!.at(-1);
  const items: Item[] = [];
  let next = at;
  for (let found: RegExpExecArray | null = first; found && found[2]!.at(-1) === kind; ) {
    const indent = found[1]!.length + found[2]!.length + (found[3]!.length || 1);
    const end = endOfItem(lines, next + 1, Math.min(indent, found[1]!.length + 2));
    const inner = [found[4]!, ...lines.slice(next + 1, end).map((line) => unindented(line, indent))];
    items.push(itemOf(inner, depth));
    next = end;
    found = next < lines.length ? BULLET.exec(lines[next]!) : null;
  }
  const start = ordered ? Number.parseInt(first[2]!, 10) : 1;
  return { block: { kind: "list", ordered, start, items }, next };
}

/** The line where an item's own lines end: what is indented so far, what goes on, and empty lines between them. */
function endOfItem(lines: string[], from: number, indent: number): number {
  let end = from;
  let empty = 0;
  while (end + empty < lines.length) {
    const line = lines[end + empty]!;
    if (line.trim() === "") {
      empty += 1;
      continue;
    }
    const belongs = line.search(/\S/) >= indent || (empty === 0 && goesOn(line));
    if (!belongs) return BULLET.test(line) ? end + empty : end;
    end += empty + 1;
    empty = 0;
  }
  return end;
}

function itemOf(lines: string[], depth: number): Item {
  const task = /^\[([ xX])\]\s+(.*)$/.exec(lines[0]!);
  if (!task) return { done: null, blocks: blocksOf(lines, depth + 1) };
  return { done: task[1] !== " ", blocks: blocksOf([task[2]!, ...lines.slice(1)], depth + 1) };
}

/** A first row without a second line yet counts as a table if it begins with a bar: more will come. */
function tableAt(lines: string[], at: number): Found | null {
  const head = lines[at]!;
  if (!head.includes("|")) return null;
  const last = at === lines.length - 1;
  if (last ? !/^\s*\|.*\|/.test(head) : !isDelimiter(lines[at + 1]!)) return null;
  const names = cellsOf(head);
  const align = last ? [] : cellsOf(lines[at + 1]!).map(alignOf);
  let end = at + 2;
  while (end < lines.length && lines[end]!.includes("|") && !startsBlock(lines[end]!)) end += 1;
  const rows = lines.slice(at + 2, end).map((line) => cellsOf(line).slice(0, names.length));
  return { block: { kind: "table", align: names.map((_, i) => align[i] ?? null), head: names, rows }, next: end };
}

function isDelimiter(line: string): boolean {
  return line.length <= 10 * LOOK && line.includes("-") && DELIMITER.test(line);
}

function cellsOf(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/, MAX_COLUMNS).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function alignOf(cell: string): Align {
  if (cell.endsWith(":")) return cell.startsWith(":") ? "center" : "right";
  return cell.startsWith(":") ? "left" : null;
}

function paragraphAt(lines: string[], at: number): Found {
  let end = at + 1;
  while (end < lines.length && goesOn(lines[end]!) && !tableAt(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trimStart()).join("\n").trimEnd();
  return { block: { kind: "paragraph", text }, next: end };
}
