import type { Series } from "../api/types";
import { buckets, parseMetrics, quantile, since, sum, type Buckets } from "../api/metrics";

/** How many points are kept: ten minutes at one point each two seconds. */
export const MAX_POINTS = 300;

/** What the charts show, at one moment. `null`: nothing happened that it could be measured by. */
export interface Point {
  /** Milliseconds since 1970. */
  at: number;
  requests: number;
  errors: number;
  tokensOut: number;
  /** `null` where only the written ones are told. */
  tokensIn: number | null;
  /** Seconds to the first token of answers, in the middle; `null`, too, where it is not told. */
  firstToken: number | null;
  /** Seconds to the first byte of answers, in the middle and for the slowest twentieth. */
  firstMiddle: number | null;
  firstSlow: number | null;
}

/** The counters of one reading of `/metrics`. */
export interface Reading {
  at: number;
  requests: number;
  errors: number;
  tokensOut: number;
  tokensIn: number;
  first: Buckets;
}

const FIRST_BYTE = "warren_time_to_first_byte_seconds";
const WANTED = new Set(["warren_requests_total", "warren_tokens_total", `${FIRST_BYTE}_bucket`]);

/** Ends of jobs that are nobody's fault: it was answered, or the client had enough. */
const NO_ERRORS = new Set(["answered", "client_gone"]);

/** What a text of metrics says at a moment. */
export function readingOf(text: string, at: number): Reading {
  const samples = parseMetrics(text, (name) => WANTED.has(name));
  return {
    at,
    requests: sum(samples, "warren_requests_total"),
    errors: sum(samples, "warren_requests_total", (labels) => !NO_ERRORS.has(labels["outcome"] ?? "")),
    tokensOut: sum(samples, "warren_tokens_total", (labels) => labels["kind"] === "completion"),
    tokensIn: sum(samples, "warren_tokens_total", (labels) => labels["kind"] === "prompt"),
    first: buckets(samples, FIRST_BYTE),
  };
}

/** What happened between two readings, per second; `null` when no time passed. */
export function pointOf(later: Reading, earlier: Reading): Point | null {
  const seconds = (later.at - earlier.at) / 1000;
  if (seconds <= 0) return null;
  const rate = (of: (reading: Reading) => number) => grown(of(later), of(earlier)) / seconds;
  const first = since(later.first, earlier.first);
  return {
    at: later.at,
    requests: rate((reading) => reading.requests),
    errors: rate((reading) => reading.errors),
    tokensOut: rate((reading) => reading.tokensOut),
    tokensIn: rate((reading) => reading.tokensIn),
    firstToken: null,
    firstMiddle: quantile(first, 0.5),
    firstSlow: quantile(first, 0.95),
  };
}

/** How much a counter grew; one that fell belongs to a server that started anew. */
function grown(later: number, earlier: number): number {
  return later < earlier ? later : later - earlier;
}

/** Adds a point, and drops what is too old. */
export function withPoint(points: Point[], point: Point): Point[] {
  return [...points.slice(-(MAX_POINTS - 1)), point];
}

/** The steps that the server kept, as points; those without a time are left out. */
export function pointsOf(series: Series): Point[] {
  const step = series.step_secs && series.step_secs > 0 ? series.step_secs : 2;
  const told = Array.isArray(series.points) ? series.points.slice(-MAX_POINTS) : [];
  return told.filter((each) => Number.isFinite(each?.at)).map((each) => ({
    at: each.at * 1000,
    requests: (each.requests ?? 0) / step,
    errors: (each.errors ?? 0) / step,
    tokensOut: (each.tokens ?? 0) / step,
    tokensIn: null,
    firstToken: secondsOf(each.first_token_ms),
    firstMiddle: secondsOf(each.first_byte_ms),
    firstSlow: null,
  }));
}

function secondsOf(ms: number | null | undefined): number | null {
  return typeof ms === "number" ? ms / 1000 : null;
}

/** The points with those that were told later. A step that was told before may have grown since. */
export function withPoints(points: Point[], told: Point[]): Point[] {
  const first = told[0]?.at ?? Infinity;
  return [...points.filter(({ at }) => at < first), ...told].slice(-MAX_POINTS);
}
