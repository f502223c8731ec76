import type { ChatMessage, ChatPiece, ContentPart, Parameters } from "../api/chat";

/** A picture that goes with a question, as a data URL. */
export interface Picture {
  url: string;
  name: string;
}

/** How an answer stands. */
export type AnswerState = "waiting" | "coming" | "done" | "stopped" | "failed";

/** What one model answered to one question. */
export interface Answer {
  model: string;
  state: AnswerState;
  text: string;
  /** What the model thought before it answered, where its server tells. */
  thought: string;
  /** What it waits for, in the server's words. */
  why: string | null;
  error: { message: string; advice: string | null } | null;
  /** Milliseconds from the question to the first piece of the answer. */
  firstMs: number | null;
  /** Milliseconds from the question to the end. */
  totalMs: number | null;
  prompt: number | null;
  /** Tokens of the answer as the server counts them. */
  completion: number | null;
  /** Pieces that came: about as many as tokens. */
  pieces: number;
  finish: string | null;
  requestId: string | null;
}

/** A question, and the answer of each lane. */
export interface Turn {
  id: string;
  text: string;
  pictures: Picture[];
  answers: Answer[];
}

/** A conversation with one model, or with two side by side: each lane has its own history. */
export interface Conversation {
  id: string;
  title: string;
  created: number;
  updated: number;
  system: string;
  parameters: Parameters;
  /** How far its requests may go; empty: as the server is set. */
  route: string;
  /** The model of each lane. */
  lanes: string[];
  turns: Turn[];
}

/** An id that no other conversation or turn has. It needs no secure context, as `randomUUID` does. */
export function freshId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function newConversation(lanes: string[], now: number): Conversation {
  return { id: freshId(), title: "", created: now, updated: now, system: "", parameters: {}, route: "", lanes, turns: [] };
}

export function newTurn(text: string, pictures: Picture[], lanes: string[]): Turn {
  return { id: freshId(), text, pictures, answers: lanes.map(newAnswer) };
}

export function newAnswer(model: string): Answer {
  return {
    model, state: "waiting", text: "", thought: "", why: null, error: null, firstMs: null, totalMs: null,
    prompt: null, completion: null, pieces: 0, finish: null, requestId: null,
  };
}

/** The answer with the next piece, which came `ms` after the question. */
export function withPiece(answer: Answer, piece: ChatPiece, ms: number): Answer {
  const begun = { state: "coming" as const, why: null, firstMs: answer.firstMs ?? ms, pieces: answer.pieces + 1 };
  switch (piece.kind) {
    case "text":
      return { ...answer, ...begun, text: answer.text + piece.text };
    case "thought":
      return { ...answer, ...begun, thought: answer.thought + piece.text };
    case "waiting":
      return answer.state === "waiting" ? { ...answer, why: piece.why } : answer;
    case "finish":
      return { ...answer, finish: piece.reason };
    case "usage":
      return { ...answer, prompt: piece.prompt, completion: piece.completion };
    case "request":
      return { ...answer, requestId: piece.id };
  }
}

/** Whether an answer is still being made. */
export function isOpen(answer: Answer): boolean {
  return answer.state === "waiting" || answer.state === "coming";
}

/** Tokens a second after the first one; `null` before there is anything to measure. */
export function speedOf(answer: Answer, nowMs: number): number | null {
  if (answer.firstMs === null) return null;
  const seconds = ((answer.totalMs ?? nowMs) - answer.firstMs) / 1000;
  const tokens = answer.completion ?? answer.pieces;
  return seconds < 0.05 || tokens < 2 ? null : (tokens - 1) / seconds;
}

/** The messages that a lane's next answer is asked with, up to and with the turn. */
export function messagesFor(conversation: Conversation, lane: number, turnId: string): ChatMessage[] {
  const messages: ChatMessage[] = [];
  if (conversation.system.trim()) messages.push({ role: "system", content: conversation.system });
  for (const turn of conversation.turns) {
    messages.push({ role: "user", content: contentOf(turn) });
    if (turn.id === turnId) break;
    const answer = turn.answers[lane] ?? turn.answers[0];
    if (answer?.text) messages.push({ role: "assistant", content: answer.text });
  }
  return messages;
}

function contentOf(turn: Turn): string | ContentPart[] {
  if (!turn.pictures.length) return turn.text;
  const pictures = turn.pictures.map(({ url }): ContentPart => ({ type: "image_url", image_url: { url } }));
  return turn.text ? [{ type: "text", text: turn.text }, ...pictures] : pictures;
}

/** A title from the first question. */
export function titleFrom(text: string): string {
  const line = text.trim().split("\n")[0]!.trim();
  return (line.length > 60 ? `${line.slice(0, 59).trimEnd()}…` : line) || "Picture";
}

/** The conversation with one answer changed. Turns that do not change stay the same objects. */
export function withAnswer(conversation: Conversation, turnId: string, lane: number, answer: Answer): Conversation {
  const turns = conversation.turns.map((turn) =>
    turn.id === turnId ? { ...turn, answers: turn.answers.map((old, i) => (i === lane ? answer : old)) } : turn,
  );
  return { ...conversation, turns };
}

/** A stored conversation as it is shown: answers that were open when their page ended were cut off. */
export function reopened(conversation: Conversation): Conversation {
  const turns = conversation.turns.map((turn) => ({ ...turn, answers: turn.answers.map(cutOff) }));
  return { ...conversation, turns };
}

function cutOff(answer: Answer): Answer {
  return isOpen(answer) ? { ...answer, state: "stopped", why: null } : answer;
}
