import { mayWork } from "../live/state";
import { Dialog } from "../parts/dialog";
import { Icon, type IconName } from "../parts/icon";
import { CopyButton } from "../parts/copy";
import type { Question } from "./entry_dialogs";
import { canBeNamed, shownName } from "./names";
import type { Entry } from "./tree";

interface SheetProps {
  entry: Entry | null;
  onClose: () => void;
  onAsk: (question: Question) => void;
  onUpload: (folder: string) => void;
  onDownload: (entry: Entry) => void;
}

/** Something that can be done with an entry. */
interface Choice {
  name: string;
  icon: IconName;
  act: () => void;
}

/** All that can be done with an entry of the tree. */
export function EntrySheet({ entry, onClose, ...to }: SheetProps) {
  if (!entry) return null;
  const choices = choicesFor(entry, to);
  const name = shownName(entry.name);
  return (
    <Dialog open onClose={onClose} label={`What to do with ${name}`} title={name}>
      {!canBeNamed(entry.path) && <p class="muted small">Its name is not text on the disk. Rename it in a terminal to open it here.</p>}
      <ul class="sheet">
        {choices.map(({ name: words, icon, act }) => (
          <li key={words}><button type="button" class="sheet-choice" onClick={() => { onClose(); act(); }}><Icon name={icon} />{words}</button></li>
        ))}
      </ul>
      <p class="sheet-path muted small"><bdi>{shownName(entry.path)}</bdi><CopyButton text={entry.path} what="path" /></p>
    </Dialog>
  );
}

function choicesFor(entry: Entry, { onAsk, onUpload, onDownload }: Omit<SheetProps, "entry" | "onClose">): Choice[] {
  if (!canBeNamed(entry.path)) return [];
  const inside: Choice[] = [
    { name: "New file in it", icon: "file", act: () => onAsk({ about: "file", folder: entry.path }) },
    { name: "New folder in it", icon: "folder", act: () => onAsk({ about: "directory", folder: entry.path }) },
    { name: "Upload into it", icon: "upload", act: () => onUpload(entry.path) },
  ];
  const changing: Choice[] = [
    { name: "Rename", icon: "edit", act: () => onAsk({ about: "rename", entry }) },
    { name: "Move", icon: "right", act: () => onAsk({ about: "move", entry }) },
    { name: "Copy", icon: "copy", act: () => onAsk({ about: "copy", entry }) },
    { name: "Delete", icon: "trash", act: () => onAsk({ about: "delete", entry }) },
  ];
  const looking: Choice[] = entry.kind === "dir" ? [] : [{ name: "Download", icon: "download", act: () => onDownload(entry) }];
  return [...looking, ...(mayWork.value && entry.kind === "dir" ? inside : []), ...(mayWork.value ? changing : [])];
}
