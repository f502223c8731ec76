import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { adoptionOf } from "../src/workspace/adopt";
import { sumOf, usedOf } from "../src/workspace/agent/talk";
import { Events } from "../src/workspace/agent/events";
import { usedWords } from "../src/workspace/agent/used";
import { Asker } from "../src/workspace/asker";
import { chosen } from "../src/workspace/filter";
import { movedOf, moveOf } from "../src/workspace/move";
import { inOrder, withSession, without } from "../src/workspace/order";
import { sessionOf, type Message, type Session } from "../src/workspace/protocol";
import { Scout } from "../src/workspace/scout";

const session = (id: string, more: object = {}): Session => sessionOf({ id, mode: "sdk", ...more })!;

/** Numbers that look random, and are the same each time. */
function* numbers(): Generator<number> {
  for (let state = 7; ; ) yield (state = (state * 16_807) % 2_147_483_647);
}

describe("the order of sessions", () => {
  const time = (n: number) => new Date(1.7e12 + (n % 50) * 1000).toISOString();

  it("has running ones first, then those used last, and each news keeps it", () => {
    const random = numbers();
    const next = () => random.next().value as number;
    let list: Session[] = [];
    const all = new Map<string, Session>();
    for (let step = 0; step < 2000; step += 1) {
      const each = session(`s${next() % 200}`, { status: next() % 3 ? "running" : "exited", last_active: time(next()) });
      list = withSession(list, each);
      all.set(each.id, each);
      if (next() % 10 === 0) {
        list = without(list, each.id);
        all.delete(each.id);
      }
    }
    expect(list).toEqual(inOrder([...all.values()]));
    expect(list.findIndex(({ status }) => status === "exited")).toBe(list.filter(({ status }) => status !== "exited").length);
  });

  it("is kept among ten thousand in no time", () => {
    const list = inOrder(Array.from({ length: 10_000 }, (_, n) => session(`s${n}`, { last_active: new Date(1.7e12 + n).toISOString() })));
    let now = list;
    const before = performance.now();
    for (let n = 0; n < 200; n += 1) now = withSession(now, { ...now[5000 + n]!, lastActive: new Date(1.8e12 + n).toISOString() });
    expect((performance.now() - before) / 200).toBeLessThan(5);
    expect(now.length).toBe(10_000);
  });
});

describe("a filter", () => {
  const all = [session("a", { name: "Build", working_dir: "/p" }), session("b", { name: "hidden one", hidden: true }), session("c", { name: "asker", hidden: true })];
  const ids = (words: string, hidden = false, asking = new Set<string>()) => chosen(all, { words, hidden }, asking).map(({ id }) => id);

  it("wants every word somewhere", () => {
    expect(ids("")).toEqual(["a"]);
    expect(ids("bui /p")).toEqual(["a"]);
    expect(ids("build /q")).toEqual([]);
  });

  it("shows hidden ones when they are wanted, or ask something", () => {
    expect(ids("", true)).toEqual(["a", "b", "c"]);
    expect(ids("", false, new Set(["c"]))).toEqual(["c", "a"]);
  });
});

describe("adopting a process", () => {
  it("takes numbers of processes only", () => {
    expect(adoptionOf({ pid: " 42 ", name: "", directory: " /p " })).toEqual({ type: "adopt_session", pid: 42, name: null, working_dir: "/p" });
    for (const pid of ["", "0", "-1", "4.2", "x", "2147483648", "99999999999"]) expect(adoptionOf({ pid, name: "", directory: "" })).toBeNull();
  });
});

describe("a move", () => {
  const target = { node: "n", directory: "", interrupt: true };

  it("is asked about before it is done", () => {
    expect(moveOf("s", target, true)).toEqual({ type: "move_session", session_id: "s", node_id: "n", working_dir: null, interrupt: true, dry_run: true, accept_losses: false });
    expect(moveOf("s", target, false)).toMatchObject({ dry_run: false, accept_losses: true });
  });

  it("is read leniently", () => {
    expect(movedOf({ type: "session_moved", node_id: "n", stays: ["the conversation", 7, ""] })).toEqual({ machine: "n", directory: "", stays: ["the conversation"] });
    expect(movedOf({ type: "session_moved", node_name: "lab", stays: "all" })).toMatchObject({ machine: "lab", stays: [] });
  });
});

describe("news of another session", () => {
  it("answers no request", async () => {
    const asker = new Asker(() => true);
    const renamed = asker.ask({ type: "rename_session", session_id: "a", name: "n" }, ["session_status_changed"]);
    expect(asker.take({ type: "session_status_changed", session: { id: "b" } })).toBe(false);
    asker.take({ type: "session_status_changed", session: { id: "a" } });
    await expect(renamed).resolves.toMatchObject({ session: { id: "a" } });
  });
});

describe("usage", () => {
  it("is summed, and told in words", () => {
    const turns = [usedOf({ type: "usage", input_tokens: 1000, output_tokens: 7, cost_usd: 0.25 }), usedOf({ type: "usage", input_tokens: 234 })];
    expect(sumOf(turns)).toEqual({ input: 1234, output: 7, cost: 0.25 });
    expect(usedWords(sumOf(turns))).toBe("1,234 tokens read, 7 written, $0.2500");
    expect(usedWords(sumOf([usedOf({ type: "usage", cost_usd: null })]))).toBe("0 tokens read, 0 written");
  });

  it("stands behind its turn", () => {
    const events = new Events();
    events.live(1, { kind: "turn_started", turn: 3, prompt: "p" });
    events.live(2, { kind: "text", text: "t", delta: false });
    events.live(3, { kind: "turn_ended", turn: 3, outcome: "completed" });
    const used = { input: 1, output: 2, cost: null };
    const { entries, turn } = events.read(new Map([[3, used]]));
    expect(entries.map(({ kind }) => kind)).toEqual(["prompt", "text", "used"]);
    expect([entries[2], turn]).toEqual([{ kind: "used", key: expect.any(Number), used }, 3]);
    expect(events.read().entries.length).toBe(2);
  });
});

describe("the scout", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    vi.stubGlobal("document", { visibilityState: "visible" });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("visits only those who ask what is not known, where the server says how many do", () => {
    const sent: Message[] = [];
    const known = new Map<string, number>();
    let all = [session("quiet", { status: "running", asks: 0 }), session("asks", { status: "running", asks: 1 }), session("known", { status: "running", asks: 1 })];
    known.set("known", 1);
    const scout = new Scout({ send: (message) => sent.push(message) > 0, sessions: () => all, known: (id) => known.get(id) ?? 0, found: (id, open) => known.set(id, open.length) });
    scout.start();
    scout.now();
    scout.take({ type: "session_history", session_id: "asks" });
    scout.take({ type: "permission_request", session_id: "asks", request_id: "q", tool: "Bash", input: {} });
    vi.advanceTimersByTime(60_000);
    expect(sent.map(({ type, session_id }) => `${type} ${session_id ?? ""}`.trim())).toEqual(["attach asks", "detach"]);
    all = [session("quiet", { status: "running", asks: 2 })];
    vi.advanceTimersByTime(4000);
    expect(sent.at(-1)).toMatchObject({ type: "attach", session_id: "quiet" });
    scout.stop();
  });
});
