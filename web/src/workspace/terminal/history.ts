import { Terminal } from "@xterm/xterm";
import type { Link } from "../link";
import { numberOf, textOf } from "../protocol";
import type { Size } from "./screen";

/** How many bytes of output are asked for at a time; the server sends no more than 8 MiB. */
const PAGE_BYTES = 256 * 1024;

/** So much output is kept, in characters; whoever wants more saves what there is. */
export const MAX_KEPT = 8 * 1024 * 1024;

/** The longest row: longer lines, which may have megabytes, go on in the next. */
export const MAX_ROW = 400;

/** So many rows are kept. */
export const MAX_ROWS = 200_000;

/** The lines above the screen of the terminal that reads output. */
const SCROLLBACK = 4000;

type Ask = Link["ask"];

/** A row of output. */
export interface Row {
  /** Its number, which it keeps when earlier rows come: those have lower ones. */
  key: number;
  text: string;
}

/** What a session has printed, read from its end to its beginning, piece by piece. */
export class Past {
  rows: Row[] = [];
  /** Whether there is output before this, and whether there is room for it. */
  more = true;
  full = false;
  private before: number | null = null;
  private kept = 0;

  constructor(private readonly sessionId: string, private readonly size: Size, private readonly ask: Ask) {}

  /** Reads the piece before what is known. Returns how many rows are new; they are the first ones. */
  async earlier(): Promise<number> {
    const answer = await this.ask({ type: "get_history", session_id: this.sessionId, before_seq: this.before, max_bytes: PAGE_BYTES }, "history");
    const data = textOf(answer["data"]);
    const from = numberOf(answer["from_seq"]);
    // A server that is at no earlier place than before would be asked for ever.
    const goesOn = data !== "" && from !== null && (this.before === null || from < this.before);
    this.before = from ?? this.before;
    this.kept += data.length;
    const added = goesOn ? this.put(await linesOf(data, this.size), data.endsWith("\n")) : 0;
    this.full = this.kept >= MAX_KEPT || this.rows.length >= MAX_ROWS;
    this.more = answer["more"] === true && goesOn && !this.full;
    return added;
  }

  /** All of it as text. */
  text(): string {
    return this.rows.map(({ text }) => text).join("\n");
  }

  /** Puts lines before all others. The last one may go on in what is the first now. */
  private put(lines: string[], ends: boolean): number {
    const first = this.rows[0];
    const joined = !ends && first ? [...lines.slice(0, -1), (lines.at(-1) ?? "") + first.text] : lines;
    const rest = !ends && first ? this.rows.slice(1) : this.rows;
    const texts = joined.flatMap(piecesOf);
    const start = (rest[0]?.key ?? 0) - texts.length;
    const known = this.rows.length;
    this.rows = [...texts.map((text, at) => ({ key: start + at, text })), ...rest];
    return this.rows.length - known;
  }
}

/** The lines that a terminal of this size shows after it got this output: colours, moves of the cursor and the like are done, not shown. */
export async function linesOf(data: string, { cols, rows }: Size): Promise<string[]> {
  // What the output asks a terminal is not answered: nobody listens to this one.
  const terminal = new Terminal({ cols, rows, scrollback: SCROLLBACK, scrollOnEraseInDisplay: true, allowProposedApi: true });
  const lines: string[] = [];
  for (const part of partsOf(plain(data))) {
    await new Promise<void>((done) => terminal.write(part, done));
    take(terminal, terminal.buffer.normal.baseY, lines);
    // The lines above the screen were taken: they are dropped.
    terminal.options.scrollback = 0;
    terminal.options.scrollback = SCROLLBACK;
  }
  take(terminal, terminal.buffer.normal.length, lines);
  terminal.dispose();
  while (lines.length && !lines.at(-1)) lines.pop();
  return lines;
}

/** Appends the first lines of a terminal; one that was wrapped is one line. */
function take({ buffer: { normal } }: Terminal, count: number, lines: string[]): void {
  for (let at = 0; at < count; at += 1) {
    const line = normal.getLine(at);
    if (line?.isWrapped && lines.length) lines[lines.length - 1] += line.translateToString(true);
    else lines.push(line?.translateToString(true) ?? "");
  }
}

/** Output in parts that a terminal can hold. */
function partsOf(data: string): string[] {
  return data.match(/(?:[^\n]{0,40}\n|[^\n]{1,40}){1,1000}/g) ?? [];
}

/** Output that leaves the lines above the screen alone: programs can delete those, and reset the terminal. */
function plain(data: string): string {
  return data.replace(/\x1b(\[3J|c)/g, "");
}

function piecesOf(line: string): string[] {
  if (line.length <= MAX_ROW) return [line];
  const pieces: string[] = [];
  for (let at = 0; at < line.length; at += MAX_ROW) pieces.push(line.slice(at, at + MAX_ROW));
  return pieces;
}

/** The places of the rows that have a text in them, in any case. */
export function found(rows: Row[], words: string): number[] {
  const wanted = words.toLowerCase();
  if (!wanted) return [];
  const places: number[] = [];
  rows.forEach(({ text }, at) => text.toLowerCase().includes(wanted) && places.push(at));
  return places;
}
