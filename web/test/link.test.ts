import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Link, type LinkState } from "../src/workspace/link";
import { sessionOf, type Message } from "../src/workspace/protocol";
import { Scout } from "../src/workspace/scout";

/** A socket whose other side is the test. */
class FakeSocket {
  static all: FakeSocket[] = [];
  bufferedAmount = 0;
  sent: Message[] = [];
  isClosed = false;
  onopen = () => {};
  onclose = () => {};
  onerror = () => {};
  onmessage = (_: { data: unknown }) => {};

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Message);
  }

  close(): void {
    this.isClosed = true;
  }

  says(message: Message): void {
    this.onmessage({ data: JSON.stringify(message) });
  }

  admit(): void {
    this.onopen();
    this.says({ type: "auth_result", success: true, message: "" });
  }
}

const links: Link[] = [];
const page = Object.assign(new EventTarget(), { visibilityState: "visible" });

beforeEach(() => {
  FakeSocket.all = [];
  page.visibilityState = "visible";
  vi.useFakeTimers();
  vi.stubGlobal("WebSocket", FakeSocket);
  vi.stubGlobal("document", page);
  vi.stubGlobal("window", new EventTarget());
});

afterEach(() => {
  links.splice(0).forEach((link) => link.stop());
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function started() {
  const states: LinkState[] = [];
  const messages: string[] = [];
  let opened = 0;
  const link = new Link({ url: () => "ws://x/ws", token: () => "t", onOpen: () => (opened += 1), onMessage: ({ type }) => messages.push(type), onState: (state) => states.push(state) });
  links.push(link);
  link.start();
  return { link, states, messages, opened: () => opened };
}

const last = () => FakeSocket.all.at(-1)!;

test("a connection begins with the token, and is made again when it is lost", () => {
  const { link, states, messages, opened } = started();
  expect(link.send({ type: "keepalive" })).toBe(false);
  last().admit();
  expect(last().sent).toEqual([{ type: "auth", token: "t" }]);
  last().says({ type: "session_killed", session_id: "a" });
  last().onclose();
  expect(states).toEqual(["connecting", "open", "away"]);
  vi.advanceTimersByTime(700);
  expect(FakeSocket.all.length).toBe(2);
  last().admit();
  expect(opened()).toBe(2);
  expect(messages).toEqual(["session_killed"]);
  link.stop();
  vi.advanceTimersByTime(100_000);
  expect(FakeSocket.all.length).toBe(2);
});

test("a refusal is not tried again", () => {
  const { states } = started();
  last().onopen();
  last().says({ type: "auth_result", success: false, message: "no" });
  vi.advanceTimersByTime(600_000);
  window.dispatchEvent(new Event("online"));
  expect(states).toEqual(["connecting", "refused"]);
  expect(FakeSocket.all.length).toBe(1);
});

test("a server that says nothing counts as lost, sooner after the page was asleep", () => {
  const { states } = started();
  vi.advanceTimersByTime(10_100);
  expect(states).toEqual(["connecting", "away"]);
  vi.advanceTimersByTime(1000);
  last().admit();
  page.dispatchEvent(new Event("visibilitychange"));
  expect(last().sent.at(-1)).toEqual({ type: "keepalive" });
  last().says({ type: "keepalive_ack" });
  vi.advanceTimersByTime(3100);
  expect(states.at(-1)).toBe("open");
  page.dispatchEvent(new Event("visibilitychange"));
  vi.advanceTimersByTime(3100);
  expect(states.at(-1)).toBe("away");
});

test("what was on its way before the connection died is no sign of life, but the answer may be behind a lot of it", () => {
  const { states } = started();
  last().admit();
  page.dispatchEvent(new Event("visibilitychange"));
  last().says({ type: "session_killed", session_id: "a" });
  vi.advanceTimersByTime(3100);
  expect(states.at(-1)).toBe("open");
  expect(last().sent.filter(({ type }) => type === "keepalive").length).toBe(2);
  vi.advanceTimersByTime(3100);
  expect(states.at(-1)).toBe("away");
  vi.advanceTimersByTime(1000);
  last().admit();
  page.dispatchEvent(new Event("visibilitychange"));
  for (let late = 0; late < 5; late += 1) {
    last().says({ type: "session_killed", session_id: "b" });
    vi.advanceTimersByTime(3100);
  }
  last().says({ type: "keepalive_ack" });
  vi.advanceTimersByTime(3100);
  expect(states.at(-1)).toBe("open");
});

test("a hidden page connects when it is seen again", () => {
  started();
  last().admit();
  page.visibilityState = "hidden";
  last().onclose();
  vi.advanceTimersByTime(60_000);
  expect(FakeSocket.all.length).toBe(1);
  page.visibilityState = "visible";
  page.dispatchEvent(new Event("visibilitychange"));
  expect(FakeSocket.all.length).toBe(2);
});

test("requests fail with their connection, and in time", async () => {
  const { link } = started();
  await expect(link.ask({ type: "list_sessions" }, "session_list")).rejects.toThrow("cannot be reached");
  last().admit();
  const lost = expect(link.ask({ type: "list_sessions" }, "session_list")).rejects.toThrow("lost");
  last().onclose();
  await lost;
  vi.advanceTimersByTime(700);
  last().admit();
  const late = expect(link.ask({ type: "list_sessions" }, "session_list")).rejects.toThrow("in time");
  await vi.advanceTimersByTimeAsync(20_100);
  await late;
});

test("agents in a turn are visited, one after the other, and what they ask is found", () => {
  const sent: Message[] = [];
  const found: [string, number][] = [];
  const session = (id: string, status: "running" | "idle") => sessionOf({ id, mode: "sdk", status, last_seq: 7 })!;
  const scout = new Scout({ send: (message) => sent.push(message) > 0, sessions: () => [session("a", "running"), session("b", "idle"), session("c", "running")], known: () => 0, found: (id, open) => found.push([id, open.length]) });
  scout.start();
  vi.advanceTimersByTime(4000);
  expect(sent).toEqual([{ type: "attach", session_id: "a", after_seq: 7 }]);
  scout.take({ type: "session_history", session_id: "a" });
  scout.take({ type: "permission_request", session_id: "a", request_id: "q", tool: "Bash", input: {} });
  vi.advanceTimersByTime(300);
  expect(found).toEqual([["a", 1]]);
  expect(sent.slice(1)).toEqual([{ type: "detach" }, { type: "attach", session_id: "c", after_seq: 7 }]);
  vi.advanceTimersByTime(5000 + 3999);
  expect(sent.length).toBe(3);
  vi.advanceTimersByTime(1);
  expect(sent.length).toBe(4);
  scout.stop();
});
