import { useState } from "preact/hooks";
import { asApiError, type ApiError } from "../api/errors";
import type { CreateKey, KeyScope } from "../api/generated";
import { createKey } from "../api/keys";
import { CopyButton } from "../parts/copy";
import { Icon } from "../parts/icon";
import { OnceDialog } from "../parts/once_dialog";

/** What keys are mostly for, in the order of how often they are. */
const SCOPES: { scope: KeyScope; name: string }[] = [
  { scope: "inference", name: "use models" },
  { scope: "worker", name: "lend models" },
  { scope: "rooms", name: "make rooms" },
  { scope: "metrics", name: "read metrics" },
  { scope: "workspace:read", name: "see the workspace" },
  { scope: "workspace:write", name: "use the workspace" },
  { scope: "admin", name: "administer the server" },
];

const SPANS = [
  { days: 0, name: "never" },
  { days: 1, name: "in a day" },
  { days: 30, name: "in 30 days" },
  { days: 365, name: "in a year" },
];

interface NewKeyProps {
  open: boolean;
  onClose: () => void;
  onMade: () => void;
}

/** Asks what a new key is for, makes it, and shows its text once. */
export function NewKeyDialog({ open, onClose, onMade }: NewKeyProps) {
  return (
    <OnceDialog<string>
      open={open} onClose={onClose} onMade={onMade} label="New key" madeTitle="This is the key"
      form={(onDone) => <NewKeyForm onKey={onDone} />} shown={(text, close) => <KeyText text={text} onClose={close} />}
    />
  );
}

function KeyText({ text, onClose }: { text: string; onClose: () => void }) {
  return (
    <>
      <p>It is shown now and never again: keep it somewhere safe. Clients send it as <code>Authorization: Bearer KEY</code>.</p>
      <div class="share-address"><code class="secret">{text}</code><CopyButton text={text} what="key" /></div>
      <div class="dialog-foot"><button type="button" class="button primary" onClick={onClose}>I have it</button></div>
    </>
  );
}

function NewKeyForm({ onKey }: { onKey: (key: string) => void }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<KeyScope[]>(["inference"]);
  const [models, setModels] = useState("");
  const [rpm, setRpm] = useState("");
  const [days, setDays] = useState(0);
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      onKey((await createKey(asked(name, scopes, models, rpm, days, Date.now()))).key);
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={submit}>
      <label class="field"><span>Name</span><input type="text" required autoFocus maxLength={100} placeholder="laptop" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <Scopes chosen={scopes} onChange={setScopes} />
      <label class="field"><span>Models, with commas between them; llama* means all that begin so</span><input type="text" placeholder="all" value={models} onInput={(event) => setModels(event.currentTarget.value)} /></label>
      <div class="form-row">
        <label class="field"><span>Requests a minute</span><input type="number" min={1} max={1_000_000} inputMode="numeric" placeholder="no limit" value={rpm} onInput={(event) => setRpm(event.currentTarget.value)} /></label>
        <label class="field"><span>Ends</span><select value={days} onChange={(event) => setDays(Number(event.currentTarget.value))}>{SPANS.map((each) => <option key={each.days} value={each.days}>{each.name}</option>)}</select></label>
      </div>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy || !name.trim() || !scopes.length}>{busy ? "Making…" : "Make the key"}</button></div>
    </form>
  );
}

function Scopes({ chosen, onChange }: { chosen: KeyScope[]; onChange: (scopes: KeyScope[]) => void }) {
  const toggle = (scope: KeyScope) => onChange(chosen.includes(scope) ? chosen.filter((each) => each !== scope) : [...chosen, scope]);
  return (
    <fieldset class="scopes">
      <legend>What it is for</legend>
      {SCOPES.map(({ scope, name }) => (
        <label key={scope} class="check"><input type="checkbox" checked={chosen.includes(scope)} onChange={() => toggle(scope)} /><span>{name} <span class="muted">{scope}</span></span></label>
      ))}
    </fieldset>
  );
}

/** The request for a key; what is empty is left to the server. */
export function asked(name: string, scopes: KeyScope[], models: string, rpm: string, days: number, now: number): CreateKey {
  const named = models.split(",").map((each) => each.trim()).filter(Boolean);
  return {
    name: name.trim(),
    scopes,
    ...(named.length ? { models: named } : {}),
    ...(Number(rpm) > 0 ? { limits: { rpm: Number(rpm) } } : {}),
    ...(days ? { expires_at: new Date(now + days * 86_400_000).toISOString() } : {}),
  };
}
