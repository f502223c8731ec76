const KIB = 1024;

/** The least and the first size of a piece. */
const LEAST = 64 * KIB;
const FIRST = 512 * KIB;

/** A piece that took less may be larger next time; one that took more is too large, in milliseconds. */
const QUICK_MS = 700;
const SLOW_MS = 2500;

/** How large the pieces of a transfer are: a connection that carries one for long counts as lost. */
export class Pace {
  private now = FIRST;

  constructor(private readonly most: number) {}

  get size(): number {
    return Math.min(this.now, this.most);
  }

  took(ms: number): void {
    if (ms < QUICK_MS) this.now = Math.min(this.most, this.now * 2);
    else if (ms > SLOW_MS) this.lost();
  }

  lost(): void {
    this.now = Math.max(LEAST, Math.floor(this.now / 2));
  }
}
