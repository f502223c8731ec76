import { structuredPatch } from "diff";
import { HunkReader, type FileDiff, type Hunk, type Line } from "./patch";

/** Texts that differ in more lines than this, or take longer, are shown one after the other. */
const MAX_EDITS = 2000;
const MAX_MS = 250;

/** Unchanged lines around a change. */
const CONTEXT = 3;

/** What differs between two texts. `numbered`: whether they are whole files, whose lines have numbers. */
export function compare(before: string, now: string, { numbered = true } = {}): FileDiff {
  const found = structuredPatch("", "", before, now, "", "", { context: CONTEXT, maxEditLength: MAX_EDITS, timeout: MAX_MS });
  const hunks = found ? found.hunks.map(hunkOf) : [{ heading: "", lines: [...all(before, "removed"), ...all(now, "added")] }];
  return { name: "", notes: [], hunks: numbered ? hunks : hunks.map(withoutNumbers) };
}

/** A text all of whose lines are new, or all of whose lines are gone. */
export function wholeText(text: string, kind: "added" | "removed"): FileDiff {
  const lines = all(text, kind);
  return { name: "", notes: lines.length ? [] : ["Empty file"], hunks: lines.length ? [{ heading: "", lines }] : [] };
}

/** The text that a patch adds or removes as a whole; `null` if it does something else. */
export function textOfWhole([file, ...more]: FileDiff[], kind: "added" | "removed"): string | null {
  const lines = file?.hunks.flatMap((hunk) => hunk.lines) ?? [];
  if (!lines.length || more.length || lines.some((line) => line.kind !== kind)) return null;
  return lines.map(({ text, isUnended }) => (isUnended ? text : `${text}\n`)).join("");
}

function hunkOf({ oldStart, newStart, lines }: { oldStart: number; newStart: number; lines: string[] }): Hunk {
  const reader = new HunkReader([oldStart], newStart);
  for (const line of lines) reader.take(line);
  return reader.hunk;
}

function all(text: string, kind: "added" | "removed"): Line[] {
  if (!text) return [];
  const lines = text.split("\n");
  const isUnended = lines.at(-1) !== "";
  if (!isUnended) lines.pop();
  const numbers = (at: number) => (kind === "added" ? { before: null, now: at + 1 } : { before: at + 1, now: null });
  return lines.map((line, at) => ({ kind, text: line, ...numbers(at), ...(isUnended && at === lines.length - 1 && { isUnended }) }));
}

function withoutNumbers({ heading, lines }: Hunk): Hunk {
  return { heading, lines: lines.map((line) => ({ ...line, before: null, now: null, isUnended: false })) };
}
