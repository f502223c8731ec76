import { part } from "./address";
import { callJson, send, type Call } from "./call";
import { ApiError, asApiError, errorOf } from "./errors";
import type { AnswerMetrics, CreatedRoom, CreateRoom, LlmFailed, ParticipantInfo, RoomSummary } from "./generated";
import { itemsOf, SilentStream } from "./sse";
import type { Lenient } from "./types";

/** How long a room's stream of events may be silent, in milliseconds. A comment comes every ten seconds. */
const SILENCE_MS = 35_000;

/** A room as `/v1/rooms` has it. Its codes are its credentials. */
export type Room = Lenient<RoomSummary, "id" | "code" | "name" | "createdAt" | "passwordProtected">;

/** Somebody who lends models in a room. */
export type Participant = Lenient<ParticipantInfo, "id" | "nickname" | "model" | "status">;

/** One event of a room, with as much of its data as the page reads. */
export interface RoomEvent {
  name: string;
  data: Partial<Pick<LlmFailed, "participantId" | "nickname" | "model" | "error">> & { metrics?: Partial<AnswerMetrics> };
}

/** What opens a room: one of its codes, and its password where it has one. */
export interface RoomEntry {
  code: string;
  password: string | null;
}

/** The rooms that the caller may see. */
export const rooms = (signal?: AbortSignal) => dataOf<Room[]>("v1/rooms", { signal });

/** Makes a room. The host's token, which closes it, is in this answer only. */
export const createRoom = (room: CreateRoom) => dataOf<CreatedRoom>("v1/rooms", { method: "POST", body: room });

/** Closes a room. Needs the host's token, or the scope `admin`. */
export function closeRoom(code: string, hostToken: string | null): Promise<unknown> {
  const headers: Record<string, string> = hostToken ? { "x-warren-host-token": hostToken } : {};
  return dataOf(`v1/rooms/${part(code)}`, { method: "DELETE", headers });
}

/** A room, for a caller that knows its code. */
export const room = (entry: RoomEntry, signal: AbortSignal) => dataOf<Room>(`v1/rooms/${part(entry.code)}`, { signal, session: false, token: null });

/** Who lends models in a room. */
export function participants(entry: RoomEntry, signal: AbortSignal): Promise<Participant[]> {
  const { path, call } = opened(entry, `v1/rooms/${part(entry.code)}/participants`);
  return dataOf<Participant[]>(path, { ...call, signal });
}

/** What happens in a room from now on, until the stream ends. It throws when it breaks off or says nothing for too long. */
export async function* roomEvents(entry: RoomEntry, signal: AbortSignal): AsyncGenerator<RoomEvent> {
  const { path, call } = opened(entry, `v1/rooms/${part(entry.code)}/events?ids=true`);
  const answer = await send(path, { ...call, headers: { accept: "text/event-stream" } }, signal);
  if (!answer.ok) throw await errorOf(answer);
  if (!answer.body) throw new ApiError("The server's answer is empty.", answer.status);
  try {
    for await (const item of itemsOf(answer.body, SILENCE_MS)) {
      if ("event" in item) yield { name: item.event.name, data: eventData(item.event.data) };
    }
  } catch (thrown) {
    if (thrown instanceof SilentStream) throw new ApiError(thrown.message, 0, "silent");
    throw asApiError(thrown);
  }
}

/**
 * A path and how it is called in a room. Neither session nor token of the page goes with it: a room takes whatever
 * credential it is shown for its password, and a guest is nobody's.
 */
export function opened({ password }: RoomEntry, path: string): { path: string; call: Call } {
  if (password === null) return { path, call: { session: false, token: null } };
  // A header holds no other characters; the server reads the password from the query, too.
  if (/^[\x21-\x7e]+$/.test(password)) return { path, call: { session: false, token: password } };
  const query = `${path.includes("?") ? "&" : "?"}password=${part(password)}`;
  return { path: path + query, call: { session: false, token: null } };
}

/** The event's own fields; the protocol has them in `data` of what is sent. */
export function eventData(text: string): RoomEvent["data"] {
  try {
    const value = JSON.parse(text) as { data?: unknown } | null;
    return value?.data && typeof value.data === "object" ? value.data : {};
  } catch {
    return {};
  }
}

async function dataOf<T>(path: string, call: Call): Promise<T> {
  return (await callJson<{ data: T }>(path, call)).data;
}
