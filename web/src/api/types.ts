import type * as api from "./generated";

/** What a server answers, which may be of another version: only the named fields are relied on. */
export type Lenient<T, Sure extends keyof T = never> = Partial<T> & Pick<T, Sure>;

/** What is read with care: the names are those of `T`, and each field may be missing or something else. */
export type Unsure<T> = { readonly [Field in keyof T]?: unknown };

/** `GET /health`. Strangers get the first four fields only. */
export type Health = Lenient<api.Health, "status" | "ok" | "version">;

/** A provider: a worker, a node, a peer, as `/admin/workers` and `/health` list it. */
export type Worker = Lenient<api.WorkerJson, "worker_id" | "worker_name" | "scope" | "models" | "max_concurrent" | "reported_load" | "in_flight" | "is_draining">;

/** One of `GET /v1/models`. */
export type Model = Lenient<api.Model, "id">;

/** `GET /admin/series`: what happened in each step of some seconds, the oldest first. */
export type Series = Lenient<Omit<api.Series, "points">> & { points?: Lenient<api.Point, "at">[] };

/** A request that waits or runs now: one of `GET /admin/requests/running`. */
export type RunningRequest = Lenient<api.RunningJson, "id">;

/** A job that ended: one of `GET /admin/requests`. */
export type EndedRequest = api.RequestJson;

/** `GET /admin/usage`. */
export type Usage = Lenient<api.UsageReport, "rows" | "totals">;

export type { KeyJson as Key, ModelFacts, SignedIn as Session, Stats, UsageRow } from "./generated";
