/** What changed in one file. */
export interface FileDiff {
  /** The line of git that begins it, without `diff --git`; empty where there is none. */
  name: string;
  /** What is said of the file beside its lines: that it is new, binary, renamed. */
  notes: string[];
  hunks: Hunk[];
}

/** Lines that follow each other, some of them changed. */
export interface Hunk {
  /** What git says of the place, such as the function's name. */
  heading: string;
  lines: Line[];
}

/** A line as it was, as it is, or both. */
export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
  /** Its numbers in the file before and in the file now, where they are known. */
  before: number | null;
  now: number | null;
  /** Whether the file ends with it, without a newline. */
  isUnended?: boolean;
  /** Whether it is one of the marks that git puts around two changes that have to be merged. */
  isConflict?: boolean;
}

const HUNK = /^(@@+) ((?:-\d+(?:,\d+)? )+)\+(\d+)(?:,\d+)? \1 ?(.*)$/;
const FILE = /^diff --(?:git|cc|combined) (.*)$/;
const MARK = /^(?:<{7}|\|{7}|={7}|>{7})(?: |\r?$)/;

/** What lines of a patch before its hunks say. */
const NOTES: [RegExp, (found: RegExpExecArray) => string][] = [
  [/^new file mode (\d+)$/, ([, mode]) => `New file${modeWords(mode!)}`],
  [/^deleted file mode (\d+)/, () => "Deleted file"],
  [/^mode (\d+,\d+)\.\.(\d+)$/, ([, from, to]) => `Mode ${from} → ${to}`],
  [/^old mode (\d+)$/, ([, mode]) => `Mode before: ${mode}`],
  [/^new mode (\d+)$/, ([, mode]) => `Mode now: ${mode}`],
  [/^rename from (.*)$/, ([, name]) => `Renamed from ${name}`],
  [/^copy from (.*)$/, ([, name]) => `Copied from ${name}`],
  [/^(?:Binary files .* differ|GIT binary patch)$/, () => "Binary file: its content is not shown"],
  [/^\* Unmerged path /, () => "Two changes of this file have to be merged"],
];

/** What is special in a mode. */
function modeWords(mode: string): string {
  const special = { "100755": ", may be run", "120000": ", a link", "160000": ", a submodule" }[mode];
  return special ?? "";
}

/** The files of a patch as git writes it. What is no patch is read as well as it can be. */
export function readPatch(patch: string): FileDiff[] {
  const reader = new Reader();
  for (const line of patch.split("\n")) reader.take(line);
  return reader.files;
}

/** Reads a patch line by line. */
class Reader {
  readonly files: FileDiff[] = [];
  private hunk: HunkReader | null = null;

  take(line: string): void {
    if (this.hunk?.take(line)) return;
    const [file, hunk] = [FILE.exec(line), HUNK.exec(line)];
    if (file) this.begin(file[1]!);
    else if (hunk) this.open(hunk);
    else this.note(line);
  }

  private begin(name: string): void {
    this.files.push({ name, notes: [], hunks: [] });
    this.hunk = null;
  }

  private open([, , before, now, heading]: RegExpExecArray): void {
    if (!this.files.length) this.begin("");
    this.hunk = new HunkReader(rangesOf(before!), Number(now), heading!);
    this.files.at(-1)!.hunks.push(this.hunk.hunk);
  }

  private note(line: string): void {
    for (const [pattern, words] of NOTES) {
      const found = pattern.exec(line);
      if (!found) continue;
      if (!this.files.length) this.begin("");
      this.files.at(-1)!.notes.push(words(found));
    }
  }
}

/** The first lines of a hunk's earlier versions: one, or several where changes are merged. */
function rangesOf(text: string): number[] {
  return text.trim().split(" ").map((range) => Number(/\d+/.exec(range)![0]));
}

/** Reads the lines of one hunk. Each begins with as many signs as there are earlier versions. */
export class HunkReader {
  readonly hunk: Hunk;
  private readonly signs: number;
  private before: number;

  constructor(before: number[], private now: number, heading = "") {
    this.hunk = { heading, lines: [] };
    this.signs = before.length;
    this.before = before[0]!;
  }

  /** Takes a line; `false` if it is none of the hunk's. */
  take(line: string): boolean {
    if (line.startsWith("\\")) return this.unended();
    const signs = line.slice(0, this.signs);
    if (!/^[ +-]+$/.test(signs) || signs.length < this.signs) return false;
    this.add(signs, line.slice(this.signs));
    return true;
  }

  private unended(): boolean {
    const last = this.hunk.lines.at(-1);
    if (last) last.isUnended = true;
    return true;
  }

  private add(signs: string, text: string): void {
    const kind = signs.includes("-") ? "removed" : signs.includes("+") ? "added" : "same";
    const line: Line = { kind, text, before: null, now: null };
    if (kind !== "removed") line.now = this.now++;
    if (this.signs === 1 && kind !== "added") line.before = this.before++;
    if (this.signs > 1 && MARK.test(text)) line.isConflict = true;
    this.hunk.lines.push(line);
  }
}
