import { describe, expect, it } from "vitest";
import type { Message } from "../src/workspace/protocol";
import { found, linesOf, MAX_ROW, Past } from "../src/workspace/terminal/history";

const SIZE = { cols: 80, rows: 24 };

/** A server that has this output, each piece one number, and sends one piece at a time. */
function serverOf(pieces: string[]) {
  const asked: Message[] = [];
  const ask = async (message: Message): Promise<Message> => {
    asked.push(message);
    const before = typeof message["before_seq"] === "number" ? message["before_seq"] : pieces.length + 1;
    const seq = before - 1;
    return { type: "history", from_seq: seq, to_seq: seq, data: pieces[seq - 1] ?? "", more: seq > 1 };
  };
  return { ask, asked };
}

const texts = (past: Past) => past.rows.map(({ text }) => text);

describe("output as lines", () => {
  it("has no colours, and what was written over is gone", async () => {
    expect(await linesOf("\x1b[31mred\x1b[0m\r\n10 %\r100 %\r\n\x1b]0;title\x07end", SIZE)).toEqual(["red", "100 %", "end"]);
  });

  it("keeps what programs cleared away", async () => {
    expect((await linesOf("one\r\n\x1b[H\x1b[2J\x1b[3Jtwo\x1bc", SIZE)).filter(Boolean)).toEqual(["one", "two"]);
  });

  it("has each line once, however many there are", async () => {
    const lines = Array.from({ length: 30_000 }, (_, i) => `${i}`);
    expect(await linesOf(lines.join("\r\n"), SIZE)).toEqual(lines);
  });

  it("joins what the terminal had to wrap", async () => {
    const long = "0123456789".repeat(20_000);
    expect(await linesOf(`a\r\n${long}\r\nb`, SIZE)).toEqual(["a", long, "b"]);
  });

  it("ends when a program clears the screen again and again", async () => {
    expect((await linesOf("x\x1b[2J".repeat(20_000), SIZE)).length).toBeGreaterThan(0);
  });
});

describe("a session's past", () => {
  it("is read from the end to the beginning", async () => {
    const { ask, asked } = serverOf(["one\r\n", "two\r\n", "three\r\n"]);
    const past = new Past("s", SIZE, ask);
    expect(await past.earlier()).toBe(1);
    expect([texts(past), past.more]).toEqual([["three"], true]);
    await past.earlier();
    await past.earlier();
    expect([past.text(), past.more, past.full]).toEqual(["one\ntwo\nthree", false, false]);
    expect(asked.map((each) => each["before_seq"])).toEqual([null, 3, 2]);
  });

  it("joins a line that came in two pieces, and rows keep their keys", async () => {
    const past = new Past("s", SIZE, serverOf(["one\r\ntw", "o\r\nthree\r\n"]).ask);
    await past.earlier();
    const three = past.rows.at(-1);
    expect(await past.earlier()).toBe(1);
    expect(texts(past)).toEqual(["one", "two", "three"]);
    expect(past.rows.at(-1)).toEqual(three);
    expect(new Set(past.rows.map(({ key }) => key)).size).toBe(3);
  });

  it("shows a line of a megabyte in rows", async () => {
    const past = new Past("s", SIZE, serverOf(["x".repeat(1_000_000)]).ask);
    await past.earlier();
    expect(past.rows.length).toBe(1_000_000 / MAX_ROW);
    expect(past.rows.every(({ text }) => text.length <= MAX_ROW)).toBe(true);
  });

  it("is bounded", async () => {
    const past = new Past("s", SIZE, serverOf(Array.from({ length: 40 }, () => "line\r\n".repeat(43_690))).ask);
    while (past.more) await past.earlier();
    expect(past.full).toBe(true);
    expect(past.rows.length).toBeLessThan(300_000);
  });

  it("ends with a server that does not go back", async () => {
    const stubborn = async (): Promise<Message> => ({ type: "history", from_seq: 5, to_seq: 5, data: "x\r\n", more: true });
    const past = new Past("s", SIZE, stubborn);
    await past.earlier();
    await past.earlier();
    expect([texts(past), past.more]).toEqual([["x"], false]);
  });

  it("that is empty has no rows", async () => {
    const past = new Past("s", SIZE, async () => ({ type: "history" }));
    expect(await past.earlier()).toBe(0);
    expect([past.rows, past.more]).toEqual([[], false]);
  });
});

describe("a search", () => {
  it("finds rows in any case", () => {
    const rows = ["Error: a", "fine", "an error"].map((text, key) => ({ key, text }));
    expect(found(rows, "ERROR")).toEqual([0, 2]);
    expect(found(rows, "")).toEqual([]);
  });
});
