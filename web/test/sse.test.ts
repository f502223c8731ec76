import { describe, expect, test } from "vitest";
import { itemsOf, MAX_EVENT, SilentStream, SseReader, SseTooLong, type SseItem } from "../src/api/sse";

const STREAM = ': waiting for m: busy\r\n\r\nevent: error\ndata: {"a":1}\ndata: two\n\ndata:x\r\rdata: [DONE]\n\ndata: cut';

const ITEMS: SseItem[] = [
  { comment: "waiting for m: busy" },
  { event: { name: "error", data: '{"a":1}\ntwo' } },
  { event: { name: "message", data: "x" } },
  { event: { name: "message", data: "[DONE]" } },
];

function inPieces(text: string, size: number): SseItem[] {
  const reader = new SseReader();
  const items: SseItem[] = [];
  for (let at = 0; at < text.length; at += size) items.push(...reader.push(text.slice(at, at + size)));
  return items;
}

describe("a stream of events", () => {
  test.each([1, 2, 3, 5, 7, 64, 1000])("is the same in pieces of %i", (size) => {
    expect(inPieces(STREAM, size)).toEqual(ITEMS);
  });

  test("has no event without data, and no field that is not known", () => {
    expect(inPieces("event: ping\n\nid: 3\nretry: 5\nfoo\ndata\n\n", 9)).toEqual([{ event: { name: "message", data: "" } }]);
  });

  test("ends at a line or an event that is too long", () => {
    const reader = new SseReader();
    reader.push("data: ");
    expect(() => reader.push("x".repeat(MAX_EVENT))).toThrow(SseTooLong);
    const many = new SseReader();
    const line = `data: ${"y".repeat(1024 * 1024)}\n`;
    expect(() => Array.from({ length: 5 }, () => many.push(line))).toThrow(SseTooLong);
  });

  test("of one long line in small pieces takes time in proportion", () => {
    const reader = new SseReader();
    const began = performance.now();
    for (let i = 0; i < 60_000; i += 1) reader.push("x".repeat(64));
    expect(performance.now() - began).toBeLessThan(2000);
  });
});

function bodyOf(...pieces: Uint8Array[]): { body: ReadableStream<Uint8Array>; cancelled: () => boolean } {
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start(control) {
      pieces.forEach((piece) => control.enqueue(piece));
    },
    cancel() {
      cancelled = true;
    },
  });
  return { body, cancelled: () => cancelled };
}

describe("the body of an answer", () => {
  test("may be cut within a character", async () => {
    const bytes = new TextEncoder().encode("data: für 🐇\n\n");
    const { body } = bodyOf(...Array.from(bytes, (byte) => Uint8Array.of(byte)));
    for await (const item of itemsOf(body, 1000)) {
      expect(item).toEqual({ event: { name: "message", data: "für 🐇" } });
      break;
    }
  });

  test("is hung up when nobody reads on", async () => {
    const { body, cancelled } = bodyOf(new TextEncoder().encode("data: a\n\n"));
    for await (const item of itemsOf(body, 1000)) {
      expect(item).toBeDefined();
      break;
    }
    expect(cancelled()).toBe(true);
  });

  test("that says nothing for too long is an error, and is hung up", async () => {
    const { body, cancelled } = bodyOf();
    await expect(itemsOf(body, 20).next()).rejects.toBeInstanceOf(SilentStream);
    expect(cancelled()).toBe(true);
  });
});
