import { useState } from "preact/hooks";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { ask } from "./hub";
import type { Session } from "./protocol";
import { tell, titleOf } from "./words";

/** A button that ends a session, once that was asked. */
export function KillButton({ of: session, onKilled }: { of: Session; onKilled?: () => void }) {
  const [asking, setAsking] = useState(false);
  const title = titleOf(session);
  const over = session.status === "exited";
  const kill = async () => {
    setAsking(false);
    try {
      await ask({ type: "kill_session", session_id: session.id }, "session_killed");
      toast(`${title} is ${over ? "removed" : "ended"}.`);
      onKilled?.();
    } catch (thrown) {
      tell(thrown);
    }
  };
  const label = `${over ? "Remove" : "End"} ${title}`;
  return (
    <>
      <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => setAsking(true)}><Icon name="trash" /></button>
      <Dialog open={asking} onClose={() => setAsking(false)} label={label} title={`${label}?`}>
        <p class="wrapping">{over ? "What it printed is deleted." : "Its processes are ended, for everybody who looks at it, and what it printed is deleted."} That cannot be taken back.</p>
        <div class="dialog-foot">
          <button type="button" class="button" onClick={() => setAsking(false)}>Keep it</button>
          <button type="button" class="button primary" onClick={() => void kill()}>{over ? "Remove it" : "End it"}</button>
        </div>
      </Dialog>
    </>
  );
}
