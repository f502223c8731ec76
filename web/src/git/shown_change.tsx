import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Icon } from "../parts/icon";
import { contentOf, type Content } from "./content";
import { DiffView } from "./diff_view";
import { chooseBeside, useBeside, wantsBeside } from "./side_by_side";
import { wordsOfChange, type Change } from "./status";
import { stepTo } from "./steps";
import { visible } from "./visible";

interface ShownProps {
  project: string;
  change: Change;
  /** What changes when the file may have changed. */
  at: unknown;
  onBack: () => void;
  onChoose: (change: Change) => void;
}

/** What changed in one file. */
export function ShownChange({ project, change, at, onBack, onChoose }: ShownProps) {
  const { content, trouble } = useContent(project, change, at);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => keepFocus(box.current), []);
  return (
    <div class="git-file">
      <Head change={change} hasSteps={content?.kind === "files"} onStep={(by) => stepTo(box.current, by)} onBack={onBack} />
      {trouble && <p class="notice error" role="alert"><Icon name="warn" /><span>{trouble}</span></p>}
      <div ref={box} class="git-scroll" role="region" aria-label="What changed" tabIndex={0}>
        {!content && !trouble && <p class="empty muted" role="status">Asking git…</p>}
        {content && <ContentView content={content} change={change} onChoose={onChoose} />}
      </div>
    </div>
  );
}

/** Where the list gives way to what it chose, as on a phone, the focus goes along. */
function keepFocus(box: HTMLElement | null): void {
  const focused = document.activeElement as HTMLElement | null;
  if (!focused || focused === document.body || focused.offsetParent === null) box?.focus({ preventScroll: true });
}

/** What is shown stays until what it is now has come. */
function useContent(project: string, change: Change, at: unknown): { content: Content | null; trouble: string } {
  const [content, setContent] = useState<Content | null>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    let isWanted = true;
    contentOf(project, change).then(
      (found) => { if (isWanted) { setContent(found); setTrouble(""); } },
      (thrown) => isWanted && setTrouble(asApiError(thrown).message),
    );
    return () => void (isWanted = false);
  }, [project, at]);
  return { content, trouble };
}

interface HeadProps {
  change: Change;
  hasSteps: boolean;
  onStep: (by: number) => void;
  onBack: () => void;
}

function Head({ change, hasSteps, onStep, onBack }: HeadProps) {
  const [name, folder] = partsOf(change.path);
  return (
    <header class="git-head">
      <button type="button" class="icon-button git-back" aria-label="Back to the changed files" onClick={onBack}><Icon name="left" /></button>
      <div class="git-head-words">
        <h2><bdi>{visible(name)}</bdi></h2>
        <span class="muted small">{folder && <><bdi>{visible(folder)}</bdi> · </>}{change.area === "staged" ? "staged, " : ""}{visible(wordsOfChange(change))}</span>
      </div>
      {hasSteps && <button type="button" class="icon-button" aria-label="Previous change" title="Previous change (p); previous file (k)" onClick={() => onStep(-1)}><Icon name="up" /></button>}
      {hasSteps && <button type="button" class="icon-button" aria-label="Next change" title="Next change (n); next file (j)" onClick={() => onStep(1)}><Icon name="down" /></button>}
      <button type="button" class="icon-button git-beside" aria-label="Side by side" title="Side by side" aria-pressed={wantsBeside.value} onClick={() => chooseBeside(!wantsBeside.value)}><Icon name="columns" /></button>
    </header>
  );
}

/** A path's last name, and the folder before it. */
function partsOf(path: string): [string, string] {
  const cut = path.replace(/\/$/, "").lastIndexOf("/");
  return cut < 0 ? [path, ""] : [path.slice(cut + 1), path.slice(0, cut)];
}

interface ContentProps {
  content: Content;
  change: Change;
  onChoose: (change: Change) => void;
}

function ContentView({ content, change, onChoose }: ContentProps) {
  const sideBySide = useBeside();
  if (content.kind === "folder") return <Folder entries={content.entries} isCut={content.isCut} onChoose={onChoose} />;
  if (!content.files.length) return <p class="empty muted">Git shows no difference now.</p>;
  const hasOneSide = ["A", "D", "U", "?"].includes(change.letter);
  return <DiffView files={content.files} label={`Changes in ${change.path}`} sideBySide={sideBySide && !hasOneSide} />;
}

/** A folder that git does not know: it tells of none of the files in it. */
function Folder({ entries, isCut, onChoose }: { entries: string[]; isCut: boolean; onChoose: (change: Change) => void }) {
  return (
    <>
      <p class="diff-note muted small">A new folder, none of whose files git knows{isCut ? `; the first ${entries.length} entries of it` : ""}:</p>
      <ul aria-label="Entries of the folder">
        {entries.map((path) => <li key={path}><button type="button" class="git-change" onClick={() => onChoose({ area: "untracked", path, letter: "?", from: null })}><bdi class="git-path">{visible(path)}</bdi></button></li>)}
      </ul>
    </>
  );
}
