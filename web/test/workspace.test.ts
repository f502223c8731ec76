import { describe, expect, it } from "vitest";
import { Asker } from "../src/workspace/asker";
import { Events } from "../src/workspace/agent/events";
import { Inputs } from "../src/workspace/inputs";
import { pauseBefore } from "../src/workspace/link";
import { requestFor } from "../src/workspace/new_session";
import { Position } from "../src/workspace/position";
import { messageOf, outputOf, sessionOf, type Message } from "../src/workspace/protocol";
import { codeOf, withHeld } from "../src/workspace/terminal/keys";
import { safeAddress } from "../src/workspace/terminal/links";

const ID = "550e8400-e29b-41d4-a716-446655440000";

/** A frame of output, as the protocol has it. */
function frame(seq: bigint, text: Uint8Array | string, kind = 1): ArrayBuffer {
  const body = typeof text === "string" ? new TextEncoder().encode(text) : text;
  const bytes = new Uint8Array(25 + body.length);
  bytes[0] = kind;
  ID.replaceAll("-", "").match(/../g)!.forEach((digits, at) => (bytes[1 + at] = parseInt(digits, 16)));
  new DataView(bytes.buffer).setBigUint64(17, seq);
  bytes.set(body, 25);
  return bytes.buffer;
}

describe("frames", () => {
  it("have a session, a number and a text", () => {
    expect(outputOf(frame(0x1_0000_0001n, "é🐇"))).toEqual({ sessionId: ID, seq: 0x1_0000_0001, text: "é🐇" });
    expect(outputOf(frame(1n, ""))).toEqual({ sessionId: ID, seq: 1, text: "" });
    expect(outputOf(frame(1n, new Uint8Array([0x61, 0xff])))?.text).toBe("a\ufffd");
  });

  it("of other kinds, or too short, are none", () => {
    expect(outputOf(frame(1n, "x", 2))).toBeNull();
    expect(outputOf(new ArrayBuffer(24))).toBeNull();
    expect(outputOf(new ArrayBuffer(0))).toBeNull();
  });
});

describe("messages", () => {
  it("are objects with a type", () => {
    expect(messageOf('{"type":"attached"}')).toEqual({ type: "attached" });
    for (const text of ["", "7", "null", "[]", '{"type":7}', "{"]) expect(messageOf(text)).toBeNull();
  });

  it("describe sessions, whatever is missing", () => {
    const full = sessionOf({ id: ID, name: "n", mode: "pty", status: "detached", kind: { type: "shell", command: "bash" }, working_dir: "/p", node_id: "a", reachable: false, last_seq: 4, exit_code: null });
    expect(full).toMatchObject({ kind: "terminal", program: "bash", status: "detached", node: "a", reachable: false, lastSeq: 4, exitCode: null });
    expect(sessionOf({ id: ID, mode: "sdk", status: "of tomorrow" })).toMatchObject({ kind: "agent", program: "claude", status: "running", reachable: true });
    expect(sessionOf({ mode: "sdk" })).toBeNull();
    expect(sessionOf({ id: ID, name: "x".repeat(10_000) })!.name.length).toBe(300);
  });
});

