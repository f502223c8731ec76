import { useState } from "preact/hooks";
import * as admin from "../api/admin";
import type { Usage, UsageRow } from "../api/types";
import { keyNames } from "../live/state";
import { usePolled } from "../live/polled";
import { short } from "../live/words";
import { Tabs } from "../parts/tabs";

type By = "day" | "model" | "key";

const BY: { value: By; name: string }[] = [
  { value: "day", name: "Day" },
  { value: "model", name: "Model" },
  { value: "key", name: "Key" },
];

const SINCE = [
  { value: "1d", name: "24 h" },
  { value: "7d", name: "7 d" },
  { value: "30d", name: "30 d" },
];

/** More rows than this are summed up as one. */
const MAX_ROWS = 31;

/** What was used, by day, model or key. */
export function UsageTable() {
  const [by, setBy] = useState<By>("day");
  const [since, setSince] = useState("7d");
  const { value: usage, error } = usePolled((signal) => admin.usage(by, since, signal), 15_000, [by, since]);
  return (
    <section aria-labelledby="usage-title">
      <div class="section-head">
        <h2 id="usage-title">Usage</h2>
        <Tabs label="Group usage by" options={BY} value={by} onChange={setBy} />
        <Tabs label="Since" options={SINCE} value={since} onChange={setSince} />
      </div>
      <div class="card rows">
        {error && <p class="empty" role="alert">{error.message}</p>}
        {!error && usage && (usage.rows.length ? <Rows usage={usage} by={by} /> : <p class="empty muted">Nothing was used in this time.</p>)}
      </div>
    </section>
  );
}

function Rows({ usage, by }: { usage: Usage; by: By }) {
  const rows = ordered(usage.rows, by).slice(0, MAX_ROWS);
  const most = Math.max(1, ...rows.map(({ total_tokens }) => total_tokens));
  const priced = Number(usage.totals.cost) > 0;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of usage">
      <table class="usage">
        <thead>
          <tr><th scope="col">{by === "day" ? "Day" : by === "model" ? "Model" : "Key"}</th><th scope="col">Tokens</th><th scope="col">Read</th><th scope="col">Written</th><th scope="col">Requests</th><th scope="col">Errors</th>{priced && <th scope="col">Cost</th>}</tr>
        </thead>
        <tbody>
          {rows.map((row) => <Row key={row[by]} name={nameOf(row, by)} row={row} most={most} currency={priced ? usage.currency : undefined} />)}
        </tbody>
        <tfoot><Row name="Together" row={usage.totals} most={0} currency={priced ? usage.currency : undefined} /></tfoot>
      </table>
    </div>
  );
}

function Row({ name, row, most, currency }: { name: string; row: UsageRow; most: number; currency?: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td class="usage-bar">{most > 0 && <span class="bar" aria-hidden="true"><span style={{ width: `${(row.total_tokens / most) * 100}%` }} /></span>}<span>{short(row.total_tokens)}</span></td>
      <td>{short(row.prompt_tokens)}</td>
      <td>{short(row.completion_tokens)}</td>
      <td>{short(row.requests)}</td>
      <td class={row.errors ? "bad-text" : "muted"}>{short(row.errors)}</td>
      {currency && <td>{row.cost} {currency}</td>}
    </tr>
  );
}

/** Days stand in their order; the rest comes with the most tokens first. */
function ordered(rows: UsageRow[], by: By): UsageRow[] {
  return by === "day" ? [...rows].sort((a, b) => (b.day ?? "").localeCompare(a.day ?? "")) : rows;
}

function nameOf(row: UsageRow, by: By): string {
  const name = row[by] ?? "";
  return by === "key" ? (keyNames.value.get(name) ?? name) : name;
}
