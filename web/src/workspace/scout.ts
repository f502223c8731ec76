import { rests } from "../live/awake";
import { questionOf, textOf, type ClientMessage, type Message, type Question, type Session } from "./protocol";

/** How often running agents are visited, and how long a visit listens for open questions, in milliseconds. */
const ROUND_MS = 4000;
const LISTEN_MS = 300;

/** How long a visit may take, and how many sessions are visited in a round. */
const VISIT_MS = 5000;
const MAX_VISITS = 64;

export interface ScoutOptions {
  send: (message: ClientMessage) => boolean;
  sessions: () => Session[];
  /** How many questions of a session are known. */
  known: (sessionId: string) => number;
  /** A session was visited; these are its open questions. */
  found: (sessionId: string, questions: Question[]) => void;
}

/**
 * Looks what agents ask. The server tells questions to those who are attached to the session, so each agent in a turn
 * is visited in turn, for a moment. Where the server says how many questions are open, only those are visited whose
 * questions are not all known.
 */
export class Scout {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private round: string[] = [];
  private visit: { sessionId: string; open: Question[] } | null = null;
  private stopped = true;

  constructor(private readonly options: ScoutOptions) {}

  start(): void {
    this.stopped = false;
    this.rest();
  }

  stop(): void {
    this.stopped = true;
    this.visit = null;
    clearTimeout(this.timer);
  }

  /** Begins a round at once, unless one is under way. */
  now(): void {
    if (!this.stopped && !this.visit) this.begin();
  }

  take(message: Message): void {
    const visit = this.visit;
    if (!visit || textOf(message["session_id"]) !== visit.sessionId) return;
    const question = message.type === "permission_request" ? questionOf(message) : null;
    if (question) visit.open.push(question);
    if (message.type === "session_history") this.later(LISTEN_MS, () => this.leave());
    if (message.type === "session_unknown") this.next();
  }

  private begin(): void {
    if (rests()) return this.rest();
    const worthwhile = this.options.sessions().filter((session) => this.mayAsk(session));
    this.round = worthwhile.slice(0, MAX_VISITS).map(({ id }) => id);
    this.next();
  }

  private mayAsk({ id, kind, status, reachable, asks }: Session): boolean {
    if (kind !== "agent" || status !== "running" || !reachable) return false;
    return asks === null || asks > this.options.known(id);
  }

  private next(): void {
    this.visit = null;
    const sessionId = this.round.shift();
    if (!sessionId) return this.rest();
    const lastSeq = this.options.sessions().find(({ id }) => id === sessionId)?.lastSeq ?? null;
    // After the newest output, so that the server sends no screen.
    if (!this.options.send({ type: "attach", session_id: sessionId, after_seq: lastSeq })) return this.rest();
    this.visit = { sessionId, open: [] };
    this.later(VISIT_MS, () => this.next());
  }

  private leave(): void {
    const { sessionId, open } = this.visit!;
    this.options.send({ type: "detach" });
    this.options.found(sessionId, open);
    this.next();
  }

  private rest(): void {
    this.later(ROUND_MS, () => this.begin());
  }

  private later(ms: number, then: () => void): void {
    clearTimeout(this.timer);
    if (!this.stopped) this.timer = setTimeout(then, ms);
  }
}
