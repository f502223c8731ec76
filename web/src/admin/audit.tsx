import { useState } from "preact/hooks";
import { keyNames } from "../live/state";
import { usePolled } from "../live/polled";
import { ago } from "../live/words";
import { audit } from "./requests";
import type { AuditEntry } from "./answers";

/** How many entries are asked for at first, and how many more each time; the server keeps no more than the most. */
const STEP = 100;
const MOST = 5000;

/** How often the log is looked at, in milliseconds, and how often if that is much. */
const QUICK_MS = 5000;
const SLOW_MS = 15_000;

/** What was done to the server, by whom, and whether it came to be. */
export function AuditLog() {
  const [limit, setLimit] = useState(STEP);
  const [typed, setTyped] = useState("");
  const { value: all, error } = usePolled((signal) => audit(limit, signal), limit > STEP ? SLOW_MS : QUICK_MS, [limit]);
  const shown = matching(all ?? [], typed, keyNames.value);
  return (
    <section aria-labelledby="audit-title">
      <div class="section-head">
        <h2 id="audit-title">Audit log</h2>
        <input type="search" class="filter" aria-label="Filter the audit log" placeholder="Who or what" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
      </div>
      <div class="card rows">
        {error && <p class="empty" role="alert">{error.message}</p>}
        {!all && !error && <p class="empty muted" role="status">Reading the log…</p>}
        {all && !all.length && <p class="empty muted">Nothing was done yet.</p>}
        {all && all.length > 0 && !shown.length && <p class="empty muted" role="status">Nothing like that is among the newest {all.length}. Show more, or write less.</p>}
        {shown.length > 0 && <AuditTable entries={shown} />}
      </div>
      {all && all.length >= limit && limit < MOST && <button type="button" class="button" onClick={() => setLimit(Math.min(MOST, limit + STEP))}>Show more</button>}
    </section>
  );
}

/** The entries in which all of what was typed stands somewhere; keys count by their names, too. */
export function matching(entries: AuditEntry[], typed: string, names: ReadonlyMap<string, string>): AuditEntry[] {
  const parts = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!parts.length) return entries;
  return entries.filter(({ who, action, target, outcome }) => {
    const text = [who, whoWords(who, names), action, target, names.get(target) ?? "", outcome].join(" ").toLowerCase();
    return parts.every((part) => text.includes(part));
  });
}

const OWNERS: Record<string, string> = { "admin-token": "the administrator's token", "command-line": "the command line" };

/** Who did something, by name where there is one. */
export function whoWords(who: string, names: ReadonlyMap<string, string>): string {
  const [holder, session] = who.split(" (page session ", 2) as [string, string | undefined];
  const name = names.get(holder) ?? OWNERS[holder] ?? holder;
  return session ? `${name}, from a browser` : name;
}

function AuditTable({ entries }: { entries: AuditEntry[] }) {
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of what was done">
      <table class="plain-table audit">
        <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">On what</th><th scope="col">By whom</th><th scope="col">Outcome</th></tr></thead>
        <tbody>{entries.map((entry, at) => <AuditRow key={`${entry.at}/${entry.action}/${entry.target}/${at}`} entry={entry} />)}</tbody>
      </table>
    </div>
  );
}

function AuditRow({ entry: { at, who, action, target, outcome } }: { entry: AuditEntry }) {
  const name = keyNames.value.get(target);
  const past = ago(at, Date.now());
  return (
    <tr>
      <td class="muted"><time dateTime={at} title={new Date(at).toLocaleString()}>{past === "now" || !past ? past : `${past} ago`}</time></td>
      <th scope="row"><code>{action}</code></th>
      <td class="audit-target" title={target}>{name ? <>{name} <span class="muted">{target}</span></> : target}</td>
      <td title={who}>{whoWords(who, keyNames.value)}</td>
      <td class={outcome === "done" ? undefined : "bad-text"}>{outcome}</td>
    </tr>
  );
}
