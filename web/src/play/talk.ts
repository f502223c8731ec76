import { computed, signal } from "@preact/signals";
import { chat, type ChatRequest } from "../api/chat";
import { asApiError } from "../api/errors";
import type { RoomEntry } from "../api/rooms";
import { choiceOf, choose } from "../storage/choices";
import { isOpen, messagesFor, newAnswer, newConversation, newTurn, reopened, titleFrom, withAnswer, withPiece } from "./conversation";
import type { Answer, Conversation, Picture } from "./conversation";
import { keep, read, remove } from "./shelf";

/** How often an answer that is coming is drawn, in milliseconds between. */
const DRAW_MS = 33;

/** How often it is kept while it is coming. */
const KEEP_MS = 2000;

/** The conversation on the page. */
export const current = signal<Conversation>(fresh());

// What does not change with each word of an answer, so that only the answer is drawn thirty times a second.
export const currentId = computed(() => current.value.id);
export const currentLanes = computed(() => current.value.lanes);
export const hasBegun = computed(() => current.value.turns.length > 0);
export const busy = computed(() => isBusy(current.value));

/** Answers that are being made, by conversation, turn and lane. */
const running = new Map<string, AbortController>();

/** Conversations whose answers go on while another one is on the page. */
const live = new Map<string, Conversation>();

/** The room that is asked instead of the server, for a guest. */
let askedRoom: RoomEntry | undefined;

/** Has everything from here on asked in a room. */
export function askIn(room: RoomEntry): void {
  askedRoom = room;
}

const keyOf = (id: string, turn: string, lane: number) => `${id}/${turn}/${lane}`;

/** Shows a new conversation, with the models that were used last. */
export function startNew(): void {
  current.value = fresh();
}

function fresh(): Conversation {
  const lanes = [choiceOf("model") ?? ""];
  const second = choiceOf("secondModel");
  if (second) lanes.push(second);
  return newConversation(lanes, Date.now());
}

/** Shows a conversation; returns false when this browser has none of that id. */
export async function open(id: string): Promise<boolean> {
  if (current.value.id === id) return true;
  const found = live.get(id) ?? (await read(id));
  if (!found) return false;
  current.value = live.has(id) ? found : reopened(found);
  return true;
}

/** Takes over what another tab did, unless this one is at work in the same conversation. */
export async function reload(id: string): Promise<void> {
  const shown = current.value.id;
  if ((id !== shown && id !== "*") || live.has(shown) || !current.value.turns.length) return;
  const found = await read(shown);
  if (found) current.value = reopened(found);
}

/** Changes the conversation on the page, and keeps it if it has begun. */
export function change(by: Partial<Conversation>): void {
  const { id } = current.value;
  update(id, (conversation) => ({ ...conversation, ...by }));
  if (current.value.turns.length) void keep(current.value);
}

/** Sets the model of a lane, and remembers it. */
export function setModel(lane: number, model: string): void {
  choose(lane === 0 ? "model" : "secondModel", model);
  change({ lanes: current.value.lanes.map((old, i) => (i === lane ? model : old)) });
}

/** Puts a second model beside the first, or takes it away. */
export function setSecond(model: string | null): void {
  choose("secondModel", model);
  const first = current.value.lanes[0] ?? "";
  change({ lanes: model === null ? [first] : [first, model] });
}

/** Asks all lanes. */
export function ask(text: string, pictures: Picture[]): void {
  const { id, lanes, title, turns } = current.value;
  const turn = newTurn(text, pictures, lanes);
  update(id, (conversation) => ({
    ...conversation,
    title: title || titleFrom(text),
    updated: Date.now(),
    turns: [...turns, turn],
  }));
  void keep(current.value);
  lanes.forEach((_, lane) => void run(id, turn.id, lane));
}

