// Who gets in and how; and servers that are empty, away, or new.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, site;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  site = await serveSite({ warren: () => warren, stranger: true });
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
  await page.getByText("The server does not know this token.").waitFor();
  await shot(page, "sign-in-wrong");
  await assertAccessible(page, "the refused sign-in");

  const token = await key(["inference"]);
  await tokenField(page).fill(token);
  await signInButton(page).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByText("are for administrators").waitFor();
  assert.deepEqual(await page.evaluate(() => Object.values(localStorage)), []);
  await page.getByRole("button", { name: "Sign out" }).click();
  await tokenField(page).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a token that is to stay survives a reload, until it is revoked", async () => {
  const page = await openPage(browser, site.url);
  await tokenField(page).fill(await key(["inference", "admin"]));
  await page.getByLabel("Stay signed in").check();
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
  assert.equal(await page.getByRole("textbox", { name: "Question" }).inputValue(), "not lost");
  assertQuiet(page);
  await page.context().close();
});

test("the administrator's token administers from elsewhere, and says that it asks no models", async () => {
  const page = await openPage(browser, site.url);
  await tokenField(page).fill(await warren.adminToken());
  await signInButton(page).click();
  await page.getByRole("table", { name: "Requests" }).or(page.getByText("No request has ended")).waitFor();
  await page.getByRole("heading", { name: "Models" }).waitFor();
  await page.getByRole("link", { name: "Playground" }).first().click();
  await page.getByText("may not ask its models").waitFor();
  await assertAccessible(page, "the playground of a token without models");
  assertQuiet(page);
  await page.context().close();
});

test("a login code signs in once, by a session, and leaves the address at once", async () => {
  const asked = [];
  const sessions = sessionsOf(asked);
  const own = await serveSite({ warren: () => warren, stranger: true, sessions: sessions.serve });
  const page = await openPage(browser, `${own.url}#login=one-time-code`);
  await until(() => asked.length > 0, "the code was sent");
  assert.ok(!page.url().includes("login"));
  assert.deepEqual(asked, [{ code: "one-time-code", path: "/" }]);
  assert.equal((await page.context().cookies())[0].name, "warren");
  assertQuiet(page);
  await page.context().close();
  own.close();
});

test("a server without sessions says that it takes no codes", async () => {
  const page = await openPage(browser, `${site.url}#login=one-time-code`);
  await page.getByText("This server takes no login codes.").waitFor();
  assert.ok(!page.url().includes("login"));
  await page.context().close();
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

/** The part of CONTRACT.md about sessions, in small. The cookie is shown; Warren does not read it yet. */
function sessionsOf(asked) {
  let open = false;
  const session = { name: "test", scopes: ["inference", "admin"], expires: null };
  const serve = async (incoming, outgoing) => {
    if (incoming.method === "POST") {
      let body = "";
      for await (const piece of incoming) body += piece;
      asked.push(JSON.parse(body));
      open = true;
      outgoing.setHeader("set-cookie", "warren=secret; HttpOnly; SameSite=Strict; Path=/");
    }
    if (incoming.method === "DELETE") open = false;
    outgoing.writeHead(open ? 200 : 401, { "content-type": "application/json" });
    outgoing.end(JSON.stringify(open ? session : { error: { message: "no session" } }));
  };
  return { serve };
}
