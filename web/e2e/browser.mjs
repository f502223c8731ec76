// A browser for tests, and what all of them check: no error on the page, no request to anybody else, nothing for axe.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

/** Where pictures of the page are put. */
const SHOTS = process.env.SHOTS ? `${process.env.SHOTS}/` : fileURLToPath(new URL("./shots/", import.meta.url));
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

export const DESKTOP = { width: 1360, height: 900 };
export const PHONE = { width: 360, height: 740 };

/** The longest that a test waits for anything, in milliseconds. */
const PATIENCE_MS = 15_000;

/** Without a graphics card the page draws terminals as elements, which tests can read. */
export async function launch() {
  await mkdir(SHOTS, { recursive: true });
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP warren.test 127.0.0.1"] });
}

/** A page in a context of its own, with its complaints gathered in `page.complaints`. `webgl`: terminals are drawn by it all the same. */
export async function openPage(browser, url, { viewport = DESKTOP, touch = false, scheme = "light", origin = url, webgl = false } = {}) {
  const context = await browser.newContext({ viewport, hasTouch: touch, isMobile: touch, colorScheme: scheme, reducedMotion: "reduce", acceptDownloads: true });
  if (webgl) await context.addInitScript(() => localStorage.getItem("warren.terminalDrawing") ?? localStorage.setItem("warren.terminalDrawing", "webgl"));
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(`error: ${error.stack ?? error}`));
  page.on("console", (message) => {
    // A refused or failed request is logged by the browser itself; tests look at what the page says of it.
    // Over plain http it logs, too, that it takes no Cross-Origin-Opener-Policy there.
    if (message.type() === "error" && !/Failed to load resource|^WebSocket connection to |Cross-Origin-Opener-Policy header has been ignored/.test(message.text())) page.complaints.push(message.text());
  });
  const own = new URL(origin).origin;
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(own) && !/^(data|blob):/.test(to)) page.complaints.push(`request to ${to}`);
  });
  await page.goto(url);
  return page;
}

/** Fails when something on the page complained. */
export function assertQuiet(page) {
  assert.deepEqual(page.complaints, []);
}

/** Fails when axe finds something on the page as it is now. */
export async function assertAccessible(page, what) {
  // The policy of the page forbids scripts that are not its own; the tool's evaluation is not bound by it.
  const { readFile } = await import("node:fs/promises");
  await page.evaluate(await readFile(AXE, "utf8"));
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const lines = found.violations.map((each) => `${each.id} (${each.impact}): ${each.help}\n    ${each.nodes.map((node) => `${node.html}\n      ${node.failureSummary}`).join("\n    ")}`);
  assert.equal(lines.join("\n"), "", `axe found something on ${what}`);
}

/** Fails when the page is wider than the window. */
export async function assertFits(page) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(content <= window, `the page is ${content} px wide in a window of ${window} px`);
}

/** Waits until the charts have lines. */
export async function charted(page) {
  const drawn = () => [...document.querySelectorAll(".chart path.stroke")].some((path) => path.getAttribute("d")?.includes("L"));
  await until(() => page.evaluate(drawn), "lines in the charts");
}

export async function shot(page, name) {
  await page.screenshot({ path: `${SHOTS}${name}.png` });
}

/** Waits until `look` gives something true. */
export async function until(look, what) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`This did not come: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