/** Asks a lane again for its answer to a turn. What came after it is left out. */
export function askAgain(turnId: string, lane: number): void {
  const { id, turns, lanes } = current.value;
  const model = lanes[lane] ?? lanes[0] ?? "";
  const at = turns.findIndex((turn) => turn.id === turnId);
  if (at < 0 || !model) return;
  stop();
  update(id, (conversation) => withAnswer({ ...conversation, turns: turns.slice(0, at + 1) }, turnId, lane, newAnswer(model)));
  void run(id, turnId, lane);
}

/** Takes a turn and all after it back; returns what was asked, to be changed and sent anew. */
export function takeBack(turnId: string): { text: string; pictures: Picture[] } | null {
  const { turns } = current.value;
  const at = turns.findIndex((turn) => turn.id === turnId);
  const turn = turns[at];
  if (!turn) return null;
  stop();
  change({ turns: turns.slice(0, at) });
  return { text: turn.text, pictures: turn.pictures };
}

/** Stops the answers of the conversation on the page: their connections are closed, and the machines stop. */
export function stop(): void {
  const prefix = `${current.value.id}/`;
  for (const [key, control] of running) if (key.startsWith(prefix)) control.abort();
}

/** Deletes a conversation and stops its answers. */
export async function discard(id: string): Promise<void> {
  for (const [key, control] of running) if (key.startsWith(`${id}/`)) control.abort();
  live.delete(id);
  await remove(id);
  if (current.value.id === id) startNew();
}

/** Whether an answer of a conversation is being made. */
export function isBusy(conversation: Conversation): boolean {
  return conversation.turns.at(-1)?.answers.some(isOpen) ?? false;
}

function update(id: string, how: (conversation: Conversation) => Conversation): void {
  const old = current.value.id === id ? current.value : live.get(id);
  if (!old) return;
  const next = how(old);
  if (live.has(id)) live.set(id, next);
  if (current.value.id === id) current.value = next;
}

async function run(id: string, turnId: string, lane: number): Promise<void> {
  const conversation = current.value;
  const control = new AbortController();
  const key = keyOf(id, turnId, lane);
  running.set(key, control);
  live.set(id, conversation);
  const answer = await answered(conversation, turnId, lane, control.signal, (coming) =>
    update(id, (now) => withAnswer(now, turnId, lane, coming)),
  );
  update(id, (now) => withAnswer({ ...now, updated: Date.now() }, turnId, lane, answer));
  running.delete(key);
  const last = live.get(id);
  if (last && ![...running.keys()].some((other) => other.startsWith(`${id}/`))) live.delete(id);
  if (last) void keep(last);
}

/** Makes an answer; `draw` is called with what has come, some thirty times a second at most. */
async function answered(
  conversation: Conversation, turnId: string, lane: number, stopped: AbortSignal, draw: (answer: Answer) => void,
): Promise<Answer> {
  const model = conversation.lanes[lane] ?? "";
  const { parameters, route } = conversation;
  const messages = messagesFor(conversation, lane, turnId);
  const request: ChatRequest = { model, messages, parameters, route: route || undefined, room: askedRoom };
  const began = performance.now();
  const ms = () => performance.now() - began;
  let answer = newAnswer(model);
  let timer: ReturnType<typeof setTimeout> | undefined;
  let kept = began;
  const drawSoon = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      draw(answer);
      if (performance.now() - kept > KEEP_MS) {
        kept = performance.now();
        const shown = live.get(conversation.id);
        if (shown) void keep(shown);
      }
    }, DRAW_MS);
  };
  try {
    for await (const piece of chat(request, stopped)) {
      answer = withPiece(answer, piece, ms());
      drawSoon();
    }
    return { ...answer, state: "done", why: null, totalMs: ms() };
  } catch (thrown) {
    return failedWith({ ...answer, why: null, totalMs: ms() }, thrown, stopped);
  } finally {
    clearTimeout(timer);
  }
}

function failedWith(answer: Answer, thrown: unknown, stopped: AbortSignal): Answer {
  if (stopped.aborted) return { ...answer, state: "stopped" };
  const error = asApiError(thrown);
  return { ...answer, state: "failed", error: { message: error.message, advice: error.advice } };
}
