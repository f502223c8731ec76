// A real server with a workspace, whose agents are the test kit's fakes; and what tests do with its terminals.
import { mkdir, mkdtemp, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { launch, openPage, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

const PROVIDERS = ["claude", "codex", "gemini", "opencode"];

/** The program that is every agent: `FAKE_AGENT`, or where cargo puts it beside Warren. */
const fakeAgent = () => process.env.FAKE_AGENT ?? join(dirname(resolve(process.env.WARREN)), "examples", "fake-agent");

/** A browser, and a place to work in. */
export async function startPlace() {
  const browser = await launch();
  return [browser, await anotherPlace(browser)];
}

/** A place to work in, whose server is started with these arguments, too. */
export async function anotherPlace(browser, args = []) {
  return new Place(browser, await mkdtemp(join(tmpdir(), "warren-web-")), args).start();
}

class Place {
  constructor(browser, home, args) {
    this.browser = browser;
    this.home = home;
    this.args = args;
    this.config = join(home, "warren.toml");
  }

  async start() {
    const bin = join(this.home, "bin");
    await mkdir(join(bin, "state"), { recursive: true });
    for (const name of PROVIDERS) await symlink(fakeAgent(), join(bin, name));
    const programs = PROVIDERS.map((name) => `${name} = ${JSON.stringify(join(bin, name))}`).join("\n");
    await writeFile(this.config, `[workspace.agents.programs]\n${programs}\n`);
    await this.startAgain();
    this.site = await this.serve();
    return this;
  }

  /** What stands between the browser and the server. */
  serve(options) {
    return serveSite({ warren: () => this.warren, base: "/warren/", files: Boolean(process.env.DIST), ...options });
  }

  /** Starts the server, at the port that it had. */
  async startAgain() {
    this.warren = await Warren.start(["serve", "--config", this.config, ...this.args], { home: this.home, port: this.warren?.port, models: false });
  }

  /** Ends the server without a word. */
  async crash() {
    this.warren.child.kill("SIGKILL");
  }

  /** The page *Workspace* of somebody who administers the server. */
  async signedIn(options) {
    const { code } = await this.warren.admin("/web/code", { method: "POST" });
    const page = await openPage(this.browser, `${this.site.url}#login=${code}`, options);
    await page.getByRole("link", { name: "Workspace" }).filter({ visible: true }).click();
    await page.getByRole("heading", { name: "Workspace" }).waitFor();
    return page;
  }

  async remove() {
    this.site?.close();
    await this.warren?.remove();
  }
}

/** Makes a session by the button of this name. */
export async function make(page, button, fields) {
  await page.getByRole("button", { name: button }).click();
  for (const [label, value] of Object.entries(fields)) await page.getByRole("dialog").getByLabel(label).fill(value);
  await page.getByRole("button", { name: "Start it" }).click();
}

/** Makes a terminal with a bare shell. */
export async function makeShell(place, page, name) {
  await make(page, "New terminal", { Name: name, Directory: place.home, "Command; empty for a shell": "PS1='$ ' exec bash --norc" });
  await shows(page, "$");
}

/** What all terminals of the page show. */
export async function screenText(page) {
  return page.evaluate(() => [...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent.replaceAll("\u00a0", " ").trimEnd()).join("\n").trimEnd());
}

export const shows = (page, text) => until(async () => (await screenText(page)).includes(text), `${text} in the terminal`);

/** Asks the workspace for something as the page could, over a connection of its own, and gives the answer of this type. */
export async function tell(page, message, answer) {
  return page.evaluate(([message, answer]) => new Promise((resolve, reject) => {
    const socket = new WebSocket(new URL("ws", location.href).href.replace(/^http/, "ws"));
    socket.onopen = () => [{ type: "auth", token: "" }, message].forEach((each) => socket.send(JSON.stringify(each)));
    socket.onerror = () => reject(new Error("no connection"));
    socket.onmessage = ({ data }) => {
      const told = JSON.parse(data);
      if (told.type === "error") reject(new Error(told.message));
      if (told.type !== answer) return;
      socket.close();
      resolve(told);
    };
  }), [message, answer]);
}
