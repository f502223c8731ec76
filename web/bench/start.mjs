// How long a page takes, from its address to its use, on a machine a quarter as fast, with nothing in the cache.
import { launch } from "../e2e/browser.mjs";
import { serveSite } from "../e2e/site.mjs";
import { Warren } from "../e2e/warren.mjs";
import { quantile } from "./quantile.mjs";

const SLOWER = 4;
const ROUNDS = 7;

const PAGES = [
  { what: "overview: machines and models are shown", hash: "", usable: () => document.querySelector(".counts dd") && document.querySelector(".machines li, .model-row") },
  { what: "playground: the field takes a question", hash: "#/play", usable: () => document.querySelector("textarea[aria-label=Question]:not(:disabled)") },
];

export async function start() {
  const [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  const site = await serveSite({ warren: () => warren, files: Boolean(process.env.DIST) });
  try {
    const rows = [];
    for (const page of PAGES) rows.push(await measured(browser, site.url, page));
    return rows;
  } finally {
    await browser.close();
    site.close();
    await warren.remove();
  }
}

async function measured(browser, url, { what, hash, usable }) {
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) times.push(await timeOf(browser, url + hash, usable));
  return { what: `${what}, with the processor ${SLOWER} times slower`, value: quantile(times, 0.5), unit: "ms", goal: "≤ 1500" };
}

/** From the beginning of the navigation to the frame after which the page can be used. */
async function timeOf(browser, url, usable) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const session = await context.newCDPSession(page);
  await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  await page.addInitScript(`{
    globalThis.usableAt = null;
    const look = () => ((${usable})() ? (globalThis.usableAt = performance.now()) : requestAnimationFrame(look));
    requestAnimationFrame(look);
  }`);
  await page.goto(url);
  await page.waitForFunction(() => globalThis.usableAt !== null);
  const time = await page.evaluate(() => globalThis.usableAt);
  await context.close();
  return time;
}
