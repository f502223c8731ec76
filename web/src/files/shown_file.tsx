import { useEffect, useRef, useState } from "preact/hooks";
import { bytes } from "../live/words";
import { mayWork } from "../live/state";
import { Icon, type IconName } from "../parts/icon";
import { Later } from "../parts/later";
import { cursorAt, editorHandle, isWrapped } from "./editor_handle";
import { ActionDialog } from "./entry_dialogs";
import { imageTypeOf, nameOf, shownName } from "./names";
import type { OpenFile } from "./open_file";
import type { OpenFiles } from "./open_files";
import { Picture } from "./picture";
import { downloadFile } from "./transfers";

const textView = () => import("./editor/text_view").then(({ TextView }) => TextView);
const conflictDialog = () => import("./editor/conflict").then(({ ConflictDialog }) => ConflictDialog);

/** The file that is shown, the others that are open, and what can be done with it. */
export function ShownFile({ files }: { files: OpenFiles }) {
  const file = files.shown.value;
  const [closing, setClosing] = useState<OpenFile | null>(null);
  const close = (of: OpenFile) => (of.unsaved.value ? setClosing(of) : files.close(of));
  const onKey = (event: KeyboardEvent) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "s" || !file) return;
    event.preventDefault();
    if (mayWork.value) void file.save();
  };
  return (
    <section class="shown-file" aria-label="Open files" onKeyDown={onKey}>
      {files.files.value.length > 0 && <FileTabs files={files} onClose={close} />}
      {file ? <FileArea key={file} file={file} onBack={() => files.show(null)} /> : <p class="shown-nothing muted">Choose a file to see what is in it.</p>}
      {file?.conflict.value && <div class="conflict-place"><Later of={conflictDialog} props={{ file }} /></div>}
      {closing && <CloseDialog file={closing} onClose={() => setClosing(null)} onDrop={() => files.close(closing)} />}
    </section>
  );
}

