/** Keys that phones lack. */
export type Key = "Escape" | "Tab" | "Up" | "Down" | "Left" | "Right";

const ARROWS = { Up: "A", Down: "B", Right: "C", Left: "D" } as const;

/** What a key types. */
export function codeOf(key: Key, held: Held, applicationArrows: boolean): string {
  if (key === "Escape") return "\x1b";
  if (key === "Tab") return "\t";
  const modifier = 1 + (held.alt ? 2 : 0) + (held.ctrl ? 4 : 0);
  if (modifier > 1) return `\x1b[1;${modifier}${ARROWS[key]}`;
  return `\x1b${applicationArrows ? "O" : "["}${ARROWS[key]}`;
}

/** Which of the bar's modifiers are held: they hold for the next key. */
export interface Held {
  ctrl: boolean;
  alt: boolean;
}

/** What was typed, with the modifiers that are held. */
export function withHeld(text: string, { ctrl, alt }: Held): string {
  const typed = ctrl ? controlOf(text) : text;
  return alt ? `\x1b${typed}` : typed;
}

/** Whether a text is one key, rather than a paste or an answer of the terminal itself. */
export function isOneKey(text: string): boolean {
  return [...text].length === 1;
}

function controlOf(text: string): string {
  const code = text.toUpperCase().charCodeAt(0);
  if (text === " ") return "\x00";
  if (text === "?") return "\x7f";
  return code >= 64 && code < 96 ? String.fromCharCode(code - 64) : text;
}
