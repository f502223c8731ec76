import type { AgentEvent, StoredEvent } from "../../api/generated";
import type { Unsure } from "../../api/types";
import { isObject, numberOf, textOf } from "../protocol";

/** Something that an agent's conversation shows. */
export type Entry =
  | { kind: "prompt"; key: number; text: string }
  | { kind: "text"; key: number; text: string; unasked: boolean }
  | { kind: "thinking"; key: number; text: string }
  | { kind: "tool"; key: number; id: string; name: string; input: string; raw: unknown; output: string; state: "runs" | "done" | "failed" }
  | { kind: "notice"; key: number; text: string; bad: boolean }
  | { kind: "used"; key: number; used: Used };

/** What a turn used, or several. */
export interface Used {
  input: number;
  output: number;
  /** In US dollars; `null` where the agent does not say. */
  cost: number | null;
}

/** The most events that are kept, and the most characters of a text among them. */
const MAX_EVENTS = 20_000;
const MAX_TEXT = 100_000;

type Event = Record<string, unknown>;

/** An event of a kind. */
type Of<Kind extends AgentEvent["kind"]> = Unsure<Extract<AgentEvent, { kind: Kind }>>;

/** The events of a session by their numbers, live ones and stored ones, each once. */
export class Events {
  private readonly byNumber = new Map<number, Event>();
  private newest = 0;
  private isSorted = true;

  /** Takes a live event. One without a number is the newest. */
  live(number: unknown, event: unknown): void {
    this.add(numberOf(number) ?? this.newest + 0.001, event);
  }

  /**
   * Takes the newest stored events. If there are more before them than are known, the known ones are of another time and are
   * dropped. Returns whether these are now the oldest.
   */
  stored(events: unknown, more: boolean): boolean {
    const list = Array.isArray(events) ? events.filter(isObject<StoredEvent>) : [];
    const oldest = numberOf(list[0]?.["number"]) ?? 0;
    const known = [...this.byNumber.keys()];
    if (more && !known.some((number) => number >= oldest)) this.byNumber.clear();
    for (const { number, event } of list) this.add(numberOf(number) ?? 0, event);
    return this.byNumber.size === 0 || this.oldest === oldest;
  }

  /** Takes stored events from before all that are known; `false` if there is no room for more. */
  earlier(events: unknown): boolean {
    const list = Array.isArray(events) ? events.filter(isObject<StoredEvent>) : [];
    if (this.byNumber.size + list.length > MAX_EVENTS) return false;
    for (const { number, event } of list) this.add(numberOf(number) ?? 0, event);
    return true;
  }

  /** The number of the oldest event; `null` without one. */
  get oldest(): number | null {
    return this.inOrder()[0]?.[0] ?? null;
  }

  private add(number: number, event: unknown): void {
    if (!isObject(event) || this.byNumber.has(number)) return;
    this.isSorted &&= number > this.newest;
    this.byNumber.set(number, event);
    this.newest = Math.max(this.newest, number);
    if (this.byNumber.size > MAX_EVENTS) this.drop();
  }

  private drop(): void {
    if (!this.isSorted) this.inOrder();
    for (const oldest of this.byNumber.keys()) return void this.byNumber.delete(oldest);
  }

  private inOrder(): [number, Event][] {
    if (!this.isSorted) {
      const sorted = [...this.byNumber].sort(([a], [b]) => a - b);
      this.byNumber.clear();
      for (const [number, event] of sorted) this.byNumber.set(number, event);
      this.isSorted = true;
    }
    return [...this.byNumber];
  }

  /** What the conversation shows, whether a turn is under way, and the number of the last turn. `used` has what turns used, as far as it is known. */
  read(used: ReadonlyMap<number, Used> = new Map()): { entries: Entry[]; busy: boolean; turn: number } {
    const reader = new Reader(used);
    for (const [number, event] of this.inOrder()) reader.take(number, event);
    return { entries: reader.entries, busy: reader.busy, turn: reader.turn };
  }
}

