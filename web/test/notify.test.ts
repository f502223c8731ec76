import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { transfersOf } from "../src/mesh/answers";
import { wishesOf } from "../src/notify/choices";
import { AgentNews, RoomNews, TransferNews, type Agents } from "../src/notify/news";
import { Tabs, type Channel } from "../src/notify/tabs";
import { titled, unseen } from "../src/notify/unseen";
import { cacheName, isPageOf, kindOf, outdated } from "../src/offline/shell";
import { sessionOf, type Session } from "../src/workspace/protocol";

const ID = "11111111-1111-1111-1111-111111111111";
const agent = (status: string, more: object = {}): Session => sessionOf({ id: ID, name: "helper", mode: "sdk", provider: "claude", status, last_seq: 7, working_dir: "/w", ...more })!;
const agents = (session: Session, ...asking: string[]): Agents => ({ sessions: [session], asking: new Set(asking) });

describe("news of agents", () => {
  test("are questions and ends of turns, and nothing that was so before", () => {
    const news = new AgentNews();
    expect(news.take(agents(agent("running"), ID))).toEqual([]);
    expect(news.take(agents(agent("running")))).toEqual([]);
    expect(news.over).toEqual([`asks/${ID}`]);
    expect(news.take(agents(agent("running"), ID))).toEqual([{ key: `asks/${ID}`, kind: "asks", title: "helper asks for permission", body: "/w", href: `#/workspace/${ID}` }]);
    expect(news.take(agents(agent("running"), ID))).toEqual([]);
    expect(news.take(agents(agent("idle")))).toMatchObject([{ key: `turn/${ID}/7`, kind: "turns", title: "helper has ended its turn" }]);
    expect(news.take(agents(agent("idle")))).toEqual([]);
  });

  test("say when an agent is gone, and leave out hidden ones and terminals", () => {
    for (const [more, titles] of [[{}, ["helper has ended"]], [{ hidden: true }, []], [{ mode: "pty" }, []]] as const) {
      const news = new AgentNews();
      news.take(agents(agent("running", more)));
      expect(news.take(agents(agent("exited", more))).map(({ title }) => title)).toEqual(titles);
    }
  });
});

describe("news of rooms", () => {
  const lenders = (...present: string[]) => ({ room: { id: "r", name: "Lab" }, present: new Map(present.map((name) => [name, name])) });

  test("are those who left, once", () => {
    const news = new RoomNews();
    expect(news.take([lenders("Ann", "Ben")])).toEqual([]);
    expect(news.take([lenders("Ben", "Cy")])).toMatchObject([{ key: "room/r/Ann", kind: "rooms", title: "Ann left Lab" }]);
    expect(news.take([lenders("Ben", "Cy")])).toEqual([]);
    expect(news.take([])).toEqual([]);
    expect(news.take([lenders()])).toEqual([]);
  });
});

describe("news of transfers", () => {
  const transfers = (...states: string[]) => transfersOf({ transfers: states.map((state, n) => ({ id: `t${n}`, model: "org/m", direction: "in", state, detail: "why" })) });

  test("are those that came or failed since it first looked", () => {
    const news = new TransferNews();
    expect(news.take(transfers("done", "running"))).toEqual([]);
    expect(news.take(transfers("done", "done", "failed", "cancelled"))).toMatchObject([{ key: "transfer/t1", title: "org/m is here" }, { key: "transfer/t2", title: "org/m did not come", body: "why" }]);
    expect(news.take(transfers("done", "done", "failed", "cancelled"))).toEqual([]);
  });

  test("are not those that go to others", () => {
    const news = new TransferNews();
    news.take([]);
    expect(news.take(transfers("done").map((each) => ({ ...each, outgoing: true })))).toEqual([]);
  });
});

