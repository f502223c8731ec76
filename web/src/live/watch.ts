import { batch } from "@preact/signals";
import * as admin from "../api/admin";
import { enter } from "../api/access";
import { keys as keyList } from "../api/keys";
import { holdToken } from "../api/call";
import type { ApiError } from "../api/errors";
import type { EndedRequest, Model, Worker } from "../api/types";
import { Poll } from "./poll";
import { pointOf, pointsOf, readingOf, withPoint, withPoints, type Reading } from "./series";
import * as state from "./state";
import { followWorkspace, leaveWorkspace } from "../workspace/hub";

/** How many ended requests the page keeps. */
const MAX_REQUESTS = 2000;

/** Metrics longer than this, in characters, are read less often. */
const LONG_METRICS = 512 * 1024;

/** How much of the past is asked for at first, in seconds. */
const SERIES_SECS = 600;

let lastReading: Reading | null = null;
let metricsLength = 0;
let hasSeries = true;
let hasRunning = true;
let polls: Poll[] = [];

/** Begins to follow the server with what the access allows, instead of what was followed before. */
export function follow(): void {
  unfollow();
  const access = state.access.value;
  if (!access) return;
  polls = [poll(lookAtHealth, 2000)];
  if (access.models) polls.push(poll(lookAtModels, 4000));
  if (access.admin || access.metrics) polls.push(poll(lookAtCharts, () => (metricsLength > LONG_METRICS ? 15_000 : 2000)));
  if (access.admin) polls.push(poll(lookAtWork, 2000), poll(lookAtRunning, 2000), poll(lookAtKeys, 60_000));
  polls.forEach((each) => each.start());
  if (access.workspace === "work" || access.workspace === "look") followWorkspace();
}

/** Stops following. */
export function unfollow(): void {
  polls.forEach((each) => each.stop());
  polls = [];
  lastReading = null;
  metricsLength = 0;
  [hasSeries, hasRunning] = [true, true];
  leaveWorkspace();
}

/** Looks at everything now, because something was just changed. */
export function lookNow(): void {
  polls.forEach((each) => each.now());
}

function poll(look: (signal: AbortSignal) => Promise<void>, every: number | (() => number)): Poll {
  const pause = typeof every === "number" ? () => every : every;
  return new Poll({ look, every: pause, onError: noteTrouble });
}

function noteTrouble(error: ApiError): void {
  if (error.refused) void reenter();
  else if (error.away || error.status >= 500) state.trouble.value = error;
}

let reentering = false;

/** The server refused what it allowed before: a key was revoked, or a session ended. */
async function reenter(): Promise<void> {
  if (reentering) return;
  reentering = true;
  holdToken(null);
  try {
    const entry = await enter();
    if ("access" in entry) {
      state.access.value = entry.access;
      follow();
    } else if (entry.error?.away) {
      state.trouble.value = entry.error;
    } else {
      unfollow();
      state.signInError.value = entry.error;
      state.access.value = null;
    }
  } finally {
    reentering = false;
  }
}

async function lookAtHealth(signal: AbortSignal): Promise<void> {
  const health = await admin.health(signal);
  batch(() => {
    state.health.value = health;
    state.trouble.value = null;
    state.firstVersion.value ??= health.version;
    if (!state.access.value?.admin) state.workers.value = health.workers ?? null;
  });
}

async function lookAtModels(signal: AbortSignal): Promise<void> {
  const models = await admin.models(signal);
  models.sort((a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }));
  state.models.value = models;
}

/** What the server kept, where it keeps it; else what its metrics tell from here on. */
async function lookAtCharts(signal: AbortSignal): Promise<void> {
  const access = state.access.value;
  if (access?.admin && hasSeries) hasSeries = await lookAtSeries(signal);
  if (access?.metrics && !(access.admin && hasSeries)) await lookAtMetrics(signal);
}

async function lookAtSeries(signal: AbortSignal): Promise<boolean> {
  const known = state.keepsSeries.value ? state.points.value : [];
  const age = known.length ? Math.ceil((Date.now() - known.at(-1)!.at) / 1000) : SERIES_SECS;
  const series = await admin.series(Math.min(SERIES_SECS, Math.max(0, age) + 10), signal);
  batch(() => {
    state.keepsSeries.value = series !== null;
    if (series) state.points.value = withPoints(known, pointsOf(series));
  });
  return series !== null;
}

async function lookAtRunning(signal: AbortSignal): Promise<void> {
  if (!hasRunning) return;
  const running = await admin.running(signal);
  hasRunning = running !== null;
  state.running.value = running?.slice(0, MAX_REQUESTS) ?? null;
}

async function lookAtMetrics(signal: AbortSignal): Promise<void> {
  const text = await admin.metricsText(signal);
  metricsLength = text.length;
  const reading = readingOf(text, Date.now());
  const point = lastReading && pointOf(reading, lastReading);
  if (point) state.points.value = withPoint(state.points.value, point);
  lastReading = reading;
}

async function lookAtWork(signal: AbortSignal): Promise<void> {
  const newest = state.requests.value[0]?.n ?? 0;
  const [workers, stats, ended] = await Promise.all([
    admin.workers(signal),
    admin.stats(signal),
    admin.requests(newest, signal),
  ]);
  const restarted = stats.uptime_secs < (state.stats.value?.uptime_secs ?? 0);
  batch(() => {
    state.workers.value = workers;
    state.stats.value = stats;
    state.requests.value = restarted ? [] : withEnded(state.requests.value, ended);
    if (!state.access.value?.models) state.models.value = modelsOf(workers);
  });
}

/** The models of all machines, for an administrator's token that may not ask for them itself. */
export function modelsOf(workers: Worker[]): Model[] {
  const machines = new Map<string, string[]>();
  for (const { models, worker_name } of workers) {
    for (const model of models) machines.set(model, [...(machines.get(model) ?? []), worker_name]);
  }
  return [...machines].map(([id, names]) => ({ id, machines: names })).sort((a, b) => a.id.localeCompare(b.id, undefined, { numeric: true }));
}

/** The requests with those that ended since, newest first, each once. */
export function withEnded(known: EndedRequest[], ended: EndedRequest[]): EndedRequest[] {
  const newest = known[0]?.n ?? 0;
  const fresh = ended.filter(({ n }) => n > newest).sort((a, b) => b.n - a.n);
  return fresh.length ? [...fresh, ...known].slice(0, MAX_REQUESTS) : known;
}

async function lookAtKeys(signal: AbortSignal): Promise<void> {
  const keys = await keyList(signal);
  state.keyNames.value = new Map(keys.map(({ id, name }) => [id, name]));
}
