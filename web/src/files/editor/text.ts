import { Text, type ChangeSpec } from "@codemirror/state";

/** How the lines of a file end. */
export interface Endings {
  /** What splits a text into lines; `undefined`: any of the usual ends. */
  separator: string | undefined;
  /** What joins them again. */
  join: string;
}

/** Lines that are longer are shown without colours. */
const LONG_LINE = 20_000;

/** How the lines of a text end, so that it is joined again as it was: where ends are mixed, `\r` stays a character. */
export function endingsOf(text: string): Endings {
  if (!text.includes("\r")) return { separator: undefined, join: "\n" };
  const isCrlf = !/\r(?!\n)|(?<!\r)\n/.test(text);
  return isCrlf ? { separator: undefined, join: "\r\n" } : { separator: "\n", join: "\n" };
}

/** The lines of a text. */
export function linesOf(text: string, { separator }: Endings): Text {
  return Text.of(text.split(separator ?? /\r\n?|\n/));
}

export function textOf(lines: Text, { join }: Endings): string {
  return lines.sliceString(0, lines.length, join);
}

/** The one change that makes one text of another, so that the cursor stays where it was outside of it. */
export function changeBetween(before: Text, after: Text): ChangeSpec {
  const [a, b] = [before.toString(), after.toString()];
  const most = Math.min(a.length, b.length);
  let from = 0;
  while (from < most && a.charCodeAt(from) === b.charCodeAt(from)) from += 1;
  let end = 0;
  while (end < most - from && a.charCodeAt(a.length - 1 - end) === b.charCodeAt(b.length - 1 - end)) end += 1;
  return { from, to: a.length - end, insert: after.slice(from, after.length - end) };
}

export function hasLongLine(lines: Text): boolean {
  for (const line of lines.iterLines()) if (line.length > LONG_LINE) return true;
  return false;
}

/** What a text is indented by: a tab, or as many spaces as its first indented line has. */
export function indentOf(lines: Text): string {
  for (let at = 1; at <= Math.min(lines.lines, 500); at += 1) {
    const [, indent] = /^(\t|  (?: {2})?)\S/.exec(lines.line(at).text) ?? [];
    if (indent) return indent;
  }
  return "  ";
}
