import { useState } from "preact/hooks";
import type { RoomWatch } from "../live/room";
import { Icon } from "../parts/icon";

/** Asks for the room's password. */
export function PasswordForm({ watch }: { watch: RoomWatch }) {
  const [password, setPassword] = useState("");
  const [asked, setAsked] = useState(false);
  const error = watch.error.value;
  const busy = asked && !error;
  const submit = (event: Event) => {
    event.preventDefault();
    setAsked(true);
    watch.enter(password);
  };
  return (
    <form onSubmit={submit}>
      <p>This room has a password. The person who invited you knows it.</p>
      <label class="field">
        <span>Password</span>
        <input type="password" autocomplete="off" autoFocus required value={password} onInput={(event) => setPassword(event.currentTarget.value)} />
      </label>
      {error && asked && (
        <p class="notice error" role="alert"><Icon name="warn" /><span>{error.status === 401 ? "This is not the password." : `${error.message} ${error.advice ?? ""}`}</span></p>
      )}
      <button type="submit" class="button primary wide" disabled={busy || !password}>{busy ? "Entering…" : "Enter"}</button>
    </form>
  );
}
