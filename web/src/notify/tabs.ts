/** How long a tab waits for what the others say, in milliseconds. */
const WAIT_MS = 150;

/** How long, and how many at most, notices are remembered as given. */
const REMEMBER_MS = 120_000;
const MAX_REMEMBERED = 500;

/** What tabs say to each other: `wish` to give a notice, or that one `given` is not to be given again. */
interface Word {
  type: "wish" | "given";
  key: string;
  href: string;
  /** Who says it: the least of those that wish at the same time gives the notice. */
  by: string;
}

/** The parts of a `BroadcastChannel` that are used. */
export interface Channel {
  postMessage(message: unknown): void;
  addEventListener(type: "message", listener: (event: MessageEvent) => void): void;
  close(): void;
}

/** The other tabs of this page in the same browser. Each notice is given by one of them, and by none if it is looked at in one. */
export class Tabs {
  private readonly given = new Map<string, number>();
  private readonly wishes = new Map<string, string>();

  constructor(
    private readonly channel: Channel | null,
    /** Who this tab is. */
    private readonly by: string,
    /** Whether somebody looks, in this tab, at what an address shows. */
    private readonly isLookedAt: (href: string) => boolean,
  ) {
    channel?.addEventListener("message", ({ data }) => this.take(data));
  }

  /** Whether this tab is to give a notice. */
  async claims(key: string, href: string): Promise<boolean> {
    if (this.isGiven(key)) return false;
    if (this.isLookedAt(href)) return this.remember(key, href);
    this.wishes.set(key, this.wishes.get(key) ?? this.by);
    this.say("wish", key, href);
    await new Promise((resolve) => setTimeout(resolve, WAIT_MS));
    const least = this.wishes.get(key) ?? this.by;
    this.wishes.delete(key);
    if (this.isGiven(key) || least < this.by) return false;
    this.remember(key, href);
    return true;
  }

  /** What these notices were about is over: the same may be told again. Each tab sees that by itself. */
  forget(keys: string[]): void {
    for (const key of keys) this.given.delete(key);
  }

  close(): void {
    this.channel?.close();
  }

  private take(data: unknown): void {
    if (!isWord(data) || data.by === this.by) return;
    if (data.type === "given") return this.note(data.key);
    if (this.isGiven(data.key) || this.isLookedAt(data.href)) return void this.remember(data.key, data.href);
    const known = this.wishes.get(data.key);
    if (known !== undefined && data.by < known) this.wishes.set(data.key, data.by);
  }

  private remember(key: string, href: string): false {
    this.note(key);
    this.say("given", key, href);
    return false;
  }

  private say(type: Word["type"], key: string, href: string): void {
    this.channel?.postMessage({ type, key, href, by: this.by } satisfies Word);
  }

  private isGiven(key: string): boolean {
    return Date.now() - (this.given.get(key) ?? -Infinity) < REMEMBER_MS;
  }

  private note(key: string): void {
    this.given.delete(key);
    this.given.set(key, Date.now());
    if (this.given.size > MAX_REMEMBERED) this.given.delete(this.given.keys().next().value!);
  }
}

function isWord(data: unknown): data is Word {
  if (typeof data !== "object" || data === null) return false;
  const { type, key, href, by } = data as Record<string, unknown>;
  return (type === "wish" || type === "given") && [key, href, by].every((each) => typeof each === "string");
}
