// How long the page keeps its browser busy in one go while long lists scroll and an answer streams.
import { launch, openPage } from "../e2e/browser.mjs";
import { serveSite } from "../e2e/site.mjs";
import { longestTasks, startTasks } from "../e2e/tasks.mjs";
import { Warren } from "../e2e/warren.mjs";
import { startPlace } from "../e2e/workspace.mjs";

const MESSAGES = 2000;
const SESSIONS = 10_000;

export async function scrolling() {
  return [...(await conversation()), ...(await sessions())];
}

async function conversation() {
  const [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  const site = await serveSite({ warren: () => warren, files: Boolean(process.env.DIST) });
  try {
    const page = await openPage(browser, `${site.url}#/play`);
    const answer = { model: "warren-demo", state: "done", text: "Some **words**, `code`\n\n- and\n- a list\n\n```js\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |" };
    const turns = Array.from({ length: MESSAGES / 2 }, (_, n) => ({ text: `Question ${n}`, answers: [answer] }));
    const file = JSON.stringify({ form: "warren-conversations", version: 1, conversations: [{ title: "Long", lanes: ["warren-demo"], turns }] });
    await page.locator("input[type=file][accept*=json]").setInputFiles({ name: "long.json", mimeType: "application/json", buffer: Buffer.from(file) });
    await page.getByRole("link", { name: "Long" }).click();
    await page.getByText(`Question ${turns.length - 1}`).waitFor();
    await page.getByRole("textbox", { name: "Question" }).fill("At length, please?");
    return await tasksOf(browser, page, `a conversation of ${MESSAGES} messages, and an answer that comes`, async () => {
      await page.getByRole("button", { name: "Send" }).click();
      await page.locator(".answer.coming .prose p").first().waitFor();
      await scroll(page, ".thread", -1500);
    });
  } finally {
    await browser.close();
    site.close();
    await warren.remove();
  }
}

/** Sessions as a server with many of them would tell: so many real ones do not fit on one machine. */
function manySessions() {
  return Array.from({ length: SESSIONS }, (_, n) => ({
    id: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`, name: `session ${n}`, mode: n % 3 ? "pty" : "sdk", status: ["running", "detached", "exited"][n % 3],
    working_dir: `/srv/project-${n % 50}`, last_active: new Date(Date.now() - n * 1000).toISOString(), kind: { type: "shell", command: "bash" }, asks: 0,
  }));
}

async function sessions() {
  const [browser, place] = await startPlace();
  try {
    const page = await place.signedIn();
    const all = manySessions();
    let say = () => {};
    await page.routeWebSocket(/\/ws$/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((data) => {
        const isList = typeof data === "string" && data.startsWith('{"type":"session_list"');
        socket.send(isList ? JSON.stringify({ type: "session_list", sessions: all }) : data);
        if (isList) say = (message) => socket.send(JSON.stringify(message));
      });
    });
    await page.reload();
    await page.getByText("10.0k sessions").waitFor();
    return await tasksOf(browser, page, `a list of ${SESSIONS} sessions, and news of twenty in each step`, () => scroll(page, ".sessions-long", 3000, (step) => {
      for (let n = 0; n < 20; n += 1) say({ type: "session_status_changed", session: { ...all[(step * 997 + n * 31) % SESSIONS], last_active: new Date().toISOString() } });
    }));
  } finally {
    await browser.close();
    await place.remove();
  }
}

async function scroll(page, selector, by, each = () => {}) {
  await page.locator(selector).hover();
  for (let step = 0; step < 60; step += 1) {
    await page.mouse.wheel(0, by);
    each(step);
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
}

/** The longest task by the processor's clock, and by that of the wall, on which the machine may have done other things. */
async function tasksOf(browser, page, what, run) {
  await page.evaluate(() => {
    globalThis.longTasks = [];
    new PerformanceObserver((list) => globalThis.longTasks.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
  });
  await startTasks(browser, page);
  await run();
  const [longest] = await longestTasks(browser);
  const walls = await page.evaluate(() => globalThis.longTasks);
  return [
    { what: `${what}: the longest task`, value: longest, unit: "ms of the processor", goal: "≤ 50" },
    { what: `${what}: tasks over 50 ms by the wall's clock`, value: walls.length, unit: walls.length ? `at most ${Math.round(Math.max(...walls))} ms` : "" },
  ];
}
