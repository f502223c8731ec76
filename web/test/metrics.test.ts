import { describe, expect, test } from "vitest";
import { buckets, parseMetrics, quantile, since, sum } from "../src/api/metrics";
import { pointOf, pointsOf, readingOf, withPoint, withPoints, MAX_POINTS } from "../src/live/series";
import { inOrder } from "../src/overview/running";

const TEXT = `# HELP warren_requests Jobs ended, by outcome.
# TYPE warren_requests counter
warren_requests_total{model="a",outcome="answered"} 4
warren_requests_total{model="b \\"c\\" \\\\ {d}, e=\\"f\\"\\n",outcome="worker_failed"} 2
warren_requests_total{model="a",outcome="client_gone"} 1
warren_tokens_total{model="a",kind="completion"} 100
warren_time_to_first_byte_seconds_bucket{le="0.1",model="a"} 2
warren_time_to_first_byte_seconds_bucket{le="0.2",model="a"} 4
warren_time_to_first_byte_seconds_bucket{le="+Inf",model="a"} 4
warren_time_to_first_byte_seconds_bucket{le="0.1",model="b"} 0
warren_time_to_first_byte_seconds_bucket{le="0.2",model="b"} 4
warren_time_to_first_byte_seconds_bucket{le="+Inf",model="b"} 4
warren_workers 1 1795768297
# EOF
`;

describe("metrics", () => {
  test("have names, labels with escapes, and values", () => {
    const samples = parseMetrics(TEXT);
    expect(samples).toHaveLength(11);
    expect(samples[1]!.labels).toEqual({ model: 'b "c" \\ {d}, e="f"\n', outcome: "worker_failed" });
    expect(samples.at(-1)).toMatchObject({ name: "warren_workers", value: 1 });
    expect(sum(samples, "warren_requests_total")).toBe(7);
  });

  test.each(["", "x", "x{", 'x{a="1"', 'x{a="1} 2', "x{a=1} 2", "x y", "{} 1", "x 1e", 'x{__proto__="1"}', "\u0000 1"])(
    "that make no sense are passed over: %s",
    (line) => expect(parseMetrics(`${line}\ngood 1`)).toEqual([{ name: "good", labels: {}, value: 1 }]),
  );

  test("of any labels touch nothing else", () => {
    const [sample] = parseMetrics('x{__proto__="1",constructor="2"} 3');
    expect(sample!.value).toBe(3);
    expect(({} as Record<string, unknown>)["1"]).toBeUndefined();
  });
});

describe("a histogram", () => {
  const counts = buckets(parseMetrics(TEXT), "warren_time_to_first_byte_seconds");

  test("is summed over its models", () => {
    expect(counts).toEqual([[0.1, 2], [0.2, 8], [Infinity, 8]]);
  });

  test("gives quantiles within its buckets", () => {
    expect(quantile(counts, 0.25)).toBeCloseTo(0.1);
    expect(quantile(counts, 0.625)).toBeCloseTo(0.15);
    expect(quantile([[0.1, 0], [Infinity, 3]], 0.5)).toBe(0.1);
    expect(quantile([], 0.5)).toBeNull();
    expect(quantile([[0.1, 0], [Infinity, 0]], 0.5)).toBeNull();
  });

  test("counts anew after a restart", () => {
    expect(since([[1, 5]], [[1, 3]])).toEqual([[1, 2]]);
    expect(since([[1, 2]], [[1, 3]])).toEqual([[1, 2]]);
  });
});

describe("points of the charts", () => {
  const reading = readingOf(TEXT, 10_000);

  test("are rates between two readings", () => {
    const later = readingOf(TEXT.replace('outcome="answered"} 4', 'outcome="answered"} 14').replace("} 100", "} 300"), 12_000);
    expect(pointOf(later, reading)).toMatchObject({ requests: 5, errors: 0, tokensOut: 100, firstMiddle: null });
    expect(pointOf(reading, reading)).toBeNull();
  });

  test("are never negative, also when the server started anew", () => {
    const later = { ...reading, at: 12_000, requests: 1 };
    expect(pointOf(later, reading)!.requests).toBe(0.5);
  });

  test("are kept for a while", () => {
    const point = pointOf({ ...reading, at: 11_000 }, reading)!;
    let points = [point];
    for (let i = 0; i < MAX_POINTS + 10; i += 1) points = withPoint(points, point);
    expect(points).toHaveLength(MAX_POINTS);
  });
});

describe("a series that the server kept", () => {
  const series = { step_secs: 2, points: [{ at: 100, requests: 4, errors: 1, tokens: 60, first_token_ms: 250, first_byte_ms: null, queued: 1, in_flight: 2 }, { at: 102 }] };

  test("is rates, and seconds", () => {
    expect(pointsOf(series)).toEqual([
      { at: 100_000, requests: 2, errors: 0.5, tokensOut: 30, tokensIn: null, firstToken: 0.25, firstMiddle: null, firstSlow: null },
      { at: 102_000, requests: 0, errors: 0, tokensOut: 0, tokensIn: null, firstToken: null, firstMiddle: null, firstSlow: null },
    ]);
  });

  test("is read leniently", () => {
    expect(pointsOf({})).toEqual([]);
    expect(pointsOf({ step_secs: 0, points: [{ at: 1, requests: 2 }, { at: NaN }, null as never] })).toMatchObject([{ requests: 1 }]);
  });

  test("goes on where the points are, and replaces those that were told before", () => {
    const [first, second] = pointsOf(series);
    const grown = { ...second!, requests: 9 };
    expect(withPoints([first!, second!], [grown])).toEqual([first, grown]);
    expect(withPoints([first!], [])).toEqual([first]);
    expect(withPoints([], pointsOf({ points: Array.from({ length: 900 }, (_, at) => ({ at })) }))).toHaveLength(MAX_POINTS);
  });
});

describe("requests that run", () => {
  test("come before those that wait, the oldest first", () => {
    const all = [
      { id: "q1", state: "queued" as const, waiting_ms: 5 }, { id: "r1", state: "running" as const, running_ms: 5 },
      { id: "r2", state: "running" as const, running_ms: 9 }, { id: "q2", state: "queued" as const, waiting_ms: 50 }, { id: "?" },
    ];
    expect(inOrder(all).map(({ id }) => id)).toEqual(["r2", "r1", "?", "q2", "q1"]);
  });
});
