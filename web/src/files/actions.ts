import type { ClientMessage } from "../workspace/protocol";
import { askProjects } from "./connection";
import type { Explorer } from "./explorer";
import { joined, nameOf, parentOf } from "./names";
import { openFilesOf } from "./open_files";
import { withLine } from "./transfer_link";
import { randomId } from "./upload";

/** How long the connection may take that a copy or deletion has for itself, in milliseconds. */
const OPEN_MS = 10_000;

/** Makes a new file or folder, and shows it. */
export async function create(explorer: Explorer, kind: "file" | "directory", path: string): Promise<void> {
  await act({ type: `create_project_${kind}`, ...about(explorer), path });
  await shows(explorer, path);
}

/** Gives an entry another path, and whatever is open of it. */
export async function move(explorer: Explorer, from: string, to: string): Promise<void> {
  await act({ type: "move_project_entry", ...about(explorer), from, to });
  openFilesOf(explorer.project).moved(from, to);
  explorer.moved(from, to);
  await explorer.read(parentOf(from));
  await shows(explorer, to);
}

export async function copy(explorer: Explorer, from: string, to: string): Promise<void> {
  await actForLong({ type: "copy_project_entry", ...about(explorer), from, to });
  await shows(explorer, to);
}

export async function remove(explorer: Explorer, path: string): Promise<void> {
  await actForLong({ type: "delete_project_entry", ...about(explorer), path });
  openFilesOf(explorer.project).deleted(path);
  await explorer.read(parentOf(path));
}

/** The path that an entry has in another folder. */
export function pathIn(folder: string, path: string): string {
  return joined(folder, nameOf(path));
}

async function act(message: ClientMessage): Promise<void> {
  await askProjects(message, "project_fs_action_result");
}

/** Nobody's look or save waits for what may concern many files. */
async function actForLong(message: ClientMessage): Promise<void> {
  await withLine(async (line) => {
    await line.back(AbortSignal.timeout(OPEN_MS));
    await line.ask(message, "project_fs_action_result");
  });
}

function about({ project }: Explorer) {
  return { project_id: project, request_id: randomId() };
}

async function shows(explorer: Explorer, path: string): Promise<void> {
  await explorer.reveal(path);
}
