import { batch, signal } from "@preact/signals";
import { toast } from "../../parts/toast";
import { linkOptions, noteHidden, noteQuestion, replaceQuestions } from "../hub";
import { randomId } from "../inputs";
import { Link, type LinkState } from "../link";
import { numberOf, questionOf, textOf, type Answer, type Message, type Question, type Sent } from "../protocol";
import { tell } from "../words";
import { Events, type Entry, type Used } from "./events";

/** How many bytes of stored events are asked for. */
const STORED_BYTES = 1024 * 1024;

/** How long after the beginning of a stream its open questions have come, in milliseconds. */
const QUESTIONS_MS = 500;

/** So many prompts may wait for the server. */
const MAX_PROMPTS = 8;

/** So many turns are counted. */
const MAX_TURNS = 2000;

/** What is known of a conversation. */
export interface Shown {
  entries: Entry[];
  busy: boolean;
  /** Whether the stored events came. */
  loaded: boolean;
  /** Whether there are events before these. */
  more: boolean;
}

/** A conversation with an agent, which goes on over lost connections. */
export class Talk {
  readonly shown = signal<Shown>({ entries: [], busy: false, loaded: false, more: false });
  readonly used = signal<Used | null>(null);
  readonly state = signal<LinkState>("connecting");
  /** The prompts that the server has not taken yet. */
  readonly prompts = signal<Sent<"send_input">[]>([]);
  /** The prompts that the server has taken, and whose turns have not begun, by the numbers of those. */
  readonly queued = signal<ReadonlyMap<number, string>>(new Map());
  /** The questions that were answered, and whose answers may be on the way. */
  readonly answers = signal<ReadonlyMap<string, Sent<"permission_response">>>(new Map());
  private readonly link: Link;
  private readonly events = new Events();
  private readonly usage = new Map<number, Used>();
  private open: Question[] | null = null;
  private frame = 0;
  private loaded = false;
  private more = false;
  private turn = 0;

  constructor(private readonly sessionId: string) {
    this.link = new Link({ ...linkOptions(), onOpen: () => this.attach(), onMessage: (message) => this.take(message), onState: (state) => (this.state.value = state) });
  }

  start(): void {
    this.link.start();
  }

  stop(): void {
    cancelAnimationFrame(this.frame);
    this.link.stop();
  }

  /** Sends a prompt; `false` if too many wait. It is taken once, however often it is sent. */
  prompt(input: string): boolean {
    if (this.prompts.value.length >= MAX_PROMPTS) return false;
    const message: Sent<"send_input"> = { type: "send_input", session_id: this.sessionId, input, input_id: randomId() };
    this.prompts.value = [...this.prompts.value, message];
    this.link.send(message);
    return true;
  }

  answer(question: Question, allow: boolean): void {
    const message: Sent<"permission_response"> = { type: "permission_response", session_id: this.sessionId, request_id: question.requestId, allow, message: null };
    this.answers.value = new Map(this.answers.value).set(question.requestId, message);
    this.link.send(message);
  }

  interrupt(): void {
    if (!this.link.send({ type: "interrupt", session_id: this.sessionId })) toast("The workspace cannot be reached now.", "error");
  }

  /** Asks for what was before. */
  async earlier(): Promise<void> {
    try {
      const before = this.events.oldest;
      const { events, more } = await this.link.ask({ type: "get_turns", session_id: this.sessionId, before, max_bytes: STORED_BYTES }, "turns");
      this.more = this.events.earlier(events) && more === true;
      this.show();
    } catch (thrown) {
      tell(thrown);
    }
  }

  private attach(): void {
    this.open = [];
    this.link.send({ type: "attach", session_id: this.sessionId, after_seq: null });
    this.link.ask({ type: "get_turns", session_id: this.sessionId, max_bytes: STORED_BYTES }, "turns").then(
      ({ events, more }) => this.stored(events, more === true),
      (thrown) => this.link.isOpen && tell(thrown),
    );
  }

  private stored(events: unknown, more: boolean): void {
    // What is known from before may reach further back than what came now.
    const isAnew = this.events.stored(events, more);
    if (isAnew) this.more = more;
    this.loaded = true;
    this.show();
  }

  private take(message: Message): void {
    noteHidden(message);
    if (message.type === "input_ack") this.taken(message["input_id"], numberOf(message["turn"]));
    else if (message.type === "error") this.refused(textOf(message["message"]));
    if (message["session_id"] !== this.sessionId) return;
    noteQuestion(message);
    if (message.type === "agent_event") this.happened(message);
    else if (message.type === "session_history") this.begun();
    else if (message.type === "permission_request") this.asked(message);
    else if (message.type === "permission_resolved") this.forgetAnswer(textOf(message["request_id"]));
    else if (message.type === "usage") this.count(message);
  }

  /** The stream begins again: what was not taken is sent again, and the open questions follow. */
  private begun(): void {
    for (const prompt of this.prompts.value) this.link.send(prompt);
    setTimeout(() => this.settleQuestions(), QUESTIONS_MS);
  }

  private asked(message: Answer<"permission_request">): void {
    const question = questionOf(message);
    if (!question) return;
    this.open?.push(question);
    const answer = this.answers.value.get(question.requestId);
    if (answer) this.link.send(answer);
  }

  private settleQuestions(): void {
    if (this.open) replaceQuestions(this.sessionId, this.open);
    this.open = null;
  }

  private forgetAnswer(requestId: string): void {
    const left = new Map(this.answers.value);
    left.delete(requestId);
    this.answers.value = left;
  }

  private happened(message: Answer<"agent_event">): void {
    this.events.live(message["number"], message["event"]);
    this.show();
  }

  private taken(id: unknown, turn: number | null): void {
    const prompt = this.prompts.value.find((each) => each.input_id === id);
    this.prompts.value = this.prompts.value.filter((each) => each !== prompt);
    if (prompt && turn !== null && turn > this.turn) this.queued.value = new Map(this.queued.value).set(turn, prompt.input);
  }

  private refused(words: string): void {
    this.prompts.value = [];
    this.answers.value = new Map();
    toast(words, "error");
  }

  private count(message: Answer<"usage">): void {
    const turn = numberOf(message["turn"]);
    if (turn === null || this.usage.size >= MAX_TURNS) return;
    this.usage.set(turn, usedOf(message));
    this.used.value = sumOf([...this.usage.values()]);
    this.show();
  }

  /** Text comes in many small pieces: it is drawn once for each frame. */
  private show(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  private draw(): void {
    const { entries, busy, turn } = this.events.read(this.usage);
    this.turn = turn;
    batch(() => {
      this.shown.value = { entries, busy, loaded: this.loaded, more: this.more };
      const waiting = [...this.queued.value].filter(([number]) => number > turn);
      if (waiting.length !== this.queued.value.size) this.queued.value = new Map(waiting);
    });
  }
}

/** What a turn used, as the server says it. */
export function usedOf(message: Answer<"usage">): Used {
  return { input: numberOf(message["input_tokens"]) ?? 0, output: numberOf(message["output_tokens"]) ?? 0, cost: numberOf(message["cost_usd"]) };
}

/** What several turns used together. */
export function sumOf(all: Used[]): Used {
  const costs = all.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  const sum = (numbers: number[]) => numbers.reduce((a, b) => a + b, 0);
  return { input: sum(all.map(({ input }) => input)), output: sum(all.map(({ output }) => output)), cost: costs.length ? sum(costs) : null };
}
