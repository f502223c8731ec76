import { batch, computed, signal } from "@preact/signals";
import { address } from "../api/address";
import { tokenHeld } from "../api/call";
import { Link, type LinkOptions, type LinkState } from "./link";
import { isObject, questionOf, sessionOf, textOf, type Message, type Question, type Session } from "./protocol";
import { Scout } from "./scout";

/** The most sessions and questions that are kept. */
const MAX_SESSIONS = 4096;
const MAX_QUESTIONS = 256;

/** The sessions of all nodes, the newest use first; `null` before the list came. */
export const sessions = signal<Session[] | null>(null);

/** What agents ask, by the questions' ids. */
export const questions = signal<ReadonlyMap<string, Question>>(new Map());

/** The names of the nodes, by their ids. */
export const nodes = signal<ReadonlyMap<string, string>>(new Map());

/** The connection's state, and why the server refused it. */
export const hubState = signal<LinkState>("away");
export const refusal = signal("");

/** The sessions whose agents ask something. */
export const asking = computed(() => new Set([...questions.value.values()].map(({ sessionId }) => sessionId)));

let hub: Link | null = null;
const scout = new Scout({ send: (message) => hub?.send(message) ?? false, sessions: () => sessions.value ?? [], found: replaceQuestions });

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
export function ask(message: Message, ...answers: string[]): Promise<Message> {
  return hub ? hub.ask(message, ...answers) : Promise.reject(new Error("The workspace is not open."));
}

function become(state: LinkState, words: string): void {
  batch(() => {
    hubState.value = state;
    refusal.value = words;
  });
}

function look(): void {
  const list = ask({ type: "list_sessions" }, "session_list").then(takeList);
  const cluster = ask({ type: "cluster_status" }, "cluster_status").then(takeCluster);
  // A connection that breaks meanwhile is made again, and asks again.
  void Promise.allSettled([list, cluster]);
}

function takeList(message: Message): void {
  const told = Array.isArray(message["sessions"]) ? message["sessions"].slice(0, MAX_SESSIONS) : [];
  sessions.value = inOrder(told.map(sessionOf).filter((each) => each !== null));
  forgetAnswered();
  scout.now();
}

function takeCluster(message: Message): void {
  const cluster = isObject(message["cluster"]) ? message["cluster"] : {};
  const peers = Array.isArray(cluster["peers"]) ? cluster["peers"].slice(0, 256) : [];
  nodes.value = new Map([cluster, ...peers].filter(isObject).map((each) => [textOf(each["node_id"]), textOf(each["name"]) || textOf(each["node_id"]).slice(0, 8)]));
}

function take(message: Message): void {
  scout.take(message);
  if (message.type === "session_list") takeList(message);
  else if (message.type === "session_killed") remove(textOf(message["session_id"]));
  else if (message.type === "cluster_status") takeCluster(message);
  else noteQuestion(message);
  const session = sessionOf(message["session"]);
  if (session) put(session);
}

function put(session: Session): void {
  const before = sessions.value ?? [];
  const known = before.find(({ id }) => id === session.id);
  const rest = before.filter(({ id }) => id !== session.id);
  sessions.value = inOrder([...rest, session].slice(-MAX_SESSIONS));
  if (session.status !== "running") forgetAnswered();
  else if (session.kind === "agent" && known?.status !== "running") scout.now();
}

function remove(id: string): void {
  sessions.value = (sessions.value ?? []).filter((session) => session.id !== id);
  forgetAnswered();
}

/** Sessions that run first, and then those that were used last. */
function inOrder(list: Session[]): Session[] {
  const rank = ({ status }: Session) => (status === "exited" ? 1 : 0);
  return list.sort((a, b) => rank(a) - rank(b) || b.lastActive.localeCompare(a.lastActive));
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

/** An agent asks only while it is in a turn. */
function forgetAnswered(): void {
  const running = new Set((sessions.value ?? []).filter(({ status }) => status === "running").map(({ id }) => id));
  forgetQuestions(({ sessionId }) => !running.has(sessionId));
}

function forgetQuestions(isOver: (question: Question) => boolean): void {
  const left = [...questions.value].filter(([, question]) => !isOver(question));
  if (left.length !== questions.value.size) questions.value = new Map(left);
}
