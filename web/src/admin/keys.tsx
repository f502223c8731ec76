import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { keys, revokeKey } from "../api/keys";
import type { Key } from "../api/types";
import { usePolled } from "../live/polled";
import { ago } from "../live/words";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { NewKeyDialog } from "./new_key";
import { RevokeButton } from "./revoke_button";

/** So many keys are shown before the rest is asked for. */
const FEW = 25;

/** The keys of this server. A key's text is shown once, when it is made. */
export function Keys() {
  const { value: all, error, look } = usePolled(keys, 10_000);
  const [making, setMaking] = useState(false);
  const [past, setPast] = useState(false);
  const [everyone, setEveryone] = useState(false);
  const chosen = (all ?? []).filter((key) => past || isGood(key)).reverse();
  const shown = everyone ? chosen : chosen.slice(0, FEW);
  const ended = (all ?? []).filter((key) => !isGood(key)).length;
  return (
    <section aria-labelledby="keys-title">
      <div class="section-head">
        <h2 id="keys-title">Keys</h2>
        {ended > 0 && <label class="check"><input type="checkbox" checked={past} onChange={(event) => setPast(event.currentTarget.checked)} /><span>and {ended} that ended</span></label>}
        <button type="button" class="button primary" onClick={() => setMaking(true)}><Icon name="plus" /> New key</button>
      </div>
      <div class="card rows">
        {error && <p class="empty" role="alert">{error.message}</p>}
        {all && !shown.length && <p class="empty muted">There is no key. Programs on other machines need one; make one for each, so that each can be revoked alone.</p>}
        {shown.length > 0 && <KeyTable keys={shown} onChange={look} />}
      </div>
      {shown.length < chosen.length && <button type="button" class="button" onClick={() => setEveryone(true)}>Show all {chosen.length} keys</button>}
      <NewKeyDialog open={making} onClose={() => setMaking(false)} onMade={look} />
    </section>
  );
}

function isGood({ revoked_at, expires_at }: Key): boolean {
  return !revoked_at && (!expires_at || Date.parse(expires_at) > Date.now());
}

function KeyTable({ keys: shown, onChange }: { keys: Key[]; onChange: () => void }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of keys">
      <table class="plain-table">
        <thead><tr><th scope="col">Name</th><th scope="col">Begins with</th><th scope="col">For</th><th scope="col">Last used</th><th scope="col">Until</th><th scope="col"><span class="visually-hidden">Revoke</span></th></tr></thead>
        <tbody>{shown.map((key) => <KeyRow key={key.id} of={key} onChange={onChange} />)}</tbody>
      </table>
    </div>
  );
}

function KeyRow({ of: key, onChange }: { of: Key; onChange: () => void }) {
  const revoke = async () => {
    try {
      await revokeKey(key.id);
      toast(`${key.name} is revoked.`);
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    onChange();
  };
  return (
    <tr class={isGood(key) ? undefined : "muted"}>
      <th scope="row" title={key.id}>{key.name}</th>
      <td><code>{key.prefix}…</code></td>
      <td>{usesOf(key)}</td>
      <td class="muted">{lastUse(key.last_used_at)}</td>
      <td class="muted">{key.revoked_at ? "revoked" : key.expires_at ? new Date(key.expires_at).toLocaleDateString() : "no end"}</td>
      <td>{isGood(key) && <RevokeButton what={key.name} onRevoke={revoke}>Programs that use this key are refused from now on, its workers are disconnected, and the sessions that it signed in end. That cannot be taken back.</RevokeButton>}</td>
    </tr>
  );
}

/** What a key is for, in the server's words. */
function usesOf({ scopes, models, room, limits }: Key): string {
  const parts = [scopes.join(", ")];
  if (models.length) parts.push(models.join(", "));
  if (room) parts.push(`room ${room}`);
  if (limits?.rpm) parts.push(`${limits.rpm} requests a minute`);
  return parts.join(" · ");
}

/** How long ago something was used. */
export function lastUse(at: string | null): string {
  const words = at ? ago(at, Date.now()) : "never";
  return words === "never" || words === "now" || !words ? words : `${words} ago`;
}
