/** A number in few characters: `940`, `12.3k`, `4.1M`. */
export function short(value: number): string {
  if (value >= 999_950) return `${trim(value / 1e6)}M`;
  if (value >= 9_995) return `${trim(value / 1e3)}k`;
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : trim(value);
}

function trim(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(value < 1 ? 2 : 1);
}

/** A span in the unit that fits: `4 ms`, `1.2 s`, `3 min`. */
export function span(ms: number): string {
  if (ms < 1) return ms <= 0 ? "0 ms" : "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  if (ms < 3_600_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 172_800_000 ? `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min` : `${Math.floor(ms / 86_400_000)} d`;
}

/** How long ago a time is: `now`, `12 s`, `3 min`. A clock that is ahead gives `now`. */
export function ago(at: string, now: number): string {
  const ms = now - Date.parse(at);
  if (Number.isNaN(ms)) return "";
  return ms < 1500 ? "now" : ms < 60_000 ? `${Math.floor(ms / 1000)} s` : span(ms);
}

/** Bytes in the unit that fits. */
export function bytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = count;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return `${value < 10 && unit > 0 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** One thing or several: `1 request`, `3 requests`. */
export function count(number: number, thing: string): string {
  return `${short(number)} ${thing}${number === 1 ? "" : "s"}`;
}
