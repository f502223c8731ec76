import { useState } from "preact/hooks";
import { span } from "../live/words";

/** The most and the least time that a chart shows, in milliseconds: it grows with what is known. */
const [MAX_WINDOW_MS, MIN_WINDOW_MS] = [300_000, 60_000];

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
  const seen = points.filter(({ at }) => at >= end - MAX_WINDOW_MS);
  const scale = scaleOf(seen, lines, end);
  const shown = hovered === null ? null : nearest(seen, end - scale.window + hovered * scale.window);
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
        <span class="chart-top muted">{format(scale.top)}</span>
        <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={spoken(title, unit, lines, seen, format)}>
          <path class="grid" d={`M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`} />
          {lines.map((line) => <LinePath key={line.name} line={line} points={seen} scale={scale} />)}
          {shown && <path class="cursor" d={`M${xOf(shown.at, scale)} 0V${HEIGHT}`} />}
        </svg>
      </div>
      <div class="chart-foot muted" aria-hidden="true">
        <span>{shown ? new Date(shown.at).toLocaleTimeString() : `${span(scale.window)} ago`}</span>
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

/** What the edges of a chart stand for. */
interface Scale {
  end: number;
  window: number;
  top: number;
}

function scaleOf<P extends { at: number }>(points: P[], lines: Line<P>[], end: number): Scale {
  const age = end - (points[0]?.at ?? end);
  const top = niceTop(Math.max(0, ...points.flatMap((point) => lines.map((line) => line.of(point) ?? 0))));
  return { end, window: Math.min(MAX_WINDOW_MS, Math.max(MIN_WINDOW_MS, age)), top };
}

function LinePath<P extends { at: number }>({ line, points, scale }: { line: Line<P>; points: P[]; scale: Scale }) {
  const runs = runsOf(points, line).map((run) => run.map(([at, value]) => [xOf(at, scale), yOf(value, scale)] as const));
  const alone = runs.filter((run) => run.length === 1).map((run) => `M${pair(run[0]!)}h.01`).join("");
  const stroke = runs.map((run) => `M${run.map(pair).join("L")}`).join("");
  const area = runs.map((run) => `M${run[0]![0]} ${HEIGHT}L${run.map(pair).join("L")}L${run.at(-1)![0]} ${HEIGHT}Z`).join("");
  return (
    <g class={`line ${line.tone}`}>
      {line.tone !== "b" && <path class="area" d={area} />}
      <path class="stroke" d={stroke} />
      {alone && <path class="alone" d={alone} />}
    </g>
  );
}

const pair = ([x, y]: readonly [number, number]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const xOf = (at: number, { end, window }: Scale) => WIDTH - ((end - at) / window) * WIDTH;
const yOf = (value: number, { top }: Scale) => HEIGHT - 1 - (value / top) * (HEIGHT - 4);

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
