import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { Icon } from "../parts/icon";

interface FormProps {
  /** What the button says, and what it says meanwhile. */
  label: string;
  busyLabel: string;
  /** Sends the request; what was typed stays if it fails. */
  onSubmit: () => Promise<void>;
  children: ComponentChildren;
}

/** A form that asks the workspace for something, and says why it did not work. */
export function RequestForm({ label, busyLabel, onSubmit, children }: FormProps) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    await onSubmit().catch((thrown: unknown) => setError(asApiError(thrown).message));
    setBusy(false);
  };
  return (
    <form class="form" onSubmit={(event) => void submit(event)}>
      {children}
      {error && <p class="notice error" role="alert"><Icon name="warn" /><span>{error}</span></p>}
      <div class="dialog-foot"><button type="submit" class="button primary" disabled={busy}>{busy ? busyLabel : label}</button></div>
    </form>
  );
}
