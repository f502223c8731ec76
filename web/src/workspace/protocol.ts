import type { ClientMessage as GeneratedMessage, ServerMessage, SessionInfo, SessionSnapshot, SessionStatus } from "../api/generated";
import type { Unsure } from "../api/types";

/** A message that the page sends. */
export type ClientMessage = Plain<GeneratedMessage>;

/** The message of this type. */
export type Sent<T extends ClientMessage["type"]> = Extract<ClientMessage, { type: T }>;

/** The same fields in one object, so that it may be read as a `Message`. */
type Plain<T> = { [Field in keyof T]: T[Field] };

/** The type of an answer. */
export type AnswerType = ServerMessage["type"];

/** What a message of this type has, as far as the server sent it. */
export type Answer<T extends AnswerType> = Unsure<Extract<ServerMessage, { type: T }>>;

/** A message that the server sent. What it has beside its type is read leniently. */
export interface Message {
  type: string;
  [field: string]: unknown;
}

/** A piece of a session's output. */
export interface Output {
  sessionId: string;
  seq: number;
  text: string;
}

/** The screen of a session, as of an output. */
export interface Snapshot {
  sessionId: string;
  seq: number;
  cols: number;
  rows: number;
  data: string;
}

/** What a session is. */
export interface Session {
  id: string;
  name: string;
  /** `agent`: a conversation, turn by turn; everything else is shown as a terminal. */
  kind: "agent" | "terminal" | "adopted";
  /** The program, or the agent's. */
  program: string;
  status: SessionStatus;
  node: string | null;
  reachable: boolean;
  directory: string;
  lastActive: string;
  lastSeq: number | null;
  exitCode: number | null;
  /** Whether lists leave it out unless somebody wants all. */
  hidden: boolean;
  /** How many of its questions are open; `null` where the server does not say. */
  asks: number | null;
  /** What it was marked with when it was made. */
  tags: string[];
  /** The port of a development server, once it listens. */
  port: number | null;
  /** The project and the team that it belongs to. */
  project: string | null;
  team: string | null;
}

/** An agent's question whether it may use a tool. */
export interface Question {
  sessionId: string;
  requestId: string;
  tool: string;
  input: unknown;
}

/** The most of a name or a directory that is shown, and the most tags of a session. */
const MAX_WORDS = 300;
const MAX_TAGS = 32;

const HEADER_BYTES = 25;
const OUTPUT_FRAME = 1;

/** The output in a binary frame; `null` for any other frame. */
export function outputOf(frame: ArrayBuffer): Output | null {
  if (frame.byteLength < HEADER_BYTES) return null;
  const view = new DataView(frame);
  if (view.getUint8(0) !== OUTPUT_FRAME) return null;
  const seq = Number(view.getBigUint64(17));
  return { sessionId: uuidOf(new Uint8Array(frame, 1, 16)), seq, text: new TextDecoder().decode(new Uint8Array(frame, HEADER_BYTES)) };
}

function uuidOf(bytes: Uint8Array): string {
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The message in a text frame; `null` for what is none. */
export function messageOf(text: string): Message | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && typeof value["type"] === "string" ? (value as Message) : null;
  } catch {
    return null;
  }
}

/** Whether something has fields; `T` names those that are read of it. */
export function isObject<T = Record<string, unknown>>(value: unknown): value is Unsure<T> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text field; empty where there is none. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** A session's description; `null` for what is none. */
export function sessionOf(value: unknown): Session | null {
  if (!isObject<SessionInfo>(value) || !textOf(value["id"])) return null;
  const type = isObject(value["kind"]) ? value["kind"] : {};
  const program = words(type["command"]) || words(type["provider"]) || words(value["provider"]) || "claude";
  return {
    id: textOf(value["id"]),
    name: words(value["name"]),
    kind: value["mode"] === "sdk" ? "agent" : value["mode"] === "adopted" ? "adopted" : "terminal",
    program,
    status: statusOf(value["status"]),
    node: words(value["node_id"]) || null,
    reachable: value["reachable"] !== false,
    directory: words(value["working_dir"]),
    lastActive: textOf(value["last_active"]),
    lastSeq: numberOf(value["last_seq"]),
    exitCode: numberOf(value["exit_code"]),
    hidden: value["hidden"] === true,
    asks: numberOf(value["asks"]),
    tags: Array.isArray(value["tags"]) ? value["tags"].slice(0, MAX_TAGS).map(words) : [],
    port: numberOf(value["dev_server_port"]),
    project: textOf(value["project_id"]) || null,
    team: textOf(value["team_id"]) || null,
  };
}

function words(value: unknown): string {
  return textOf(value).slice(0, MAX_WORDS);
}

function statusOf(value: unknown): SessionStatus {
  return value === "idle" || value === "detached" || value === "exited" ? value : "running";
}

/** The question in a `permission_request`. */
export function questionOf(message: Answer<"permission_request">): Question | null {
  const [sessionId, requestId] = [textOf(message["session_id"]), textOf(message["request_id"])];
  if (!sessionId || !requestId) return null;
  return { sessionId, requestId, tool: words(message["tool"]) || "a tool", input: message["input"] ?? null };
}

/** The snapshot in a `session_snapshot`, or in the field of a `session_history`. */
export function snapshotOf(value: unknown): Snapshot | null {
  if (!isObject<SessionSnapshot>(value)) return null;
  const [seq, cols, rows] = [numberOf(value["seq"]), numberOf(value["cols"]), numberOf(value["rows"])];
  if (seq === null || !isSize(cols, rows)) return null;
  return { sessionId: textOf(value["session_id"]), seq, cols: cols!, rows: rows!, data: textOf(value["data"]) };
}

/** Whether a terminal can have this size, by the server's bounds. */
export function isSize(cols: number | null, rows: number | null): boolean {
  return cols !== null && rows !== null && cols >= 20 && cols <= 1000 && rows >= 5 && rows <= 500;
}
