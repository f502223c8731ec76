// Rooms, keys and sessions as the person who runs the server sees them, without anything between browser and Warren.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot } from "./browser.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, url;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  url = `http://127.0.0.1:${warren.port}/`;
});

after(async () => {
  await browser?.close();
  await warren?.remove();
});

async function signIn(page) {
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(await warren.adminToken());
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Administration" }).waitFor();
}

test("a room is made, a friend invited and watched, and the room closed", async () => {
  const page = await openPage(browser, `${url}#/rooms`);
  await page.getByText("There is no room that you may see.").waitFor();
  await page.getByRole("button", { name: "New room" }).click();
  await page.getByLabel("Name").fill("Friends");
  await page.getByRole("button", { name: "Make the room" }).click();
  const link = await page.getByRole("dialog").locator(".share-address code").first().innerText();
  const spoken = await page.locator(".spoken-code").innerText();
  await page.getByText("which only this machine reaches").waitFor();
  await page.getByText("is shown now and never again").waitFor();
  await shot(page, "room-invitation");
  await assertAccessible(page, "an invitation");
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByText("Nobody lends a model now.").waitFor();
  const lender = warren.lender(spoken, "Ann");
  await page.getByRole("list", { name: "Who lends models" }).getByText("Ann").waitFor();
  const friend = await openPage(browser, link);
  await friend.getByRole("textbox", { name: "Question" }).fill("Hello?");
  await friend.getByRole("button", { name: "Send" }).click();
  await page.getByText(/Ann answered/).waitFor();
  await shot(page, "rooms");
  await assertAccessible(page, "a room that is watched");
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-rooms");

  await page.getByRole("button", { name: "Close the room" }).click();
  await page.getByRole("button", { name: "Close it" }).click();
  await friend.getByText("This room was closed.").waitFor();
  await page.getByText("There is no room that you may see.").waitFor();
  lender.kill("SIGTERM");
  assertQuiet(page);
  assertQuiet(friend);
  await page.context().close();
  await friend.context().close();
});

test("a key is made, its text shown once, used, and revoked", async () => {
  const page = await openPage(browser, url);
  await signIn(page);
  await page.getByRole("link", { name: "Administration" }).click();
  await page.getByText("There is no key.").waitFor();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("laptop");
  await page.getByLabel("read metrics").check();
  await page.getByLabel("Requests a minute").fill("60");
  await shot(page, "key-new");
  await assertAccessible(page, "the form of a new key");
  await page.getByRole("button", { name: "Make the key" }).click();
  const text = await page.locator(".share-address code").innerText();
  assert.match(text, /^wk_/);
  await assertAccessible(page, "a key's text");
  await page.getByRole("button", { name: "I have it" }).click();
  await page.getByRole("rowheader", { name: "laptop" }).waitFor();
  assert.equal(await page.getByText(text).count(), 0);
  await shot(page, "keys");
  await assertAccessible(page, "administration");

  const asked = () => fetch(`http://127.0.0.1:${warren.port}/v1/models`, { headers: { authorization: `Bearer ${text}` } });
  assert.equal((await asked()).status, 200);
  await page.getByRole("button", { name: "Revoke laptop" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByText("laptop is revoked.").waitFor();
  assert.equal((await asked()).status, 401);
  await page.setViewportSize(PHONE);
  await assertFits(page);
  assertQuiet(page);
  await page.context().close();
});

test("another browser is let in by a code, seen in the list, and sent away", async () => {
  const page = await openPage(browser, url);
  await signIn(page);
  await page.getByRole("button", { name: "Open on a phone" }).click();
  const address = await page.getByRole("dialog").locator(".share-address code").innerText();
  await page.keyboard.press("Escape");
  const other = await openPage(browser, address);
  await other.getByRole("link", { name: "Administration" }).waitFor();
  assert.ok(!other.url().includes("login"));

  await page.getByRole("link", { name: "Administration" }).click();
  const rows = page.getByRole("region", { name: "Table of sessions" }).locator("tbody tr");
  await rows.filter({ hasText: "this browser" }).waitFor();
  await shot(page, "sessions");
  await assertAccessible(page, "administration with sessions");
  await rows.filter({ hasNotText: "this browser" }).last().getByRole("button", { name: /^Revoke/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }).click();
  await page.getByText("The session is ended.").waitFor();
  await other.getByRole("button", { name: "Sign in", exact: true }).waitFor();
  assert.equal(await other.getByRole("link", { name: "Administration" }).count(), 0);
  assertQuiet(page);
  assertQuiet(other);
  await page.context().close();
  await other.context().close();
});

test("the session holds over plain http at another name than localhost, where browsers say less of a request", async () => {
  const page = await openPage(browser, url.replace("127.0.0.1", "warren.test"));
  assert.equal(await page.evaluate(() => isSecureContext), false);
  const field = page.getByLabel("Token, or login address");
  const button = page.getByRole("button", { name: "Sign in", exact: true });
  await field.or(button).first().waitFor();
  if (!(await field.count())) await button.click();
  await field.fill(await warren.adminToken());
  await page.locator("form").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Administration" }).waitFor();
  await page.reload();
  await page.getByRole("link", { name: "Administration" }).click();
  await page.getByRole("rowheader", { name: "this browser" }).waitFor();
  await page.emulateMedia({ colorScheme: "dark" });
  await assertAccessible(page, "dark administration");
  await page.getByRole("button", { name: "Open on a phone" }).click();
  await page.getByRole("img", { name: "QR code of the login address" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});
