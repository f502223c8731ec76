import { signal } from "@preact/signals";
import { mayWork } from "../../live/state";
import { toast } from "../../parts/toast";
import { linkOptions, noteHidden } from "../hub";
import { Inputs } from "../inputs";
import { Link, type LinkState } from "../link";
import { Position, type Step } from "../position";
import { textOf, type ClientMessage, type Message } from "../protocol";
import type { Screen, Size } from "./screen";

/** How long a window must keep its size before the server is told, in milliseconds. */
const STILL_MS = 80;

/** How often missing output may be answered by asking for the whole screen. */
const ATTACH_MS = 500;

/** Connects a screen with its session, again and again. */
export class Follower {
  readonly state = signal<LinkState>("connecting");
  /** How many typed characters the server has not confirmed, while it is away. */
  readonly waiting = signal(0);
  private readonly link: Link;
  private readonly position: Position;
  private readonly inputs: Inputs;
  private own: Size | null = null;
  private told = "";
  private still: ReturnType<typeof setTimeout> | undefined;
  private again: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly sessionId: string, private readonly screen: () => Screen | null) {
    this.position = new Position(sessionId);
    this.link = new Link({
      ...linkOptions(),
      onOpen: () => this.attach(),
      onMessage: (message) => this.take(message),
      onOutput: (output) => this.step(this.position.output(output)),
      onState: (state) => this.become(state),
    });
    this.inputs = new Inputs(sessionId, (message) => this.link.send(message));
  }

  start(): void {
    document.addEventListener("visibilitychange", this.tellSize);
    this.link.start();
  }

  stop(): void {
    document.removeEventListener("visibilitychange", this.tellSize);
    clearTimeout(this.still);
    clearTimeout(this.again);
    this.link.stop();
  }

  type(text: string): void {
    if (!mayWork.value) return;
    if (!this.inputs.type(text)) toast("Too much is typed that the terminal has not read yet.", "error");
    this.count();
  }

  /** The window has room for this size now. */
  room(size: Size): void {
    this.own = size;
    clearTimeout(this.still);
    this.still = setTimeout(this.tellSize, this.told ? STILL_MS : 0);
  }

  /** Asks for the whole screen, because what is shown is not the session's. */
  restart(): void {
    this.position.forget();
    this.attach();
  }

  private become(state: LinkState): void {
    this.state.value = state;
    this.count();
  }

  private attach(): void {
    this.told = "";
    this.link.send(this.position.attach());
  }

  private take(message: Message): void {
    noteHidden(message);
    if (message.type === "input_ack") this.inputs.acknowledged(message["input_id"]);
    else if (message.type === "error") this.refused(textOf(message["message"]));
    else this.step(this.position.message(message));
    if (message.type === "session_history" && message["session_id"] === this.sessionId) this.begun();
    this.count();
  }

  /** The stream goes on: now the server learns the size, and what was typed meanwhile. */
  private begun(): void {
    this.tellSize();
    this.inputs.again();
  }

  private step(step: Step): void {
    const screen = this.screen();
    if (step.do === "write") screen?.write(step.text);
    else if (step.do === "reset") screen?.reset(step.snapshot);
    else if (step.do === "size") screen?.resize(step);
    else if (step.do === "attach") this.attachSoon();
  }

  private attachSoon(): void {
    clearTimeout(this.again);
    this.again = setTimeout(() => this.attach(), ATTACH_MS);
  }

  private refused(words: string): void {
    this.inputs.clear();
    toast(words, "error");
  }

  private tellSize = (): void => {
    if (!this.own || !this.link.isOpen || !mayWork.value) return;
    const message: ClientMessage = { type: "resize", session_id: this.sessionId, ...this.own, visible: document.visibilityState === "visible" };
    if (JSON.stringify(message) === this.told || !this.link.send(message)) return;
    this.told = JSON.stringify(message);
    this.screen()?.resize(this.own);
  };

  private count(): void {
    this.waiting.value = this.link.isOpen ? 0 : this.inputs.pending;
  }
}
