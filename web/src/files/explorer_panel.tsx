import { useEffect, useRef, useState } from "preact/hooks";
import { mayWork } from "../live/state";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { tell } from "../workspace/words";
import { move, pathIn } from "./actions";
import { changes, isConnected, watchTrouble, type Project } from "./connection";
import { EntryDialog, type Question } from "./entry_dialogs";
import { EntrySheet } from "./entry_sheet";
import type { Explorer } from "./explorer";
import { canBeNamed, nameOf, parentOf, shownName } from "./names";
import { MAX_OPEN, type OpenFiles } from "./open_files";
import type { Entry } from "./tree";
import { TreeView, type TreeActions } from "./tree_view";
import { downloadFile, uploadFiles } from "./transfers";

interface PanelProps {
  project: Project;
  explorer: Explorer;
  files: OpenFiles;
}

/** The tree of a project's files, and what can be done with them. */
export function ExplorerPanel({ project, explorer, files }: PanelProps) {
  const [question, setQuestion] = useState<Question | null>(null);
  const [menu, setMenu] = useState<Entry | null>(null);
  const picker = useUpload(project);
  useFresh(explorer, project);
  const open = (entry: Entry) => openFile(files, entry);
  const actions: TreeActions = {
    mayWrite: mayWork.value,
    onOpen: open,
    onMenu: setMenu,
    onRename: (entry) => canBeNamed(entry.path) && setQuestion({ about: "rename", entry }),
    onDelete: (entry) => canBeNamed(entry.path) && setQuestion({ about: "delete", entry }),
    onMoveInto: (folder, path) => void moveInto(explorer, folder, path),
    onDropFiles: (folder, data) => sendDropped(project, folder, data),
  };
  const folder = folderNow(explorer);
  return (
    <section class="explorer" aria-label="Files of the project">
      <Bar folder={folder} onAsk={setQuestion} onUpload={picker.choose} onRefresh={() => explorer.refresh()} />
      {watchTrouble.value && <p class="explorer-note muted small" role="status">Changes on the disk are not shown by themselves: {watchTrouble.value}</p>}
      <TreeView explorer={explorer} label={`Files of ${project.name}`} actions={actions} />
      <input ref={picker.field} type="file" multiple hidden onChange={picker.take} aria-label="Files to upload" />
      <EntrySheet entry={menu} onClose={() => setMenu(null)} onAsk={setQuestion} onUpload={picker.choose} onDownload={(entry) => void downloadFile(project.id, entry.path, entry.size)} />
      <EntryDialog explorer={explorer} question={question} onClose={() => setQuestion(null)} />
    </section>
  );
}

interface BarProps {
  folder: string;
  onAsk: (question: Question) => void;
  onUpload: (folder: string) => void;
  onRefresh: () => void;
}

function Bar({ folder, onAsk, onUpload, onRefresh }: BarProps) {
  const where = folder ? ` in ${shownName(nameOf(folder))}` : "";
  return (
    <div class="explorer-bar">
      {mayWork.value && (
        <>
          <button type="button" class="icon-button" aria-label={`New file${where}`} title={`New file${where}`} onClick={() => onAsk({ about: "file", folder })}><Icon name="file" /></button>
          <button type="button" class="icon-button" aria-label={`New folder${where}`} title={`New folder${where}`} onClick={() => onAsk({ about: "directory", folder })}><Icon name="folder" /></button>
          <button type="button" class="icon-button" aria-label={`Upload files${where}`} title={`Upload files${where}`} onClick={() => onUpload(folder)}><Icon name="upload" /></button>
        </>
      )}
      <span class="explorer-where muted small"><bdi>{where && shownName(folder)}</bdi></span>
      <button type="button" class="icon-button" aria-label="Read the files again" title="Read the files again" onClick={onRefresh}><Icon name="again" /></button>
    </div>
  );
}

/** The folder that new things go into: the active one, or that of the active file. */
function folderNow(explorer: Explorer): string {
  const path = explorer.active.value ?? "";
  const entry = explorer.entry(path);
  if (!entry) return "";
  return entry.kind === "dir" ? path : parentOf(path);
}

function openFile(files: OpenFiles, { path, name }: Entry): void {
  if (!canBeNamed(path)) return toast(`${shownName(name)} cannot be opened: its name is not text on the disk. Rename it in a terminal.`, "error");
  if (!files.open(path)) toast(`${MAX_OPEN} files with unsaved text are open. Save or close one first.`, "error");
}

async function moveInto(explorer: Explorer, folder: string, from: string): Promise<void> {
  const to = pathIn(folder, from);
  if (to === from || to.startsWith(`${from}/`)) return;
  try {
    await move(explorer, from, to);
    toast(`${shownName(nameOf(from))} is in ${folder ? shownName(folder) : "the project's folder"} now.`);
  } catch (thrown) {
    tell(thrown);
  }
}

/** Browsers list a dropped folder as a file that cannot be read. */
function sendDropped(project: Project, folder: string, data: DataTransfer): void {
  const items = [...data.items].filter(({ kind }) => kind === "file");
  const folders = items.filter((item) => item.webkitGetAsEntry?.()?.isDirectory).length;
  const files = items.filter((item) => !item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile()).filter((file) => file !== null);
  if (folders) toast("Folders are not uploaded: make the folder here, and drop its files into it.", "error");
  send(project, folder, files);
}

function send(project: Project, folder: string, files: File[]): void {
  const left = uploadFiles(project.id, folder, files);
  if (left) toast(`${left} files are too many at once: upload them when the others are done.`, "error");
}

/** The browser's dialog to choose files for a folder. */
function useUpload(project: Project) {
  const field = useRef<HTMLInputElement>(null);
  const folder = useRef("");
  const choose = (into: string) => {
    folder.current = into;
    field.current?.click();
  };
  const take = () => {
    const input = field.current!;
    send(project, folder.current, [...(input.files ?? [])]);
    input.value = "";
  };
  return { field, choose, take };
}

/** Reads the tree on each connection, and when something has changed. */
function useFresh(explorer: Explorer, project: Project): void {
  const count = changes.value.project === project.id ? changes.value.count : 0;
  useEffect(() => {
    if (isConnected.value) explorer.refresh();
  }, [explorer, count, isConnected.value]);
}