/** Reads events, the oldest first. */
class Reader {
  readonly entries: Entry[] = [];
  busy = false;
  turn = 0;
  private readonly tools = new Map<string, Entry & { kind: "tool" }>();
  private hasSaid = false;

  constructor(private readonly used: ReadonlyMap<number, Used>) {}

  take(key: number, event: Event): void {
    switch (event["kind"]) {
      case "turn_started": return this.begin(key, event);
      case "text": return this.say(key, event);
      case "thinking": return this.think(key, textOf(event["text"]));
      case "tool_started": return this.use(key, event);
      case "tool_finished": return this.finish(event);
      case "notice": return this.note(key, textOf(event["message"]), false);
      case "turn_ended": return this.end(key, event);
    }
  }

  private begin(key: number, event: Of<"turn_started">): void {
    this.busy = true;
    this.hasSaid = false;
    this.turn = Math.max(this.turn, numberOf(event["turn"]) ?? 0);
    const text = textOf(event["prompt"]);
    if (text) this.entries.push({ kind: "prompt", key, text: text.slice(0, MAX_TEXT) });
  }

  private say(key: number, event: Of<"text">): void {
    const [text, last] = [textOf(event["text"]), this.entries.at(-1)];
    const unasked = event["unasked"] === true;
    this.hasSaid ||= !unasked;
    if (event["delta"] === true && last?.kind === "text" && last.unasked === unasked) last.text = (last.text + text).slice(0, MAX_TEXT);
    else this.entries.push({ kind: "text", key, text: text.slice(0, MAX_TEXT), unasked });
  }

  private think(key: number, text: string): void {
    const last = this.entries.at(-1);
    if (last?.kind === "thinking") last.text = (last.text + text).slice(0, MAX_TEXT);
    else this.entries.push({ kind: "thinking", key, text: text.slice(0, MAX_TEXT) });
  }

  private use(key: number, event: Of<"tool_started">): void {
    const id = textOf(event["id"]);
    const tool = { kind: "tool" as const, key, id, name: textOf(event["name"]).slice(0, 200), input: inputText(event["input"]), raw: event["input"], output: "", state: "runs" as const };
    this.entries.push(tool);
    this.tools.set(id, tool);
  }

  private finish(event: Of<"tool_finished">): void {
    const tool = this.tools.get(textOf(event["id"]));
    if (!tool) return;
    tool.output = textOf(event["output"]).slice(0, MAX_TEXT);
    tool.state = event["ok"] === false ? "failed" : "done";
  }

  private end(key: number, event: Of<"turn_ended">): void {
    this.busy = false;
    const text = textOf(event["text"]);
    if (!this.hasSaid && text) this.entries.push({ kind: "text", key, text: text.slice(0, MAX_TEXT), unasked: false });
    for (const tool of this.tools.values()) if (tool.state === "runs") tool.state = "failed";
    this.tools.clear();
    if (event["outcome"] === "interrupted") this.note(key + 0.0001, "Interrupted.", false);
    if (event["outcome"] === "failed") this.note(key + 0.0001, `The turn failed: ${textOf(event["error"]) || "the agent does not say why."}`, true);
    const used = this.used.get(numberOf(event["turn"]) ?? -1);
    if (used) this.entries.push({ kind: "used", key: key + 0.0002, used });
  }

  private note(key: number, text: string, bad: boolean): void {
    if (text) this.entries.push({ kind: "notice", key, text: text.slice(0, 2000), bad });
  }
}

/** A tool's input as a person reads it: the command of a command, else JSON. */
export function inputText(input: unknown): string {
  if (typeof input === "string") return input.slice(0, MAX_TEXT);
  if (isObject(input) && Object.keys(input).length === 1 && typeof input["command"] === "string") return input["command"].slice(0, MAX_TEXT);
  return input === null || input === undefined ? "" : JSON.stringify(input, null, 2).slice(0, MAX_TEXT);
}
