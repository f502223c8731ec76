/** What went wrong with a request, and what the person can do about it. */
export class ApiError extends Error {
  constructor(
    /** What happened, in the server's own words where there are any. */
    message: string,
    /** The HTTP status; 0 when no answer came. */
    readonly status: number,
    /** The server's code for it, such as `queue_full`. */
    readonly code: string | null = null,
    /** Seconds after which another try makes sense, where the server says so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
    this.name = "ApiError";
  }

  /** Whether nobody answered: the server is away, or the network is. */
  get away(): boolean {
    return this.status === 0;
  }

  /** Whether the server wants another token, or any. */
  get refused(): boolean {
    return this.status === 401;
  }

  /** One sentence on what to do, where there is something to say beyond the message. */
  get advice(): string | null {
    return adviceFor(this);
  }
}

const ADVICE: Record<string, string> = {
  model_not_found: "Choose another model, or start the machine that has it.",
  queue_full: "Try again in a moment, or let more machines serve this model.",
  queue_timeout: "Connect a machine that serves this model, or choose another one.",
  busy_timeout: "Try again, or let more machines serve this model.",
  rate_limit_exceeded: "This key's limit is reached. Wait a moment.",
  insufficient_quota: "This key's budget is used up. Ask whoever made the key.",
  context_length_exceeded: "Start a new conversation, or shorten this one.",
  model_not_allowed: "This key is not for this model. Choose another one.",
  insufficient_permissions: "Sign in with a key that has this scope.",
  cut_off: "What came is kept. Ask again when the server is back.",
  silent: "Ask again, or choose another model.",
  nobody_lends: "The page changes by itself as soon as somebody does.",
  room_closed: "Ask the person who invited you for another room.",
  worker_lost: "The machine went away while it answered. Try again.",
  origin_not_allowed: "Open the page at the server's own address, or sign in.",
  host_not_allowed: "Open the page at the server's own address, or sign in.",
};

function adviceFor(error: ApiError): string | null {
  if (error.code && ADVICE[error.code]) return ADVICE[error.code]!;
  if (error.away) return "Is the server running? The page goes on by itself when it is back.";
  if (error.status === 401) return "Sign in again.";
  if (error.retryAfter) return `Try again in ${error.retryAfter} s.`;
  return null;
}

/** The error that an answer with a bad status means. */
export async function errorOf(answer: Response): Promise<ApiError> {
  const text = await firstOf(answer);
  const { message, code } = wordsOf(text);
  const retry = Number(answer.headers.get("retry-after"));
  return new ApiError(
    message ?? `The server answered with status ${answer.status}.`,
    answer.status,
    code,
    Number.isFinite(retry) && retry > 0 ? Math.ceil(retry) : null,
  );
}

/** The message and code in the body of an error, whichever API's form it has. */
export function wordsOf(body: string): { message: string | null; code: string | null } {
  try {
    const value: unknown = JSON.parse(body);
    const error = (value as { error?: unknown }).error ?? value;
    if (typeof error === "string") return { message: error, code: null };
    const { message, code } = error as { message?: unknown; code?: unknown };
    return {
      message: typeof message === "string" ? message : null,
      code: typeof code === "string" ? code : null,
    };
  } catch {
    return { message: null, code: null };
  }
}

/** The body of an error, which may be anything; at most 64 KiB characters of it. */
async function firstOf(answer: Response): Promise<string> {
  try {
    return (await answer.text()).slice(0, 65_536);
  } catch {
    return "";
  }
}

/** The error for whatever was thrown while a request was under way. */
export function asApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  if (thrown instanceof DOMException && thrown.name === "TimeoutError") {
    return new ApiError("The server did not answer in time.", 0, "timeout");
  }
  if (thrown instanceof TypeError) return new ApiError("The server cannot be reached.", 0, "unreachable");
  return new ApiError(thrown instanceof Error ? thrown.message : String(thrown), 0);
}
