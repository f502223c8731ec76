import { computed, signal } from "@preact/signals";
import type { Access } from "../api/access";
import type { ApiError } from "../api/errors";
import type { EndedRequest, Health, Model, RunningRequest, Stats, Worker } from "../api/types";
import type { Point } from "./series";

/** What the page may do; `null` while it is signed out. */
export const access = signal<Access | null>(null);

/** Whether the page may change things in the workspace, as far as that is known. */
export const mayWork = computed(() => access.value?.workspace !== "look");

/** Why the sign-in page is shown, where there is something to say. */
export const signInError = signal<ApiError | null>(null);

/** Whether the first question of what is allowed is still open. */
export const entering = signal(true);

/** The last answer of `/health`. */
export const health = signal<Health | null>(null);

/** The models that can be asked; `null` before the first answer. */
export const models = signal<Model[] | null>(null);

/** All workers, for administrators; otherwise those of `/health`. */
export const workers = signal<Worker[] | null>(null);

/** Queues, for administrators. */
export const stats = signal<Stats | null>(null);

/** The requests that ended last, newest first. */
export const requests = signal<EndedRequest[]>([]);

/** The requests that wait or run now; `null` where the server does not say. */
export const running = signal<RunningRequest[] | null>(null);

/** Names of keys by their ids. */
export const keyNames = signal<Map<string, string>>(new Map());

/** The points of the live charts. */
export const points = signal<Point[]>([]);

/** Whether the points are the server's own, which knows more than its metrics say. */
export const keepsSeries = signal(false);

/** Why the server does not answer; `null` while it does. */
export const trouble = signal<ApiError | null>(null);

/** The version of the server that this page was opened with. */
export const firstVersion = signal<string | null>(null);

/** The version that runs now, if it is another one. */
export const newVersion = computed(() => {
  const now = health.value?.version;
  return now && firstVersion.value && now !== firstVersion.value ? now : null;
});

/** Forgets everything that the server told, for the next session. */
export function forgetServer(): void {
  health.value = null;
  models.value = null;
  workers.value = null;
  stats.value = null;
  requests.value = [];
  running.value = null;
  keepsSeries.value = false;
  keyNames.value = new Map();
  points.value = [];
  trouble.value = null;
  firstVersion.value = null;
}