describe("tabs of the same browser", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Channels that carry everything to all others, at once. */
  function channels(count: number): Channel[] {
    const listeners: ((event: MessageEvent) => void)[] = [];
    return Array.from({ length: count }, (_, own) => ({
      postMessage: (data: unknown) => listeners.forEach((listener, at) => at !== own && listener({ data } as MessageEvent)),
      addEventListener: (_type: "message", listener: (event: MessageEvent) => void) => void (listeners[own] = listener),
      close: () => undefined,
    }));
  }

  const claimed = async (...claims: Promise<boolean>[]) => {
    await vi.advanceTimersByTimeAsync(200);
    return Promise.all(claims);
  };

  test("give each notice once, whoever is first", async () => {
    const [a, b, c] = channels(3).map((channel, at) => new Tabs(channel, `tab-${at}`, () => false)) as [Tabs, Tabs, Tabs];
    expect(await claimed(b.claims("k", "#/"), c.claims("k", "#/"), a.claims("k", "#/"))).toEqual([false, false, true]);
    expect(await claimed(b.claims("k", "#/"))).toEqual([false]);
    expect(await claimed(c.claims("other", "#/"))).toEqual([true]);
    expect(await claimed(a.claims("other", "#/"))).toEqual([false]);
  });

  test("give none that is looked at in one of them", async () => {
    const [first, second] = channels(2) as [Channel, Channel];
    const away = new Tabs(first, "a", () => false);
    new Tabs(second, "b", (href) => href === "#/workspace/1");
    expect(await claimed(away.claims("k", "#/workspace/1"), away.claims("l", "#/workspace/2"))).toEqual([false, true]);
  });

  test("give the next one of the same agent once the first is over", async () => {
    const [a, b] = channels(2).map((channel, at) => new Tabs(channel, `tab-${at}`, () => false)) as [Tabs, Tabs];
    expect(await claimed(a.claims("asks/1", "#/"), b.claims("asks/1", "#/"))).toEqual([true, false]);
    a.forget(["asks/1"]);
    expect(await claimed(a.claims("asks/1", "#/"))).toEqual([false]);
    a.forget(["asks/1"]);
    b.forget(["asks/1"]);
    expect(await claimed(b.claims("asks/1", "#/"))).toEqual([true]);
  });

  test("forget in time, and bear nonsense and the lack of a channel", async () => {
    const [channel, other] = channels(2) as [Channel, Channel];
    const tab = new Tabs(channel, "a", () => false);
    for (const nonsense of [null, 7, "x", {}, { type: "given" }, { type: "given", key: 3, href: "", by: "b" }]) other.postMessage(nonsense);
    expect(await claimed(tab.claims("k", "#/"))).toEqual([true]);
    await vi.advanceTimersByTimeAsync(121_000);
    expect(await claimed(tab.claims("k", "#/"))).toEqual([true]);
    expect(await claimed(new Tabs(null, "a", () => false).claims("k", "#/"))).toEqual([true]);
  });
});

describe("choices and titles", () => {
  test("are read from what was kept", () => {
    expect([...wishesOf("turns sound nonsense asks")]).toEqual(["asks", "turns", "sound"]);
    expect(wishesOf(null).size).toBe(0);
  });

  test("count what is unseen", () => {
    expect(titled("Rooms · Warren")).toBe("Rooms · Warren");
    unseen.value = 2;
    expect(titled("Rooms · Warren")).toBe("(2) Rooms · Warren");
    unseen.value = 0;
  });
});

describe("the service worker", () => {
  const scope = "https://example.org/warren/";
  const shell = { assets: ["assets/index-1a.js"], first: ["assets/index-1a.js"] };
  const kind = (path: string, mode = "cors", method = "GET") => kindOf({ method, mode, url: new URL(path, scope).href }, scope, shell);

  test("answers for the page and its own files only", () => {
    expect([kind("", "navigate"), kind("?x=1", "navigate"), kind("#/play", "navigate"), kind("assets/index-1a.js")]).toEqual(["page", "page", "page", "asset"]);
    for (const path of ["v1/models", "health", "metrics", "admin/keys", "ws", "sw.js", "manifest.webmanifest", "assets/other-2b.js", "assets/index-1a.js?x", "../assets/index-1a.js", "https://elsewhere.org/warren/assets/index-1a.js"]) expect(kind(path)).toBe("other");
    for (const path of ["v1/models", "rooms/CODE", "../", "assets/index-1a.js"]) expect(kind(path, "navigate")).toBe("other");
    expect(kind("", "navigate", "POST")).toBe("other");
  });

  test("deletes caches of earlier builds at its own scope only", () => {
    const [old, now] = [cacheName(scope, "1"), cacheName(scope, "2")];
    const others = [cacheName("https://example.org/", "1"), "another program's"];
    expect(outdated([old, now, ...others], scope, now)).toEqual([old]);
  });

  test("keeps the page of its own build only", () => {
    expect(isPageOf('<script src="./assets/index-1a.js">', shell)).toBe(true);
    expect(isPageOf('<script src="./assets/index-2b.js">', shell)).toBe(false);
  });
});
