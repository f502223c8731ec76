/** One event of a stream. */
export interface SseEvent {
  /** Its name; `message` unless the stream says otherwise. */
  name: string;
  data: string;
}

/** What comes out of a stream: an event, or a comment such as `waiting for qwen3-8b: …`. */
export type SseItem = { event: SseEvent } | { comment: string };

/** The longest line and the longest event that are read, in characters. */
export const MAX_EVENT = 4 * 1024 * 1024;

/** Thrown when a stream breaks the bounds. */
export class SseTooLong extends Error {
  constructor() {
    super("The server sent an event that is too long to be read.");
    this.name = "SseTooLong";
  }
}

/** Splits the text of an event stream into events, however it is cut into pieces. */
export class SseReader {
  private pieces: string[] = [];
  private held = 0;
  private afterReturn = false;
  private name = "";
  private data: string[] = [];
  private size = 0;

  /** Takes the next piece, and returns what is complete with it. */
  push(piece: string): SseItem[] {
    const items: SseItem[] = [];
    let from = 0;
    for (let at = 0; at < piece.length; at += 1) {
      const code = piece.charCodeAt(at);
      if (code !== 10 && code !== 13) {
        this.afterReturn = false;
        continue;
      }
      if (code === 10 && this.afterReturn) {
        this.afterReturn = false;
      } else {
        this.take(this.lineOf(piece.slice(from, at)), items);
        this.afterReturn = code === 13;
      }
      from = at + 1;
    }
    this.hold(piece.slice(from));
    return items;
  }

  private lineOf(end: string): string {
    this.bounded(this.held + end.length);
    const line = this.pieces.length ? this.pieces.join("") + end : end;
    this.pieces = [];
    this.held = 0;
    return line;
  }

  private hold(rest: string): void {
    if (!rest) return;
    this.bounded(this.held + rest.length);
    this.pieces.push(rest);
    this.held += rest.length;
  }

  private take(line: string, items: SseItem[]): void {
    if (line === "") return this.end(items);
    if (line.startsWith(":")) {
      items.push({ comment: line.slice(1).trim() });
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") this.name = value;
    if (field === "data") this.add(value);
  }

  private add(value: string): void {
    this.size += value.length + 1;
    this.bounded(this.size);
    this.data.push(value);
  }

  private end(items: SseItem[]): void {
    if (this.data.length) items.push({ event: { name: this.name || "message", data: this.data.join("\n") } });
    this.name = "";
    this.data = [];
    this.size = 0;
  }

  private bounded(length: number): void {
    if (length > MAX_EVENT) throw new SseTooLong();
  }
}

/** The items of an answer's body. It throws `SilentStream` when nothing at all comes for `silence` milliseconds. */
export async function* itemsOf(body: ReadableStream<Uint8Array>, silence: number): AsyncGenerator<SseItem> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new SseReader();
  try {
    for (;;) {
      const { done, value } = await within(reader.read(), silence);
      if (done) return;
      yield* events.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    // Cancelling a stream that has ended does nothing; one that has not is hung up.
    reader.cancel().catch(() => undefined);
  }
}

/** Thrown when a stream says nothing for too long. */
export class SilentStream extends Error {
  constructor() {
    super("The server has said nothing for too long.");
    this.name = "SilentStream";
  }
}

async function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new SilentStream()), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