describe("a position", () => {
  const history = (last_seq: number, snapshot: unknown = null): Message => ({ type: "session_history", session_id: ID, last_seq, snapshot });
  const snapshot = (seq: number) => ({ session_id: ID, seq, cols: 80, rows: 24, data: "screen" });
  const output = (seq: number) => ({ sessionId: ID, seq, text: `${seq} ` });

  function begun(): Position {
    const position = new Position(ID);
    expect(position.attach()["after_seq"]).toBeNull();
    expect(position.message(history(3, snapshot(3)))).toMatchObject({ do: "reset", snapshot: { seq: 3, data: "screen" } });
    return position;
  }

  it("begins with a screen and goes on with each output once", () => {
    const position = begun();
    expect(position.output(output(3))).toEqual({ do: "nothing" });
    expect(position.output(output(4))).toEqual({ do: "write", text: "4 " });
    expect(position.output(output(4))).toEqual({ do: "nothing" });
    expect(position.output({ ...output(5), sessionId: "another" })).toEqual({ do: "nothing" });
  });

  it("goes on after what it has, on another connection", () => {
    const position = begun();
    position.output(output(4));
    expect(position.attach()).toEqual({ type: "attach", session_id: ID, after_seq: 4 });
    expect(position.output(output(5))).toEqual({ do: "nothing" });
    expect(position.message(history(4))).toEqual({ do: "resumed" });
    expect(position.output(output(5))).toEqual({ do: "write", text: "5 " });
  });

  it("takes a screen in place of what is no longer there", () => {
    const position = begun();
    position.attach();
    expect(position.message(history(90, snapshot(90)))).toMatchObject({ do: "reset" });
    expect(position.output(output(91))).toMatchObject({ do: "write" });
    expect(position.message({ type: "session_snapshot", ...snapshot(99) })).toMatchObject({ do: "reset" });
    expect(position.output(output(99))).toEqual({ do: "nothing" });
    expect(position.output(output(100))).toMatchObject({ do: "write" });
  });

  it("asks for the whole screen after a gap, and after the end of the stream", () => {
    const position = begun();
    expect(position.output(output(5))).toEqual({ do: "attach" });
    expect(position.output(output(6))).toEqual({ do: "nothing" });
    expect(position.attach()["after_seq"]).toBeNull();
    position.message(history(6, snapshot(6)));
    expect(position.message({ type: "client_notice", notice: { code: "output_backpressure", session_id: ID } })).toEqual({ do: "attach" });
    expect(position.message({ type: "client_notice", notice: { code: "output_lagged", session_id: ID } })).toEqual({ do: "nothing" });
  });

  it("takes sizes that terminals can have", () => {
    const position = begun();
    expect(position.message({ type: "terminal_size", session_id: ID, cols: 120, rows: 40 })).toEqual({ do: "size", cols: 120, rows: 40 });
    expect(position.message({ type: "terminal_size", session_id: ID, cols: 2, rows: 1 })).toEqual({ do: "nothing" });
    expect(position.message({ type: "session_snapshot", ...snapshot(7), cols: 1e9 })).toEqual({ do: "nothing" });
  });
});

describe("inputs", () => {
  function inputs() {
    const sent: Message[] = [];
    const line = { up: true };
    let next = 0;
    const typed = new Inputs(ID, (message) => line.up && sent.push(message) > 0, () => `i${(next += 1)}`);
    return { sent, line, typed };
  }

  it("are sent at once, and again with the same ids on another connection", () => {
    const { sent, line, typed } = inputs();
    typed.type("a");
    typed.type("b");
    typed.acknowledged("i1");
    line.up = false;
    typed.type("c");
    typed.type("d");
    line.up = true;
    typed.again();
    expect(sent.map(({ data, input_id }) => `${data} ${input_id}`).slice(0, 3)).toEqual(["a i1", "b i2", "b i2"]);
    expect(sent.slice(3).map(({ data }) => data).join("")).toBe("cd");
    expect(typed.pending).toBe(3);
  });

  it("wait while many are not acknowledged, and are bounded", () => {
    const { sent, typed } = inputs();
    for (let at = 0; at < 40; at += 1) typed.type("x");
    expect(sent.length).toBe(16);
    typed.acknowledged("i1");
    expect(sent.at(-1)!["data"]).toBe("x".repeat(24));
    expect(typed.type("y".repeat(2_000_000))).toBe(false);
  });

  it("are cut between characters", () => {
    const { sent, typed } = inputs();
    typed.type(`${"a".repeat(32 * 1024 - 1)}🐇b`);
    expect(sent.map(({ data }) => String(data).length)).toEqual([32 * 1024 - 1, 3]);
  });
});

describe("requests", () => {
  it("are open one at a time, so that an error answers the right one", async () => {
    const sent: Message[] = [];
    const asker = new Asker((message) => sent.push(message) > 0);
    const first = asker.ask({ type: "list_sessions" }, ["session_list"]);
    const second = asker.ask({ type: "kill_session", session_id: ID }, ["session_killed"]);
    expect(asker.take({ type: "session_unknown", session_id: ID })).toBe(false);
    expect(asker.take({ type: "session_list", sessions: [] })).toBe(true);
    await first;
    expect(sent.length).toBe(2);
    expect(asker.take({ type: "session_killed", session_id: "another" })).toBe(false);
    asker.take({ type: "error", message: "no" });
    await expect(second).rejects.toThrow("no");
  });

  it("fail when the connection is lost", async () => {
    const asker = new Asker(() => true);
    const asked = [asker.ask({ type: "list_sessions" }, ["session_list"]), asker.ask({ type: "list_teams" }, ["team_list"])];
    asker.lose();
    for (const each of asked) await expect(each).rejects.toThrow("lost");
  });
});

