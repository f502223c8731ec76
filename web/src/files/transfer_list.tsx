import { useState } from "preact/hooks";
import { bytes, count } from "../live/words";
import { Icon } from "../parts/icon";
import { ActionDialog } from "./entry_dialogs";
import { nameOf, otherName, problemOfName, shownName } from "./names";
import { dismissDone, dismissTransfer, replaceBy, transfers, uploadAs, type Transfer } from "./transfers";

/** How many are shown. */
const MAX_SHOWN = 30;

/** The uploads and downloads of this visit. */
export function TransferList({ project }: { project: string }) {
  const all = transfers.value.filter((each) => each.project === project);
  if (!all.length) return null;
  const over = all.filter(({ state }) => state === "done").length;
  return (
    <section class="transfers" aria-label="Transfers">
      <div class="transfers-head">
        <h2>{over === all.length ? `${count(over, "file")} transferred` : `${over} of ${count(all.length, "file")} transferred`}</h2>
        {over > 0 && <button type="button" class="button small" onClick={dismissDone}>Put away</button>}
      </div>
      <ul>{inNeed(all).slice(0, MAX_SHOWN).map((transfer) => <TransferRow key={transfer.id} of={transfer} />)}</ul>
      {all.length > MAX_SHOWN && <p class="muted small">and {all.length - MAX_SHOWN} more</p>}
    </section>
  );
}

/** What waits for the person comes first, then what runs. */
function inNeed(all: Transfer[]): Transfer[] {
  const rank = { taken: 0, failed: 1, running: 2, waiting: 3, done: 4 };
  return all.sort((a, b) => rank[a.state] - rank[b.state]);
}

function TransferRow({ of }: { of: Transfer }) {
  const name = shownName(nameOf(of.path));
  const [asking, setAsking] = useState<"name" | "replace" | null>(null);
  return (
    <li class="transfer">
      <Icon name={of.kind} />
      <span class="transfer-words">
        <bdi>{name}</bdi>
        <span class={`small ${of.state === "failed" || of.state === "taken" ? "bad-text" : "muted"}`} role="status">{wordsFor(of)}</span>
        {of.state === "taken" && (
          <span class="transfer-choices">
            <button type="button" class="button small" onClick={() => setAsking("name")}>Other name</button>
            <button type="button" class="button small" onClick={() => setAsking("replace")}>Replace</button>
          </span>
        )}
        {of.state === "running" && <progress class="transfer-bar" max={Math.max(1, of.total)} value={of.done} aria-label={`Progress of ${name}`} />}
      </span>
      <button type="button" class="icon-button" aria-label={`${of.state === "running" || of.state === "waiting" ? "Cancel" : "Put away"} ${name}`} onClick={() => dismissTransfer(of.id)}><Icon name="close" /></button>
      {asking === "name" && <NameDialog of={of} onClose={() => setAsking(null)} />}
      {asking === "replace" && <ReplaceDialog of={of} name={name} onClose={() => setAsking(null)} />}
    </li>
  );
}

function wordsFor({ kind, state, done, total, words }: Transfer): string {
  if (state === "failed") return words;
  if (state === "taken") return "There is a file or folder of this name.";
  if (state === "waiting") return "Waits";
  if (state === "done") return `${kind === "upload" ? "Uploaded" : "Downloaded"}, ${bytes(total)}`;
  return `${bytes(done)} of ${bytes(total)}`;
}

function NameDialog({ of, onClose }: { of: Transfer; onClose: () => void }) {
  const [name, setName] = useState(otherName(nameOf(of.path), 2));
  const problem = problemOfName(name);
  return (
    <ActionDialog title="Upload under another name" button="Upload it" isReady={!problem} act={async () => uploadAs(of, name)} onClose={onClose}>
      <label class="field"><span>Name</span><input value={name} spellcheck={false} dir="auto" onInput={(event) => setName(event.currentTarget.value)} /></label>
      {problem && <p class="muted small" role="status">{problem}</p>}
    </ActionDialog>
  );
}

function ReplaceDialog({ of, name, onClose }: { of: Transfer; name: string; onClose: () => void }) {
  return (
    <ActionDialog title={`Replace ${name}?`} button="Replace it" isReady act={async () => replaceBy(of)} onClose={onClose}>
      <p class="wrapping">What is at <b>{shownName(of.path)}</b> now is deleted once the new file is complete; if it is a folder, with everything in it. That cannot be taken back.</p>
    </ActionDialog>
  );
}
