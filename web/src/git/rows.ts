import { diffWordsWithSpace } from "diff";
import type { FileDiff, Hunk, Line } from "./patch";

/** A part of a line, and whether it differs from the line that it took the place of. */
export interface Piece {
  text: string;
  isChanged: boolean;
}

/** A line with its pieces. */
export interface Shown {
  line: Line;
  pieces: Piece[];
}

/** A row of the diff: a hunk's heading, or a line on the left, on the right, or on both sides. */
export type Row =
  | { kind: "heading"; text: string }
  | { kind: "lines"; left: Shown | null; right: Shown | null; isFirst: boolean };

/** Longer lines are not compared word by word, and are cut where they are shown. */
const MAX_COMPARED = 500;
export const MAX_SHOWN = 5000;

/** Lines with less in common than these parts of the longer and of the shorter one are taken for other lines. */
const LEAST_OF_LONGER = 0.3;
const LEAST_OF_SHORTER = 0.7;

/** More differences than this within a line are not looked for. */
const MAX_EDITS = 60;

/** How long all lines of a diff may be compared word by word, in milliseconds; the rest is shown without. */
const MAX_MS = 200;

/** How many lines a file's diff has. */
export function linesOf(files: FileDiff[]): number {
  return files.reduce((all, { hunks }) => all + hunks.reduce((sum, { lines }) => sum + lines.length, 0), 0);
}

/** The first `most` lines of a file's hunks. */
export function firstLines(hunks: Hunk[], most: number): Hunk[] {
  const first: Hunk[] = [];
  for (let left = most, at = 0; left > 0 && at < hunks.length; at += 1) {
    const lines = hunks[at]!.lines.slice(0, left);
    first.push({ heading: hunks[at]!.heading, lines });
    left -= lines.length;
  }
  return first;
}

/** The rows of hunks: side by side, or one under the other. */
export function rowsOf(hunks: Hunk[], sideBySide: boolean): Row[] {
  const until = performance.now() + MAX_MS;
  return hunks.flatMap((hunk, at) => [...headingOf(hunk, at), ...rowsOfLines(hunk.lines, sideBySide, until)]);
}

/** A hunk that begins with the first line needs no heading. */
function headingOf({ heading, lines }: Hunk, at: number): Row[] {
  const [line] = lines;
  if (at === 0 && !heading && (line?.now ?? line?.before ?? 1) === 1) return [];
  return [{ kind: "heading", text: heading }];
}

function rowsOfLines(lines: Line[], sideBySide: boolean, until: number): Row[] {
  const rows: Row[] = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at]!.kind === "same") {
      const shown = plain(lines[at]!);
      rows.push({ kind: "lines", left: shown, right: shown, isFirst: false });
      at += 1;
      continue;
    }
    const end = endOfChange(lines, at);
    rows.push(...rowsOfChange(lines.slice(at, end), sideBySide, until));
    at = end;
  }
  return rows;
}

/** Where the changed lines end that begin here. */
function endOfChange(lines: Line[], from: number): number {
  const end = lines.findIndex(({ kind }, at) => at > from && kind === "same");
  return end < 0 ? lines.length : end;
}

/** Removed and added lines that belong together. */
function rowsOfChange(lines: Line[], sideBySide: boolean, until: number): Row[] {
  const [removed, added] = compared(lines.filter(({ kind }) => kind === "removed"), lines.filter(({ kind }) => kind === "added"), until);
  const count = Math.max(removed.length, added.length);
  const sides: [Shown | null, Shown | null][] = sideBySide
    ? Array.from({ length: count }, (_, at) => [removed[at] ?? null, added[at] ?? null])
    : [...removed.map((shown): [Shown, null] => [shown, null]), ...added.map((shown): [null, Shown] => [null, shown])];
  return sides.map(([left, right], at) => ({ kind: "lines", left, right, isFirst: at === 0 }));
}

/** Lines with their pieces: each removed line is compared with the added one at its place. */
function compared(removed: Line[], added: Line[], until: number): [Shown[], Shown[]] {
  const pairs = removed.map((line, at) => (added[at] && performance.now() < until ? wordsOf(line.text, added[at].text) : null));
  const shown = (line: Line, pieces: Piece[] | undefined) => (pieces ? { line, pieces } : plain(line));
  return [removed.map((line, at) => shown(line, pairs[at]?.[0])), added.map((line, at) => shown(line, pairs[at]?.[1]))];
}

function plain(line: Line): Shown {
  return { line, pieces: [{ text: line.text, isChanged: false }] };
}

/** What two lines consist of; `null` if they are too long, or have too little in common. */
export function wordsOf(before: string, now: string): [Piece[], Piece[]] | null {
  if (Math.max(before.length, now.length) > MAX_COMPARED) return null;
  const parts = diffWordsWithSpace(before, now, { maxEditLength: MAX_EDITS });
  if (!parts) return null;
  const pieces = (without: "added" | "removed") => parts.filter((part) => !part[without]).map(({ value, added, removed }) => ({ text: value, isChanged: added || removed }));
  const common = parts.filter(({ added, removed }) => !added && !removed).reduce((sum, { value }) => sum + value.trim().length, 0);
  return areAkin(common, before.trim().length, now.trim().length) ? [pieces("added"), pieces("removed")] : null;
}

function areAkin(common: number, ...lengths: [number, number]): boolean {
  return common > 0 && (common >= LEAST_OF_LONGER * Math.max(...lengths) || common >= LEAST_OF_SHORTER * Math.min(...lengths));
}
