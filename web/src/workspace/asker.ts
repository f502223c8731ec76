import { ApiError } from "../api/errors";
import { textOf, type Message } from "./protocol";

/** How long an answer may take, and how many requests may wait for their turn. */
const DEADLINE_MS = 20_000;
const MAX_WAITING = 64;

interface Request {
  message: Message;
  answers: string[];
  resolve: (answer: Message) => void;
  reject: (error: ApiError) => void;
}

/** Requests, one at a time: an `error` does not name what it answers, so it answers the one that is open. */
export class Asker {
  private readonly waiting: Request[] = [];
  private open: Request | null = null;
  private deadline: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly send: (message: Message) => boolean) {}

  ask(message: Message, answers: string[]): Promise<Message> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length >= MAX_WAITING) return reject(new ApiError("Too much is asked of the workspace at once.", 0));
      this.waiting.push({ message, answers, resolve, reject });
      this.next();
    });
  }

  /** Whether a message was the answer to the open request, and nobody else's business. */
  take(message: Message): boolean {
    const open = this.open;
    if (!open) return false;
    if (message.type === "error" || (message.type === "session_unknown" && open.message["session_id"] === message["session_id"])) {
      this.done();
      open.reject(new ApiError(textOf(message["message"]) || "There is no such session any more.", 400));
      return true;
    }
    if (!open.answers.includes(message.type) || !isAbout(open.message, message)) return false;
    this.done();
    open.resolve(message);
    // Everybody is told of these: they are answers and news.
    return !["session_killed", "session_status_changed", "session_created", "terminal_opened"].includes(message.type);
  }

  /** The connection is lost: no answer will come. */
  lose(): void {
    const lost = [...(this.open ? [this.open] : []), ...this.waiting.splice(0)];
    this.open = null;
    clearTimeout(this.deadline);
    for (const { reject } of lost) reject(new ApiError("The connection to the workspace was lost.", 0));
  }

  private next(): void {
    if (this.open || !this.waiting.length) return;
    this.open = this.waiting.shift()!;
    this.deadline = setTimeout(() => this.late(), DEADLINE_MS);
    if (!this.send(this.open.message)) this.fail("The workspace cannot be reached now.");
  }

  private late(): void {
    this.fail("The workspace did not answer in time.");
  }

  private fail(words: string): void {
    const open = this.open;
    this.done();
    open?.reject(new ApiError(words, 0));
  }

  private done(): void {
    clearTimeout(this.deadline);
    this.open = null;
    queueMicrotask(() => this.next());
  }
}

/** Whether two messages are about the same session, where both name one. */
function isAbout(request: Message, answer: Message): boolean {
  const [asked, told] = [textOf(request["session_id"]), textOf(answer["session_id"])];
  return !asked || !told || asked === told;
}
