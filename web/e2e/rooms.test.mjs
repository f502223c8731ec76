// Rooms and keys as the person who runs the server sees them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, site;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["up", "--demo"])]);
  site = await serveSite({ warren: () => warren });
});

after(async () => {
  await browser?.close();
  site?.close();
  await warren?.remove();
});

async function signIn(page) {
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(await warren.adminToken());
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Administration" }).waitFor();
}

test("a room is made, a friend invited and watched, and the room closed", async () => {
  const page = await openPage(browser, `${site.url}#/rooms`);
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
  const page = await openPage(browser, site.url);
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
