// Machines as a server with many of them tells of them: a stand-in for the administration's answers, the page is real.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, charted, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";

const GIB = 1024 ** 3;

let browser, server, site;
const asked = [];

before(async () => {
  browser = await launch();
  server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  site = await serveSite({ warren: () => server.address(), files: true });
});

after(async () => {
  await browser?.close();
  site?.close();
  server?.close();
});

function worker(i) {
  const facts = {
    "qwen3-8b": { load: "loaded", memory_bytes: 6 * GIB, context_tokens: 32768 },
    "llama3.3:70b-instruct-q4_K_M": { load: "unloaded", file_bytes: 40 * GIB, load_ms: 14000 },
    "<b>gemma</b>\u202e3": { load: "loading" },
  };
  return {
    worker_id: `w-${i}`, worker_name: ["gpu-box", "studio", "laptop", "attic-with-a-rather-long-name"][i % 4] + (i > 3 ? `-${i}` : ""), scope: "server",
    models: Object.keys(facts), model_facts: facts, loads_models: true, endpoints: [], distance: ["here", "near", "far", "cloud"][i % 4],
    speed: 40 + i, throttle: 100, max_concurrent: 4, reported_load: i % 5, in_flight: i % 5, is_draining: i % 4 === 2, resting_secs: i % 4 === 3 ? 20 : null,
  };
}

const workers = Array.from({ length: 60 }, (_, i) => worker(i));
const models = [
  { id: "qwen3-8b", arch: "qwen3", parameters: 8.2e9, quantization: "Q4_K_M", size: 5 * GIB, context_length: 32768, state: "loaded", capabilities: ["completion", "tools"], machines: ["gpu-box", "studio", "laptop", "attic"] },
  ...Array.from({ length: 300 }, (_, i) => ({ id: `model-${i}`, state: i % 2 ? "loaded" : "unloaded", machines: ["gpu-box"] })),
];
const outcomes = ["answered", "answered", "answered", "client_gone", "worker_failed", "queue_full"];
const requests = Array.from({ length: 500 }, (_, i) => ({
  n: 500 - i, id: `r-${i}`, at: new Date(Date.now() - i * 4000).toISOString(), key: i % 3 ? "local" : "k-1", model: i % 4 ? "qwen3-8b" : "fast", served_model: i % 4 ? null : "qwen3-8b",
  endpoint: "/v1/chat/completions", provider: "gpu-box", outcome: outcomes[i % 6], status: 200, prompt_tokens: 812 + i, completion_tokens: 244, estimated: i % 7 === 0,
  queue_ms: i * 3, first_byte_ms: 180 + i, total_ms: 4200 + i * 11, streaming: true, requeues: i % 9 === 0 ? 1 : 0,
}));
const days = Array.from({ length: 7 }, (_, i) => ({ day: `2026-11-${20 + i}`, requests: 120 - i, prompt_tokens: 90_000 + i * 7000, completion_tokens: 40_000, total_tokens: 130_000 + i * 7000, errors: i % 3, cost: "0.42" }));

let readings = 0;
function metrics() {
  readings += 1;
  const n = readings * 9 + Math.round(8 * Math.sin(readings));
  const first = (le, share) => `warren_time_to_first_byte_seconds_bucket{le="${le}",model="a"} ${Math.round(n * share)}`;
  return `warren_requests_total{model="a",outcome="answered"} ${n}\nwarren_requests_total{model="a",outcome="worker_failed"} ${Math.floor(readings / 3)}\nwarren_tokens_total{model="a",kind="prompt"} ${n * 800}\nwarren_tokens_total{model="a",kind="completion"} ${n * 240}\n${first("0.128", 0.3)}\n${first("0.256", 0.8)}\n${first("1.024", 1)}\n${first("+Inf", 1)}\n# EOF\n`;
}

/** Whether the stand-in keeps the last minutes and tells what runs, as newer servers do. */
let keeps = false;
const askedOf = [];
const readMetrics = () => askedOf.filter((path) => path === "/metrics").length;

const series = () => {
  const now = Math.floor(Date.now() / 2000) * 2;
  const points = Array.from({ length: 300 }, (_, i) => ({
    at: now - (299 - i) * 2, requests: 6 + Math.round(4 * Math.sin(i / 9)), errors: i % 40 ? 0 : 1, tokens: 900 + 300 * Math.round(Math.sin(i / 7)),
    first_token_ms: i % 5 ? 240 + i : null, first_byte_ms: i % 5 ? 120 + i : null, queued: 1, in_flight: 4,
  }));
  return { step_secs: 2, points };
};
const running = Array.from({ length: 9 }, (_, i) => ({
  id: `run-${i}`, model: i % 2 ? "qwen3-8b" : "<b>gemma</b>", endpoint: "/v1/chat/completions", key: i % 2 ? "k-1" : "local", worker: i > 6 ? null : "gpu-box",
  state: i > 6 ? "queued" : "running", waiting_ms: 900 + i, running_ms: i > 6 ? 0 : 4000 + i * 1000, tokens: i * 31,
}));

