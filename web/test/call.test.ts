import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { enter, signInWithToken } from "../src/api/access";
import { address, part } from "../src/api/address";
import { call, callJson, holdToken } from "../src/api/call";
import { asApiError } from "../src/api/errors";

type Server = (path: string, init: RequestInit) => Response | Promise<Response>;

function serve(server: Server): string[] {
  const asked: string[] = [];
  vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
    const path = url.replace("http://host/warren/", "");
    asked.push(`${init.method} ${path}`);
    return server(path, init);
  });
  return asked;
}

const json = (value: unknown, status = 200, headers = {}) => new Response(JSON.stringify(value), { status, headers });
const refused = (status: number) => json({ error: { message: "no", code: null } }, status);
const tokenOf = (init: RequestInit) => (init.headers as Record<string, string>)["authorization"];

const stored = new Map<string, string>();

beforeEach(() => {
  stored.clear();
  holdToken(null);
  vi.stubGlobal("document", { baseURI: "http://host/warren/#/play" });
  vi.stubGlobal("localStorage", { getItem: (k: string) => stored.get(k) ?? null, setItem: (k: string, v: string) => stored.set(k, v), removeItem: (k: string) => stored.delete(k) });
});
afterEach(() => vi.unstubAllGlobals());

describe("an address", () => {
  test("is below the page", () => {
    expect(address("v1/models")).toBe("http://host/warren/v1/models");
    expect(address(`admin/workers/${part("../../x/y?#")}/drain`)).toBe("http://host/warren/admin/workers/..%2F..%2Fx%2Fy%3F%23/drain");
  });
});

describe("a call", () => {
  test("tells what the server says, its code, and when to try again", async () => {
    serve(() => json({ error: { message: "queue full", code: "queue_full" } }, 429, { "retry-after": "5" }));
    await expect(call("x")).rejects.toMatchObject({ message: "queue full", code: "queue_full", status: 429, retryAfter: 5 });
  });

  test.each(["", "<html>", "null", "3", "[]"])("makes something of an error that is %s", async (body) => {
    serve(() => new Response(body, { status: 502 }));
    await expect(call("x")).rejects.toMatchObject({ message: "The server answered with status 502.", status: 502 });
  });

  test("tells a server that is away from one that refuses", async () => {
    serve(() => Promise.reject(new TypeError("Failed to fetch")));
    const error = asApiError(await call("x").catch((thrown: unknown) => thrown));
    expect(error.away).toBe(true);
    expect(error.advice).toContain("running");
  });

  test("has a deadline", async () => {
    serve((_, init) => new Promise((_, reject) => init.signal!.addEventListener("abort", () => reject(init.signal!.reason))));
    await expect(call("x", { deadline: 20 })).rejects.toMatchObject({ code: "timeout", status: 0 });
  });

  test("does not take nonsense for an answer", async () => {
    serve(() => new Response("<html>"));
    await expect(callJson("x")).rejects.toMatchObject({ message: "The server's answer makes no sense." });
  });
});

describe("getting in", () => {
  const local: Server = (path) => (path === "web/session" ? refused(404) : path.startsWith("admin") ? refused(401) : json({}));

  test("needs nothing at a local server", async () => {
    serve(local);
    expect(await enter()).toEqual({ access: { by: "open", name: null, models: true, admin: false, metrics: true, workspace: "no" } });
  });

  test("goes by a session where there is one", async () => {
    serve((path) => (path === "web/session" ? json({ name: "me", scopes: ["inference"], expires: null }) : path.startsWith("v1") ? json({}) : refused(403)));
    expect(await enter()).toMatchObject({ access: { by: "cookie", name: "me", models: true, admin: false } });
  });

  test("asks for a token where nothing is allowed without one", async () => {
    serve((path) => refused(path === "web/session" ? 404 : 401));
    expect(await enter()).toEqual({ signIn: true, error: null });
  });

  const strict: Server = (path, init) => (path === "web/session" ? refused(404) : tokenOf(init) === "Bearer wk_good" ? json({}) : refused(401));

  test("holds a token in memory, and stores it by choice only", async () => {
    serve(strict);
    expect(await signInWithToken(" wk_good\n", false)).toMatchObject({ by: "token", admin: true });
    expect(stored.size).toBe(0);
    await signInWithToken("wk_good", true);
    expect(stored.get("warren.token")).toBe("wk_good");
  });

  test("forgets a stored token that is no longer good, but not when the server is away", async () => {
    stored.set("warren.token", "wk_old");
    serve(strict);
    expect(await enter()).toMatchObject({ signIn: true, error: { status: 401 } });
    expect(stored.size).toBe(0);
    stored.set("warren.token", "wk_good");
    serve(() => Promise.reject(new TypeError("Failed to fetch")));
    expect(await enter()).toMatchObject({ signIn: true, error: { status: 0 } });
    expect(stored.size).toBe(1);
  });

  test("sends no token that a header cannot hold", async () => {
    const asked = serve(strict);
    await expect(signInWithToken("wk good", false)).rejects.toMatchObject({ status: 400 });
    await expect(signInWithToken("wk_gööd", false)).rejects.toMatchObject({ status: 400 });
    expect(asked).toEqual([]);
  });

  test("marks what the page sends, and says where the page lies", async () => {
    const sent: RequestInit[] = [];
    serve((path, init) => {
      sent.push(init);
      return path === "web/session" ? json({ name: "me", scopes: [], expires: null }) : json({});
    });
    await signInWithToken("wk_good", false);
    expect(sent.map(({ headers }) => (headers as Record<string, string>)["x-warren-page"])).toEqual(["1", "1", "1", "1"]);
    expect(JSON.parse(sent[0]!.body as string)).toEqual({ token: "wk_good", path: "/warren/" });
  });

  test("does not send a token twice where the server has sessions", async () => {
    serve((path, init) => {
      expect(tokenOf(init)).toBeUndefined();
      return path === "web/session" ? json({ name: "me", scopes: [], expires: null }) : json({});
    });
    expect(await signInWithToken("wk_good", true)).toMatchObject({ by: "cookie" });
    expect(stored.size).toBe(0);
  });
});
