import { useState } from "preact/hooks";
import { asApiError } from "../api/errors";
import { usePolled } from "../live/polled";
import { Icon } from "../parts/icon";
import { toast } from "../parts/toast";
import { lastUse } from "./keys";
import { NewInvitationDialog } from "./new_invitation";
import { invitations, revokeInvitation } from "./requests";
import { RevokeButton } from "./revoke_button";
import type { Invitation } from "./answers";

/** Machines that are invited to lend their models, and those that joined. */
export function Invitations() {
  const { value: all, error, look } = usePolled(invitations, 10_000);
  const [making, setMaking] = useState(false);
  const [past, setPast] = useState(false);
  // A server without invitations has nothing to show here.
  if (error?.status === 404) return null;
  const ended = (all ?? []).filter((each) => !isGood(each)).length;
  const shown = (all ?? []).filter((each) => past || isGood(each));
  return (
    <section aria-labelledby="invitations-title">
      <div class="section-head">
        <h2 id="invitations-title">Invited machines</h2>
        {ended > 0 && <label class="check"><input type="checkbox" checked={past} onChange={(event) => setPast(event.currentTarget.checked)} /><span>and {ended} that ended</span></label>}
        <button type="button" class="button" onClick={() => setMaking(true)}><Icon name="plus" /> Invite a machine</button>
      </div>
      <div class="card rows">
        {error && <p class="empty" role="alert">{error.message}</p>}
        {all && !shown.length && <p class="empty muted">No machine is invited. A machine that joins by an invitation lends its models to this server until it is revoked.</p>}
        {shown.length > 0 && <InvitationTable all={shown} onChange={look} />}
      </div>
      <NewInvitationDialog open={making} onClose={() => setMaking(false)} onMade={look} />
    </section>
  );
}

function isGood({ state }: Invitation): boolean {
  return state === "open" || state === "joined";
}

function InvitationTable({ all, onChange }: { all: Invitation[]; onChange: () => void }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of invited machines">
      <table class="plain-table">
        <thead><tr><th scope="col">Machine</th><th scope="col">State</th><th scope="col">Last seen</th><th scope="col">Made</th><th scope="col"><span class="visually-hidden">Revoke</span></th></tr></thead>
        <tbody>{all.map((each) => <InvitationRow key={each.id} of={each} onChange={onChange} />)}</tbody>
      </table>
    </div>
  );
}

function InvitationRow({ of: invitation, onChange }: { of: Invitation; onChange: () => void }) {
  const { id, name, joinedAt, lastSeenAt, createdAt } = invitation;
  const revoke = async () => {
    try {
      await revokeInvitation(id);
      toast("The invitation is revoked.");
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    onChange();
  };
  const meaning = joinedAt ? "The machine is disconnected at once, and its key is good for nothing any more." : "Its code is good for nothing any more.";
  return (
    <tr class={isGood(invitation) ? undefined : "muted"}>
      <th scope="row" title={id}>{name || "names itself"}</th>
      <td>{stateWords(invitation)}</td>
      <td class="muted">{joinedAt ? lastUse(lastSeenAt || null) : ""}</td>
      <td class="muted">{lastUse(createdAt)}</td>
      <td>{isGood(invitation) && <RevokeButton what={name || "the invitation"} onRevoke={revoke}>{meaning} That cannot be taken back.</RevokeButton>}</td>
    </tr>
  );
}

/** How an invitation stands. */
export function stateWords({ state, expiresAt }: Pick<Invitation, "state" | "expiresAt">): string {
  if (state !== "open") return state;
  return expiresAt ? `open until ${new Date(expiresAt).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}` : "open";
}
