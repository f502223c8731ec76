import { useEffect, useRef, useState } from "preact/hooks";
import { Dialog } from "../../parts/dialog";
import { nameOf, shownName } from "../names";
import type { Conflict, OpenFile } from "../open_file";
import { mergeIn, type Merge } from "./merge";
import "../../style/editor.css";

/** Asks which text is to be kept, where a file was changed by somebody else while it was edited. */
export function ConflictDialog({ file }: { file: OpenFile }) {
  const conflict = file.conflict.value;
  const close = () => (file.conflict.value = null);
  const name = shownName(nameOf(file.path.value));
  if (!conflict) return null;
  if (conflict.theirs === null) return <DeletedDialog file={file} name={name} onClose={close} />;
  return (
    <Dialog open onClose={close} label={`Two texts of ${name}`} title={`Two texts of ${name}`} class="merge-dialog">
      <Choice file={file} conflict={conflict} theirs={conflict.theirs} onClose={close} />
    </Dialog>
  );
}

function Choice({ file, conflict, theirs, onClose }: { file: OpenFile; conflict: Conflict; theirs: string; onClose: () => void }) {
  const host = useRef<HTMLDivElement>(null);
  const merge = useRef<Merge | null>(null);
  const [mine] = useState(() => file.text);
  const [isNarrow] = useState(() => matchMedia("(max-width: 760px)").matches);
  const [isEdited, setEdited] = useState(false);
  useEffect(() => {
    setEdited(false);
    merge.current = mergeIn(host.current!, theirs, mine, isNarrow, () => setEdited(true));
    return () => merge.current?.end();
  }, [conflict]);
  return (
    <>
      <p class="wrapping">The file was changed on the disk by somebody else while you edited it. Keep one of the two texts, or make one of both{isNarrow ? ": choose for each change, and save that" : " on the right, and save that"}.</p>
      {!isNarrow && <div class="merge-heads" aria-hidden="true"><b>On the disk</b><b>Yours</b></div>}
      <div ref={host} class="merge-host" />
      <div class="dialog-foot merge-foot">
        <button type="button" class="button" onClick={onClose}>Decide later</button>
        <button type="button" class="button" onClick={() => file.takeTheirs()}>Take the one on the disk</button>
        <button type="button" class={`button${isEdited ? "" : " primary"}`} onClick={() => void file.settle(mine)}>Keep mine</button>
        <button type="button" class={`button${isEdited ? " primary" : ""}`} disabled={!isEdited} onClick={() => void file.settle(merge.current!.text())}>Save the merged text</button>
      </div>
    </>
  );
}

function DeletedDialog({ file, name, onClose }: { file: OpenFile; name: string; onClose: () => void }) {
  return (
    <Dialog open onClose={onClose} label={`${name} was deleted`} title={`${name} was deleted`}>
      <p class="wrapping">The file was deleted on the disk while you edited it. Your text is still here.</p>
      <div class="dialog-foot">
        <button type="button" class="button" onClick={onClose}>Decide later</button>
        <button type="button" class="button primary" onClick={() => void file.settle(file.text)}>Make the file again</button>
      </div>
    </Dialog>
  );
}