describe("an agent's events", () => {
  it("are shown in the order of their numbers, each once", () => {
    const events = new Events();
    events.live(4, { kind: "text", text: "lo", delta: true });
    events.stored([{ number: 1, event: { kind: "turn_started", turn: 1, prompt: "Say it" } }, { number: 3, event: { kind: "text", text: "Hel", delta: false } }, { number: 4, event: { kind: "text", text: "lo", delta: true } }], false);
    expect(events.read()).toEqual({ busy: true, turn: 1, entries: [{ kind: "prompt", key: 1, text: "Say it" }, { kind: "text", key: 3, text: "Hello", unasked: false }] });
  });

  it("tell tools and ends of turns", () => {
    const events = new Events();
    events.live(1, { kind: "turn_started", turn: 1 });
    events.live(2, { kind: "tool_started", id: "t", name: "Bash", input: { command: "ls" } });
    events.live(3, { kind: "tool_started", id: "u", name: "Read", input: { path: "a", n: 1 } });
    events.live(4, { kind: "tool_finished", id: "t", ok: true, output: "src" });
    events.live(5, { kind: "turn_ended", turn: 1, outcome: "failed", error: "exit 1" });
    const { entries, busy } = events.read();
    expect(busy).toBe(false);
    expect(entries[0]).toMatchObject({ kind: "tool", input: "ls", output: "src", state: "done" });
    expect(entries[1]).toMatchObject({ kind: "tool", state: "failed" });
    expect(entries[2]).toMatchObject({ kind: "notice", text: "The turn failed: exit 1", bad: true });
  });

  it("before the known ones come first", () => {
    const events = new Events();
    expect(events.stored([{ number: 5, event: { kind: "text", text: "b", delta: false } }], true)).toBe(true);
    expect(events.oldest).toBe(5);
    expect(events.earlier([{ number: 2, event: { kind: "text", text: "a", delta: false } }])).toBe(true);
    expect(events.stored([{ number: 5, event: { kind: "text", text: "b", delta: false } }], true)).toBe(false);
    expect(events.read().entries).toMatchObject([{ text: "a" }, { text: "b" }]);
  });

  it("of another time are dropped when the newest do not reach them", () => {
    const events = new Events();
    events.live(1, { kind: "text", text: "old", delta: false });
    events.stored([{ number: 900, event: { kind: "text", text: "new", delta: false } }], true);
    expect(events.read().entries).toMatchObject([{ text: "new" }]);
  });

  it("are bounded", () => {
    const events = new Events();
    for (let number = 1; number <= 21_000; number += 1) events.live(number, { kind: "notice", message: "n" });
    expect(events.read().entries.length).toBe(20_000);
    expect(events.earlier([{ number: 0, event: { kind: "notice", message: "n" } }])).toBe(false);
  });
});

describe("keys", () => {
  it("are typed with what is held", () => {
    expect(withHeld("c", { ctrl: true, alt: false })).toBe("\x03");
    expect(withHeld("x", { ctrl: true, alt: true })).toBe("\x1b\x18");
    expect(withHeld("é", { ctrl: true, alt: false })).toBe("é");
    expect(codeOf("Up", { ctrl: false, alt: false }, false)).toBe("\x1b[A");
    expect(codeOf("Up", { ctrl: false, alt: false }, true)).toBe("\x1bOA");
    expect(codeOf("Left", { ctrl: true, alt: false }, true)).toBe("\x1b[1;5D");
  });
});

describe("links of a terminal", () => {
  it("lead to http and https only", () => {
    expect(safeAddress("https://example.org/a")).toBe("https://example.org/a");
    for (const text of ["javascript:alert(1)", "file:///etc/passwd", "data:text/html,x", "//x", `https://x/${"a".repeat(5000)}`]) expect(safeAddress(text)).toBeNull();
  });
});

describe("new sessions", () => {
  const wish = { name: " ", directory: " /p ", node: "", command: "", provider: "codex", model: "" };
  it("are asked for as the protocol has it", () => {
    expect(requestFor("agent", wish)).toEqual({ type: "new_session", mode: "sdk", provider: "codex", model: null, name: null, working_dir: "/p", node_id: null });
    expect(requestFor("terminal", { ...wish, directory: " " })).toMatchObject({ working_dir: "~" });
    expect(requestFor("terminal", { ...wish, command: "top" })).toMatchObject({ type: "open_terminal", command: "sh", args: ["-c", "top"] });
  });
});

describe("pauses between attempts", () => {
  it("grow to a bound", () => {
    expect(pauseBefore(1, 0.5)).toBe(400);
    expect(pauseBefore(3, 0.5)).toBe(1600);
    expect(pauseBefore(100, 1)).toBeLessThanOrEqual(18_750);
  });
});
