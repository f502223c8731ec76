import { useState } from "preact/hooks";
import type { EndedRequest } from "../api/types";
import { keyNames, requests, health } from "../live/state";
import { ago, short, span } from "../live/words";
import { VirtualList } from "../parts/virtual_list";

const ROW = 40;

/** The requests that ended last, as they end. */
export function Requests() {
  const [filter, setFilter] = useState("");
  const all = requests.value;
  const shown = matching(all, filter);
  return (
    <section aria-labelledby="requests-title">
      <div class="section-head">
        <h2 id="requests-title">Requests</h2>
        <input type="search" class="filter" placeholder="Filter" aria-label="Filter requests" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
      </div>
      <div class="card rows">
        {shown.length ? <RequestTable shown={shown} /> : <p class="empty muted">{all.length ? "No request matches." : "No request has ended since the server started."}</p>}
      </div>
    </section>
  );
}

const COLUMNS = ["Outcome", "Model", "Machine", "Key", "Tokens", "Waited", "First byte", "Total", "Ended"];

function RequestTable({ shown }: { shown: EndedRequest[] }) {
  const now = useNow();
  return (
    <div role="table" aria-label="Requests" aria-rowcount={shown.length + 1} class="request-table">
      <div role="rowgroup">
        <div role="row" aria-rowindex={1} class="request-row head">
          {COLUMNS.map((name) => <span role="columnheader" key={name}>{name}</span>)}
        </div>
      </div>
      <VirtualList items={shown} rowHeight={ROW} keyOf={({ n }) => n} label="Ended requests" role="rowgroup" row={(each) => <Cells request={each} now={now} />} />
    </div>
  );
}

/** The time, anew with each look at the server, so that the ages of rows are fresh. */
function useNow(): number {
  void health.value;
  return Date.now();
}

function Cells({ request, now }: { request: EndedRequest; now: number }) {
  const { outcome, model, served_model, key, queue_ms, first_byte_ms, total_ms, at } = request;
  return (
    <div role="presentation" class="request-row" title={`${request.id} · ${request.endpoint}${request.requeues ? ` · moved ${request.requeues} times` : ""}`}>
      <span role="cell"><span class={`outcome ${toneOf(outcome)}`}>{outcome.replace(/_/g, " ")}</span></span>
      <span role="cell" class="wide-text">{model}{served_model && <span class="muted"> → {served_model}</span>}</span>
      <span role="cell" title={resumesOf(request)}>{providersOf(request).join(" → ") || "–"}</span>
      <span role="cell">{keyNames.value.get(key) ?? key}</span>
      <span role="cell" class="number">{tokensOf(request)}</span>
      <span role="cell" class="number">{span(queue_ms)}</span>
      <span role="cell" class="number">{first_byte_ms === null ? "–" : span(first_byte_ms)}</span>
      <span role="cell" class="number">{span(total_ms)}</span>
      <span role="cell" class="number muted">{ago(at, now)}</span>
    </div>
  );
}

/** The providers that wrote the answer, in order: those that were lost, then the last one. */
export function providersOf({ resumes, provider }: EndedRequest): string[] {
  const all = [...(resumes ?? []).map(({ from }) => from), ...(provider ? [provider] : [])];
  return all.filter((name, at) => name !== all[at - 1]);
}

/** Where the answer went on, for a reader who asks. */
function resumesOf({ resumes }: EndedRequest): string | undefined {
  return resumes?.map(({ from, to, characters }) => `${from} was lost after ${characters} characters${to ? `, ${to} went on` : ""}`).join("; ");
}

/** The tokens read and written, as far as they are known. */
export function tokensOf({ estimated, prompt_tokens, completion_tokens }: EndedRequest): string {
  const [read, written] = [prompt_tokens, completion_tokens].map((number) => (number === null ? "–" : short(number)));
  return `${estimated ? "~" : ""}${read} → ${written}`;
}

function toneOf(outcome: string): string {
  if (outcome === "answered") return "good";
  return outcome === "client_gone" ? "so-so" : "bad";
}

/** The requests in which every word of the filter stands somewhere. */
export function matching(all: EndedRequest[], filter: string): EndedRequest[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return all;
  return all.filter((request) => {
    const text = [request.outcome, request.model, request.served_model, ...providersOf(request), keyNames.value.get(request.key) ?? request.key, request.id, request.endpoint].join(" ").toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
