import { ApiError, asApiError } from "../api/errors";
import { linkOptions } from "../workspace/hub";
import { Link } from "../workspace/link";
import type { AnswerType, ClientMessage, Message } from "../workspace/protocol";

/** How long one piece of a transfer may take, and how long a transfer waits for a lost connection, in milliseconds. */
const PIECE_MS = 120_000;
const AWAY_MS = 600_000;

/** How often one piece is tried in a row, and the pause before the next time. */
const MAX_TRIES = 40;
const PAUSE_MS = 150;

/** How long the connection outlives the last transfer. */
const LINGER_MS = 5000;

let link: Link | null = null;
let users = 0;
let waiting: (() => void)[] = [];

/** What a transfer asks the server with. Transfers have a connection of their own, so that looking waits for none of them. */
export interface Line {
  /** Asks once; fails where the connection is lost meanwhile. */
  ask: Link["ask"];
  /** Comes back when there is a connection again. */
  back(signal: AbortSignal): Promise<void>;
}

/** Runs a transfer with a connection. */
export async function withLine<T>(work: (line: Line) => Promise<T>): Promise<T> {
  users += 1;
  open();
  try {
    return await work({ ask: (message, ...answers) => asked(message, answers), back });
  } finally {
    users -= 1;
    setTimeout(() => users === 0 && close(), LINGER_MS);
  }
}

function asked(message: ClientMessage, answers: AnswerType[]): Promise<Message> {
  return link?.askWithin(PIECE_MS, message, ...answers) ?? Promise.reject(new ApiError("The connection is closed.", 0));
}

function open(): void {
  if (link) return;
  link = new Link({ ...linkOptions(), onOpen: wakeAll, onMessage: () => undefined, onState: (state) => state === "refused" && wakeAll() });
  link.start();
}

function close(): void {
  link?.stop();
  link = null;
  wakeAll();
}

function wakeAll(): void {
  const woken = waiting;
  waiting = [];
  woken.forEach((wake) => wake());
}

async function back(signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (!link?.isOpen) await opened(signal);
  signal.throwIfAborted();
  if (!link?.isOpen) throw new ApiError("The server did not come back in time. Try again when it is there.", 0, "gone");
}

function opened(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    signal.addEventListener("abort", () => resolve(), { once: true });
    setTimeout(resolve, AWAY_MS);
  });
}

/** Does one piece of a transfer, again after each lost connection. `lost` is told of each loss. */
export async function persistently<T>(line: Line, signal: AbortSignal, piece: () => Promise<T>, lost: () => void = () => undefined): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    await line.back(signal);
    try {
      return await piece();
    } catch (thrown) {
      if (signal.aborted || !asApiError(thrown).away || tries === MAX_TRIES) throw thrown;
      lost();
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
