// Who gets in and how; and servers that are empty, away, or new.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, site;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  site = await serveSite({ warren: () => warren, base: "/warren/", stranger: true });
});

after(async () => {
  await browser?.close();
  site?.close();
  await warren?.remove();
});

const tokenField = (page) => page.getByLabel("Token, or login address");
const signInButton = (page) => page.getByRole("button", { name: "Sign in" });

async function key(scopes) {
  const made = await warren.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: "test", scopes }) });
  return made.key;
}

test("a stranger signs in with a key, and out again", async () => {
  const page = await openPage(browser, site.url);
  await signInButton(page).waitFor();
  await assertAccessible(page, "the sign-in page");
  await shot(page, "sign-in");
  await tokenField(page).fill("wk_not_a_key");
  await signInButton(page).click();
  await page.getByText("this server knows no such token").waitFor();
  await shot(page, "sign-in-wrong");
  await assertAccessible(page, "the refused sign-in");

  const token = await key(["inference"]);
  await tokenField(page).fill(token);
  await signInButton(page).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("are for administrators").waitFor();
  assert.deepEqual(await page.evaluate(() => Object.values(localStorage)), []);
  await assertSession(page);
  await page.getByRole("button", { name: "Sign out" }).click();
  await tokenField(page).waitFor();
  assert.deepEqual(await page.context().cookies(), []);
  assertQuiet(page);
  await page.context().close();
});

/** Fails unless the browser has a session that no script can read, for this page and this server only. */
async function assertSession(page) {
  const [{ name, path, httpOnly, sameSite }, ...more] = await page.context().cookies();
  assert.match(name, /^warren_session_[0-9a-f]{8}$/);
  assert.deepEqual({ path, httpOnly, sameSite, more }, { path: "/warren/", httpOnly: true, sameSite: "Strict", more: [] });
  assert.equal(await page.evaluate(() => document.cookie), "");
}

test("a session survives a reload, until its key is revoked", async () => {
  const page = await openPage(browser, site.url);
  await tokenField(page).fill(await key(["inference", "admin"]));
  await signInButton(page).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Machines" }).waitFor();

  await page.goto(`${site.url}#/play`);
  await page.getByRole("textbox", { name: "Question" }).fill("not lost");
  const { keys } = await warren.admin("/admin/keys");
  for (const { id } of keys) await warren.admin(`/admin/keys/${id}`, { method: "DELETE" });
  await tokenField(page).waitFor();
  await tokenField(page).fill(await key(["inference"]));
  await signInButton(page).click();
  await until(async () => (await page.getByRole("textbox", { name: "Question" }).inputValue()) === "not lost", "the draft");
  assertQuiet(page);
  await page.context().close();
});

test("the administrator's token signs the owner in, who administers and asks models from elsewhere, too", async () => {
  const page = await openPage(browser, site.url);
  await tokenField(page).fill(await warren.adminToken());
  await signInButton(page).click();
  await page.getByRole("table", { name: "Requests" }).or(page.getByText("No request has ended")).waitFor();
  await page.getByRole("link", { name: "Playground" }).first().click();
  await page.getByRole("textbox", { name: "Question" }).fill("May I?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".answer.done").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a login code signs in once, and leaves the address at once", async () => {
  const { code } = await warren.admin("/web/code", { method: "POST" });
  const page = await openPage(browser, `${site.url}#login=${code}`);
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  assert.ok(!page.url().includes("login"));
  await assertSession(page);
  const late = await openPage(browser, `${site.url}#login=${code}`);
  await late.getByText("this login code is unknown, used or too old").waitFor();
  assert.deepEqual(await late.context().cookies(), []);
  assertQuiet(page);
  await page.context().close();
  await late.context().close();
});

test("a pasted login address signs in, too", async () => {
  const { code } = await warren.admin("/web/code", { method: "POST" });
  const page = await openPage(browser, site.url);
  await tokenField(page).fill(`${site.url}#login=${code}`);
  await signInButton(page).click();
  await page.getByRole("heading", { name: "Machines" }).waitFor();
  await page.context().close();
});

test("a server without sessions gets the token with each request, and takes no codes", async () => {
  const sessions = (_, outgoing) => outgoing.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"nothing"}}');
  const own = await serveSite({ warren: () => warren, stranger: true, sessions });
  const page = await openPage(browser, `${own.url}#login=one-time-code`);
  await page.getByText("This server takes no login codes.").waitFor();
  assert.ok(!page.url().includes("login"));
  await tokenField(page).fill(await warren.adminToken());
  await page.getByLabel("Stay signed in").check();
  await signInButton(page).click();
  await page.getByRole("heading", { name: "Models" }).waitFor();
  await page.getByRole("link", { name: "Playground" }).first().click();
  await page.getByText("may not ask its models").waitFor();
  await assertAccessible(page, "the playground of a token without models");
  await page.reload();
  await page.getByText("may not ask its models").waitFor();
  assertQuiet(page);
  await page.context().close();
  own.close();
});

test("a server that goes away loses nothing, and its return is noticed", async () => {
  const first = await Warren.start(["up", "--demo"]);
  let now = first;
  const own = await serveSite({ warren: () => now });
  const page = await openPage(browser, `${own.url}#/play`);
  const field = page.getByRole("textbox", { name: "Question" });
  await field.fill("What is Warren?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".answer.coming .prose p").first().waitFor();
  await field.fill("typed meanwhile");
  first.child.kill("SIGKILL");
  await page.locator(".answer.failed").waitFor();
  await page.locator(".banner.bad").waitFor();
  await shot(page, "away");
  await assertAccessible(page, "the page of a server that is away");
  now = await Warren.start(["up", "--demo"], { port: first.port, home: first.home });
  await page.locator(".banner.bad").waitFor({ state: "detached" });
  assert.equal(await field.inputValue(), "typed meanwhile");
  await page.getByRole("button", { name: "Ask again" }).click();
  await page.locator(".answer.done").waitFor();
  assertQuiet(page);
  await page.context().close();
  own.close();
  await now.remove();
});

test("an empty server says what is missing, and changes by itself", async () => {
  const empty = await Warren.start(["serve"], { models: false });
  const own = await serveSite({ warren: () => empty });
  const page = await openPage(browser, own.url);
  await page.getByRole("heading", { name: "Almost there" }).waitFor();
  await shot(page, "setup");
  await assertAccessible(page, "the first page");
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-setup");
  const worker = empty.worker();
  await page.getByText("warren-demo is here.").waitFor();
  await page.getByRole("heading", { name: "Models" }).waitFor();
  assertQuiet(page);
  worker.kill("SIGTERM");
  await page.context().close();
  own.close();
  await empty.remove();
});
