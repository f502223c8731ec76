import { describe, expect, test, vi } from "vitest";
import { browserName } from "../src/admin/browser_name";
import { asked } from "../src/admin/new_key";
import { isOnlyHere } from "../src/api/address";
import { eventData, opened } from "../src/api/rooms";
import { roomCodeIn } from "../src/guest/code";
import { happeningOf, modelsIn } from "../src/live/room";
import type { Participant } from "../src/api/rooms";

const lender = (nickname: string, model: string, models?: string[]) => ({ id: nickname, nickname, model, models, status: "online" }) as Participant;

describe("a room's address", () => {
  test("has the code, and nothing else", () => {
    expect(roomCodeIn("#room=swift-eagle-42")).toBe("swift-eagle-42");
    expect(roomCodeIn("#room=K7MPX2")).toBe("K7MPX2");
    for (const hash of ["", "#/", "#room=", "#room=a/b", "#room=abc", "#room=<img>", "#room=K7MPX2&x"]) expect(roomCodeIn(hash)).toBeNull();
  });
});

describe("entering a room", () => {
  const code = "K7MPX2";

  test("shows nobody's session or token", () => {
    expect(opened({ code, password: null }, "p")).toEqual({ path: "p", call: { session: false, token: null } });
  });

  test("shows the password in a header where one can hold it, else in the query", () => {
    expect(opened({ code, password: "open-sesame" }, "p").call.token).toBe("open-sesame");
    expect(opened({ code, password: "zwei wörter" }, "p?ids=true")).toEqual({ path: "p?ids=true&password=zwei%20w%C3%B6rter", call: { session: false, token: null } });
  });
});

describe("the models of a room", () => {
  test("are any, and each by its name with those who lend it", () => {
    const found = modelsIn([lender("Ann", "llama3", ["llama3", "qwen3"]), lender("Ben", "llama3")]);
    expect(found).toEqual([{ id: "*", machines: ["Ann", "Ben"] }, { id: "llama3", machines: ["Ann", "Ben"] }, { id: "qwen3", machines: ["Ann"] }]);
  });

  test("are none while nobody lends one", () => expect(modelsIn([])).toEqual([]));
});

describe("what happens in a room", () => {
  const told = (name: string, data: object) => happeningOf({ name, data }, (id) => (id === "p1" ? "Ann" : "somebody"))?.text;

  test("is told in words", () => {
    expect(told("llm.request", { participantId: "p1", model: "model:llama3" })).toBe("Ann is asked for llama3.");
    expect(told("llm.request", { participantId: "p1", model: "*" })).toBe("Ann is asked.");
    expect(told("llm.complete", { participantId: "p1", metrics: { outputTokens: 12, tokensPerSecond: 41.13 } })).toBe("Ann answered, 12 tokens, 41.1 tok/s.");
    expect(told("llm.error", { participantId: "x", error: "refused" })).toBe("somebody failed: refused");
    expect(told("participant.joined", { id: "p9", nickname: "Cem" })).toBe("Cem is here.");
    expect(told("llm.token", {})).toBeUndefined();
  });

  test.each(["", "null", "3", '{"data":7}', "{}"])("bears data that make no sense: %s", (text) => expect(eventData(text)).toEqual({}));
});

describe("a new key", () => {
  test("asks for what was said only", () => {
    expect(asked(" me ", ["inference"], "", "", 0, 0)).toEqual({ name: "me", scopes: ["inference"] });
    expect(asked("me", ["admin"], "a, llama*,", "60", 1, 0)).toEqual({
      name: "me", scopes: ["admin"], models: ["a", "llama*"], limits: { rpm: 60 }, expires_at: "1970-01-02T00:00:00.000Z",
    });
  });
});

describe("a browser", () => {
  test("is named in two words, from the beginning of what it says of itself", () => {
    const named = (told: string) => browserName(told.slice(0, 100));
    expect(named("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")).toBe("Firefox on Linux");
    expect(named("Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Mobile Safari/537.36")).toBe("Chrome on Android");
    expect(named("Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5")).toBe("Safari on iPhone");
    expect([named("curl/8"), named("")]).toEqual(["curl/8", "A browser"]);
  });
});

describe("an address", () => {
  test("that only this machine reaches is known", () => {
    const here = (hostname: string) => {
      vi.stubGlobal("location", { hostname });
      return isOnlyHere();
    };
    expect(["localhost", "127.0.0.1", "[::1]", "a.localhost"].every(here)).toBe(true);
    expect(["192.168.1.20", "localhost.example.org", "gpu.example"].some(here)).toBe(false);
    vi.unstubAllGlobals();
  });
});
