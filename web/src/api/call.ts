import { address } from "./address";
import { ApiError, asApiError, errorOf } from "./errors";

/** How long a call that streams nothing may take. */
const DEADLINE_MS = 10_000;

/** What a call needs beside its path. */
export interface Call {
  method?: "GET" | "POST" | "DELETE";
  /** Sent as JSON. */
  body?: unknown;
  /** Ends the call early; the deadline holds beside it. */
  signal?: AbortSignal;
  /** In milliseconds; 10 s unless said. */
  deadline?: number;
  headers?: Record<string, string>;
  /** This token instead of the one that the page holds; `null`: none. */
  token?: string | null;
  /** Whether the page's session goes with it; it does unless said. */
  session?: boolean;
}

/** Marks what the page itself sends. A page of another origin cannot send it along with a cookie. */
const PAGE_MARK = { "x-warren-page": "1" };

let heldToken: string | null = null;

/** The token that calls carry from here on; none where a cookie or nothing is needed. */
export function holdToken(token: string | null): void {
  heldToken = token;
}

/** The token that calls carry now. */
export const tokenHeld = () => heldToken;

/** The answer to a call, if its status is a good one; otherwise throws an `ApiError`. */
export async function call(path: string, options: Call = {}): Promise<Response> {
  const signal = withDeadline(options.signal, options.deadline ?? DEADLINE_MS);
  const answer = await send(path, options, signal);
  if (!answer.ok) throw await errorOf(answer);
  return answer;
}

/** The JSON of an answer. */
export async function callJson<T>(path: string, options: Call = {}): Promise<T> {
  const answer = await call(path, options);
  try {
    return (await answer.json()) as T;
  } catch (thrown) {
    if (thrown instanceof SyntaxError) throw new ApiError("The server's answer makes no sense.", answer.status);
    throw asApiError(thrown);
  }
}

/** Sends a request and returns whatever answer comes; the caller bounds it by the signal. */
export async function send(path: string, options: Call, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(address(path), {
      method: options.method ?? "GET",
      headers: headersOf(options),
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      signal,
      credentials: options.session === false ? "omit" : "same-origin",
      cache: "no-store",
      redirect: "error",
    });
  } catch (thrown) {
    if (signal.aborted && signal.reason?.name === "AbortError") throw signal.reason;
    throw asApiError(thrown);
  }
}

function headersOf(options: Call): Record<string, string> {
  const headers: Record<string, string> = { accept: "application/json", ...PAGE_MARK, ...options.headers };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  const token = options.token === undefined ? heldToken : options.token;
  if (token) headers["authorization"] = `Bearer ${token}`;
  return headers;
}

function withDeadline(signal: AbortSignal | undefined, ms: number): AbortSignal {
  const deadline = AbortSignal.timeout(ms);
  return signal ? AbortSignal.any([signal, deadline]) : deadline;
}
