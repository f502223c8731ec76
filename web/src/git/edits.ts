import { isObject, textOf } from "../workspace/protocol";
import { compare, wholeText } from "./compare";
import { readEnvelope } from "./envelope";
import { readPatch, type FileDiff } from "./patch";

/** The most edits of one use of a tool that are shown, and the longest text that is compared. */
export const MAX_EDITS = 100;
const MAX_TEXT = 200_000;

/** The server keeps this many bytes of a text in a tool's input, and then this sign. */
const KEPT_BYTES = 1024;
const CUT = "…";

/** Names of the fields of agents' tools. */
const PATH = ["file_path", "filePath", "path", "notebook_path"];
const BEFORE = ["old_string", "oldString", "oldText", "old_str"];
const NOW = ["new_string", "newString", "newText", "new_str", "new_source"];
const WHOLE = ["content", "contents", "file_text"];
const PATCH = ["patchText", "patch", "unified_diff", "diff", "input"];

/** Fields that are wholly told by the edits. */
const TOLD = new Set([...PATH, ...BEFORE, ...NOW, ...WHOLE, ...PATCH, "edits", "changes", "replace_all", "type", "kind"]);

/** What a use of a tool changes in files, as its input says it; empty where it changes nothing, or does not say. */
export function editsOf(tool: string, input: unknown): FileDiff[] {
  if (typeof input === "string") return patchesIn(input);
  if (!isObject(input)) return Array.isArray(input) ? input.slice(0, MAX_EDITS).flatMap((each) => editsOf(tool, each)) : [];
  const own = [...replaced(input), ...inner(tool, input)];
  return (own.length ? own : [...patchIn(input), ...written(tool, input)]).slice(0, MAX_EDITS);
}

/** The file that a tool's input names, to be told in a line. */
export function pathOf(input: unknown): string | null {
  return isObject(input) ? fieldOf(input, PATH) : null;
}

/** What an edit's input says beside the edits; `null` if there is nothing. */
export function besideEdits(input: unknown): Record<string, unknown> | null {
  const fields = isObject(input) ? Object.entries(input).filter(([name]) => !TOLD.has(name)) : [];
  return fields.length ? Object.fromEntries(fields) : null;
}

/** A text that takes the place of another. */
function replaced(input: Record<string, unknown>): FileDiff[] {
  const [before, now] = [fieldOf(input, BEFORE), fieldOf(input, NOW)];
  if (now === null || (before === null && !("oldText" in input))) return [];
  return [named(input, compare(shortened(before ?? ""), shortened(now), { numbered: false }), isCut(before ?? "") || isCut(now), input["replace_all"] === true)];
}

/** Several edits of one file, or of several. */
function inner(tool: string, input: Record<string, unknown>): FileDiff[] {
  const path = fieldOf(input, PATH);
  const within = (each: unknown) => (isObject(each) && path !== null && fieldOf(each, PATH) === null ? { ...each, path } : each);
  if (Array.isArray(input["edits"])) return editsOf(tool, input["edits"].map(within));
  const changes = input["changes"];
  if (Array.isArray(changes)) return changes.slice(0, MAX_EDITS).flatMap((each) => editsOf(tool, each));
  return isObject(changes) ? Object.entries(changes).slice(0, MAX_EDITS).flatMap(([name, each]) => editsOf(tool, isObject(each) ? { ...each, path: name } : each)) : [];
}

/** A patch, in the form of `diff` or in that of models. */
function patchIn(input: Record<string, unknown>): FileDiff[] {
  const patch = fieldOf(input, PATCH) ?? commandOf(input["command"]);
  const files = patch === null ? [] : patchesIn(patch);
  return files.map((file) => (file.name ? file : { ...file, name: fieldOf(input, PATH) ?? "" }));
}

function commandOf(command: unknown): string | null {
  return typeof command === "string" ? command : Array.isArray(command) ? textOf(command.at(-1)) : null;
}

function patchesIn(text: string): FileDiff[] {
  const patch = shortened(text);
  if (patch.includes("*** Begin Patch")) return readEnvelope(patch);
  return /^@@+ -\d/m.test(patch) ? readPatch(patch).filter(({ hunks }) => hunks.length > 0) : [];
}

/** A file that is written as a whole. */
function written(tool: string, input: Record<string, unknown>): FileDiff[] {
  const content = fieldOf(input, WHOLE);
  const isWriting = /write|create|add/i.test(tool) || input["type"] === "add";
  if (content === null || !isWriting || fieldOf(input, PATH) === null) return [];
  return [named(input, wholeText(shortened(content), "added"), isCut(content), false)];
}

function named(input: Record<string, unknown>, file: FileDiff, isCut: boolean, isEverywhere: boolean): FileDiff {
  const more = [isEverywhere && "Wherever it is in the file", isCut && "Only the beginning of what it changes is known here"].filter((each) => each !== false);
  return { ...file, name: fieldOf(input, PATH) ?? "", notes: [...file.notes, ...more] };
}

function fieldOf(input: Record<string, unknown>, names: string[]): string | null {
  const name = names.find((each) => typeof input[each] === "string");
  return name ? textOf(input[name]) : null;
}

function shortened(text: string): string {
  return text.slice(0, MAX_TEXT);
}

/** Whether the end of a text is missing: here, or as the server kept it. */
function isCut(text: string): boolean {
  if (text.length > MAX_TEXT) return true;
  if (!text.endsWith(CUT) || text.length > KEPT_BYTES + 1) return false;
  const bytes = new TextEncoder().encode(text.slice(0, -1)).length;
  return bytes <= KEPT_BYTES && bytes > KEPT_BYTES - 4;
}
