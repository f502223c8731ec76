import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { copy, create, move, remove } from "./actions";
import type { Explorer } from "./explorer";
import { joined, nameOf, otherName, parentOf, problemOfName, problemOfPath, shownName } from "./names";
import { openFilesOf } from "./open_files";
import type { Entry } from "./tree";

/** What is asked about an entry, or about a folder for a new one. */
export type Question =
  | { about: "file" | "directory"; folder: string }
  | { about: "rename" | "move" | "copy" | "delete"; entry: Entry };

interface QuestionProps {
  explorer: Explorer;
  question: Question | null;
  onClose: () => void;
}

/** The dialogs of the tree, one at a time. */
export function EntryDialog({ explorer, question, onClose }: QuestionProps) {
  if (!question) return null;
  if (question.about === "delete") return <DeleteDialog explorer={explorer} entry={question.entry} onClose={onClose} />;
  const wish = wishOf(explorer, question);
  return <PathDialog key={wish.title} {...wish} onClose={onClose} />;
}

/** What a dialog with one field asks for, and does with it. */
interface Wish {
  title: string;
  label: string;
  value: string;
  button: string;
  problem: (value: string) => string;
  act: (value: string) => Promise<void>;
}

type NewQuestion = Extract<Question, { folder: string }>;
type PathQuestion = Exclude<Question, NewQuestion>;

function wishOf(explorer: Explorer, question: NewQuestion | PathQuestion): Wish {
  return "folder" in question ? wishForNew(explorer, question) : wishForPath(explorer, question);
}

function wishForNew(explorer: Explorer, { about, folder }: NewQuestion): Wish {
  const where = folder ? ` in ${shownName(folder)}` : "";
  const make = async (name: string) => {
    await create(explorer, about, joined(folder, name));
    if (about === "file") openFilesOf(explorer.project).open(joined(folder, name));
  };
  return { title: `New ${about === "file" ? "file" : "folder"}${where}`, label: "Name", value: "", button: "Make it", problem: problemOfName, act: make };
}

function wishForPath(explorer: Explorer, { about, entry: { path } }: PathQuestion): Wish {
  const [name, folder] = [nameOf(path), parentOf(path)];
  const title = shownName(name);
  if (about === "rename") return { title: `Rename ${title}`, label: "New name", value: name, button: "Rename it", problem: problemOfName, act: (to) => move(explorer, path, joined(folder, to)) };
  if (about === "move") return { title: `Move ${title}`, label: "New path, from the project's folder", value: path, button: "Move it", problem: problemOfPath, act: (to) => move(explorer, path, to) };
  return { title: `Copy ${title}`, label: "Path of the copy, from the project's folder", value: joined(folder, otherName(name, 2)), button: "Copy it", problem: problemOfPath, act: (to) => copy(explorer, path, to) };
}

function PathDialog({ title, label, value: first, button, problem, act, onClose }: Wish & { onClose: () => void }) {
  const [value, setValue] = useState(first);
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => selectName(field.current), []);
  const words = value === "" ? "" : problem(value);
  const isReady = value !== "" && value !== first && !words;
  return (
    <ActionDialog title={title} button={button} isReady={isReady || (value === first && first !== "" && !words && button === "Copy it")} act={() => act(value)} onClose={onClose}>
      <label class="field">
        <span>{label}</span>
        <input ref={field} value={value} spellcheck={false} autocapitalize="off" autocomplete="off" dir="auto" onInput={(event) => setValue(event.currentTarget.value)} />
      </label>
      {words && <p class="muted small" role="status">{words}</p>}
    </ActionDialog>
  );
}

/** Selects a name without its ending, which mostly stays. */
function selectName(field: HTMLInputElement | null): void {
  if (!field) return;
  field.focus();
  const begin = field.value.lastIndexOf("/") + 1;
  const dot = field.value.lastIndexOf(".");
  field.setSelectionRange(begin, dot > begin ? dot : field.value.length);
}

function DeleteDialog({ explorer, entry, onClose }: { explorer: Explorer; entry: Entry; onClose: () => void }) {
  const unsaved = openFilesOf(explorer.project).within(entry.path).filter((file) => file.unsaved.value).length;
  const what = entry.kind === "dir" ? "The folder and everything that is in it is deleted" : entry.kind === "symlink" ? "The link is deleted, not what it leads to" : "The file is deleted";
  return (
    <ActionDialog title={`Delete ${shownName(entry.name)}?`} button="Delete it" isReady act={() => remove(explorer, entry.path)} onClose={onClose}>
      <p class="wrapping">{what}, on the server's disk: <b>{shownName(entry.path)}</b>. That cannot be taken back.</p>
      {unsaved > 0 && <p class="notice error"><Icon name="warn" /><span>There is unsaved text in {unsaved === 1 ? "a file" : `${unsaved} files`} of it. It stays open, and can be saved again.</span></p>}
    </ActionDialog>
  );
}

interface ActionProps {
  title: string;
  button: string;
  isReady: boolean;
  act: () => Promise<void>;
  onClose: () => void;
  children: ComponentChildren;
}

/** A dialog that does something and closes, or says why it could not be done. */
export function ActionDialog({ title, button, isReady, act, onClose, children }: ActionProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const submit = async (event: Event) => {
    event.preventDefault();
    if (busy || !isReady) return;
    setBusy(true);
    setError("");
    await act().then(onClose, (thrown) => setError(asApiError(thrown).message));
    setBusy(false);
  };
  return (
    <Dialog open onClose={onClose} label={title} title={title}>
      <form class="files-form" onSubmit={(event) => void submit(event)}>
        {children}
        {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
        <div class="dialog-foot">
          <button type="button" class="button" onClick={onClose}>Cancel</button>
          <button type="submit" class="button primary" disabled={busy || !isReady}>{busy ? "Working…" : button}</button>
        </div>
      </form>
    </Dialog>
  );
}