function FileTabs({ files, onClose }: { files: OpenFiles; onClose: (file: OpenFile) => void }) {
  const shown = useRef<HTMLLIElement>(null);
  useEffect(() => shown.current?.scrollIntoView({ block: "nearest", inline: "nearest" }), [files.shown.value]);
  return (
    <nav class="file-tabs" aria-label="Files that are open">
      <ul>
        {files.files.value.map((file) => {
          const name = shownName(nameOf(file.path.value));
          const isShown = file === files.shown.value;
          return (
            <li key={file} ref={isShown ? shown : null} class={`file-tab${isShown ? " shown" : ""}`}>
              <button type="button" class="file-tab-name" aria-current={isShown || undefined} title={shownName(file.path.value)} onClick={() => files.show(file)} onAuxClick={(event) => event.button === 1 && onClose(file)}>
                <bdi>{name}</bdi>{file.unsaved.value && <span class="unsaved-mark"><span class="visually-hidden">, not saved</span></span>}
              </button>
              <button type="button" class="file-tab-close" aria-label={`Close ${name}`} onClick={() => onClose(file)}><Icon name="close" /></button>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

function FileArea({ file, onBack }: { file: OpenFile; onBack: () => void }) {
  const look = file.look.value;
  return (
    <>
      <FileBar file={file} onBack={onBack} />
      <Notices file={file} />
      {look.is === "text" && <Later of={textView} props={{ file }} />}
      {look.is === "loading" && <p class="shown-nothing muted" role="status">Reading the file…</p>}
      {look.is === "failed" && <p class="shown-nothing" role="alert">{reasonOf(look.words)} <button type="button" class="button small" onClick={() => void file.load()}>Try again</button></p>}
      {look.is === "image" && <Picture project={file.project} path={file.path.value} look={look} />}
      {look.is === "other" && <Other file={file} size={look.size} words={look.words} />}
    </>
  );
}

function FileBar({ file, onBack }: { file: OpenFile; onBack: () => void }) {
  const isText = file.look.value.is === "text";
  const at = cursorAt.value;
  return (
    <div class="file-bar">
      <button type="button" class="icon-button narrow-only" aria-label="Back to the files" onClick={onBack}><Icon name="left" /></button>
      <span class="file-path muted small"><bdi>{shownName(file.path.value)}</bdi></span>
      {isText && at && <span class="file-at muted small">{at.line}:{at.column}</span>}
      <span class="file-state small" role="status">{stateOf(file)}</span>
      {isText && mayWork.value && <BarButton icon="undo" name="Undo" act={() => editorHandle.value?.undo()} />}
      {isText && mayWork.value && <BarButton icon="redo" name="Redo" act={() => editorHandle.value?.redo()} />}
      {isText && <BarButton icon="search" name="Search in the file" act={() => editorHandle.value?.search()} />}
      {isText && <BarButton icon="wrap" name="Wrap long lines" isOn={isWrapped.value} act={() => (isWrapped.value = !isWrapped.value)} />}
      {isSvg(file) && <BarButton icon="code" name="Show it as text" act={() => void file.loadAsText()} />}
      <BarButton icon="download" name="Download the file" act={() => void downloadFile(file.project, file.path.value)} />
      {isText && mayWork.value && (
        <button type="button" class="button small primary" title="Save (Ctrl S)" disabled={file.saving.value || (!file.unsaved.value && file.disk.value !== "deleted")} onClick={() => void file.save()}>Save</button>
      )}
    </div>
  );
}

function isSvg({ look }: OpenFile): boolean {
  return look.value.is === "image" && look.value.type === "image/svg+xml";
}

function BarButton({ icon, name, act, isOn }: { icon: IconName; name: string; act: () => void; isOn?: boolean }) {
  return <button type="button" class="icon-button" aria-label={name} title={name} aria-pressed={isOn} onClick={act}><Icon name={icon} /></button>;
}

function stateOf({ look, saving, unsaved }: OpenFile): string {
  if (look.value.is !== "text") return "";
  if (!mayWork.value) return "You may look, not change it";
  if (saving.value) return "Saving…";
  return unsaved.value ? "Not saved" : "Saved";
}

/** What somebody who edits has to know. */
function Notices({ file }: { file: OpenFile }) {
  const { disk, trouble } = file;
  return (
    <div class="file-notices" role="status">
      {trouble.value && <p class="banner bad"><Icon name="warn" /><span>{trouble.value} Your text is kept in this browser.</span></p>}
      {disk.value === "deleted" && <p class="banner"><Icon name="warn" /><span>The file was deleted on the disk. Saving makes it again.</span></p>}
      {disk.value === "changed" && (
        <p class="banner"><Icon name="warn" /><span>The file was changed on the disk by somebody else.</span><button type="button" class="button small" onClick={() => void file.compare()}>Compare</button></p>
      )}
    </div>
  );
}

function Other({ file, size, words }: { file: OpenFile; size: number; words: string }) {
  const { project } = file;
  const path = file.path.value;
  return (
    <div class="shown-nothing">
      <p><b>{shownName(nameOf(path))}</b>, {bytes(size)}</p>
      <p class="muted">{imageTypeOf(path) ? "The picture is too large to be shown here." : reasonOf(words)}</p>
      <p><button type="button" class="button" onClick={() => void downloadFile(project, path, size)}><Icon name="download" /> Download</button></p>
    </div>
  );
}

/** Why a file is not shown as text, without the server's advice, which is the button below. */
function reasonOf(words: string): string {
  if (words.includes("path escapes project root")) return "It leads out of the project's folder, and is not shown here.";
  if (words.startsWith("too large")) return "It is too large to be edited here: texts of up to 1 MiB are.";
  if (words.includes("binary file")) return "It is no text.";
  return words.includes("not UTF-8") ? "It is no UTF-8 text." : words;
}

function CloseDialog({ file, onClose, onDrop }: { file: OpenFile; onClose: () => void; onDrop: () => void }) {
  const name = shownName(nameOf(file.path.value));
  const save = async () => {
    await file.save();
    if (!file.unsaved.value) onDrop();
  };
  return (
    <ActionDialog title={`Close ${name}?`} button="Save and close" isReady act={save} onClose={onClose}>
      <p class="wrapping">What you typed in it is not saved.</p>
      <p><button type="button" class="button small" onClick={() => { onClose(); onDrop(); }}>Close it, and drop what I typed</button></p>
    </ActionDialog>
  );
}
