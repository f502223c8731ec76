import type { Terminal } from "@xterm/xterm";
import { choiceOf, choose } from "../../storage/choices";

/** Who draws a terminal: WebGL, or the page's own elements. `automatic` is WebGL where a graphics card does it. */
export const DRAWINGS = ["automatic", "webgl", "plain"] as const;
export type Drawing = (typeof DRAWINGS)[number];

/** How a person wants terminals to be drawn. */
export const drawingChosen = (): Drawing => DRAWINGS.find((each) => each === choiceOf("terminalDrawing")) ?? "automatic";
export const chooseDrawing = (drawing: Drawing) => choose("terminalDrawing", drawing === "automatic" ? null : drawing);

/** Whether screen readers get a terminal's lines as text. That costs time, so it is off unless somebody wants it. */
export const readerChosen = () => choiceOf("terminalReader") === "on";
export const chooseReader = (on: boolean) => choose("terminalReader", on ? "on" : null);

/** Draws a terminal by WebGL, where the browser has it. Whenever that fails the page's own elements draw it, as they did before. */
export class Drawer {
  private undo: (() => void) | null = null;
  private wanted = false;

  /** `changed` is told when somebody else draws, since characters then have another size. */
  constructor(private readonly terminal: Terminal, private readonly changed: () => void) {}

  /** Follows the person's choice. */
  async follow(): Promise<void> {
    this.wanted = isWorthwhile(drawingChosen());
    if (!this.wanted) return this.stop();
    if (this.undo) return;
    const addon = await loadAddon();
    if (addon && this.wanted && !this.undo) this.begin(addon);
  }

  /** Lets the page's elements draw from here on. */
  stop(): void {
    this.wanted = false;
    const undo = this.undo;
    this.undo = null;
    if (!undo) return;
    undo();
    this.changed();
  }

  private begin(Addon: NonNullable<Awaited<ReturnType<typeof loadAddon>>>): void {
    const addon = new Addon();
    this.undo = () => addon.dispose();
    addon.onContextLoss(() => this.stop());
    try {
      this.terminal.loadAddon(addon);
      this.changed();
    } catch {
      this.stop();
    }
  }
}

/** The code is large: it is loaded only where it is used. Without it a terminal is drawn all the same. */
function loadAddon() {
  return import("@xterm/addon-webgl").then(({ WebglAddon }) => WebglAddon, () => null);
}

/** Programs that do a graphics card's work, more slowly than elements are drawn. */
const NO_CARD = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** Whether the browser has WebGL 2, and a graphics card does it or somebody wants it all the same. */
function isWorthwhile(chosen: Drawing): boolean {
  const probe = chosen === "plain" ? null : document.createElement("canvas").getContext("webgl2");
  if (!probe) return false;
  const facts = probe.getExtension("WEBGL_debug_renderer_info");
  const card = String(probe.getParameter(facts ? facts.UNMASKED_RENDERER_WEBGL : probe.RENDERER));
  // A browser keeps few contexts at a time.
  probe.getExtension("WEBGL_lose_context")?.loseContext();
  return chosen === "webgl" || !NO_CARD.test(card);
}
