import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { go } from "../route";
import { choiceOf, choose } from "../storage/choices";
import { ask, nodes } from "./hub";
import { sessionOf, type ClientMessage } from "./protocol";

/** What can be made. */
export type NewKind = "terminal" | "agent";

/** The agents that servers know without settings. */
export const PROVIDERS = ["claude", "codex", "gemini", "opencode"];

/** The home directory of the server's user, where a session begins unless somebody wants another place. */
const HOME = "~";

/** Starts the shell of the server's user. */
const SHELL = 'exec "${SHELL:-/bin/sh}"';

/** What is asked of a new session. */
export interface Wish {
  name: string;
  directory: string;
  node: string;
  /** A command line; empty for the shell. */
  command: string;
  provider: string;
  model: string;
}

/** The request for a new session. */
export function requestFor(kind: NewKind, { name, directory, node, command, provider, model }: Wish): ClientMessage {
  const all = { name: name.trim() || null, working_dir: directory.trim() || HOME, node_id: node || null };
  if (kind === "agent") return { type: "new_session", mode: "sdk", provider: provider.trim(), model: model.trim() || null, ...all };
  return { type: "open_terminal", command: "sh", args: ["-c", command.trim() || SHELL], ...all };
}

/** Asks what the new session is to be, makes it, and opens it. */
export function NewSessionDialog({ kind, onClose }: { kind: NewKind | null; onClose: () => void }) {
  const title = kind === "agent" ? "New agent" : "New terminal";
  return <Dialog open={kind !== null} onClose={onClose} label={title} title={title}>{kind && <Form kind={kind} onClose={onClose} />}</Dialog>;
}

function Form({ kind, onClose }: { kind: NewKind; onClose: () => void }) {
  const [wish, setWish] = useState<Wish>({ name: "", directory: choiceOf("directory") ?? HOME, node: "", command: "", provider: choiceOf("provider") ?? "claude", model: "" });
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const set = (field: keyof Wish) => (event: { currentTarget: { value: string } }) => setWish({ ...wish, [field]: event.currentTarget.value });
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      const id = await make(kind, wish);
      onClose();
      if (id) go({ page: "workspace", ids: [id] });
    } catch (thrown) {
      setError(asApiError(thrown).message);
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={submit}>
      {kind === "agent" && <label class="field"><span>Agent</span><input type="text" required list="providers" maxLength={100} autocapitalize="off" value={wish.provider} onInput={set("provider")} /></label>}
      <datalist id="providers">{PROVIDERS.map((each) => <option key={each} value={each} />)}</datalist>
      <label class="field"><span>Directory</span><input type="text" maxLength={4096} placeholder={HOME} autocapitalize="off" spellcheck={false} value={wish.directory} onInput={set("directory")} /></label>
      {kind === "terminal" && <label class="field"><span>Command; empty for a shell</span><input type="text" maxLength={4096} placeholder="your shell" autocapitalize="off" spellcheck={false} value={wish.command} onInput={set("command")} /></label>}
      {kind === "agent" && <label class="field"><span>Model; empty for the agent's own choice</span><input type="text" maxLength={200} autocapitalize="off" spellcheck={false} value={wish.model} onInput={set("model")} /></label>}
      <div class="form-row">
        <label class="field"><span>Name</span><input type="text" maxLength={100} placeholder="none" value={wish.name} onInput={set("name")} /></label>
        {nodes.value.size > 1 && <label class="field"><span>Machine</span><select value={wish.node} onChange={set("node")}><option value="">this server</option>{[...nodes.value].map(([id, name]) => <option key={id} value={id}>{name}</option>)}</select></label>}
      </div>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy}>{busy ? "Starting…" : "Start it"}</button></div>
    </form>
  );
}

/** Makes it, and remembers what may be wanted again. */
async function make(kind: NewKind, wish: Wish): Promise<string | null> {
  const answer = await ask(requestFor(kind, wish), kind === "agent" ? "session_created" : "terminal_opened");
  choose("directory", wish.directory.trim() || null);
  if (kind === "agent") choose("provider", wish.provider.trim());
  return sessionOf(answer["session"])?.id ?? null;
}
