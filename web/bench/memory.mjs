// What the page keeps while a terminal is flooded: the heap after its garbage was collected, and the elements.
import { make, startPlace } from "../e2e/workspace.mjs";

const SAMPLE_MS = 5000;
const MIB = 1024 * 1024;

export async function memory({ minutes }) {
  const [browser, place] = await startPlace();
  try {
    const page = await place.signedIn();
    await make(page, "New terminal", { Name: "yes", Directory: place.home, "Command; empty for a shell": "exec yes 'a line of output that does not end, as programs print them when something goes wrong'" });
    await page.locator(".xterm-rows").getByText("a line of output").first().waitFor();
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable");
    const samples = [];
    const end = Date.now() + minutes * 60_000;
    do {
      await new Promise((resolve) => setTimeout(resolve, SAMPLE_MS));
      samples.push(await sampleOf(session));
    } while (Date.now() < end);
    // The first seconds fill the lines that a terminal keeps.
    const settled = samples.slice(Math.min(2, samples.length - 1));
    const heaps = settled.map(({ heap }) => heap);
    return [
      { what: `heap after ${minutes} min of flood`, value: heaps.at(-1), unit: "MiB" },
      { what: "the most in between", value: Math.max(...heaps), unit: "MiB" },
      { what: "growth since it had settled", value: heaps.at(-1) - heaps[0], unit: "MiB", goal: "≤ 10" },
      { what: "elements at the end", value: settled.at(-1).nodes, unit: "" },
      { what: "growth of the elements", value: settled.at(-1).nodes - settled[0].nodes, unit: "", goal: "≤ 2000" },
    ];
  } finally {
    await browser.close();
    await place.remove();
  }
}

async function sampleOf(session) {
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const of = (name) => metrics.find((each) => each.name === name).value;
  return { heap: of("JSHeapUsedSize") / MIB, nodes: of("Nodes") };
}
