import type { Notice } from "../api/generated";
import { isObject, isSize, numberOf, snapshotOf, textOf, type Answer, type Message, type Output, type Sent, type Snapshot } from "./protocol";

/** What a terminal is to do next. */
export type Step =
  /** Becomes this screen. */
  | { do: "reset"; snapshot: Snapshot }
  | { do: "write"; text: string }
  | { do: "size"; cols: number; rows: number }
  /** The server goes on where this terminal was. */
  | { do: "resumed" }
  /** Output is missing: attaches again. */
  | { do: "attach" }
  | { do: "nothing" };

const NOTHING: Step = { do: "nothing" };

/** Where a terminal is in the output of its session. It shows each output once, and notices when one is missing. */
export class Position {
  private last: number | null = null;
  private begun = false;

  constructor(private readonly sessionId: string) {}

  /** The message that begins the stream on a connection: after what is shown, or with the whole screen. */
  attach(): Sent<"attach"> {
    this.begun = false;
    return { type: "attach", session_id: this.sessionId, after_seq: this.last };
  }

  /** Forgets what is shown, so that the next stream begins with the whole screen. */
  forget(): void {
    this.last = null;
    this.begun = false;
  }

  output({ sessionId, seq, text }: Output): Step {
    if (sessionId !== this.sessionId || !this.begun || (this.last !== null && seq <= this.last)) return NOTHING;
    if (this.last !== null && seq > this.last + 1) return this.lose();
    this.last = seq;
    return { do: "write", text };
  }

  message(message: Message): Step {
    if (message.type === "client_notice") return this.notice(message["notice"]);
    if (textOf(message["session_id"]) !== this.sessionId) return NOTHING;
    if (message.type === "session_history") return this.begin(message);
    if (message.type === "session_snapshot") return this.screen(snapshotOf(message));
    if (message.type === "terminal_size") return sizeOf(message);
    return NOTHING;
  }

  private begin(message: Answer<"session_history">): Step {
    this.begun = true;
    if (message["snapshot"]) return this.screen(snapshotOf(message["snapshot"]));
    this.last ??= numberOf(message["last_seq"]);
    return { do: "resumed" };
  }

  private screen(snapshot: Snapshot | null): Step {
    if (!snapshot) return NOTHING;
    this.last = snapshot.seq;
    return { do: "reset", snapshot };
  }

  private notice(notice: unknown): Step {
    const ours = isObject<Notice>(notice) && notice["session_id"] === this.sessionId;
    return ours && notice["code"] === "output_backpressure" ? this.lose() : NOTHING;
  }

  private lose(): Step {
    this.forget();
    return { do: "attach" };
  }
}

function sizeOf(message: Answer<"terminal_size">): Step {
  const [cols, rows] = [numberOf(message["cols"]), numberOf(message["rows"])];
  return isSize(cols, rows) ? { do: "size", cols: cols!, rows: rows! } : NOTHING;
}
