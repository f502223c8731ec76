// Administration in a real browser: invitations, the configuration, what was done, and how the server is.
import assert from "node:assert/strict";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

const SECRET = "wt_not_for_anybody_to_read";

let browser, warren, site, config;

before(async () => {
  const home = await mkdtemp(join(tmpdir(), "warren-web-"));
  config = join(home, "warren.toml");
  await writeFile(config, `client_token = "${SECRET}"\n`);
  [browser, warren] = await Promise.all([launch(), Warren.start(["serve", "--config", config], { home, models: false })]);
  site = await serveSite({ warren: () => warren, base: "/warren/", files: Boolean(process.env.DIST) });
});

after(async () => {
  await browser?.close();
  site?.close();
  await warren?.remove();
});

/** The page *Administration*. */
async function adminPage(options) {
  const { code } = await warren.admin("/web/code", { method: "POST" });
  const page = await openPage(browser, `${site.url}#login=${code}`, options);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.evaluate(() => { location.hash = "#/admin"; });
  await page.getByRole("heading", { name: "Administration" }).waitFor();
  return page;
}

const tab = (page, name) => page.getByRole("radio", { name, exact: true }).check({ force: true });

test("a key that is made and revoked is in the audit log, which is filtered", async () => {
  const page = await adminPage();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("laptop");
  await page.getByRole("button", { name: "Make the key" }).click();
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByRole("button", { name: "Revoke laptop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("laptop is revoked.").waitFor();
  await tab(page, "Audit log");
  assert.equal(new URL(page.url()).hash, "#/admin/audit");
  const table = page.getByRole("region", { name: "Table of what was done" });
  const made = table.getByRole("row").filter({ hasText: "key.create" });
  await made.getByText("from a browser").waitFor();
  await made.getByText("done").waitFor();
  const actions = await table.locator("tbody th").allInnerTexts();
  assert.ok(actions.indexOf("key.revoke") < actions.indexOf("key.create"), "the newest is first");
  await assertAccessible(page, "the audit log");
  await shot(page, "audit");
  await page.getByLabel("Filter the audit log").fill("key.revoke done");
  await made.waitFor({ state: "detached" });
  assert.equal(await table.locator("tbody tr").count(), 1);
  await page.getByLabel("Filter the audit log").fill("nothing like this");
  await page.getByText("Nothing like that is among the newest").waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Audit log" }).waitFor();
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-audit");
  assertQuiet(page);
  await page.context().close();
});

test("a long audit log is shown in parts", async () => {
  const made = [...Array(110).keys()].map((n) => warren.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: `many-${n}`, scopes: ["inference"] }) }));
  await Promise.all(made);
  const page = await adminPage();
  await tab(page, "Audit log");
  const rows = page.getByRole("region", { name: "Table of what was done" }).locator("tbody tr");
  await until(async () => (await rows.count()) === 100, "the newest hundred");
  await page.getByRole("button", { name: "Show more" }).click();
  await until(async () => (await rows.count()) > 110, "more of the log");
  assertQuiet(page);
  await page.context().close();
});

test("a machine is invited by a command that is shown once, and shut out", async () => {
  const page = await adminPage({ viewport: PHONE, touch: true });
  await page.getByText("No machine is invited.").waitFor();
  await page.getByRole("button", { name: "Invite a machine" }).click();
  await page.getByLabel("Name of the machine").fill("gpu-box");
  await page.getByLabel("The invitation ends").selectOption("in an hour");
  await assertAccessible(page, "a new invitation");
  await page.getByRole("button", { name: "Make the invitation" }).click();
  const command = await page.getByRole("dialog").locator(".secret").innerText();
  assert.match(command, /^warren join WARREN\w+/);
  await page.getByText("Only this machine reaches these addresses.").waitFor();
  await assertFits(page);
  await assertAccessible(page, "the command of an invitation");
  await shot(page, "phone-invitation");
  await page.getByRole("button", { name: "I have it" }).click();
  const row = page.getByRole("row").filter({ hasText: "gpu-box" });
  await row.getByText(/open until/).waitFor();
  assert.equal(await page.getByText(command).count(), 0);
  const { invitations } = await warren.admin("/admin/invitations");
  const { expires_at, created_at } = invitations.find(({ name }) => name === "gpu-box");
  assert.equal(Date.parse(expires_at) - Date.parse(created_at), 3_600_000);
  await shot(page, "phone-access");
  await page.getByRole("button", { name: "Revoke gpu-box" }).click();
  await page.getByText("Its code is good for nothing any more.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await row.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Invited machines" }).getByLabel("and 1 that ended").check();
  await row.getByText("revoked").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("the health of the server and its log are shown, and copied as text", async () => {
  const page = await adminPage();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: new URL(site.url).origin });
  await tab(page, "Health");
  const { version } = await warren.admin("/health");
  await page.locator(".health-facts").getByText(version, { exact: true }).waitFor();
  await page.locator(".health-facts").getByText("ok", { exact: true }).waitFor();
  const log = page.getByRole("region", { name: "Lines of the log", exact: true });
  await log.locator(".log-line").first().waitFor();
  const { lines } = await warren.admin("/admin/logs?limit=200&level=info");
  await log.getByText(lines[0].text).first().waitFor();
  await assertAccessible(page, "the health of the server");
  await shot(page, "health");
  await page.getByRole("button", { name: "Copy for a bug report" }).click();
  await page.getByText("read them before you pass them on").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.ok(copied.includes(`Version: ${version}`) && copied.includes("Status: ok") && copied.includes(lines[0].text), copied);
  await page.getByRole("combobox", { name: "Level" }).selectOption("error");
  await page.getByText("The server keeps no line of this level.").waitFor();
  assert.equal(await log.count(), 0);
  await page.setViewportSize(PHONE);
  await page.getByRole("combobox", { name: "Level" }).selectOption("info");
  await log.waitFor();
  await assertFits(page);
  await shot(page, "phone-health");
  assertQuiet(page);
  await page.context().close();
});

