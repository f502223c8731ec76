// How long it takes from a key to the frame that shows its character: page, server, terminal, program and back.
import { make, startPlace } from "../e2e/workspace.mjs";
import { quantile } from "./quantile.mjs";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

export async function echo({ keys }) {
  const [browser, place] = await startPlace();
  try {
    const page = await place.signedIn();
    await make(page, "New terminal", { Name: "echo", Directory: place.home, "Command; empty for a shell": "printf ready; exec cat" });
    await page.locator(".xterm-rows").getByText("ready").waitFor();
    const times = [];
    for (let at = 0; at < keys; at += 1) times.push(await timeOf(page, LETTERS[at % LETTERS.length]));
    return [
      { what: "key to the frame with its character, half of all", value: quantile(times.map(({ shown }) => shown), 0.5), unit: "ms" },
      { what: "key to the frame with its character, 95 %", value: quantile(times.map(({ shown }) => shown), 0.95), unit: "ms" },
      { what: "key to the frame after it, half of all", value: quantile(times.map(({ after }) => after), 0.5), unit: "ms" },
      { what: "key to the frame after it, 95 %", value: quantile(times.map(({ after }) => after), 0.95), unit: "ms" },
    ];
  } finally {
    await browser.close();
    await place.remove();
  }
}

/** The row that has the cursor gets a letter: what is written down is when that was drawn, and when the next frame began. */
async function timeOf(page, letter) {
  await page.evaluate((letter) => {
    globalThis.echoed = null;
    const rows = document.querySelector(".xterm-rows");
    const count = () => rows.textContent.split(letter).length;
    window.addEventListener("keydown", () => {
      const [begun, before] = [performance.now(), count()];
      const watch = new MutationObserver(() => {
        if (count() === before) return;
        watch.disconnect();
        const { port1, port2 } = new MessageChannel();
        let shown = null;
        // The message comes after the frame that is being made was drawn.
        port1.onmessage = () => (shown = performance.now() - begun);
        port2.postMessage(null);
        requestAnimationFrame(() => (globalThis.echoed = { shown: shown ?? performance.now() - begun, after: performance.now() - begun }));
      });
      watch.observe(rows, { subtree: true, childList: true, characterData: true });
    }, { capture: true, once: true });
  }, letter);
  await page.keyboard.press(letter);
  await page.waitForFunction(() => globalThis.echoed !== null);
  return page.evaluate(() => globalThis.echoed);
}
