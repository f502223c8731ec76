import type { FileDiff, Hunk, Line } from "./patch";

const FILE = /^\*\*\* (Add|Update|Delete) File: (.*)$/;
const MOVE = /^\*\*\* Move to: (.*)$/;
const NOTES = { Add: ["New file"], Update: [], Delete: ["Deleted file"] };
const KINDS: Record<string, Line["kind"]> = { "+": "added", "-": "removed", " ": "same" };

/** The files of a patch in the form in which models write them: between `*** Begin Patch` and `*** End Patch`, without numbers of lines. */
export function readEnvelope(text: string): FileDiff[] {
  const files: FileDiff[] = [];
  for (const line of text.slice(text.indexOf("*** Begin Patch")).split("\n")) {
    if (line.startsWith("*** End Patch")) break;
    take(files, line);
  }
  return files;
}

function take(files: FileDiff[], line: string): void {
  const [found, moved] = [FILE.exec(line), MOVE.exec(line)];
  const file = files.at(-1);
  if (found) files.push({ name: found[2]!, notes: [...NOTES[found[1] as keyof typeof NOTES]], hunks: [] });
  else if (moved) file?.notes.push(`Renamed to ${moved[1]}`);
  else if (line.startsWith("@@")) file?.hunks.push({ heading: line.slice(2).trim(), lines: [] });
  else if (file) add(file, line);
}

function add(file: FileDiff, line: string): void {
  const kind = KINDS[line[0] ?? " "];
  if (!kind) return;
  if (!file.hunks.length) file.hunks.push({ heading: "", lines: [] });
  (file.hunks.at(-1) as Hunk).lines.push({ kind, text: line.slice(1), before: null, now: null });
}
