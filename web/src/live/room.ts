import { batch, signal } from "@preact/signals";
import { asApiError, type ApiError } from "../api/errors";
import { participants, room, roomEvents, type Participant, type Room, type RoomEntry, type RoomEvent } from "../api/rooms";
import type { Model } from "../api/types";
import { pauseAfter } from "./poll";
import { short } from "./words";

/** How a room stands for a watcher. `gone`: there is none of this code, or no longer. */
export type Standing = "entering" | "password" | "open" | "gone";

/** Something that happened in a room. */
export interface Happening {
  n: number;
  /** Milliseconds since 1970. */
  at: number;
  text: string;
  bad: boolean;
}

/** As many happenings are kept. */
const MAX_HAPPENINGS = 100;

/** The least pause between two looks at who is there, in milliseconds: in a full room there is always something. */
const LOOK_MS = 500;

/** Follows a room as it changes, while it is open; after a lost connection it goes on by itself. */
export class RoomWatch {
  readonly standing = signal<Standing>("entering");
  readonly room = signal<Room | null>(null);
  /** Who lends models now, those who are away left out. */
  readonly lenders = signal<Participant[]>([]);
  readonly happenings = signal<Happening[]>([]);
  /** What went wrong last; `null` while all is well. */
  readonly error = signal<ApiError | null>(null);

  private control: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private count = 0;

  constructor(
    /** The code, and the password once it was given. */
    readonly entry: RoomEntry,
    /** Called when the password turned out to be wrong. */
    private readonly onWrongPassword: () => void = () => undefined,
  ) {}

  start(): void {
    this.stop();
    this.control = new AbortController();
    void this.follow(this.control.signal);
  }

  stop(): void {
    this.control?.abort();
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  /** Enters with a password. */
  enter(password: string): void {
    this.entry.password = password;
    this.error.value = null;
    this.start();
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (!(await this.look(signal))) return;
        await this.listen(signal, () => (failures = 0));
        if (this.standing.value === "gone") return;
        failures += 1;
      } catch (thrown) {
        if (signal.aborted || this.ends(asApiError(thrown))) return;
        failures += 1;
      }
      await rested(this.pause(failures), signal);
    }
  }

  /** Looks at the room; `false` when it wants a password first. */
  private async look(signal: AbortSignal): Promise<boolean> {
    const found = await room(this.entry, signal);
    const locked = found.passwordProtected && this.entry.password === null;
    batch(() => {
      this.room.value = found;
      if (locked) this.standing.value = "password";
    });
    return !locked;
  }

  private async listen(signal: AbortSignal, onOpen: () => void): Promise<void> {
    for await (const event of roomEvents(this.entry, signal)) {
      if (event.name === "connected") {
        await this.lookAround(signal);
        onOpen();
      }
      if (event.name === "room.closed") {
        this.standing.value = "gone";
        return;
      }
      if (event.name.startsWith("participant.") || event.name === "room.created") this.lookSoon(signal);
      this.tell(event);
    }
  }

  private async lookAround(signal: AbortSignal): Promise<void> {
    const [found, all] = await Promise.all([room(this.entry, signal), participants(this.entry, signal)]);
    batch(() => {
      this.room.value = found;
      this.lenders.value = all.filter(({ status }) => status !== "offline");
      this.standing.value = "open";
      this.error.value = null;
    });
  }

  private lookSoon(signal: AbortSignal): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      // A look that fails is made up for: the stream breaks, too, or the next event comes.
      this.lookAround(signal).catch(() => undefined);
    }, LOOK_MS);
  }

  private tell(event: RoomEvent): void {
    const told = happeningOf(event, (id) => this.lenders.value.find((each) => each.id === id)?.nickname ?? "somebody");
    if (!told) return;
    this.count += 1;
    this.happenings.value = [{ ...told, n: this.count, at: Date.now() }, ...this.happenings.value].slice(0, MAX_HAPPENINGS);
  }

  /** Takes note of a failure; `true` when nothing is to be tried again by itself. */
  private ends(error: ApiError): boolean {
    const wrong = error.status === 401;
    batch(() => {
      if (error.status === 404) this.standing.value = "gone";
      if (wrong) this.standing.value = "password";
      this.error.value = error;
    });
    if (wrong) {
      this.entry.password = null;
      this.onWrongPassword();
    }
    return wrong || error.status === 404;
  }

  private pause(failures: number): number {
    const told = (this.error.value?.retryAfter ?? 0) * 1000;
    return Math.max(told, pauseAfter(failures, 1000));
  }
}

/** What an event says, in words; `null` for one that is nothing to tell. */
export function happeningOf({ name, data }: RoomEvent, nickname: (id: string) => string): { text: string; bad: boolean } | null {
  const who = nickname(data.participantId ?? "");
  switch (name) {
    case "participant.joined":
      return { text: `${data.nickname ?? who} is here.`, bad: false };
    case "participant.left":
      return { text: `${who} left.`, bad: false };
    case "participant.offline":
      return { text: `${who} is away.`, bad: false };
    case "llm.request":
      return { text: `${who} is asked${data.model && data.model !== "*" ? ` for ${data.model.replace(/^model:/, "")}` : ""}.`, bad: false };
    case "llm.complete":
      return { text: [`${who} answered`, ...sizeOf(data.metrics)].join(", ") + ".", bad: false };
    case "llm.error":
      return { text: `${who} failed: ${data.error ?? "no reason given"}`, bad: true };
    default:
      return null;
  }
}

function sizeOf(metrics: RoomEvent["data"]["metrics"]): string[] {
  const parts: string[] = [];
  if (metrics?.outputTokens) parts.push(`${short(metrics.outputTokens)} tokens`);
  if (metrics?.tokensPerSecond) parts.push(`${short(metrics.tokensPerSecond)} tok/s`);
  return parts;
}

/** The models that can be asked in a room: any, and each by its name. None while nobody lends one. */
export function modelsIn(lenders: Participant[]): Model[] {
  const machines = new Map<string, string[]>();
  for (const { nickname, model, models } of lenders) {
    for (const name of new Set([model, ...(models ?? [])])) machines.set(name, [...(machines.get(name) ?? []), nickname]);
  }
  const named = [...machines].map(([id, names]) => ({ id, machines: names }));
  return named.length ? [{ id: ANY_MODEL, machines: lenders.map(({ nickname }) => nickname) }, ...named] : [];
}

/** The name by which any model of a room is asked. */
export const ANY_MODEL = "*";

/** Waits so long; not longer than until the page is seen again, or the network is back. */
function rested(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const seen = () => document.visibilityState === "visible" && done();
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      window.removeEventListener("online", done);
      document.removeEventListener("visibilitychange", seen);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    window.addEventListener("online", done);
    document.addEventListener("visibilitychange", seen);
  });
}
