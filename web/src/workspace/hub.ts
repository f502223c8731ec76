import { batch, computed, signal } from "@preact/signals";
import { address } from "../api/address";
import { call, tokenHeld } from "../api/call";
import { asApiError } from "../api/errors";
import type { ClusterMember, ClusterStatus } from "../api/generated";
import type { Unsure } from "../api/types";
import { Link, type LinkOptions, type LinkState } from "./link";
import { inOrder, without, withSession } from "./order";
import { isObject, questionOf, sessionOf, textOf, type Answer, type AnswerType, type ClientMessage, type Message, type Question, type Session } from "./protocol";
import { Scout } from "./scout";

/** The most sessions and questions that are kept. */
const MAX_SESSIONS = 20_000;
const MAX_QUESTIONS = 256;

/** The status of an answer that the server has no workspace. */
const NO_WORKSPACE = 501;

/** The sessions of all nodes, hidden ones too, the newest use first; `null` before the list came. */
export const sessions = signal<Session[] | null>(null);

/** What agents ask, by the questions' ids. */
export const questions = signal<ReadonlyMap<string, Question>>(new Map());

/** The names of the nodes, by their ids. */
export const nodes = signal<ReadonlyMap<string, string>>(new Map());

/** The node that serves this page; `null` without a cluster. It is the first that the cluster's status names. */
export const ownNode = computed(() => nodes.value.keys().next().value || null);

/** The connection's state, and why the server refused it. */
export const hubState = signal<LinkState>("away");
export const refusal = signal("");

/** The sessions whose agents ask something, as the server says or as they were heard to. */
export const asking = computed(() => {
  const told = (sessions.value ?? []).filter(({ asks }) => asks).map(({ id }) => id);
  const heard = [...questions.value.values()].map(({ sessionId }) => sessionId);
  return new Set([...told, ...heard]);
});

/** Who else takes what the workspace tells by itself. */
const listeners = new Set<(message: Message) => void>();

let hub: Link | null = null;
const scout = new Scout({ send: (message) => hub?.send(message) ?? false, sessions: () => sessions.value ?? [], known: questionsOf, found: replaceQuestions });

/** The options that every connection of the page has. */
export function linkOptions(): Pick<LinkOptions, "url" | "token"> {
  return { url: () => address("ws").replace(/^http/, "ws"), token: () => tokenHeld() ?? "" };
}

/** Follows the workspace from here on. */
export function followWorkspace(): void {
  if (hub) return;
  hub = new Link({ ...linkOptions(), onOpen: look, onMessage: take, onState: become });
  hub.start();
  scout.start();
}

/** Stops, and forgets what was told. */
export function leaveWorkspace(): void {
  hub?.stop();
  hub = null;
  scout.stop();
  batch(() => {
    sessions.value = null;
    questions.value = new Map();
    nodes.value = new Map();
    hubState.value = "away";
  });
}

/** Tries again after a refusal. */
export function retryWorkspace(): void {
  leaveWorkspace();
  followWorkspace();
}

/** Asks the workspace for something. */
export function ask(message: ClientMessage, ...answers: AnswerType[]): Promise<Message> {
  return hub ? hub.ask(message, ...answers) : Promise.reject(new Error("The workspace is not open."));
}

/** Takes what the workspace tells from here on, too; returns how to stop. */
export function listen(listener: (message: Message) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function become(state: LinkState, words: string): void {
  batch(() => {
    hubState.value = state;
    refusal.value = words;
  });
  if (state === "away" && sessions.value === null) void askWhy();
}

/** Browsers do not tell a page why a socket was not opened. A server without a workspace says it to a plain request. */
async function askWhy(): Promise<void> {
  const asked = hub;
  const error = await call("ws").then(() => null, asApiError);
  if (error?.status !== NO_WORKSPACE || hub !== asked) return;
  asked?.stop();
  become("refused", error.message);
}

/** Asks for all sessions again: of hidden ones there is no news to those who are not attached. */
export function lookAgain(): Promise<void> {
  return ask({ type: "list_sessions", include_hidden: true }, "session_list").then(takeList);
}

function look(): void {
  const list = lookAgain();
  const cluster = ask({ type: "cluster_status" }, "cluster_status").then(takeCluster);
  // A connection that breaks meanwhile is made again, and asks again.
  void Promise.allSettled([list, cluster]);
}

function takeList(message: Answer<"session_list">): void {
  const told = Array.isArray(message["sessions"]) ? message["sessions"].slice(0, MAX_SESSIONS) : [];
  sessions.value = inOrder(told.map(sessionOf).filter((each) => each !== null));
  forgetAnswered();
  scout.now();
}

function takeCluster(message: Answer<"cluster_status">): void {
  const cluster: Unsure<ClusterStatus> = isObject(message["cluster"]) ? message["cluster"] : {};
  const peers = Array.isArray(cluster["peers"]) ? cluster["peers"].slice(0, 256) : [];
  nodes.value = new Map([cluster, ...peers].filter(isObject<ClusterMember>).map((each) => [textOf(each["node_id"]), textOf(each["name"]) || textOf(each["node_id"]).slice(0, 8)]));
}

function take(message: Message): void {
  scout.take(message);
  if (message.type === "session_list") takeList(message);
  else if (message.type === "session_killed") remove(textOf(message["session_id"]));
  else if (message.type === "cluster_status") takeCluster(message);
  else noteQuestion(message);
  const session = sessionOf(message["session"]);
  if (session) put(session);
  for (const listener of listeners) listener(message);
}

/** Takes what another connection is told of a hidden session: only those who are attached are told. */
export function noteHidden(message: Message): void {
  const session = sessionOf(message["session"]);
  if (session?.hidden) put(session);
  if (message.type === "session_killed") remove(textOf(message["session_id"]));
}

function put(session: Session): void {
  const before = sessions.value ?? [];
  const known = before.find(({ id }) => id === session.id);
  sessions.value = withSession(before, session).slice(0, MAX_SESSIONS);
  if (session.asks === 0) replaceQuestions(session.id, []);
  if (session.status !== "running") forgetAnswered();
  else if (session.kind === "agent" && (session.asks || known?.status !== "running")) scout.now();
}

function remove(id: string): void {
  sessions.value = without(sessions.value ?? [], id);
  forgetAnswered();
}

/** Takes what a message says of questions, whichever connection it came by. */
export function noteQuestion(message: Message): void {
  if (message.type === "permission_request") {
    const question = questionOf(message);
    if (question && questions.value.size < MAX_QUESTIONS) questions.value = new Map(questions.value).set(question.requestId, question);
  } else if (message.type === "permission_resolved") {
    forgetQuestions(({ requestId }) => requestId === message["request_id"]);
  }
}

/** What a session's agent asks now, all of it. */
export function replaceQuestions(sessionId: string, open: Question[]): void {
  const ids = new Set(open.map(({ requestId }) => requestId));
  forgetQuestions((each) => each.sessionId === sessionId && !ids.has(each.requestId));
}

/** How many questions of a session are known. */
function questionsOf(sessionId: string): number {
  return [...questions.value.values()].filter((each) => each.sessionId === sessionId).length;
}

/** An agent asks only while it is in a turn. */
function forgetAnswered(): void {
  if (!questions.value.size) return;
  const running = new Set((sessions.value ?? []).filter(({ status }) => status === "running").map(({ id }) => id));
  forgetQuestions(({ sessionId }) => !running.has(sessionId));
}

function forgetQuestions(isOver: (question: Question) => boolean): void {
  const left = [...questions.value].filter(([, question]) => !isOver(question));
  if (left.length !== questions.value.size) questions.value = new Map(left);
}
