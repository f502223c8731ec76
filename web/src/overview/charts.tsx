import type { Point } from "../live/series";
import { keepsSeries, points } from "../live/state";
import { short, span } from "../live/words";
import { Chart, type Line } from "../parts/chart";

const seconds = (value: number) => span(value * 1000);

interface ChartKind {
  title: string;
  unit: string;
  format: (value: number) => string;
  lines: Line<Point>[];
}

const REQUESTS: ChartKind = { title: "Requests", unit: "per second", format: short, lines: [{ name: "ended", tone: "a", of: (p) => p.requests }] };
const ERRORS: ChartKind = { title: "Errors", unit: "per second", format: short, lines: [{ name: "failed", tone: "bad", of: (p) => p.errors }] };

/** What a server's metrics tell. */
const BY_METRICS: ChartKind[] = [
  REQUESTS,
  {
    title: "First byte", unit: "of an answer", format: seconds,
    lines: [
      { name: "median", tone: "a", of: (p) => p.firstMiddle },
      { name: "p95", tone: "b", of: (p) => p.firstSlow },
    ],
  },
  {
    title: "Tokens", unit: "per second", format: short,
    lines: [
      { name: "written", tone: "a", of: (p) => p.tokensOut },
      { name: "read", tone: "b", of: (p) => p.tokensIn },
    ],
  },
  ERRORS,
];

/** What a server tells that keeps the last minutes. */
const BY_SERIES: ChartKind[] = [
  REQUESTS,
  {
    title: "First token", unit: "median", format: seconds,
    lines: [
      { name: "token", tone: "a", of: (p) => p.firstToken },
      { name: "byte", tone: "b", of: (p) => p.firstMiddle },
    ],
  },
  { title: "Tokens", unit: "written per second", format: short, lines: [{ name: "written", tone: "a", of: (p) => p.tokensOut }] },
  ERRORS,
];

/** What happened in the last five minutes, as far as the server or this page knows. */
export function Charts() {
  const charts = keepsSeries.value ? BY_SERIES : BY_METRICS;
  return (
    <section class="charts" aria-label="The last five minutes">
      {charts.map((chart) => <Chart key={chart.title} {...chart} points={points.value} />)}
    </section>
  );
}
