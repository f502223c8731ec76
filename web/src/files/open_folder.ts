import { go } from "../route";
import { ask as askHub, nodes } from "../workspace/hub";
import { tell } from "../workspace/words";
import { projectOf, put, type Project } from "./connection";
import type { Ask } from "./explorer";

/** The longest name that the server takes. */
const MAX_NAME = 100;

/** The project of a folder: the one that there is, or a new one. `node`: the machine that the folder is on. */
export async function projectFor(ask: Ask, directory: string, node: string | null = null): Promise<Project> {
  const wanted = plain(directory);
  const listed = await ask({ type: "list_projects" }, "project_list");
  const told = Array.isArray(listed["projects"]) ? listed["projects"].map(projectOf).filter((each) => each !== null) : [];
  const known = told.find((each) => plain(each.directory) === wanted && (node === null || each.node === node));
  if (known) return known;
  if (node !== null && node !== here()) throw new Error("The folder is on another machine. Open the files at that machine's own page.");
  const answer = await ask({ type: "create_project", name: nameFor(wanted), working_dir: wanted }, "project_saved");
  const made = projectOf(answer["project"]);
  if (!made) throw new Error("The server did not say which project it made.");
  put(made);
  return made;
}

/** Shows the files of a folder, such as that of a session. */
export async function openFolderAsProject(directory: string, node: string | null = null): Promise<void> {
  try {
    const { id } = await projectFor(askHub, directory, node);
    go({ page: "files", project: id });
  } catch (thrown) {
    tell(thrown);
  }
}

/** The machine that the page is connected to, in a cluster. */
function here(): string | null {
  return nodes.value.keys().next().value ?? null;
}

function plain(directory: string): string {
  return directory.length > 1 ? directory.replace(/\/+$/, "") || "/" : directory;
}

function nameFor(directory: string): string {
  return directory.slice(directory.lastIndexOf("/") + 1).slice(0, MAX_NAME) || directory;
}
