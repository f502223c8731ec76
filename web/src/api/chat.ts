import { part } from "./address";
import { send, type Call } from "./call";
import { ApiError, asApiError, errorOf, wordsOf } from "./errors";
import { opened, type RoomEntry } from "./rooms";
import { itemsOf, SilentStream } from "./sse";

/** How long an answer's stream may be silent. The server sends comments far more often, also while a request waits. */
const SILENCE_MS = 180_000;

/** A piece of a message: text, or a picture as a data URL. */
export type ContentPart = { type: "text"; text: string } | { type: "image_url"; image_url: { url: string } };

/** One message of a conversation, as `/v1/chat/completions` takes it. */
export interface ChatMessage {
  role: "system" | "user" | "assistant";
  content: string | ContentPart[];
}

/** What is asked, without the messages. Absent parameters are left to the model. */
export interface Parameters {
  temperature?: number;
  top_p?: number;
  max_tokens?: number;
  seed?: number;
  stop?: string[];
}

/** A request for an answer. */
export interface ChatRequest {
  model: string;
  messages: ChatMessage[];
  parameters: Parameters;
  /** How far it may go: `local-only`, `prefer-local`, `mesh`; the server's own setting when absent. */
  route?: string;
  /** The room that is asked instead of the server. */
  room?: RoomEntry;
}

/** What comes while an answer is made. */
export type ChatPiece =
  | { kind: "text"; text: string }
  | { kind: "thought"; text: string }
  | { kind: "waiting"; why: string }
  | { kind: "finish"; reason: string }
  | { kind: "usage"; prompt: number; completion: number }
  | { kind: "request"; id: string };

/** The JSON of a request. */
export function bodyOf(request: ChatRequest): Record<string, unknown> {
  const { model, messages, parameters } = request;
  const set = Object.entries(parameters).filter(([, value]) => value !== undefined);
  return {
    model,
    messages,
    ...Object.fromEntries(set),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** Asks a model and yields its answer as it comes. Aborting `signal` hangs up, which stops the machine's work. */
export async function* chat(request: ChatRequest, signal: AbortSignal): AsyncGenerator<ChatPiece> {
  const { path, call } = whereOf(request.room);
  const answer = await send(path, { ...call, method: "POST", body: bodyOf(request), headers: headersOf(request) }, signal);
  if (!answer.ok) throw await errorOf(answer);
  const id = answer.headers.get("x-request-id");
  if (id) yield { kind: "request", id };
  if (!answer.body) throw new ApiError("The server's answer is empty.", answer.status);
  yield* piecesOf(answer.body, signal);
}

/** The pieces of an answer's stream. It throws when the stream ends with an error, or without its end. */
export async function* piecesOf(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<ChatPiece> {
  let finished = false;
  try {
    for await (const item of itemsOf(body, SILENCE_MS)) {
      if ("comment" in item) {
        if (item.comment.startsWith("waiting")) yield { kind: "waiting", why: item.comment };
        continue;
      }
      if (item.event.data === "[DONE]") return;
      for (const piece of piecesIn(item.event.data)) {
        if (piece.kind === "finish") finished = true;
        yield piece;
      }
    }
  } catch (thrown) {
    if (signal.aborted) throw signal.reason;
    if (thrown instanceof SilentStream) throw new ApiError(thrown.message, 0, "silent");
    if (thrown instanceof TypeError) throw new ApiError("The connection broke in the middle of the answer.", 0, "cut_off");
    throw asApiError(thrown);
  }
  if (!finished) throw new ApiError("The answer was cut off before its end.", 0, "cut_off");
}

function whereOf(room: RoomEntry | undefined): { path: string; call: Call } {
  const path = "v1/chat/completions";
  return room ? opened(room, `rooms/${part(room.code)}/${path}`) : { path, call: {} };
}

interface Chunk {
  error?: unknown;
  choices?: {
    delta?: { content?: unknown; reasoning_content?: unknown; reasoning?: unknown };
    finish_reason?: unknown;
  }[];
  usage?: { prompt_tokens?: unknown; completion_tokens?: unknown } | null;
}

/** What one event of the stream says. An event that is no JSON is passed over, an error is thrown. */
export function piecesIn(data: string): ChatPiece[] {
  const chunk = parsed(data);
  if (!chunk) return [];
  if (chunk.error) throw errorIn(data);
  const pieces: ChatPiece[] = [];
  const choice = chunk.choices?.[0];
  const thought = choice?.delta?.reasoning_content ?? choice?.delta?.reasoning;
  if (typeof thought === "string" && thought) pieces.push({ kind: "thought", text: thought });
  const text = choice?.delta?.content;
  if (typeof text === "string" && text) pieces.push({ kind: "text", text });
  if (typeof choice?.finish_reason === "string") pieces.push({ kind: "finish", reason: choice.finish_reason });
  const usage = chunk.usage;
  if (usage && typeof usage.completion_tokens === "number") {
    pieces.push({ kind: "usage", prompt: Number(usage.prompt_tokens) || 0, completion: usage.completion_tokens });
  }
  return pieces;
}

function parsed(data: string): Chunk | null {
  try {
    const value: unknown = JSON.parse(data);
    return value && typeof value === "object" ? (value as Chunk) : null;
  } catch {
    return null;
  }
}

function errorIn(data: string): ApiError {
  const { message, code } = wordsOf(data);
  return new ApiError(message ?? "The answer ended with an error.", 500, code);
}

function headersOf(request: ChatRequest): Record<string, string> {
  return request.route ? { "x-warren-route": request.route } : {};
}
