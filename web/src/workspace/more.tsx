import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { ask, nodes } from "./hub";
import { Move } from "./move";
import type { Session } from "./protocol";
import { kindOf, nodeOf, titleOf } from "./words";

/** A button with what can be done with a session beside opening and ending it, and what it is. */
export function MoreButton({ of: session }: { of: Session }) {
  const [open, setOpen] = useState(false);
  const label = `More about ${titleOf(session)}`;
  const close = () => setOpen(false);
  return (
    <>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => setOpen(true)}><Icon name="more" /></button>
      {open && (
        <Dialog open onClose={close} label={label} title={titleOf(session)}>
          <Rename of={session} />
          <Facts of={session} />
          {mayMove(session) && <Move of={session} onMoved={close} />}
        </Dialog>
      )}
    </>
  );
}

/** Agents move to other machines, where there are any. */
function mayMove({ kind, status, reachable }: Session): boolean {
  return kind === "agent" && status !== "exited" && reachable && nodes.value.size > 1;
}

function Rename({ of: session }: { of: Session }) {
  const [name, setName] = useState(session.name);
  const [said, setSaid] = useState<{ words: string; bad: boolean } | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await ask({ type: "rename_session", session_id: session.id, name: name.trim() }, "session_status_changed");
      setSaid({ words: "It has the new name.", bad: false });
    } catch (thrown) {
      setSaid({ words: asApiError(thrown).message, bad: true });
    }
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={submit}>
      <div class="form-row rename">
        <label class="field"><span>Name</span><input type="text" required maxLength={100} value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <button type="submit" class="button" disabled={busy || !name.trim() || name.trim() === session.name}>Rename</button>
      </div>
      <p class={`small ${said?.bad ? "bad-text" : "muted"}`} role={said?.bad ? "alert" : "status"}>{said?.words}</p>
    </form>
  );
}

function Facts({ of: session }: { of: Session }) {
  const facts = [["What", kindOf(session)], ["Machine", nodeOf(session)], ["Directory", session.directory], ["Id", session.id]] as const;
  return (
    <dl class="session-facts small">
      {facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt class="muted">{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}
