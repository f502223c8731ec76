import { ApiError } from "../api/errors";
import { rests } from "../live/awake";
import { Asker } from "./asker";
import { messageOf, outputOf, textOf, type AnswerType, type ClientMessage, type Message, type Output } from "./protocol";

/** How a connection is: `away` tries again by itself, `refused` does not. */
export type LinkState = "connecting" | "open" | "away" | "refused";

export interface LinkOptions {
  /** The address of the socket, and the token of its first message; both are asked for at each attempt. */
  url: () => string;
  token: () => string;
  /** Called on each connection once it is authenticated. */
  onOpen: () => void;
  onMessage: (message: Message) => void;
  onOutput?: (output: Output) => void;
  onState?: (state: LinkState, words: string) => void;
}

/** How long a connection may take until it is authenticated, in milliseconds. */
const OPEN_MS = 10_000;

/** How often the server is asked for a sign of life, and how long that may take. */
const BEAT_MS = 15_000;
const SILENCE_MS = 8000;

/** How long a sign of life may take after the page was asleep. */
const WAKE_SILENCE_MS = 3000;

/** The pauses between attempts. */
const FIRST_PAUSE_MS = 400;
const MAX_PAUSE_MS = 15_000;

/** While this many bytes wait in the browser, nothing more is sent. */
const MAX_BUFFERED = 4 * 1024 * 1024;

/** One connection to the workspace, which is made again after it was lost. */
export class Link {
  private socket: WebSocket | null = null;
  private readonly asker = new Asker((message) => this.send(message));
  private state: LinkState = "away";
  private failures = 0;
  private stopped = true;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private opening: ReturnType<typeof setTimeout> | undefined;
  private beat: ReturnType<typeof setInterval> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  /** Whether anything came since a sign of life was asked for. */
  private heard = false;

  constructor(private readonly options: LinkOptions) {}

  start(): void {
    if (!this.stopped) return;
    this.stopped = false;
    document.addEventListener("visibilitychange", this.wake);
    window.addEventListener("online", this.wake);
    window.addEventListener("pageshow", this.wake);
    this.connect();
  }

  /** Ends the connection; whoever waits for an answer is told. */
  stop(): void {
    this.stopped = true;
    document.removeEventListener("visibilitychange", this.wake);
    window.removeEventListener("online", this.wake);
    window.removeEventListener("pageshow", this.wake);
    this.close();
  }

  get isOpen(): boolean {
    return this.state === "open";
  }

  /** Sends a message, if there is a connection with room for it. */
  send(message: ClientMessage): boolean {
    if (!this.isOpen || !this.socket || this.socket.bufferedAmount > MAX_BUFFERED) return false;
    this.socket.send(JSON.stringify(message));
    return true;
  }

  /** Sends a request and returns its answer, which has one of these types. */
  ask(message: ClientMessage, ...answers: AnswerType[]): Promise<Message> {
    if (!this.isOpen) return Promise.reject(new ApiError("The workspace cannot be reached now.", 0));
    return this.asker.ask(message, answers);
  }

  /** The same for what may take longer than most requests. */
  askWithin(deadlineMs: number, message: ClientMessage, ...answers: AnswerType[]): Promise<Message> {
    if (!this.isOpen) return Promise.reject(new ApiError("The workspace cannot be reached now.", 0));
    return this.asker.ask(message, answers, deadlineMs);
  }

  /** Connects again now if there is no connection, and checks the one that there is. */
  private wake = (): void => {
    if (this.stopped || rests()) return;
    if (this.state === "away") this.connect();
    else if (this.state === "open") this.check(WAKE_SILENCE_MS);
  };

  private connect(): void {
    this.close();
    this.become("connecting");
    let socket: WebSocket;
    try {
      socket = new WebSocket(this.options.url());
    } catch {
      return this.lost();
    }
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => socket.send(JSON.stringify({ type: "auth", token: this.options.token() } satisfies ClientMessage));
    socket.onmessage = ({ data }) => this.socket === socket && this.take(data);
    socket.onclose = socket.onerror = () => this.socket === socket && this.lost();
    this.opening = setTimeout(() => this.lost(), OPEN_MS);
  }

  private take(data: unknown): void {
    this.heard = true;
    if (data instanceof ArrayBuffer) {
      const output = outputOf(data);
      if (output) this.options.onOutput?.(output);
      return;
    }
    const message = messageOf(textOf(data));
    if (!message) return;
    if (this.state === "connecting") this.admitted(message);
    else if (message.type === "keepalive_ack") this.alive();
    else if (!this.asker.take(message)) this.options.onMessage(message);
  }

  /** The answer to the first message. */
  private admitted(message: Message): void {
    clearTimeout(this.opening);
    if (message.type !== "auth_result" || message["success"] !== true) {
      this.close();
      return this.become("refused", textOf(message["message"]));
    }
    this.failures = 0;
    this.beat = setInterval(() => !rests() && this.check(SILENCE_MS), BEAT_MS);
    this.become("open");
    this.options.onOpen();
  }

  /**
   * Asks for a sign of life; without one the connection counts as lost. Only the answer is one: anything else may have been on its way
   * before the connection died. But while other things come, the answer may be behind them, and is asked for again.
   */
  private check(within: number): void {
    if (this.silence) return;
    this.heard = false;
    this.send({ type: "keepalive" });
    this.silence = setTimeout(() => this.judge(within), within);
  }

  private judge(within: number): void {
    this.silence = undefined;
    if (this.heard) this.check(within);
    else this.lost();
  }

  private alive(): void {
    clearTimeout(this.silence);
    this.silence = undefined;
  }

  private lost(): void {
    this.close();
    if (this.stopped) return;
    this.failures += 1;
    this.become("away");
    this.retry = setTimeout(() => !rests() && this.connect(), pauseBefore(this.failures, Math.random()));
  }

  private close(): void {
    for (const timer of [this.retry, this.opening, this.silence]) clearTimeout(timer);
    clearInterval(this.beat);
    this.silence = undefined;
    const socket = this.socket;
    this.socket = null;
    if (this.state !== "refused") this.state = "away";
    socket?.close();
    this.asker.lose();
  }

  private become(state: LinkState, words = ""): void {
    this.state = state;
    this.options.onState?.(state, words);
  }
}

/** The pause before the next attempt; `chance` between 0 and 1 spreads the attempts of many pages. */
export function pauseBefore(failures: number, chance: number): number {
  const full = Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures - 1, 6));
  return Math.round(full * (0.75 + 0.5 * chance));
}