function answer(incoming, outgoing) {
  const path = incoming.url.split("?")[0];
  if (path === "/web/code") return outgoing.end(JSON.stringify({ code: "c0de-c0de-c0de-c0de-42", expires: new Date(Date.now() + 600_000).toISOString() }));
  if (incoming.method === "POST") asked.push(path);
  if (incoming.method === "POST") return outgoing.writeHead(path.endsWith("unload") ? 502 : 202, { "content-type": "application/json" }).end('{"error":{"message":"the model is in use"}}');
  const found = {
    "/health": { status: "degraded", ok: true, version: "0.2.0", degraded: "the disk is full", uptime_secs: 180_000, peers: 2 },
    "/v1/models": { data: models }, "/admin/workers": { workers }, "/admin/requests": { requests: incoming.url.includes("after=0&") ? requests : [] },
    "/admin/stats": { queue_depth: { server: 5 }, queues: [{ scope: "server", model: "qwen3-8b", depth: 5, oldest_secs: 7.25 }], active_workers: 60, in_flight: 118, uptime_secs: 180_000 },
    "/admin/keys": { keys: [{ id: "k-1", name: "laptop" }] }, "/admin/usage": { rows: days, totals: { ...days[0], requests: 800 }, currency: "EUR" },
    ...(keeps && { "/admin/series": series(), "/admin/requests/running": { requests: running } }),
  }[path];
  askedOf.push(path);
  if (path === "/metrics") return outgoing.end(metrics());
  outgoing.writeHead(found ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(found ?? { error: { message: "nothing" } }));
}

test("many machines, models and requests are steered, filtered and fit", async () => {
  const page = await openPage(browser, site.url, { viewport: { width: 1440, height: 2600 } });
  await page.getByText("The server is degraded: the disk is full").waitFor();
  await page.getByText("the oldest for 7.3 s").waitFor();
  await charted(page);
  await page.getByRole("button", { name: "Show all 60 machines" }).waitFor();
  await shot(page, "machines");
  await assertAccessible(page, "an overview of many machines");
  assert.ok((await page.locator(".request-table .virtual-row").count()) < 60, "only the rows in sight are in the page");

  await page.getByRole("searchbox", { name: "Filter requests" }).fill("laptop queue_full");
  await until(async () => (await page.getByRole("table", { name: "Requests" }).getByText("answered").count()) === 0, "the filtered rows");
  await page.getByRole("searchbox", { name: "Filter requests" }).fill("");
  await page.getByRole("button", { name: "load llama3.3:70b-instruct-q4_K_M" }).first().click();
  await page.getByText("llama3.3:70b-instruct-q4_K_M is loaded.").waitFor();
  await page.getByRole("button", { name: "unload qwen3-8b" }).first().click();
  await page.getByText("the model is in use").waitFor();
  assert.deepEqual(asked, ["/admin/workers/w-0/models/llama3.3%3A70b-instruct-q4_K_M/load", "/admin/workers/w-0/models/qwen3-8b/unload"]);

  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-machines");
  await assertAccessible(page, "many machines on a phone");
  assertQuiet(page);
  await page.context().close();
});

test("a server that keeps the last minutes fills the charts at once, and tells what runs", async () => {
  keeps = true;
  askedOf.length = 0;
  const page = await openPage(browser, site.url, { viewport: { width: 1440, height: 1900 } });
  await page.getByRole("figure").filter({ hasText: "First token" }).waitFor();
  const widths = () => page.evaluate(() => [...document.querySelectorAll(".chart path.stroke")].map((path) => path.getAttribute("d").split("L").length));
  await until(async () => (await widths())[0] > 100, "five minutes in the first chart");
  // Once, to see whether they may be read.
  assert.equal(readMetrics(), 1);
  await page.getByText("7 requests, and 2 waiting").waitFor();
  const rows = page.getByRole("list", { name: "Requests that run" }).getByRole("listitem");
  assert.match(await rows.first().innerText(), /runs\s+<b>gemma<\/b>\s+gpu-box\s+local\s+186 tokens\s+10 s/);
  assert.match(await rows.last().innerText(), /waits\s+qwen3-8b\s+no machine yet\s+laptop\s+907 ms/);
  await shot(page, "overview-series");
  await assertAccessible(page, "an overview with what runs");
  running.splice(3);
  await page.getByText("3 requests", { exact: true }).waitFor();
  running.splice(0);
  await page.getByText("Nothing waits and nothing runs.").waitFor();
  await page.setViewportSize(PHONE);
  await assertFits(page);
  keeps = false;
  await until(() => readMetrics() > 1, "the metrics of a server that keeps nothing");
  await page.getByRole("figure").filter({ hasText: "First byte" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("another device gets an address to scan that signs it in, where it can reach one", async () => {
  const page = await openPage(browser, site.url.replace("127.0.0.1", "warren.test"));
  await page.getByRole("button", { name: "Open on a phone" }).click();
  await page.getByRole("img", { name: "QR code of the login address" }).waitFor();
  await page.getByText("warren.test").filter({ hasText: "#login=c0de-c0de-c0de-c0de-42" }).waitFor();
  await shot(page, "phone-code");
  await assertAccessible(page, "the login address for another device");
  assertQuiet(page);
  await page.context().close();

  const local = await openPage(browser, site.url);
  await local.getByRole("button", { name: "Open on a phone" }).click();
  await local.getByText("which only this machine reaches").waitFor();
  assert.equal(await local.getByRole("img", { name: /QR/ }).count(), 0);
  assertQuiet(local);
  await local.context().close();
});
