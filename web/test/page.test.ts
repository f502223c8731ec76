import { describe, expect, test } from "vitest";
import { modelsOf, withEnded } from "../src/live/watch";
import { pauseAfter } from "../src/live/poll";
import { ago, bytes, short, span } from "../src/live/words";
import { matching, providersOf, tokensOf } from "../src/overview/requests";
import { best, fit } from "../src/palette/match";
import { niceTop } from "../src/parts/chart";
import { allTakePictures } from "../src/play/pictures";
import { hrefOf, routeOf } from "../src/route";
import type { EndedRequest, Model, Worker } from "../src/api/types";

const ended = (...numbers: number[]) => numbers.map((n) => ({ n }) as EndedRequest);

describe("requests that ended", () => {
  test("come each once, newest first", () => {
    expect(withEnded(ended(3, 2), ended(2, 4, 5, 3)).map(({ n }) => n)).toEqual([5, 4, 3, 2]);
    const known = ended(1);
    expect(withEnded(known, ended(1))).toBe(known);
    expect(withEnded(ended(...Array.from({ length: 2000 }, (_, i) => 2000 - i)), ended(2001))).toHaveLength(2000);
  });

  test("tell their tokens as far as they are known", () => {
    const told = (prompt_tokens: number | null, completion_tokens: number | null, estimated: boolean) => tokensOf({ prompt_tokens, completion_tokens, estimated } as EndedRequest);
    expect([told(12, 3, false), told(12_000, 0, true), told(3, null, false), told(null, null, false)]).toEqual(["12 → 3", "~12.0k → 0", "3 → –", "– → –"]);
  });

  test("name the providers that their answer was lost at, and are found by them", () => {
    const resumes = [{ from: "old", to: "new", characters: 7 }, { from: "new", to: null, characters: 9 }];
    const request = { provider: "new", resumes } as EndedRequest;
    expect([providersOf(request), providersOf({ provider: null } as EndedRequest)]).toEqual([["old", "new"], []]);
    expect(matching([request], "old")).toEqual([request]);
  });
});

describe("the models of machines", () => {
  test("are told once each, with all machines that have them", () => {
    const workers = [{ worker_name: "x", models: ["b", "a"] }, { worker_name: "y", models: ["a"] }] as Worker[];
    expect(modelsOf(workers)).toEqual([{ id: "a", machines: ["x", "y"] }, { id: "b", machines: ["x"] }]);
  });
});

describe("pauses", () => {
  test("grow with failures, and not for ever", () => {
    expect([0, 1, 2, 9].map((failures) => pauseAfter(failures, 2000))).toEqual([2000, 2000, 4000, 15_000]);
  });
});

describe("words for numbers", () => {
  test("are short", () => {
    expect([0, 0.25, 3, 9.54, 940, 12_345, 4_100_000].map(short)).toEqual(["0", "0.25", "3", "9.5", "940", "12.3k", "4.1M"]);
    expect([0, 0.2, 4, 1200, 12_000, 180_000, 5_400_000, 1e9].map(span)).toEqual(["0 ms", "<1 ms", "4 ms", "1.2 s", "12 s", "3 min", "1 h 30 min", "11 d"]);
    expect([10, 2048, 5e9].map(bytes)).toEqual(["10 B", "2.0 KiB", "4.7 GiB"]);
  });

  test("bear a clock that is off", () => {
    const now = Date.parse("2026-11-27T08:00:00Z");
    expect(ago("2026-11-27T09:00:00Z", now)).toBe("now");
    expect(ago("2026-11-27T07:59:48.900Z", now)).toBe("11 s");
    expect(ago("nonsense", now)).toBe("");
  });
});

describe("the top of a chart", () => {
  test("is round", () => expect([0, 0.3, 1, 7, 120].map(niceTop)).toEqual([1, 0.5, 1, 10, 200]));
});

describe("the palette", () => {
  test("finds by the beginnings of words", () => {
    const names = ["Overview", "New conversation", "Chat with qwen3", "Theme: dark"].map((name) => ({ name }));
    expect(best(names, "nc", 9)[0]!.name).toBe("New conversation");
    expect(best(names, "dark", 9)[0]!.name).toBe("Theme: dark");
    expect(best(names, "zzz", 9)).toEqual([]);
    expect(best(names, " ", 2)).toHaveLength(2);
    expect(fit("abc", "ac")).toBeGreaterThan(0);
  });
});

describe("pictures", () => {
  test("are for models that take them, or may", () => {
    const model = (more: Partial<Model>): Model => ({ id: "m", ...more });
    const [sees, blind, unknown] = [model({ capabilities: ["vision"] }), model({ capabilities: ["tools"] }), model({})];
    expect(allTakePictures([sees])).toBe(true);
    expect(allTakePictures([model({ architecture: { input_modalities: ["text", "image"], output_modalities: ["text"], modality: "text+image->text" } })])).toBe(true);
    expect(allTakePictures([sees, unknown])).toBeNull();
    expect(allTakePictures([unknown, blind])).toBe(false);
    expect(allTakePictures([undefined])).toBeNull();
  });
});

describe("addresses", () => {
  test("name pages, and nothing else", () => {
    for (const hash of ["#/", "#/play", "#/play/0a1b", "#/rooms", "#/admin"]) expect(hrefOf(routeOf(hash))).toBe(hash);
    for (const hash of ["", "#", "#/play/<img>", "#login=x", "#/other", "#/roomsx"]) expect(routeOf(hash)).toEqual({ page: "overview" });
  });
});
