import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { errand } from "./errand";
import { nodes } from "./hub";
import { textOf, type Answer, type ClientMessage, type Session } from "./protocol";
import { titleOf } from "./words";

/** How long a move may take: it waits up to ten minutes for the end of a turn. */
const MOVE_MS = 12 * 60_000;

/** Where a session is to go. */
export interface Target {
  node: string;
  directory: string;
  interrupt: boolean;
}

/** What a move does, or would do. */
export interface Moved {
  machine: string;
  directory: string;
  /** What does not go along, in the server's words. */
  stays: string[];
}

/** The request for a move; a dry run only says what it would do. What stays was shown before it is done. */
export function moveOf(sessionId: string, { node, directory, interrupt }: Target, dryRun: boolean): ClientMessage {
  return { type: "move_session", session_id: sessionId, node_id: node, working_dir: directory.trim() || null, interrupt, dry_run: dryRun, accept_losses: !dryRun };
}

export function movedOf(message: Answer<"session_moved">): Moved {
  const stays = Array.isArray(message["stays"]) ? message["stays"].map(textOf).filter(Boolean).slice(0, 50) : [];
  return { machine: textOf(message["node_name"]) || textOf(message["node_id"]), directory: textOf(message["working_dir"]), stays };
}

/** Moves an agent's session to another machine: first it is said what that would do. */
export function Move({ of: session, onMoved }: { of: Session; onMoved: () => void }) {
  const others = [...nodes.value].filter(([id]) => id !== session.node);
  const [target, setTarget] = useState<Target>({ node: others[0]?.[0] ?? "", directory: "", interrupt: false });
  const [would, setWould] = useState<Moved | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const change = (to: Partial<Target>) => {
    setTarget({ ...target, ...to });
    setWould(null);
  };
  const run = async (dryRun: boolean) => {
    setBusy(true);
    setError("");
    try {
      const moved = movedOf(await errand(moveOf(session.id, target, dryRun), MOVE_MS, "session_moved"));
      if (dryRun) setWould(moved);
      else {
        toast(`${titleOf(session)} runs now on ${moved.machine}.`);
        onMoved();
      }
    } catch (thrown) {
      setError(asApiError(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form class="form session-move" aria-label="Move to another machine" onSubmit={(event) => { event.preventDefault(); void run(would === null); }}>
      <h3>Move to another machine</h3>
      <div class="form-row">
        <label class="field"><span>Machine</span><select value={target.node} disabled={busy} onChange={(event) => change({ node: event.currentTarget.value })}>{others.map(([id, name]) => <option key={id} value={id}>{name}</option>)}</select></label>
        <label class="field"><span>Directory there; empty for the same</span><input type="text" maxLength={4096} autocapitalize="off" spellcheck={false} disabled={busy} value={target.directory} onInput={(event) => change({ directory: event.currentTarget.value })} /></label>
      </div>
      {session.status === "running" && <label class="check"><input type="checkbox" checked={target.interrupt} disabled={busy} onChange={(event) => change({ interrupt: event.currentTarget.checked })} /> Interrupt its turn, instead of waiting for the end</label>}
      <div role="status">{would && <Would would={would} />}</div>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
      <div class="dialog-foot"><button type="submit" class={`button ${would ? "primary" : ""}`} disabled={busy || !target.node}>{buttonOf(would, busy)}</button></div>
    </form>
  );
}

function buttonOf(would: Moved | null, busy: boolean): string {
  if (busy) return would ? "Moving…" : "Asking…";
  if (!would) return "Say what would happen";
  return would.stays.length ? "Move it all the same" : "Move it";
}

function Would({ would: { machine, directory, stays } }: { would: Moved }) {
  return (
    <>
      <p>It would move to <b>{machine}</b>{directory && <> in <code>{directory}</code></>}. {stays.length ? "What does not go along:" : "All of it goes along."}</p>
      {stays.length > 0 && <ul class="stays">{stays.map((each, at) => <li key={at}>{each}</li>)}</ul>}
    </>
  );
}
