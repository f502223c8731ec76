import { FitAddon } from "@xterm/addon-fit";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { isSize, type Snapshot } from "../protocol";
import { Drawer, readerChosen } from "./drawing";
import { openLink } from "./links";
import { Pace } from "./pace";
import { paletteOf } from "./palette";
import { followTouch } from "./touch";

/** The lines above the screen that are kept. */
const SCROLLBACK = 5000;

/** More output than this that xterm.js has not read, in characters, is not kept: the screen is asked for instead. */
const MAX_UNREAD = 4 * 1024 * 1024;

/** The longest title. */
const MAX_TITLE = 200;

/** A size in characters. */
export interface Size {
  cols: number;
  rows: number;
}

export interface ScreenOptions {
  /** What was typed, and what xterm.js answers to a program. */
  onInput: (text: string) => void;
  /** There is room for this many characters now. */
  onRoom: (size: Size) => void;
  /** The program gave a title; it is text of strangers. */
  onTitle: (title: string) => void;
  onSelect: (has: boolean) => void;
  /** Whether the oldest line that the terminal keeps is in sight. */
  onTop: (isTop: boolean) => void;
  /** Output was left out, since there was too much; the screen must be asked for. */
  onFlood: () => void;
}

/** A terminal within an element of the page. */
export class Screen {
  private readonly terminal: Terminal;
  private readonly fit = new FitAddon();
  private readonly drawer: Drawer;
  private readonly watched: ResizeObserver;
  private readonly leaveTouch: () => void;
  private readonly pace = new Pace((text) => this.terminal.write(text, () => (this.unread -= text.length)));
  private unread = 0;
  private flooded = false;
  private atTop = false;
  /** Whether somebody tried to scroll beyond the oldest line, since something was typed. */
  private beyond = false;

  constructor(private readonly host: HTMLElement, private readonly options: ScreenOptions) {
    const style = getComputedStyle(host);
    this.terminal = new Terminal({
      allowProposedApi: true,
      fontFamily: style.getPropertyValue("--mono"),
      fontSize: matchMedia("(pointer: coarse)").matches ? 13 : 14,
      scrollback: SCROLLBACK,
      minimumContrastRatio: 4.5,
      macOptionIsMeta: true,
      screenReaderMode: readerChosen(),
      theme: paletteOf(style),
      linkHandler: { activate: openLink, allowNonHttpProtocols: false },
    });
    this.load();
    this.terminal.open(host);
    this.drawer = new Drawer(this.terminal, () => this.measure());
    void this.drawer.follow();
    host.addEventListener("wheel", this.onWheel, { capture: true, passive: true });
    this.watched = new ResizeObserver(() => this.measure());
    this.watched.observe(host);
    this.leaveTouch = followTouch(host, { lineHeight: () => this.lineHeight, scroll: (lines) => this.scroll(lines) });
  }

  private load(): void {
    const { terminal } = this;
    terminal.loadAddon(this.fit);
    terminal.loadAddon(new Unicode11Addon());
    terminal.unicode.activeVersion = "11";
    terminal.loadAddon(new WebLinksAddon(openLink));
    // Programs may not reach the clipboard.
    terminal.parser.registerOscHandler(52, () => true);
    terminal.onData((text) => this.typed(text));
    terminal.onBinary(this.options.onInput);
    terminal.onTitleChange((title) => this.options.onTitle(title.slice(0, MAX_TITLE)));
    terminal.onRender(() => this.tellTop());
    terminal.onSelectionChange(() => this.options.onSelect(terminal.hasSelection()));
    terminal.attachCustomKeyEventHandler((event) => !this.copies(event));
  }

  /** Becomes the screen of a snapshot, after all output before it. */
  reset(snapshot: Snapshot, after?: () => void): void {
    this.pace.flush();
    this.flooded = false;
    this.terminal.write("", () => {
      this.terminal.reset();
      this.terminal.resize(snapshot.cols, snapshot.rows);
    });
    this.terminal.write(snapshot.data, after);
  }

  write(text: string): void {
    if (this.flooded) return;
    if (this.unread > MAX_UNREAD) return this.flood();
    this.unread += text.length;
    this.pace.put(text);
  }

  /** Takes a size, after all output before it. */
  resize({ cols, rows }: Size): void {
    this.pace.flush();
    this.terminal.write("", () => this.terminal.resize(cols, rows));
  }

