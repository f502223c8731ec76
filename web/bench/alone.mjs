// xterm.js alone, in the page and with the page's policy: what a terminal costs at least.
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/** As in `vite.config.ts`: the policy forbids style elements and style attributes. */
async function strict() {
  const code = await readFile(require.resolve("@xterm/xterm/lib/xterm.js"), "utf8");
  return code.replace(/(\w+)\.setAttribute\("style",(`[^`]*`)\)/g, "($1.style.cssText=$2)").replace(/[\w.]+\.createElement\("style"\)/g, "adoptedStyle()");
}

const ADOPTED = `globalThis.adoptedStyle = () => {
  const [element, sheet] = [document.createElement("span"), new CSSStyleSheet()];
  element.hidden = true;
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  Object.defineProperty(element, "textContent", { set: (text) => sheet.replaceSync(text) });
  return element;
};`;

/** Puts xterm.js into the page, in the place and the size of the terminal that is shown. */
export async function loadAlone(page, webgl) {
  await page.evaluate(ADOPTED);
  await page.evaluate(await strict());
  if (webgl) await page.evaluate(await readFile(require.resolve("@xterm/addon-webgl/lib/addon-webgl.js"), "utf8"));
  await page.evaluate((webgl) => {
    const host = document.querySelector(".terminal-host");
    const { left, top, width, height } = host.getBoundingClientRect();
    const alone = document.createElement("div");
    Object.assign(alone.style, { position: "fixed", left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px`, zIndex: 9, background: "white" });
    document.body.append(alone);
    const rows = Math.round(height / 16);
    const terminal = new globalThis.Terminal({ allowProposedApi: true, scrollback: 5000, minimumContrastRatio: 4.5, fontFamily: getComputedStyle(host).getPropertyValue("--mono"), fontSize: 14, cols: Math.floor(width / 8.45), rows });
    terminal.open(alone);
    if (webgl) terminal.loadAddon(new globalThis.WebglAddon.WebglAddon());
    globalThis.alone = terminal;
  }, webgl);
}

/** How long it takes to show this text, in milliseconds. */
export function timeAlone(page, line, count) {
  return page.evaluate(([line, count]) => new Promise((resolve) => {
    const piece = line.repeat(Math.ceil(32_768 / line.length));
    const pieces = Math.ceil((line.length * count) / piece.length);
    const begun = performance.now();
    for (let at = 0; at < pieces; at += 1) globalThis.alone.write(piece);
    globalThis.alone.write("", () => requestAnimationFrame(() => resolve(performance.now() - begun)));
  }), [line, count]);
}
