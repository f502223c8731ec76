// How long the page keeps its browser busy in one go. What counts is the time of the processor, not that of the clock:
// the machine that tests may have other things to do.

/** From here on tasks are written down. */
export async function startTasks(browser, page) {
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"] });
}

/** The three longest tasks of pages since then, in milliseconds, the longest first. */
export async function longestTasks(browser) {
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
  const threads = new Set(traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain").map(({ pid, tid }) => `${pid}/${tid}`));
  const tasks = traceEvents.filter(({ name, tdur, pid, tid }) => name === "RunTask" && tdur > 0 && threads.has(`${pid}/${tid}`));
  if (!tasks.length) throw new Error("The browser wrote no tasks down.");
  return tasks.map(({ tdur }) => Math.round(tdur / 100) / 10).sort((a, b) => b - a).slice(0, 3);
}
