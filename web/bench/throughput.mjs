// How fast a terminal of the page shows what a program writes, beside xterm.js alone that has the same text in memory.
// Without a graphics card WebGL is slow either way, and the page does not choose it: its figures have no goal.
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { make, startPlace } from "../e2e/workspace.mjs";
import { loadAlone, timeAlone } from "./alone.mjs";

/** A line of a log, with colours, as programs write them. */
const LINE = "\x1b[32m2026-11-27T12:00:00Z\x1b[0m \x1b[1minfo\x1b[0m  request 7f3a answered in 184 ms, 244 tokens \x1b[2m(gpu-box)\x1b[0m\r\n";
const MIB = 1024 * 1024;
const ROUNDS = 3;

/** How long a program's output may take, in milliseconds. */
const PATIENCE_MS = 300_000;

export async function throughput({ mib }) {
  const [browser, place] = await startPlace();
  try {
    const count = Math.ceil((mib * MIB) / LINE.length);
    const file = join(place.home, "log.txt");
    await writeFile(file, LINE.repeat(count));
    const rows = [];
    for (const webgl of [false, true]) rows.push(...(await measured(place, file, count, webgl)));
    await rm(file);
    return rows;
  } finally {
    await browser.close();
    await place.remove();
  }
}

async function measured(place, file, count, webgl) {
  const page = await place.signedIn({ webgl });
  await make(page, "New terminal", { Name: `flood ${webgl}`, Directory: place.home, "Command; empty for a shell": "PS1='$ ' exec bash --norc" });
  await page.locator(webgl ? ".xterm-screen > canvas" : ".xterm-rows").first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const [real, alone, work, workAlone, got] = [[], [], [], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = bytesTo(place);
    work.push(await workOf(session, async () => real.push(await timeReal(page, file, round))));
    got.push((bytesTo(place) - before) / (count * LINE.length));
  }
  await loadAlone(page, webgl);
  for (let round = 0; round < ROUNDS; round += 1) workAlone.push(await workOf(session, async () => alone.push(await timeAlone(page, LINE, count))));
  await page.context().close();
  const by = webgl ? "WebGL" : "plain";
  const mib = (count * LINE.length) / MIB;
  const rate = (times) => mib / (Math.min(...times) / 1000);
  return [
    { what: `a program in a terminal, ${by}`, value: rate(real), unit: "MiB/s" },
    { what: `xterm.js alone, from memory, ${by}`, value: rate(alone), unit: "MiB/s" },
    { what: `the first by the second, ${by}`, value: rate(real) / rate(alone), unit: "", ...(webgl ? {} : { goal: "≥ 0.7" }) },
    { what: `processor's time of the page for one MiB, ${by}`, value: (1000 * Math.min(...work)) / mib, unit: "ms" },
    { what: `the same of xterm.js alone, ${by}`, value: (1000 * Math.min(...workAlone)) / mib, unit: "ms" },
    { what: `the second by the first, ${by}`, value: Math.min(...workAlone) / Math.min(...work), unit: "" },
    { what: `of the output came to the page, ${by}`, value: (100 * got.reduce((a, b) => a + b)) / ROUNDS, unit: "%" },
  ];
}

/** The end is a title: it is read after everything before it, whoever draws. */
async function timeReal(page, file, round) {
  await page.locator(".xterm").click();
  await page.keyboard.type(` cat ${file}; printf '\\033]0;end-${round}-%s\\007' $((1 + 1))`);
  await page.evaluate((title) => {
    globalThis.ended = null;
    const bar = document.querySelector(".terminal-title");
    const begin = () => {
      const begun = performance.now();
      const watch = new MutationObserver(() => {
        if (!bar.textContent.includes(title)) return;
        watch.disconnect();
        requestAnimationFrame(() => (globalThis.ended = performance.now() - begun));
      });
      watch.observe(bar, { subtree: true, childList: true, characterData: true });
    };
    window.addEventListener("keydown", begin, { capture: true, once: true });
  }, `end-${round}-2`);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => globalThis.ended !== null, null, { timeout: PATIENCE_MS });
  return page.evaluate(() => globalThis.ended);
}

/** How long the page's thread worked meanwhile, in seconds of the processor. */
async function workOf(session, run) {
  const read = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  const before = await read();
  await run();
  return (await read()) - before;
}

/** How many bytes went to browsers over all connections that are open. */
function bytesTo(place) {
  return [...place.site.links].reduce((sum, link) => sum + link.bytesWritten, 0);
}
