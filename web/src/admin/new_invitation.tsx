import { useState } from "preact/hooks";
import { asApiError, type ApiError } from "../api/errors";
import { CopyButton } from "../parts/copy";
import { Icon } from "../parts/icon";
import { OnceDialog } from "../parts/once_dialog";
import { invite, type NewInvitation } from "./requests";
import type { Invitation } from "./answers";

const SPANS = [
  { seconds: 3600, name: "in an hour" },
  { seconds: 86_400, name: "in a day" },
  { seconds: 604_800, name: "in a week" },
  { seconds: 2_592_000, name: "in 30 days" },
];

interface DialogProps {
  open: boolean;
  onClose: () => void;
  onMade: () => void;
}

/** Asks what an invitation is to be, makes it, and shows its command once. */
export function NewInvitationDialog({ open, onClose, onMade }: DialogProps) {
  return (
    <OnceDialog<Invitation>
      open={open} onClose={onClose} onMade={onMade} label="Invite a machine" madeTitle="Run this on the other machine"
      form={(onDone) => <Form onInvited={onDone} />} shown={(invitation, close) => <Made invitation={invitation} onClose={close} />}
    />
  );
}

function Made({ invitation: { code, urls }, onClose }: { invitation: Invitation; onClose: () => void }) {
  const command = `warren join ${code}`;
  return (
    <>
      <p>It is shown now and never again, and is good for one machine. That machine then lends its models here; <code>--no-lend</code> joins without lending yet.</p>
      <div class="share-address"><code class="secret">{command}</code><CopyButton text={command} what="command" /></div>
      {urls.length > 0 && <p class="muted small">The other machine looks for this server at {urls.join(", ")}.</p>}
      {urls.every(isLoopback) && <p class="notice warn"><Icon name="warn" /><span>Only this machine reaches these addresses. Start the server with <code>--listen 0.0.0.0:9178</code>, or name an https address, and invite again.</span></p>}
      <div class="dialog-foot"><button type="button" class="button primary" onClick={onClose}>I have it</button></div>
    </>
  );
}

/** Whether an address is one that only the machine itself reaches. */
export function isLoopback(url: string): boolean {
  return /^https?:\/\/(localhost|127\.[\d.]+|\[::1\])(:|\/|$)/.test(url);
}

function Form({ onInvited }: { onInvited: (invitation: Invitation) => void }) {
  const [name, setName] = useState("");
  const [seconds, setSeconds] = useState(86_400);
  const [url, setUrl] = useState("");
  const [error, setError] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      onInvited(await invite(askedFor(name, seconds, url)));
    } catch (thrown) {
      setError(asApiError(thrown));
      setBusy(false);
    }
  };
  return (
    <form class="form" onSubmit={submit}>
      <label class="field"><span>Name of the machine</span><input type="text" autoFocus maxLength={100} placeholder="it names itself" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
      <label class="field"><span>The invitation ends</span><select value={seconds} onChange={(event) => setSeconds(Number(event.currentTarget.value))}>{SPANS.map((each) => <option key={each.seconds} value={each.seconds}>{each.name}</option>)}</select></label>
      <label class="field"><span>Address of this server from elsewhere; empty for its own addresses</span><input type="url" pattern="https://.*" placeholder="https://warren.example.org" value={url} onInput={(event) => setUrl(event.currentTarget.value)} /></label>
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error.message}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy}>{busy ? "Making…" : "Make the invitation"}</button></div>
    </form>
  );
}

/** The request for an invitation; what is empty is left to the server. */
export function askedFor(name: string, seconds: number, url: string): NewInvitation {
  return { expires_in_secs: seconds, ...(name.trim() ? { name: name.trim() } : {}), ...(url.trim() ? { url: url.trim() } : {}) };
}
