import type { InboxMessage, Team as ToldTeam, WorkerResult } from "../api/generated";
import { isObject, textOf, type Answer, type Session } from "../workspace/protocol";
import { stateOf, titleOf } from "../workspace/words";

/** A leader and its workers, each an agent. */
export interface Team {
  id: string;
  name: string;
  leader: string;
  /** The workers' sessions, the oldest first. */
  workers: string[];
  isActive: boolean;
  lastActive: string;
}

/** What came of a worker's work. */
export interface Result {
  team: string;
  worker: string;
  success: boolean;
  text: string;
}

/** What came of a wait so far. */
export interface Waited {
  results: Result[];
  pending: string[];
  /** By which to wait on; `null` once nothing is left. */
  waitId: string | null;
}

/** A message that a member was sent. */
export interface Letter {
  seq: number;
  from: string;
  text: string;
  at: string;
}

/** The most of a name, of a text and of a list that is kept. */
const MAX_NAME = 300;
export const MAX_TEXT = 100_000;
const MAX_MEMBERS = 1024;

/** A team's description; `null` for what is none. */
export function teamOf(value: unknown): Team | null {
  if (!isObject<ToldTeam>(value) || !textOf(value["id"])) return null;
  return {
    id: textOf(value["id"]),
    name: textOf(value["name"]).slice(0, MAX_NAME) || "a team",
    leader: textOf(value["leader_session_id"]),
    workers: idsOf(value["worker_session_ids"]),
    isActive: value["status"] !== "inactive",
    lastActive: textOf(value["last_active"]),
  };
}

/** The result in a `worker_result_received`, or in a wait's answer. */
export function resultOf(value: unknown): Result | null {
  if (!isObject<WorkerResult>(value) || !textOf(value["worker_session_id"])) return null;
  return { team: textOf(value["team_id"]), worker: textOf(value["worker_session_id"]), success: value["success"] === true, text: textOf(value["result"]).slice(0, MAX_TEXT) };
}

/** What a `team_wait_result` tells. */
export function waitedOf(message: Answer<"team_wait_result">): Waited {
  const told = Array.isArray(message["results"]) ? message["results"].slice(0, MAX_MEMBERS) : [];
  return { results: told.map(resultOf).filter((each) => each !== null), pending: idsOf(message["pending_workers"]), waitId: textOf(message["wait_id"]) || null };
}

/** The messages in a `team_inbox`. */
export function lettersOf(message: Answer<"team_inbox">): Letter[] {
  const told = Array.isArray(message["messages"]) ? message["messages"] : [];
  return told.filter(isObject<InboxMessage>).map((each) => ({ seq: Number(each["seq"]) || 0, from: textOf(each["from_session_id"]), text: textOf(each["payload"]).slice(0, MAX_TEXT), at: textOf(each["delivered_at"]) }));
}

/** What a member is called. */
export function memberName(id: string, session: Session | undefined): string {
  return session ? titleOf(session) : `session ${id.slice(0, 8)}`;
}

/** What a member does now, and how that looks. */
export function memberState(session: Session | undefined, asks: boolean): ReturnType<typeof stateOf> {
  return session ? stateOf(session, asks) : { words: "its session is gone", look: "" };
}

/** What a team does now: how many of its members work, in words. */
export function wordsOfTeam({ workers, isActive }: Team, members: (Session | undefined)[]): string {
  if (!isActive) return "has ended";
  const busy = members.filter((each) => each?.status === "running").length;
  const size = workers.length === 0 ? "no workers" : workers.length === 1 ? "1 worker" : `${workers.length} workers`;
  return `${size}, ${busy === 0 ? "nobody works" : busy === 1 ? "1 member works" : `${busy} members work`}`;
}

function idsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string").slice(0, MAX_MEMBERS) : [];
}
