import { useState } from "preact/hooks";

/** How much time a chart shows, in milliseconds. */
const WINDOW_MS = 300_000;

/** The inner size that lines are drawn in; the picture is stretched to whatever room there is. */
const [WIDTH, HEIGHT] = [300, 80];

/** Two points further apart than this are not joined: the page was hidden, or the server away. */
const GAP_MS = 40_000;

/** One line of a chart. */
export interface Line<P> {
  name: string;
  tone: "a" | "b" | "bad";
  of: (point: P) => number | null;
}

interface ChartProps<P> {
  title: string;
  unit: string;
  points: P[];
  lines: Line<P>[];
  format: (value: number) => string;
}

/** A calm chart over the last minutes: the value now, its lines, and what is under the pointer. */
export function Chart<P extends { at: number }>({ title, unit, points, lines, format }: ChartProps<P>) {
  const [hovered, setHovered] = useState<number | null>(null);
  const end = points.at(-1)?.at ?? 0;
  const seen = points.filter(({ at }) => at >= end - WINDOW_MS);
  const top = niceTop(Math.max(0, ...seen.flatMap((point) => lines.map((line) => line.of(point) ?? 0))));
  const shown = hovered === null ? null : nearest(seen, end - WINDOW_MS + hovered * WINDOW_MS);
  const onMove = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    setHovered((event.clientX - box.left) / box.width);
  };
  return (
    <figure class="card chart">
      <figcaption>
        <span class="chart-title">{title} <span class="muted">{unit}</span></span>
        <Values lines={lines} point={shown} points={seen} format={format} />
      </figcaption>
      <div class="chart-plot" onPointerMove={onMove} onPointerLeave={() => setHovered(null)}>
        <span class="chart-top muted">{format(top)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={spoken(title, unit, lines, seen, format)}>
          <path class="grid" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {lines.map((line) => <LinePath key={line.name} line={line} points={seen} end={end} top={top} />)}
          {shown && <path class="cursor" d={`M${xOf(shown.at, end)} 0V${HEIGHT}`} />}
        </svg>
      </div>
      <div class="chart-foot muted" aria-hidden="true">
        <span>{shown ? new Date(shown.at).toLocaleTimeString() : "5 min ago"}</span>
        <span>now</span>
      </div>
    </figure>
  );
}

function Values<P>({ lines, point, points, format }: { lines: Line<P>[]; point: P | null; points: P[]; format: (value: number) => string }) {
  return (
    <span class="chart-values">
      {lines.map((line) => {
        const value = point ? line.of(point) : newest(points, line);
        return (
          <span key={line.name} class="chart-value">
            {lines.length > 1 && <span class={`key ${line.tone}`} aria-hidden="true" />}
            <b>{value === null ? "–" : format(value)}</b>
            {lines.length > 1 && <span class="muted">{line.name}</span>}
          </span>
        );
      })}
    </span>
  );
}

function LinePath<P extends { at: number }>({ line, points, end, top }: { line: Line<P>; points: P[]; end: number; top: number }) {
  const runs = runsOf(points, line).map((run) => run.map(([at, value]) => [xOf(at, end), yOf(value, top)] as const));
  const stroke = runs.map((run) => `M${run.map(pair).join("L")}${run.length === 1 ? "h.01" : ""}`).join("");
  const area = runs.map((run) => `M${run[0]![0]} ${HEIGHT}L${run.map(pair).join("L")}L${run.at(-1)![0]} ${HEIGHT}Z`).join("");
  return (
    <g class={`line ${line.tone}`}>
      {line.tone !== "b" && <path class="area" d={area} />}
      <path class="stroke" d={stroke} />
    </g>
  );
}

const pair = ([x, y]: readonly [number, number]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const xOf = (at: number, end: number) => WIDTH - ((end - at) / WINDOW_MS) * WIDTH;
const yOf = (value: number, top: number) => HEIGHT - 1 - (value / top) * (HEIGHT - 4);

/** The stretches of a line without a gap. */
function runsOf<P extends { at: number }>(points: P[], line: Line<P>): [number, number][][] {
  const runs: [number, number][][] = [];
  let last = -Infinity;
  for (const point of points) {
    const value = line.of(point);
    if (value === null) continue;
    if (point.at - last > GAP_MS) runs.push([]);
    runs.at(-1)!.push([point.at, value]);
    last = point.at;
  }
  return runs;
}

/** The newest value; one that is measured now and then holds for a minute. */
function newest<P>(points: P[], line: Line<P>): number | null {
  for (const point of points.slice(-30).reverse()) {
    const value = line.of(point);
    if (value !== null) return value;
  }
  return null;
}

function nearest<P extends { at: number }>(points: P[], at: number): P | null {
  return points.reduce<P | null>((best, point) => (!best || Math.abs(point.at - at) < Math.abs(best.at - at) ? point : best), null);
}

/** The least round number that is not below: 1, 2 or 5 times a power of ten. */
export function niceTop(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999)!;
}

function spoken<P>(title: string, unit: string, lines: Line<P>[], points: P[], format: (value: number) => string): string {
  const words = lines.map((line) => {
    const now = newest(points, line);
    const most = Math.max(0, ...points.map((point) => line.of(point) ?? 0));
    return `${line.name} ${now === null ? "nothing yet" : `now ${format(now)}`}, at most ${format(most)}`;
  });
  return `${title} ${unit} in the last five minutes: ${words.join("; ")}`;
}
