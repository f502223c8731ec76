/** A time in which so much text, in characters, is shown as it comes. What comes beyond it waits for the end of the time. */
const WINDOW_MS = 50;
const AT_ONCE = 64 * 1024;

/**
 * Shows what a person types and reads at once, and a flood in large pieces: each piece that is shown is drawn, and nobody can read
 * sixty screens a second.
 */
export class Pace {
  private waiting: string[] = [];
  private begun = -Infinity;
  private shown = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly show: (text: string) => void, private readonly now: () => number = () => performance.now()) {}

  put(text: string): void {
    if (this.now() - this.begun >= WINDOW_MS && !this.timer) [this.begun, this.shown] = [this.now(), 0];
    this.shown += text.length;
    if (!this.timer && this.shown <= AT_ONCE) return this.show(text);
    this.waiting.push(text);
    this.timer ??= setTimeout(() => this.flush(), WINDOW_MS);
  }

  /** Shows what waits, now. */
  flush(): void {
    this.stop();
    const text = this.waiting.join("");
    this.waiting = [];
    [this.begun, this.shown] = [this.now(), text.length];
    if (text) this.show(text);
  }

  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
