import { call, callJson } from "./call";
import { part } from "./address";
import { ApiError } from "./errors";
import type { EndedRequest, Health, Model, RunningRequest, Series, Stats, Usage, Worker } from "./types";

/** Loading a model may take the server this long; its own limit is ten minutes. */
const LOAD_DEADLINE_MS = 11 * 60_000;

/** The longest text of metrics that is read, in characters. */
export const MAX_METRICS = 16 * 1024 * 1024;

/** The server's health, as much of it as the caller may see. */
export const health = (signal?: AbortSignal) => callJson<Health>("health", { signal });

/** The models that can be asked. */
export async function models(signal?: AbortSignal): Promise<Model[]> {
  const { data } = await callJson<{ data?: Model[] }>("v1/models", { signal });
  return data ?? [];
}

/** Every worker. Needs the scope `admin`. */
export async function workers(signal?: AbortSignal): Promise<Worker[]> {
  return (await callJson<{ workers: Worker[] }>("admin/workers", { signal })).workers;
}

/** Queues and counts. Needs the scope `admin`. */
export const stats = (signal?: AbortSignal) => callJson<Stats>("admin/stats", { signal });

/** Requests that ended after number `after`, newest first, at most 500. Needs the scope `admin`. */
export async function requests(after: number, signal?: AbortSignal): Promise<EndedRequest[]> {
  const path = `admin/requests?after=${after}&limit=500`;
  return (await callJson<{ requests: EndedRequest[] }>(path, { signal })).requests;
}

/** What happened in the last so many seconds; `null` from a server that does not keep it. Needs the scope `admin`. */
export const series = (since: number, signal?: AbortSignal) => unlessMissing(callJson<Series>(`admin/series?since=${since}`, { signal }));

/** The requests that wait or run now; `null` from a server that does not say. Needs the scope `admin`. */
export async function running(signal?: AbortSignal): Promise<RunningRequest[] | null> {
  const answer = await unlessMissing(callJson<{ requests?: RunningRequest[] }>("admin/requests/running", { signal }));
  return answer && (Array.isArray(answer.requests) ? answer.requests.filter((each) => typeof each?.id === "string") : []);
}

/** Servers of an older version have not all paths. */
async function unlessMissing<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (thrown) {
    if (thrown instanceof ApiError && (thrown.status === 404 || thrown.status === 405)) return null;
    throw thrown;
  }
}

/** What was used since `since`, grouped by `by`. Needs the scope `admin`. */
export function usage(by: string, since: string, signal?: AbortSignal): Promise<Usage> {
  return callJson<Usage>(`admin/usage?by=${part(by)}&since=${part(since)}`, { signal });
}

/** The metrics as text. Needs a local request, or the scope `metrics` or `admin`. */
export async function metricsText(signal?: AbortSignal): Promise<string> {
  const answer = await call("metrics", { signal, headers: { accept: "application/openmetrics-text, text/plain" } });
  return (await answer.text()).slice(0, MAX_METRICS);
}

/** Gives a worker nothing more, and closes its link when it is idle. */
export const drain = (worker: string) => call(`admin/workers/${part(worker)}/drain`, { method: "POST" });

/** Asks a worker for its models now. */
export const refresh = (worker: string) => call(`admin/workers/${part(worker)}/refresh`, { method: "POST" });

/** Has a worker load a model; returns when it is loaded. */
export const load = (worker: string, model: string) => changeModel(worker, model, "load");

/** Has a worker take a model out of memory. */
export const unload = (worker: string, model: string) => changeModel(worker, model, "unload");

function changeModel(worker: string, model: string, what: "load" | "unload") {
  const path = `admin/workers/${part(worker)}/models/${part(model)}/${what}`;
  return call(path, { method: "POST", deadline: LOAD_DEADLINE_MS });
}
