import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Pace } from "../src/workspace/terminal/pace";

describe("the pace of a terminal", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  function paced() {
    const shown: string[] = [];
    return { shown, pace: new Pace((text) => shown.push(text), () => Date.now()) };
  }

  it("shows little at once, however often it comes", () => {
    const { shown, pace } = paced();
    for (let n = 0; n < 1000; n += 1) {
      pace.put("key");
      vi.advanceTimersByTime(5);
    }
    expect(shown.length).toBe(1000);
  });

  it("shows a flood in few pieces, all of it, in order", () => {
    const { shown, pace } = paced();
    const pieces = Array.from({ length: 400 }, (_, n) => `${n}`.padEnd(16_384, "."));
    for (const piece of pieces) {
      pace.put(piece);
      vi.advanceTimersByTime(1);
    }
    vi.advanceTimersByTime(50);
    expect(shown.join("")).toBe(pieces.join(""));
    expect(shown.length).toBeLessThan(20);
  });

  it("shows at once again what comes after a flood", () => {
    const { shown, pace } = paced();
    pace.put("x".repeat(100_000));
    expect(shown).toEqual([]);
    vi.advanceTimersByTime(50);
    expect(shown.length).toBe(1);
    vi.advanceTimersByTime(50);
    pace.put("key");
    expect(shown.at(-1)).toBe("key");
  });

  it("shows what waits when that is asked for, once", () => {
    const { shown, pace } = paced();
    pace.put("x".repeat(100_000));
    pace.flush();
    vi.advanceTimersByTime(1000);
    expect(shown.map((text) => text.length)).toEqual([100_000]);
  });
});
