import { signal } from "@preact/signals";
import { asApiError } from "../api/errors";
import { linkOptions } from "../workspace/hub";
import { Link } from "../workspace/link";
import type { ClientMessage } from "../workspace/protocol";
import { waitedOf, type Waited } from "./team";
import { takeWaited } from "./teams";

/** How long the server may keep one wait, and how much longer its answer may take, in milliseconds. */
const ROUND_MS = 60_000;
const MORE_MS = 15_000;

/** How a wait is: `null` when nobody waits. */
export interface Waiting {
  team: string;
  /** The workers that have not reported. */
  pending: string[];
  /** What came of it, once it is over; empty while it goes on. */
  outcome: string;
}

/** The wait of this page. */
export const waiting = signal<Waiting | null>(null);

let link: Link | null = null;
let waitId: string | null = null;

/** Waits for the workers of a team that have work. The connection is its own: a wait takes as long as the work. */
export function startWait(team: string): void {
  stopWait();
  waitId = null;
  waiting.value = { team, pending: [], outcome: "" };
  const own = new Link({ ...linkOptions(), onOpen: () => void round(own, team, waitId ? ROUND_MS : 0), onMessage: () => {} });
  link = own;
  own.start();
}

/** Waits no longer. The workers work on. */
export function stopWait(): void {
  link?.stop();
  link = null;
  waiting.value = null;
}

/** The first round ends at once and tells the wait's id: by it no result is lost if the connection is. */
async function round(own: Link, team: string, timeout: number): Promise<void> {
  try {
    const message: ClientMessage = { type: "team_wait", team_id: team, for_session_ids: null, timeout_ms: timeout, wait_id: waitId };
    const waited = waitedOf(await own.askWithin(timeout + MORE_MS, message, "team_wait_result"));
    if (link === own) took(own, team, waited);
  } catch (thrown) {
    if (link === own && own.isOpen) end(team, asApiError(thrown).message);
  }
}

function took(own: Link, team: string, waited: Waited): void {
  takeWaited(waited.results);
  waitId = waited.waitId;
  if (!waited.pending.length || !waitId) return end(team, waited.results.length ? "All of them have reported." : "Nobody has work.");
  waiting.value = { team, pending: waited.pending, outcome: "" };
  void round(own, team, ROUND_MS);
}

function end(team: string, outcome: string): void {
  stopWait();
  waiting.value = { team, pending: [], outcome };
}
