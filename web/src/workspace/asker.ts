import { ApiError } from "../api/errors";
import { isObject, textOf, type AnswerType, type ClientMessage, type Message } from "./protocol";

/** How long an answer may take, and how many requests may wait for their turn. */
const DEADLINE_MS = 20_000;
const MAX_WAITING = 64;

interface Request {
  message: ClientMessage;
  answers: readonly string[];
  deadlineMs: number;
  resolve: (answer: Message) => void;
  reject: (error: ApiError) => void;
}

/** Requests, one at a time: an `error` does not name what it answers, so it answers the one that is open. */
export class Asker {
  private readonly waiting: Request[] = [];
  private open: Request | null = null;
  private deadline: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly send: (message: ClientMessage) => boolean) {}

  ask(message: ClientMessage, answers: AnswerType[], deadlineMs = DEADLINE_MS): Promise<Message> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length >= MAX_WAITING) return reject(new ApiError("Too much is asked of the workspace at once.", 0));
      this.waiting.push({ message, answers, deadlineMs, resolve, reject });
      this.next();
    });
  }

  /** Whether a message was the answer to the open request, and nobody else's business. */
  take(message: Message): boolean {
    const open = this.open;
    if (!open) return false;
    if (!isAbout(open.message, message)) return false;
    if (isFailure(message)) {
      this.done();
      open.reject(new ApiError(textOf(message["message"]) || textOf(message["error"]) || "There is no such session any more.", 400, message.type));
      return true;
    }
    if (!open.answers.includes(message.type)) return false;
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
    this.deadline = setTimeout(() => this.late(), this.open.deadlineMs);
    if (!this.send(this.open.message)) this.fail("The workspace cannot be reached now.");
  }

  private late(): void {
    this.fail("The workspace did not answer in time.", "timeout");
  }

  private fail(words: string, code: string | null = null): void {
    const open = this.open;
    this.done();
    open?.reject(new ApiError(words, 0, code));
  }

  private done(): void {
    clearTimeout(this.deadline);
    this.open = null;
    queueMicrotask(() => this.next());
  }
}

/** `error`, and the errors of files and git. */
function isFailure({ type }: Message): boolean {
  return type === "session_unknown" || type === "error" || type.endsWith("_error");
}

/** Whether two messages are about the same thing, where both name one. */
function isAbout(request: Message, answer: Message): boolean {
  if (answer.type === "session_unknown" && request["session_id"] !== answer["session_id"]) return false;
  const isSame = ["session_id", "project_id", "request_id"].every((field) => {
    const [asked, told] = [textOf(request[field]), textOf(answer[field] ?? (field === "session_id" && idOf(answer["session"])))];
    return !asked || !told || asked === told;
  });
  return isSame && (!/^project_file_(error|list|content|saved)$/.test(answer.type) || isAboutPath(request, answer));
}

/** The id in the description of a session. */
function idOf(session: unknown): unknown {
  return isObject(session) ? session["id"] : null;
}

/** An error of a watch has no path, and no request waits for it. */
function isAboutPath(request: Message, answer: Message): boolean {
  return "path" in request && textOf(request["path"]) === textOf(answer["path"]) && !request.type.startsWith("git_");
}
