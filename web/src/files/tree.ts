import type { FileEntry } from "../api/generated";
import { isObject, numberOf, textOf, type Answer } from "../workspace/protocol";

/** A file, a folder or a link in a project. */
export type Entry = FileEntry;

/** What is known of a folder. */
export interface Folder {
  entries: Entry[];
  /** Where the next part of a large folder begins; `null` after the last one. */
  next: string | null;
  /** How many parts were asked for. */
  parts: number;
  /** Why it could not be read; empty if it was. */
  error: string;
}

/** A line of the tree. */
export type Row =
  | { is: "entry"; key: string; entry: Entry; level: number; position: number; count: number; expanded: boolean | null }
  | { is: "more"; key: string; folder: string; level: number }
  | { is: "note"; key: string; folder: string; level: number; words: string; failed: boolean };

type Folders = ReadonlyMap<string, Folder>;

/** The lines of all folders that are expanded, in order. */
export function rowsOf(folders: Folders, expanded: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  addFolder(rows, "", 1, folders, expanded);
  return rows;
}

function addFolder(rows: Row[], path: string, level: number, folders: Folders, expanded: ReadonlySet<string>): void {
  const folder = folders.get(path);
  const note = noteOf(folder);
  if (note) rows.push({ is: "note", key: `note:${path}`, folder: path, level, words: note, failed: Boolean(folder?.error) });
  const entries = folder?.entries ?? [];
  entries.forEach((entry, at) => {
    const isOpen = expanded.has(entry.path) && entry.kind !== "file";
    const state = entry.kind === "dir" ? isOpen : isOpen || null;
    rows.push({ is: "entry", key: `${at}:${entry.path}`, entry, level, position: at + 1, count: entries.length, expanded: state });
    if (isOpen) addFolder(rows, entry.path, level + 1, folders, expanded);
  });
  if (folder?.next) rows.push({ is: "more", key: `more:${path}`, folder: path, level });
}

function noteOf(folder: Folder | undefined): string {
  if (!folder) return "Reading…";
  return folder.error || (folder.entries.length || folder.next ? "" : "Empty");
}

/** The part of a folder in a `project_file_list`. */
export function partOf(message: Answer<"project_file_list">): { entries: Entry[]; next: string | null } {
  const told = Array.isArray(message["entries"]) ? message["entries"] : [];
  return { entries: told.map(entryOf).filter((entry) => entry !== null), next: textOf(message["next"]) || null };
}

function entryOf(value: unknown): Entry | null {
  if (!isObject<FileEntry>(value) || !textOf(value["path"])) return null;
  const { kind } = value;
  return { name: textOf(value["name"]), path: textOf(value["path"]), kind: kind === "dir" || kind === "symlink" ? kind : "file", size: numberOf(value["size"]) ?? 0 };
}

/** Where a key leads from a line; `null` for a key that leads nowhere. */
export function stepBy(key: string, rows: Row[], at: number, page: number): number | null {
  const last = rows.length - 1;
  if (key === "ArrowDown") return Math.min(last, at + 1);
  if (key === "ArrowUp") return Math.max(0, at - 1);
  if (key === "PageDown") return Math.min(last, at + page);
  if (key === "PageUp") return Math.max(0, at - page);
  if (key === "Home") return 0;
  return key === "End" ? last : null;
}

/** The line of the folder that a line is in; the line itself at the top. */
export function outerRow(rows: Row[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let before = at - 1; before >= 0; before -= 1) if (rows[before]!.level < level) return before;
  return at;
}

/** The next line whose name begins so, after this one and then from the top; `null` if there is none. */
export function rowNamed(rows: Row[], at: number, beginning: string): number | null {
  const wanted = beginning.toLowerCase();
  const start = beginning.length > 1 ? at : at + 1;
  for (let step = 0; step < rows.length; step += 1) {
    const index = (start + step) % rows.length;
    const row = rows[index]!;
    if (row.is === "entry" && row.entry.name.toLowerCase().startsWith(wanted)) return index;
  }
  return null;
}
