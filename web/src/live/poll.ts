import { asApiError, type ApiError } from "../api/errors";

/** The longest pause after failures, in milliseconds. */
const MAX_PAUSE_MS = 15_000;

/** What a poll does and how often. */
export interface PollOptions {
  /** One look; it must end when the signal does. */
  look: (signal: AbortSignal) => Promise<void>;
  /** The pause between looks, in milliseconds; asked before each, so that it may change. */
  every: () => number;
  /** Whether to look also while the page is hidden; browsers then look less often by themselves. */
  whileHidden?: boolean;
  onError?: (error: ApiError) => void;
  onOk?: () => void;
}

/** Looks again and again, while the page is visible unless said otherwise. After failures the pauses get longer. */
export class Poll {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private running: AbortController | null = null;
  private failures = 0;
  private stopped = true;

  constructor(private readonly options: PollOptions) {}

  start(): void {
    if (!this.stopped) return;
    this.stopped = false;
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.now);
    this.now();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.running?.abort();
    this.running = null;
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.now);
  }

  /** Looks at once, unless a look is under way. */
  now = (): void => {
    if (this.stopped || this.running) return;
    clearTimeout(this.timer);
    void this.once();
  };

  private onVisibility = (): void => {
    if (document.visibilityState === "visible") this.now();
  };

  private async once(): Promise<void> {
    const control = new AbortController();
    this.running = control;
    try {
      await this.options.look(control.signal);
      this.failures = 0;
      this.options.onOk?.();
    } catch (thrown) {
      if (!control.signal.aborted) this.failed(asApiError(thrown));
    }
    if (this.running === control) this.running = null;
    this.schedule();
  }

  private failed(error: ApiError): void {
    this.failures += 1;
    this.options.onError?.(error);
  }

  private schedule(): void {
    if (this.stopped || this.running || (document.visibilityState === "hidden" && !this.options.whileHidden)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(this.now, pauseAfter(this.failures, this.options.every()));
  }
}

/** The pause after so many failures in a row. */
export function pauseAfter(failures: number, every: number): number {
  return failures === 0 ? every : Math.min(MAX_PAUSE_MS, Math.max(every, 1000 * 2 ** Math.min(failures, 5)));
}
