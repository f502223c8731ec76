import { ApiError, asApiError } from "../api/errors";
import type { FileEntry } from "../api/generated";
import type { Unsure } from "../api/types";
import { askProjects } from "../files/connection";
import { isObject, textOf } from "../workspace/protocol";
import { compare, textOfWhole, wholeText } from "./compare";
import { readPatch, type FileDiff } from "./patch";
import type { Change } from "./status";

/** So many entries of a new folder are listed. */
const MAX_ENTRIES = 200;

/** What is said of a file that git does not know. */
const NEW = "New file, not known to git";

/** What is shown of a change. */
export type Content =
  | { kind: "files"; files: FileDiff[] }
  | { kind: "folder"; entries: string[]; isCut: boolean };

/** What changed in a file. */
export async function contentOf(project: string, change: Change): Promise<Content> {
  if (change.area !== "untracked") return { kind: "files", files: await diffOf(project, change) };
  return change.path.endsWith("/") ? folderOf(project, change.path) : { kind: "files", files: [await newFile(project, change.path)] };
}

async function diffOf(project: string, change: Change): Promise<FileDiff[]> {
  const files = await patchOf(project, change.path, change.area === "staged");
  return change.from && change.letter === "R" ? renamed(project, change, files) : files;
}

async function patchOf(project: string, path: string, staged: boolean): Promise<FileDiff[]> {
  const answer = await askProjects({ type: "git_diff", project_id: project, path, staged }, "git_diff_result");
  return readAgain(textOf(answer["patch"]));
}

/** Files change often, and a patch that is shown seldom does: the same text is the same files, which are not drawn again. */
const readAgain = unlessSame(readPatch);
const newAgain = unlessSame((text) => noted(wholeText(text, "added"), NEW));

const noted = (file: FileDiff, note: string): FileDiff => ({ ...file, notes: [note, ...file.notes] });

function unlessSame<T>(read: (text: string) => T): (text: string) => T {
  let last: { text: string; value: T } | null = null;
  return (text) => (last?.text === text ? last : (last = { text, value: read(text) })).value;
}

/** Git is asked for one path at a time, and so tells of a renamed file that one is gone and another is new. */
async function renamed(project: string, change: Change, files: FileDiff[]): Promise<FileDiff[]> {
  const gone = await patchOf(project, change.from!, change.area === "staged");
  const [before, now] = [textOfWhole(gone, "removed"), textOfWhole(files, "added")];
  const note = `Renamed from ${change.from}`;
  if (before === null || now === null) return files.map((file) => ({ ...file, notes: [note, ...file.notes.filter((each) => !each.startsWith("New file"))] }));
  const found = compare(before, now);
  return [{ ...found, notes: [found.hunks.length ? note : `${note}; its content is the same`] }];
}

/** A file that git does not know: all of its lines are new. */
async function newFile(project: string, path: string): Promise<FileDiff> {
  try {
    const answer = await askProjects({ type: "read_project_file", project_id: project, path }, "project_file_content");
    return newAgain(textOf(answer["content"]));
  } catch (thrown) {
    const error = asApiError(thrown);
    if (error.code !== "project_file_error") throw error;
    return { name: "", notes: [NEW, `Its content is not shown: ${error.message}`], hunks: [] };
  }
}

async function folderOf(project: string, path: string): Promise<Content> {
  const answer = await askProjects({ type: "list_project_files", project_id: project, path: path.replace(/\/$/, "") }, "project_file_list");
  const told = answer["entries"];
  if (!Array.isArray(told)) throw new ApiError("The server did not say what is in the folder.", 0);
  const names = told.filter(isObject<FileEntry>).map((entry) => `${path}${textOf(entry["name"])}${isFolder(entry) ? "/" : ""}`);
  return { kind: "folder", entries: names.slice(0, MAX_ENTRIES), isCut: names.length > MAX_ENTRIES || Boolean(answer["next"]) };
}

const isFolder = (entry: Unsure<FileEntry>) => entry["kind"] === "dir";
