import type { Sent } from "./protocol";

type Typed = Sent<"terminal_input">;

/** So much typed text may be without an acknowledgement, and so much may wait behind it, in characters. */
const MAX_OPEN = 16;
const MAX_WAITING = 1024 * 1024;

/** The longest text in one message. */
const MAX_PIECE = 32 * 1024;

/** What was typed into a terminal. Each piece has an id, by which the server types it once, however often it is sent. */
export class Inputs {
  private open: Typed[] = [];
  private waiting = "";

  constructor(
    private readonly sessionId: string,
    private readonly send: (message: Typed) => boolean,
    private readonly newId: () => string = randomId,
  ) {}

  /** Takes what was typed; `false` if too much waits already. */
  type(text: string): boolean {
    if (this.waiting.length + text.length > MAX_WAITING) return false;
    this.waiting += text;
    this.flush();
    return true;
  }

  /** Sends what was not acknowledged, on a new connection. */
  again(): void {
    for (const message of this.open) this.send(message);
    this.flush();
  }

  acknowledged(id: unknown): void {
    this.open = this.open.filter((message) => message.input_id !== id);
    this.flush();
  }

  /** Forgets everything: the session has ended, or refused what was typed. */
  clear(): void {
    this.open = [];
    this.waiting = "";
  }

  /** How many characters are not acknowledged. */
  get pending(): number {
    return this.open.reduce((sum, message) => sum + message.data.length, this.waiting.length);
  }

  private flush(): void {
    while (this.waiting && this.open.length < MAX_OPEN) {
      const data = firstOf(this.waiting);
      const message: Typed = { type: "terminal_input", session_id: this.sessionId, data, encoding: "text", input_id: this.newId() };
      if (!this.send(message)) return;
      this.open.push(message);
      this.waiting = this.waiting.slice(data.length);
    }
  }
}

/** The beginning of a text, which ends in the middle of no character. */
function firstOf(text: string): string {
  const cut = /[\ud800-\udbff]/.test(text[MAX_PIECE - 1] ?? "") ? MAX_PIECE - 1 : MAX_PIECE;
  return text.slice(0, cut);
}

/** 128 random bits. Browsers give `randomUUID` to secure contexts only. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
