// Starts a real Warren for a test, with a directory and a port of its own.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** How long Warren may take until it answers, in milliseconds. */
const START_MS = 15_000;

/** Processes that still run when the tests end, however they end. */
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

function run(args, home, stdio) {
  const env = { PATH: process.env.PATH, HOME: home, WARREN_DATA_DIR: join(home, "data") };
  const child = spawn(PROGRAM, args, { env, stdio });
  running.add(child);
  child.on("exit", () => running.delete(child));
  return child;
}

const PROGRAM = process.env.WARREN ?? "warren";

/** A running `warren COMMAND …`. */
export class Warren {
  constructor(child, port, home) {
    this.child = child;
    this.port = port;
    this.home = home;
  }

  /** Starts it; `port` and `home` of an earlier one make it the same server again. */
  static async start(args, { port, home, models = true } = {}) {
    home ??= await mkdtemp(join(tmpdir(), "warren-web-"));
    port ??= await freePort();
    const child = run([...args, "--listen", `127.0.0.1:${port}`], home, ["ignore", "pipe", "pipe"]);
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said = (said + data).slice(-8192)));
    const warren = new Warren(child, port, home);
    const deadline = Date.now() + START_MS;
    while (!(await warren.answers(models))) {
      if (child.exitCode !== null || Date.now() > deadline) throw new Error(`Warren does not answer: ${said}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return warren;
  }

  async answers(models) {
    try {
      const health = await (await fetch(`http://127.0.0.1:${this.port}/health`)).json();
      return !models || health.status !== "ok" || health.models === undefined || health.models.length > 0;
    } catch {
      return false;
    }
  }

  /** Starts a worker with the demo model for this server; returns its process. */
  worker() {
    return run(["worker", "--demo", "--server", `http://127.0.0.1:${this.port}`], this.home, "ignore");
  }

  /** Lends the demo model in a room; returns the process. */
  lender(code, nickname) {
    return run(["room", "join", code, "--demo", "--nickname", nickname, "--server", `http://127.0.0.1:${this.port}`], this.home, "ignore");
  }

  async adminToken() {
    return (await readFile(join(this.home, "data", "admin.token"), "utf8")).trim();
  }

  /** The JSON of a path, as the administrator sees it. */
  async admin(path, init = {}) {
    const headers = { authorization: `Bearer ${await this.adminToken()}`, "content-type": "application/json" };
    return (await fetch(`http://127.0.0.1:${this.port}${path}`, { headers, ...init })).json();
  }

  /** Ends the process; its directory stays. */
  async end() {
    if (this.child.exitCode !== null) return;
    const ended = once(this.child, "exit");
    this.child.kill("SIGTERM");
    setTimeout(() => this.child.kill("SIGKILL"), 3000).unref();
    await ended;
  }

  async remove() {
    await this.end();
    await rm(this.home, { recursive: true, force: true });
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  return port;
}
