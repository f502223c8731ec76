/** One line of metrics: a value under a name and labels. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/** At most this many samples are kept of one reading. */
const MAX_SAMPLES = 200_000;

/**
 * The samples of a text in OpenMetrics' form, those whose name `wanted` takes. Lines that make no sense are passed
 * over: a newer server may write what this page does not know.
 */
export function parseMetrics(text: string, wanted: (name: string) => boolean = () => true): Sample[] {
  const samples: Sample[] = [];
  let from = 0;
  while (from < text.length && samples.length < MAX_SAMPLES) {
    const end = text.indexOf("\n", from);
    const to = end < 0 ? text.length : end;
    const sample = text[from] === "#" ? null : sampleOf(text.slice(from, to), wanted);
    if (sample) samples.push(sample);
    from = to + 1;
  }
  return samples;
}

function sampleOf(line: string, wanted: (name: string) => boolean): Sample | null {
  const name = /^[A-Za-z_:][\w:]*/.exec(line)?.[0];
  if (!name || !wanted(name)) return null;
  const labelled = labelsOf(line, name.length);
  if (!labelled) return null;
  const value = numberOf(line.slice(labelled.end).trim().split(/\s/)[0] ?? "");
  return value === null ? null : { name, labels: labelled.labels, value };
}

/** The labels from `{` on, and where they end. Values are quoted, with `\\`, `\"` and `\n` escaped. */
function labelsOf(line: string, from: number): { labels: Record<string, string>; end: number } | null {
  const labels: Record<string, string> = Object.create(null);
  if (line[from] !== "{") return { labels, end: from };
  const label = /\s*([A-Za-z_]\w*)="((?:[^"\\]|\\.)*)"\s*,?/y;
  let at = from + 1;
  while (line[at] !== "}") {
    label.lastIndex = at;
    const found = label.exec(line);
    if (!found) return null;
    labels[found[1]!] = found[2]!.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    at = label.lastIndex;
  }
  return { labels, end: at + 1 };
}

function numberOf(text: string): number | null {
  if (text === "+Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  const value = Number(text);
  return text === "" || Number.isNaN(value) ? null : value;
}

/** Cumulative counts by their upper bounds, the smallest first: a histogram over all models. */
export type Buckets = [bound: number, count: number][];

/** The sum of all samples of a name that `keep` keeps. */
export function sum(samples: Sample[], name: string, keep: (labels: Sample["labels"]) => boolean = () => true): number {
  let total = 0;
  for (const sample of samples) if (sample.name === name && keep(sample.labels)) total += sample.value;
  return total;
}

/** The histogram of a name, over all its other labels. */
export function buckets(samples: Sample[], name: string): Buckets {
  const byBound = new Map<number, number>();
  for (const { name: own, labels, value } of samples) {
    if (own !== `${name}_bucket`) continue;
    const bound = numberOf(labels["le"] ?? "");
    if (bound !== null) byBound.set(bound, (byBound.get(bound) ?? 0) + value);
  }
  return [...byBound].sort((a, b) => a[0] - b[0]);
}

/** What was counted between two readings of a histogram. A server that started anew counts from zero. */
export function since(later: Buckets, earlier: Buckets): Buckets {
  const before = new Map(earlier);
  const restarted = later.some(([bound, count]) => count < (before.get(bound) ?? 0));
  return later.map(([bound, count]) => [bound, restarted ? count : count - (before.get(bound) ?? 0)]);
}

/** The value below which a share of what was counted lies, estimated within its bucket; `null` when nothing was. */
export function quantile(counts: Buckets, share: number): number | null {
  const total = counts.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let [lower, below] = [0, 0];
  for (const [bound, count] of counts) {
    if (count >= rank) return bound === Infinity ? lower : lower + ((bound - lower) * (rank - below)) / (count - below || 1);
    [lower, below] = [bound, count];
  }
  return lower;
}
