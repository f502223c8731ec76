import type { Point } from "../live/series";
import { points } from "../live/state";
import { short, span } from "../live/words";
import { Chart, type Line } from "../parts/chart";

const seconds = (value: number) => span(value * 1000);

interface ChartKind {
  title: string;
  unit: string;
  format: (value: number) => string;
  lines: Line<Point>[];
}

const CHARTS: ChartKind[] = [
  { title: "Requests", unit: "per second", format: short, lines: [{ name: "ended", tone: "a", of: (p) => p.requests }] },
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
  { title: "Errors", unit: "per second", format: short, lines: [{ name: "failed", tone: "bad", of: (p) => p.errors }] },
];

/** What happened in the last five minutes, as far as this page was open. */
export function Charts() {
  return (
    <section class="charts" aria-label="The last five minutes">
      {CHARTS.map((chart) => <Chart key={chart.title} {...chart} points={points.value} />)}
    </section>
  );
}
