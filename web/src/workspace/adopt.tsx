import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { go } from "../route";
import { ask } from "./hub";
import { sessionOf, type ClientMessage } from "./protocol";

/** The highest number that a process can have. */
const MAX_PID = 0x7fff_ffff;

/** What somebody said of a process. */
export interface Process {
  pid: string;
  name: string;
  directory: string;
}

/** The request for a process; `null` for what is no number of one. */
export function adoptionOf({ pid, name, directory }: Process): ClientMessage | null {
  const number = /^\s*\d{1,10}\s*$/.test(pid) ? Number(pid) : 0;
  if (number < 1 || number > MAX_PID) return null;
  return { type: "adopt_session", pid: number, name: name.trim() || null, working_dir: directory.trim() || null };
}

/** Makes a session of a process that somebody else started. */
export function AdoptDialog({ open, onClose }: { open: boolean; onClose: () => void }) {
  return <Dialog open={open} onClose={onClose} label="Adopt a process" title="Adopt a process">{open && <Form onClose={onClose} />}</Dialog>;
}

function Form({ onClose }: { onClose: () => void }) {
  const [process, setProcess] = useState<Process>({ pid: "", name: "", directory: "" });
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const set = (field: keyof Process) => (event: { currentTarget: { value: string } }) => setProcess({ ...process, [field]: event.currentTarget.value });
  const submit = async (event: Event) => {
    event.preventDefault();
    const request = adoptionOf(process);
    if (!request) return setError("That is no number of a process.");
    setBusy(true);
    setError("");
    try {
      const session = sessionOf((await ask(request, "session_created"))["session"]);
      onClose();
      if (session) go({ page: "workspace", ids: [session.id] });
    } catch (thrown) {
      setError(asApiError(thrown).message);
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={submit}>
      <p class="muted small">A process of this server's machine that already runs becomes a session: it is in the list, and can be ended there. It stays when the server stops. Of a Claude Code the conversation is shown, too.</p>
      <label class="field"><span>Number of the process (pid)</span><input type="text" inputMode="numeric" required maxLength={12} autocomplete="off" value={process.pid} onInput={set("pid")} /></label>
      <label class="field"><span>Name</span><input type="text" maxLength={100} placeholder="none" value={process.name} onInput={set("name")} /></label>
      <label class="field"><span>Directory; empty for that of the process</span><input type="text" maxLength={4096} autocapitalize="off" spellcheck={false} value={process.directory} onInput={set("directory")} /></label>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy}>{busy ? "Adopting…" : "Adopt it"}</button></div>
    </form>
  );
}
