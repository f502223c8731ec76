import { textOf, type Answer } from "../workspace/protocol";
import type { Ask } from "./explorer";

/** A folder of the server's machine, and the folders in it. */
export interface Directory {
  path: string;
  parent: string | null;
  folders: string[];
  /** Whether there are more folders than are listed. */
  isCut: boolean;
}

/** The most folders that are listed of one. */
const MAX_FOLDERS = 40_000;

/** Reads a folder of the machine; an empty path is the home folder. Folders come first, so that files end it. */
export async function readDirectory(ask: Ask, path: string): Promise<Directory> {
  const folders: string[] = [];
  for (let after = ""; ; ) {
    const answer = await ask({ type: "list_directory", path, after }, "directory_listing");
    const entries = namesOf(answer);
    const here = entries.filter((name) => name.endsWith("/")).map((name) => name.slice(0, -1));
    folders.push(...here);
    after = textOf(answer["next"]);
    const isOver = !after || here.length < entries.length || !entries.length;
    if (isOver || folders.length >= MAX_FOLDERS) return { path: textOf(answer["path"]), parent: textOf(answer["parent"]) || null, folders: plainFirst(folders), isCut: !isOver };
  }
}

function namesOf(message: Answer<"directory_listing">): string[] {
  return Array.isArray(message["entries"]) ? message["entries"].filter((name) => typeof name === "string") : [];
}

/** Hidden folders come last. */
function plainFirst(names: string[]): string[] {
  return [...names.filter((name) => !name.startsWith(".")), ...names.filter((name) => name.startsWith("."))];
}

/** The path of a folder in another one. */
export function within(path: string, name: string): string {
  return path.endsWith("/") ? path + name : `${path}/${name}`;
}
