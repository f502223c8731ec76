/** What the server's API answers, as far as the page reads it. Every field may be missing: servers differ by version. */

/** `GET /health`. Strangers get the first four only. */
export interface Health {
  status: string;
  ok: boolean;
  version: string;
  peers?: number;
  uptime_secs?: number;
  workers_connected?: number;
  workers?: Worker[];
  queue_depth?: number;
  in_flight?: number;
  models?: string[];
  /** Why the status is `degraded`. */
  degraded?: string;
}

/** A provider: a worker, a node, a peer, as `/admin/workers` and `/health` list it. */
export interface Worker {
  worker_id: string;
  worker_name: string;
  scope: string;
  models: string[];
  model_facts?: Record<string, ModelFacts>;
  loads_models?: boolean;
  endpoints?: string[];
  /** `here`, `near`, `far` or `cloud`. */
  distance?: string;
  /** Tokens a second, as measured. */
  speed?: number | null;
  throttle?: number;
  max_concurrent: number;
  reported_load: number;
  in_flight: number;
  is_draining: boolean;
  resting_secs?: number | null;
}

/** What a worker says of one of its models. */
export interface ModelFacts {
  load?: "loaded" | "loading" | "unloaded";
  load_ms?: number;
  last_used_ms?: number;
  file_bytes?: number;
  memory_bytes?: number;
  context_tokens?: number;
}

/** One of `GET /v1/models`. */
export interface Model {
  id: string;
  owned_by?: string;
  context_length?: number;
  max_context_length?: number;
  architecture?: { input_modalities?: string[] };
  capabilities?: string[];
  quantization?: string;
  arch?: string;
  parameters?: number;
  size?: number;
  state?: "loaded" | "loading" | "unloaded";
  endpoints?: string[];
  machines?: string[];
}

/** `GET /admin/stats`. */
export interface Stats {
  queue_depth: Record<string, number>;
  queues: Queue[];
  active_workers: number;
  in_flight: number;
  uptime_secs: number;
}

/** Requests that wait for one model. */
export interface Queue {
  scope: string;
  model: string;
  depth: number;
  oldest_secs?: number;
}

/** `GET /admin/series`: what happened in each step of some seconds, the oldest first. */
export interface Series {
  step_secs?: number;
  points?: SeriesPoint[];
}

/** One step of it. */
export interface SeriesPoint {
  /** Seconds since 1970. */
  at: number;
  requests?: number;
  errors?: number;
  tokens?: number;
  /** The medians of the answers that began in it. */
  first_token_ms?: number | null;
  first_byte_ms?: number | null;
  queued?: number;
  in_flight?: number;
}

/** A request that waits or runs now: one of `GET /admin/requests/running`. */
export interface RunningRequest {
  id: string;
  model?: string;
  endpoint?: string;
  key?: string;
  worker?: string | null;
  state?: "queued" | "running";
  waiting_ms?: number;
  running_ms?: number;
  tokens?: number;
}

/** A job that ended: one of `GET /admin/requests`. */
export interface EndedRequest {
  n: number;
  id: string;
  at: string;
  key: string;
  model: string;
  served_model: string | null;
  endpoint: string;
  provider: string | null;
  outcome: string;
  status: number | null;
  prompt_tokens: number;
  completion_tokens: number;
  estimated: boolean;
  queue_ms: number;
  first_byte_ms: number | null;
  total_ms: number;
  streaming: boolean;
  requeues: number;
  cost?: string;
}

/** One row of `GET /admin/usage`; it has the fields that it is grouped by. */
export interface UsageRow {
  key?: string;
  model?: string;
  day?: string;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  errors: number;
  cost?: string;
}

/** `GET /admin/usage`. */
export interface Usage {
  rows: UsageRow[];
  totals: UsageRow;
  currency?: string;
  truncated?: boolean;
}

/** One of `GET /admin/keys`. */
export interface Key {
  id: string;
  name: string;
  /** The first characters of its text. */
  prefix: string;
  scopes: string[];
  /** The models it is for; empty: all. */
  models: string[];
  limits?: { rpm?: number | null; tpm?: number | null; concurrent?: number | null };
  /** The only room that it reaches. */
  room: string | null;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
  last_used_at: string | null;
}

/** `GET web/session`. */
export interface Session {
  name: string;
  scopes: string[];
  /** RFC 3339, or null for one that does not end by itself. */
  expires: string | null;
}
