import { useEffect, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { VirtualList } from "../parts/virtual_list";
import { go } from "../route";
import { askProjects, isConnected } from "./connection";
import { readDirectory, within, type Directory } from "./directory";
import { canBeNamed, shownName } from "./names";
import { projectFor } from "./open_folder";

const ROW = 40;

/** A dialog to choose one of the server's folders, which begins in the home folder. */
export function FolderPicker({ onClose }: { onClose: () => void }) {
  const [directory, setDirectory] = useState<Directory | null>(null);
  const [path, setPath] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const doing = async (work: () => Promise<void>) => {
    setBusy(true);
    setError("");
    await work().catch((thrown) => setError(asApiError(thrown).message));
    setBusy(false);
  };
  const look = (at: string, typed = path) => doing(async () => {
    const found = await readDirectory(askProjects, at);
    setDirectory(found);
    // What somebody typed meanwhile stays.
    setPath((now) => (now === typed ? found.path : now));
  });
  const open = () => doing(async () => {
    const { id } = await projectFor(askProjects, path.trim());
    onClose();
    go({ page: "files", project: id });
  });
  useEffect(() => {
    if (isConnected.value && !directory) void look("", "");
  }, [isConnected.value]);
  return (
    <Dialog open onClose={onClose} label="Open a folder" title="Open a folder of the server" class="picker">
      <form class="picker-path" onSubmit={(event) => { event.preventDefault(); void look(path); }}>
        <button type="button" class="icon-button" aria-label="The folder around it" title="The folder around it" disabled={busy || !directory?.parent} onClick={() => void look(directory!.parent!)}><Icon name="left" /></button>
        <input aria-label="Path of the folder" value={path} spellcheck={false} autocapitalize="off" autocomplete="off" onInput={(event) => setPath(event.currentTarget.value)} />
      </form>
      <Folders of={directory} onChoose={(name) => void look(within(directory!.path, name))} />
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>Cancel</button>
        <button type="button" class="button primary" disabled={busy || !path.trim()} onClick={() => void open()}>Open this folder</button>
      </div>
    </Dialog>
  );
}

function Folders({ of, onChoose }: { of: Directory | null; onChoose: (name: string) => void }) {
  if (!of) return <p class="picker-list muted" role="status">Asking for the folders…</p>;
  if (!of.folders.length) return <p class="picker-list muted" role="status">There is no folder in it.</p>;
  return (
    <>
      <VirtualList
        key={of.path} class="picker-list" items={of.folders} rowHeight={ROW} keyOf={(name) => name} label={`Folders in ${of.path}`}
        row={(name) => <button type="button" class="sheet-choice" disabled={!canBeNamed(name)} onClick={() => onChoose(name)}><Icon name="folder" /><bdi>{shownName(name)}</bdi></button>}
      />
      {of.isCut && <p class="muted small">There are more folders; type the path of one that is not listed.</p>}
    </>
  );
}
