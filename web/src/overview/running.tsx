import type { RunningRequest } from "../api/types";
import { keyNames, running } from "../live/state";
import { count, short, span } from "../live/words";
import { VirtualList } from "../parts/virtual_list";

/** More than this are put in a list of its own height. */
const MANY = 6;
const ROW = 40;

/** The requests that wait or run now; nothing where the server does not say. */
export function Running() {
  const all = running.value;
  if (!all) return null;
  return (
    <section aria-labelledby="running-title">
      <div class="section-head">
        <h2 id="running-title">Running now</h2>
        {all.length > 0 && <span class="muted small">{words(all)}</span>}
      </div>
      <div class="card rows">{all.length ? <Rows all={inOrder(all)} /> : <p class="running-none muted small">Nothing waits and nothing runs.</p>}</div>
    </section>
  );
}

function words(all: RunningRequest[]): string {
  const waiting = all.filter(isWaiting).length;
  return `${count(all.length - waiting, "request")}${waiting ? `, and ${short(waiting)} waiting` : ""}`;
}

function Rows({ all }: { all: RunningRequest[] }) {
  if (all.length > MANY) return <VirtualList items={all} rowHeight={ROW} keyOf={({ id }) => id} row={(each) => <Cells request={each} />} label="Requests that run" class="running-long" />;
  return <ul aria-label="Requests that run">{all.map((each) => <li key={each.id}><Cells request={each} /></li>)}</ul>;
}

function Cells({ request }: { request: RunningRequest }) {
  const { id, model, endpoint, key, worker, waiting_ms, running_ms, tokens } = request;
  const waits = isWaiting(request);
  return (
    <div class="running-row" title={[id, endpoint].filter(Boolean).join(" · ")}>
      <span class={`outcome ${waits ? "so-so" : "good"}`}>{waits ? "waits" : "runs"}</span>
      <b>{model || "–"}</b>
      <span class="muted running-where">{worker || (waits ? "no machine yet" : "–")}</span>
      <span class="muted running-key">{key ? (keyNames.value.get(key) ?? key) : "–"}</span>
      <span class="number">{waits ? "" : count(tokens ?? 0, "token")}</span>
      <span class="number">{span((waits ? waiting_ms : running_ms) ?? 0)}</span>
    </div>
  );
}

const isWaiting = ({ state }: RunningRequest) => state === "queued";

/** Those that run come first, the oldest of them at the top. */
export function inOrder(all: RunningRequest[]): RunningRequest[] {
  const age = (request: RunningRequest) => (isWaiting(request) ? request.waiting_ms : request.running_ms) ?? 0;
  return [...all].sort((a, b) => Number(isWaiting(a)) - Number(isWaiting(b)) || age(b) - age(a));
}
