/** A finger that moves less than this, in pixels, means a tap. */
const SLOP = 8;

export interface TouchOptions {
  /** The height of a line, in pixels. */
  lineHeight: () => number;
  /** Scrolls by so many lines, down where it is more than none. */
  scroll: (lines: number) => void;
}

/** Scrolls as one finger moves up and down, which xterm.js does not. Returns what ends that. */
export function followTouch(host: HTMLElement, { lineHeight, scroll }: TouchOptions): () => void {
  let from: number | null = null;
  let moving = false;
  const start = ({ touches }: TouchEvent) => {
    from = touches.length === 1 ? touches[0]!.clientY : null;
    moving = false;
  };
  const move = (event: TouchEvent) => {
    if (from === null || event.touches.length !== 1) return;
    const distance = from - event.touches[0]!.clientY;
    moving ||= Math.abs(distance) > SLOP;
    if (!moving) return;
    event.preventDefault();
    const lines = Math.trunc(distance / lineHeight());
    if (!lines) return;
    from -= lines * lineHeight();
    scroll(lines);
  };
  const end = (event: TouchEvent) => {
    // After a move there is no tap, so no keyboard comes.
    if (moving) event.preventDefault();
    from = null;
  };
  host.addEventListener("touchstart", start, { passive: true });
  host.addEventListener("touchmove", move, { passive: false });
  host.addEventListener("touchend", end, { passive: false });
  return () => {
    host.removeEventListener("touchstart", start);
    host.removeEventListener("touchmove", move);
    host.removeEventListener("touchend", end);
  };
}