test("the configuration as it stands is shown without its secrets", async (t) => {
  const told = await fetch(`http://127.0.0.1:${warren.port}/admin/config`, { headers: { authorization: `Bearer ${await warren.adminToken()}` } });
  const page = await adminPage();
  await tab(page, "Configuration");
  if (told.status === 404) {
    await page.getByText("This server does not tell its configuration.").waitFor();
    await assertAccessible(page, "the configuration of a server that does not tell it");
    await page.context().close();
    return t.skip("the binary has no /admin/config: only the words for that were checked");
  }
  assert.ok(!(await told.text()).includes(SECRET));
  await page.getByText(config).waitFor();
  const token = page.locator(".setting").filter({ hasText: "client_token" });
  await token.getByText("set, and secret").waitFor();
  await token.getByText("by the file").waitFor();
  const setting = page.locator(".setting").filter({ has: page.getByText(/(^|\.)listen$/) });
  await setting.getByText(`127.0.0.1:${warren.port}`).waitFor();
  await setting.getByText("by a flag").waitFor();
  assert.ok(!(await page.content()).includes(SECRET));
  const few = await page.locator(".setting").count();
  await assertAccessible(page, "the configuration");
  await shot(page, "configuration");
  await page.getByLabel("Only what differs from the defaults").uncheck();
  await until(async () => (await page.locator(".setting").count()) > few, "the settings that have their defaults");
  await page.getByLabel("Filter settings").fill("listen");
  await until(async () => (await page.locator(".setting").count()) < few + 10, "fewer settings");
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-configuration");
  assertQuiet(page);
  await page.context().close();
});

test("a made-up configuration is grouped, filtered, and shown as text whatever is in it", async () => {
  const settings = [
    { name: "listen", value: "0.0.0.0:9178", source: "flag", secret: false },
    { name: "client_token", value: null, source: "file", secret: true },
    { name: "log", value: "info", source: "default", secret: false },
    { name: "mesh.share.models", value: ["<b>bold</b>", "x".repeat(300)], source: "environment", secret: false },
  ];
  const page = await adminPage({ viewport: PHONE, touch: true, scheme: "dark" });
  await page.route("**/admin/config", (route) => route.fulfill({ json: { file: "/etc/warren/warren.toml", settings } }));
  await tab(page, "Configuration");
  await page.getByText("/etc/warren/warren.toml").waitFor();
  const rows = page.locator(".setting");
  assert.deepEqual(await rows.locator("dt").allInnerTexts(), ["listen", "client_token", "mesh.share.models"]);
  await rows.filter({ hasText: "client_token" }).getByText("set, and secret").waitFor();
  await rows.filter({ hasText: "<b>bold</b>" }).getByText("by the environment").waitFor();
  await assertFits(page);
  await assertAccessible(page, "the configuration");
  await shot(page, "phone-configuration-made-up");
  await page.getByLabel("Only what differs from the defaults").uncheck();
  await rows.filter({ hasText: "the default" }).waitFor();
  await page.getByLabel("Filter settings").fill("9178");
  await until(async () => (await rows.count()) === 1, "one setting");
  await page.getByLabel("Filter settings").fill("none of these");
  await page.getByText("No setting is like that.").waitFor();
  assertQuiet(page);
  await page.context().close();
});
