// Teams of agents and ports of development servers in a real browser, with a real server whose agents are fakes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, PHONE, shot } from "./browser.mjs";
import { place } from "./place.mjs";

/** A part of the page *Workspace*. */
async function openPart(name, options) {
  const page = await place.signedIn(options);
  await page.getByRole("navigation", { name: "Parts of the workspace" }).getByRole("link", { name }).click();
  return page;
}

async function makeTeam(page, name) {
  await page.getByRole("button", { name: "New team" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByLabel("Directory").fill(place.home);
  await dialog.getByRole("button", { name: "Make it" }).click();
  await page.getByRole("heading", { name, level: 2 }).waitFor();
}

/** Gives a new worker work. */
async function giveWork(page, name, prompt) {
  await page.getByRole("button", { name: "Give work" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("What is to be done").fill(prompt);
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByRole("button", { name: "Give it the work" }).click();
  await dialog.waitFor({ state: "detached" });
  await members(page).getByText(name, { exact: true }).waitFor();
}

const members = (page) => page.getByRole("list", { name: "Members" });
const results = (page) => page.getByRole("region", { name: "Results" });

test("a team gets work, its results come, and a wait ends with all of them", async () => {
  const page = await openPart("Teams");
  await page.getByText("There is no team.").waitFor();
  await assertAccessible(page, "no teams");
  await makeTeam(page, "research");
  await page.getByText("no workers, nobody works").waitFor();
  await giveWork(page, "ann", "say It is done.");
  await results(page).getByText("It is done.").waitFor();
  await results(page).getByText("is done", { exact: true }).waitFor();

  await giveWork(page, "bob", "slow 4000; say Bob is ready.");
  await members(page).getByRole("link", { name: /bob.*works/ }).waitFor();
  await page.getByText("2 workers, 1 member works").waitFor();
  await page.getByRole("button", { name: "Wait for all results" }).click();
  await page.getByText("Waiting for bob…").waitFor();
  await assertAccessible(page, "a team that works");
  await shot(page, "team");
  place.site.cut();
  await results(page).getByText("Bob is ready.").waitFor();
  await page.getByText("All of them have reported.").waitFor();
  assert.equal(await results(page).getByText("It is done.").count(), 1, "a result that came by the news and by the wait is shown once");

  await giveWork(page, "cleo", "crash");
  await results(page).getByText("has failed").waitFor();
  await giveWork(page, "dan", "wait");
  await page.getByRole("button", { name: "Wait for all results" }).click();
  await page.getByText("Waiting for dan…").waitFor();
  await page.getByRole("button", { name: "Stop waiting" }).click();
  await page.getByRole("button", { name: "Wait for all results" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a message is sent and seen in the inbox, which follows, and the team is deleted with its sessions", async () => {
  const page = await openPart("Teams");
  await makeTeam(page, "writers");
  await page.getByRole("button", { name: "New worker" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("eve");
  await page.getByRole("dialog").getByRole("button", { name: "Start it" }).click();
  await members(page).getByRole("link", { name: /eve.*waits for a prompt/ }).waitFor();
  await page.getByRole("button", { name: "Inbox of eve" }).click();
  await page.getByText("No message was sent to it yet.").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("button", { name: "Message to eve" }).click();
  await page.getByRole("dialog").getByLabel("Message").fill("say <b>Hello</b> team");
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await page.getByText("The message is sent").waitFor();
  await page.getByRole("button", { name: "Inbox of eve" }).click();
  const inbox = page.getByRole("list", { name: "Messages" });
  await inbox.getByText("say <b>Hello</b> team").waitFor();
  await assertAccessible(page, "an inbox");
  await shot(page, "team-inbox");

  const other = await openPart("Teams");
  await other.getByRole("list", { name: "Teams" }).getByRole("link", { name: /writers/ }).click();
  await other.getByRole("button", { name: "Message to all" }).click();
  await other.getByRole("dialog").getByLabel("Message").fill("say second");
  await other.getByRole("dialog").getByRole("button", { name: "Send" }).click();
  await inbox.getByText("say second").waitFor();
  assert.equal(await inbox.getByRole("listitem").count(), 2);
  await page.getByRole("button", { name: "Close" }).click();

  await page.getByRole("button", { name: "Delete writers" }).click();
  await page.getByText("the sessions of its leader and of its worker are ended").waitFor();
  await page.getByRole("button", { name: "Delete it" }).click();
  await page.getByRole("button", { name: "New team" }).waitFor();
  assert.equal(await page.getByRole("link", { name: /writers/ }).count(), 0);
  await other.getByText("There is no such team any more.").waitFor();
  await other.getByRole("navigation", { name: "Parts of the workspace" }).getByRole("link", { name: "Sessions" }).click();
  await other.getByRole("list", { name: "Sessions" }).waitFor();
  assert.equal(await other.getByRole("link", { name: /eve/ }).count(), 0);
  for (const each of [page, other]) {
    assertQuiet(each);
    await each.context().close();
  }
});

test("teams fit a phone, and mark a member that asks for permission", async () => {
  const page = await openPart("Teams", { viewport: PHONE, touch: true, scheme: "dark" });
  await makeTeam(page, "a team with a rather long name for a phone");
  await giveWork(page, "asker", "ask Bash; say thanks");
  await members(page).getByText("asks for permission").waitFor();
  await assertFits(page);
  await assertAccessible(page, "a team on a phone");
  await shot(page, "phone-team");
  await page.getByRole("link", { name: "Back to the teams" }).click();
  await page.getByRole("list", { name: "Teams" }).getByText("a member asks for permission").waitFor();
  await assertFits(page);
  await shot(page, "phone-teams");
  await page.getByRole("list", { name: "Teams" }).getByRole("link", { name: /rather long/ }).click();
  await members(page).getByRole("link", { name: /asker/ }).click();
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Bash was allowed").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a development server is started, its port is found, and it is ended", async () => {
  const page = await openPart("Ports");
  await page.getByText("No development server runs.").waitFor();
  await assertAccessible(page, "no ports");
  await page.getByRole("button", { name: "Start a server" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Command").fill("exec python3 -u -m http.server 0 --bind 127.0.0.1");
  await dialog.getByLabel("Directory").fill(place.home);
  await dialog.getByLabel("Name").fill("preview");
  await assertAccessible(page, "a new development server");
  await dialog.getByRole("button", { name: "Start it" }).click();
  const list = page.getByRole("list", { name: "Development servers" });
  const link = list.getByRole("link", { name: /^http:\/\/127\.0\.0\.1:\d+\/$/ });
  await link.waitFor();
  assert.equal((await fetch(await link.getAttribute("href"))).status, 200);
  await list.getByText("Works in a browser on the machine that runs the server.").waitFor();
  await assertAccessible(page, "a development server");
  await shot(page, "ports");
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-ports");
  await list.getByRole("link", { name: "Terminal of preview" }).click();
  await page.getByRole("region", { name: "preview" }).waitFor();
  await page.goBack();
  await page.getByRole("button", { name: "End preview" }).click();
  await page.getByRole("button", { name: "End it" }).click();
  await page.getByText("No development server runs.").waitFor();
  assertQuiet(page);
  await page.context().close();
});