  /** How many characters there is room for; `null` while the element is not shown, or too small. */
  room(): Size | null {
    const size = this.fit.proposeDimensions();
    if (!size || !Number.isFinite(size.cols)) return null;
    const [cols, rows] = [Math.min(1000, Math.max(20, size.cols)), Math.min(500, Math.max(5, size.rows))];
    return isSize(cols, rows) ? { cols, rows } : null;
  }

  focus(): void {
    this.terminal.focus();
  }

  paste(text: string): void {
    this.terminal.paste(text);
  }

  selection(): string {
    return this.terminal.getSelection();
  }

  /** Whether arrows are typed as programs with a screen of their own want them. */
  get hasApplicationArrows(): boolean {
    return this.terminal.modes.applicationCursorKeysMode;
  }

  /** What is on the screen and above it, as text. */
  text(): string {
    const { active } = this.terminal.buffer;
    const lines: string[] = [];
    for (let at = 0; at < active.length; at += 1) {
      const line = active.getLine(at);
      if (!line) continue;
      const text = line.translateToString(true);
      if (line.isWrapped && lines.length) lines[lines.length - 1] += text;
      else lines.push(text);
    }
    return lines.join("\n").trimEnd();
  }

  /** Follows what the person chose of drawing and of screen readers. */
  followChoices(): void {
    this.terminal.options.screenReaderMode = readerChosen();
    void this.drawer.follow();
  }

  /** Its size now. */
  get size(): Size {
    return { cols: this.terminal.cols, rows: this.terminal.rows };
  }

  repaint(): void {
    this.terminal.options.theme = paletteOf(getComputedStyle(this.host));
  }

  dispose(): void {
    this.watched.disconnect();
    this.host.removeEventListener("wheel", this.onWheel, { capture: true });
    this.leaveTouch();
    this.drawer.stop();
    this.pace.stop();
    this.terminal.dispose();
  }

  private typed(text: string): void {
    this.beyond = false;
    this.options.onInput(text);
  }

  private onWheel = ({ deltaY }: WheelEvent): void => {
    if (deltaY < 0) this.goBeyond();
  };

  private goBeyond(): void {
    this.beyond ||= this.isAtOldest && this.terminal.modes.mouseTrackingMode === "none";
    this.tellTop();
  }

  /** Programs with a screen of their own have no lines above it. */
  private get isAtOldest(): boolean {
    const { active } = this.terminal.buffer;
    return active.type === "normal" && active.viewportY === 0;
  }

  private tellTop(): void {
    const isTop = this.isAtOldest && (this.beyond || this.terminal.buffer.active.baseY > 0);
    if (isTop === this.atTop) return;
    this.atTop = isTop;
    this.options.onTop(isTop);
  }

  private get lineHeight(): number {
    const height = this.terminal.element?.querySelector(".xterm-screen")?.clientHeight ?? 0;
    return Math.max(8, height / this.terminal.rows);
  }

  /** A program with a screen of its own, or with a mouse, gets the turns of a wheel. */
  private scroll(lines: number): void {
    const { terminal } = this;
    if (lines < 0) this.goBeyond();
    if (terminal.modes.mouseTrackingMode === "none" && terminal.buffer.active.type === "normal") return terminal.scrollLines(lines);
    const target = terminal.element?.querySelector(".xterm-screen");
    const { left = 0, top = 0 } = target?.getBoundingClientRect() ?? {};
    for (let turn = 0; turn < Math.min(20, Math.abs(lines)); turn += 1) {
      target?.dispatchEvent(new WheelEvent("wheel", { deltaY: Math.sign(lines), deltaMode: WheelEvent.DOM_DELTA_LINE, clientX: left + 1, clientY: top + 1, bubbles: true, cancelable: true }));
    }
  }

  private measure(): void {
    const size = this.room();
    if (size) this.options.onRoom(size);
  }

  /** Lets xterm.js read what it has; the rest is not worth reading. */
  private flood(): void {
    this.pace.flush();
    this.flooded = true;
    this.terminal.write("", () => this.options.onFlood());
  }

  /** Copies by Ctrl Shift C, or by Ctrl C while something is selected. */
  private copies(event: KeyboardEvent): boolean {
    const isCopy = event.type === "keydown" && event.ctrlKey && event.key.toLowerCase() === "c";
    if (!isCopy || !this.terminal.hasSelection()) return false;
    document.execCommand("copy");
    this.terminal.clearSelection();
    event.preventDefault();
    return true;
  }
}
