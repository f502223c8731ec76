// A guest of a room: a link, a chat, and nothing else of the server. The rooms, their lenders and the demo model are real.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

let browser, warren, site;

before(async () => {
  [browser, warren] = await Promise.all([launch(), Warren.start(["serve", "--require-key"], { models: false })]);
  site = await serveSite({ warren: () => warren, base: "/warren/", stranger: true });
});

after(async () => {
  await browser?.close();
  site?.close();
  await warren?.remove();
});

const question = (page) => page.getByRole("textbox", { name: "Question" });

async function room(more = {}) {
  const answer = await warren.admin("/v1/rooms", { method: "POST", body: JSON.stringify({ name: "Tuesday", ...more }) });
  return answer.data.room;
}

async function openRoom(code, options) {
  const page = await openPage(browser, "about:blank", { ...options, origin: site.url });
  page.asked = [];
  page.on("request", (request) => page.asked.push(request));
  await page.goto(`${site.url}#room=${code}`);
  return page;
}

/** Fails when the page asked for anything but itself and the room, or showed a credential that is not the room's. */
function assertGuest(page, code) {
  for (const request of page.asked) {
    const path = new URL(request.url()).pathname.replace("/warren/", "");
    assert.match(path, new RegExp(`^(|icon\\.svg|assets/[^/]+|(v1/)?rooms/${code}(/.*)?)$`));
    assert.equal(request.headers().cookie, undefined);
  }
}

test("a guest on a phone waits for a lender, chats, and stays in the room after a reload", async () => {
  const { code, spokenCode } = await room();
  const page = await openRoom(code, { viewport: PHONE, touch: true });
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled());
  await shot(page, "room-empty");
  await assertAccessible(page, "a room in which nobody lends a model");

  const lender = warren.lender(spokenCode, "Ann");
  await page.getByRole("button", { name: "Who lends models: 1 machine" }).click();
  await page.getByRole("dialog").getByText("Ann").waitFor();
  await shot(page, "room-lenders");
  await page.keyboard.press("Escape");
  await question(page).fill("What is a room?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".answer.coming .prose p").first().waitFor();
  await page.locator(".answer.done .numbers").filter({ hasText: "tok/s" }).waitFor();
  await assertFits(page);
  await shot(page, "room");
  await assertAccessible(page, "a guest's page");

  await question(page).fill("And at length?");
  await page.getByRole("button", { name: "Send" }).click();
  await page.locator(".answer.coming .prose p").first().waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByText("stopped").waitFor();

  await page.reload();
  await page.getByText("What is a room?").waitFor();
  assert.match(page.url(), new RegExp(`#room=${code}$`));
  assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((name) => /draft|model/.test(name) && !name.startsWith("warren.room."))), []);

  lender.kill("SIGKILL");
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  await warren.admin(`/v1/rooms/${code}`, { method: "DELETE" });
  await page.getByText("This room was closed.").waitFor();
  await page.getByText("What is a room?").waitFor();
  assertGuest(page, code);
  assertQuiet(page);
  await page.context().close();
});

test("a password is asked for, a wrong one is told, and a right one holds until the tab is closed", async () => {
  const { code } = await room({ password: "süß 42" });
  const page = await openRoom(code, { scheme: "dark" });
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Enter" }).click();
  await page.getByText("This is not the password.").waitFor();
  await shot(page, "room-password");
  await assertAccessible(page, "a room's refused password");
  await page.getByLabel("Password").fill("süß 42");
  await page.getByRole("button", { name: "Enter" }).click();
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  await assertAccessible(page, "a dark room");
  await page.reload();
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  assertGuest(page, code);
  assertQuiet(page);
  await page.context().close();
});

test("the address in an invitation of the command line leads to the room, below a path, too", async () => {
  const { spokenCode } = await room({ name: "By address" });
  const page = await openPage(browser, `${site.url}rooms/${spokenCode}`);
  await page.getByRole("heading", { name: "By address" }).waitFor();
  assert.equal(page.url(), `${site.url}#room=${spokenCode}`);
  assertQuiet(page);
  await page.context().close();
});

test("a code of no room says so, and asks for nothing else", async () => {
  const page = await openRoom("swift-eagle-99");
  await page.getByRole("heading", { name: "There is no such room" }).waitFor();
  await assertAccessible(page, "a code of no room");
  assertGuest(page, "swift-eagle-99");
  await page.context().close();
});

test("a server that goes away is waited for, with the room as it was", async () => {
  const first = await Warren.start(["serve"], { models: false });
  let now = first;
  const own = await serveSite({ warren: () => now });
  const made = await first.admin("/v1/rooms", { method: "POST", body: JSON.stringify({ name: "Still here" }) });
  const page = await openPage(browser, `${own.url}#room=${made.data.room.code}`);
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  await question(page).fill("typed meanwhile");
  await first.end();
  await page.getByText("The page goes on by itself.").waitFor();
  now = await Warren.start(["serve"], { port: first.port, home: first.home, models: false });
  await page.getByText("Nobody lends a model in this room now.").waitFor();
  assert.equal(await question(page).inputValue(), "typed meanwhile");
  await until(() => page.getByText("The page goes on by itself.").count().then((n) => n === 0), "the message to go");
  assertQuiet(page);
  await page.context().close();
  own.close();
  await now.remove();
});
