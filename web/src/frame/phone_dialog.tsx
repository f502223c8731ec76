import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { address } from "../api/address";
import { asApiError, type ApiError } from "../api/errors";
import type { LoginCode } from "../api/generated";
import { newLoginCode } from "../api/web";
import { Dialog } from "../parts/dialog";
import { Icon } from "../parts/icon";
import { Share } from "../parts/share";

const shown = signal(false);

/** Offers this page to another device, signed in by a code. */
export function openOnPhone(): void {
  shown.value = true;
}

export function PhoneDialog() {
  const close = () => (shown.value = false);
  return (
    <Dialog open={shown.value} onClose={close} label="Open on a phone" title="Open on a phone">
      {shown.value && <Login />}
    </Dialog>
  );
}

function Login() {
  const [code, setCode] = useState<LoginCode | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const make = () => {
    setCode(null);
    setError(null);
    newLoginCode().then(setCode, (thrown) => setError(asApiError(thrown)));
  };
  useEffect(make, []);
  if (error) return <Failure error={error} />;
  if (!code) return <p role="status" class="muted">Making a code…</p>;
  return (
    <>
      <p>This address lets its reader do what you may do. It signs in once, until {new Date(code.expires).toLocaleTimeString([], { timeStyle: "short" })}.</p>
      <Share address={`${address(".")}#login=${code.code}`} what="login address" />
      <div class="dialog-foot"><button type="button" class="button" onClick={make}>Another code</button></div>
    </>
  );
}

function Failure({ error }: { error: ApiError }) {
  const advice = error.refused
    ? "Sign in here first, or run `warren web` on the server's machine."
    : error.status === 404 ? "This server makes no login codes. Sign in with a token there." : error.message;
  return <p class="notice error" role="alert"><Icon name="warn" /><span>{advice}</span></p>;
}
