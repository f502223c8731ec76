import { asApiError } from "../api/errors";
import { endPageSession, pageSessions, type PageSession } from "../api/web";
import { keyNames } from "../live/state";
import { usePolled } from "../live/polled";
import { toast } from "../parts/toast";
import { browserName } from "./browser_name";
import { lastUse } from "./keys";
import { RevokeButton } from "./revoke_button";

/** The browsers that are signed in at this page. */
export function Sessions() {
  const { value: all, error, look } = usePolled(pageSessions, 10_000);
  // A server without sessions has nothing to show here.
  if (error?.status === 404) return null;
  return (
    <section aria-labelledby="sessions-title">
      <h2 id="sessions-title">Sessions of this page</h2>
      <div class="card rows">
        {error && <p class="empty" role="alert">{error.message}</p>}
        {all?.length === 0 && <p class="empty muted">No browser is signed in by a session.</p>}
        {!!all?.length && <SessionTable sessions={all} onChange={look} />}
      </div>
    </section>
  );
}

function SessionTable({ sessions, onChange }: { sessions: PageSession[]; onChange: () => void }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of sessions">
      <table class="plain-table">
        <thead><tr><th scope="col">Browser</th><th scope="col">Of</th><th scope="col">Last used</th><th scope="col">Until</th><th scope="col"><span class="visually-hidden">Revoke</span></th></tr></thead>
        <tbody>{sessions.map((session) => <SessionRow key={session.id} session={session} onChange={onChange} />)}</tbody>
      </table>
    </div>
  );
}

function SessionRow({ session, onChange }: { session: PageSession; onChange: () => void }) {
  const { id, holder, name, browser, current, last_used_at, expires_at } = session;
  const what = browserName(browser ?? "");
  const revoke = async () => {
    try {
      await endPageSession(id);
      toast("The session is ended.");
    } catch (thrown) {
      toast(asApiError(thrown).message, "error");
    }
    onChange();
  };
  return (
    <tr>
      <th scope="row" title={`${browser ?? ""} ${id}`}>{current && <span class="chip loaded">this browser</span>} {what}</th>
      <td>{name ?? keyNames.value.get(holder) ?? holder}</td>
      <td class="muted">{lastUse(last_used_at)}</td>
      <td class="muted">{expires_at ? new Date(expires_at).toLocaleDateString() : "no end"}</td>
      <td><RevokeButton what={what} onRevoke={revoke}>{current ? "You are signed out here at once." : "That browser is signed out at once."}</RevokeButton></td>
    </tr>
  );
}
