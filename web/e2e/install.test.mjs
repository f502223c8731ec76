// The page as an app: its manifest, what opens while the server is away, a new version; and notifications.
import assert from "node:assert/strict";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, openPage, PHONE, shot, until } from "./browser.mjs";
import { browser, place } from "./place.mjs";
import { DIST } from "./site.mjs";
import { make } from "./workspace.mjs";

/** Waits until the service worker has what the page needs. */
async function kept(page) {
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => undefined));
}

test("the manifest names the page, and icons that are there in the sizes it says", async () => {
  const page = await openPage(browser, place.site.url);
  const address = await page.locator("link[rel=manifest]").evaluate((link) => link.href);
  const answer = await page.request.get(address);
  assert.match(answer.headers()["content-type"], /^application\/manifest\+json/);
  const manifest = await answer.json();
  const at = (path) => new URL(path, address).href;
  assert.deepEqual([at(manifest.start_url), at(manifest.scope), at(manifest.id), manifest.display], [place.site.url, place.site.url, place.site.url, "standalone"]);
  assert.ok(manifest.icons.some(({ purpose, sizes }) => purpose === "maskable" && sizes === "512x512"));
  for (const { src, sizes, type } of manifest.icons) {
    const icon = await page.request.get(at(src));
    assert.equal(icon.headers()["content-type"], type, src);
    if (type !== "image/png") continue;
    const png = await icon.body();
    assert.equal(`${png.readUInt32BE(16)}x${png.readUInt32BE(20)}`, sizes, src);
  }
  assert.equal((await page.request.get(at("icon-180.png"))).status(), 200);
  const session = await page.context().newCDPSession(page);
  const { errors } = await session.send("Page.getAppManifest");
  assert.deepEqual(errors, []);
  assertQuiet(page);
  await page.context().close();
});

test("the page opens while the server is away, says so, and goes on when it is back", async () => {
  let gone = false;
  const site = await place.serve({ gone: () => gone });
  const page = await openPage(browser, site.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await kept(page);
  gone = true;
  await page.reload();
  await page.getByRole("heading", { name: "The server is away" }).waitFor();
  await page.getByText("The server cannot be reached.").waitFor();
  await shot(page, "offline");
  await assertAccessible(page, "the page of a server that is away, opened anew");
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-offline");
  gone = false;
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assertQuiet(page);

  gone = 502;
  await page.reload();
  await page.getByRole("heading", { name: "The server is away" }).waitFor();
  await page.getByText("The server answered with status 502.").waitFor();
  gone = false;
  await page.getByRole("heading", { name: "Overview" }).waitFor();

  await page.context().setOffline(true);
  await page.reload();
  await page.getByRole("heading", { name: "The server is away" }).waitFor();
  await page.context().setOffline(false);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.context().close();
  site.close();
});

test("only the page's own files are kept, and nothing of the API goes through the service worker", async () => {
  const page = await openPage(browser, place.site.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await kept(page);
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.getByRole("button", { name: "Notifications" }).click();
  await page.getByRole("dialog", { name: "Notifications" }).getByText("Tell me when").waitFor();
  const stored = await page.evaluate(async () => {
    const names = await caches.keys();
    return Promise.all(names.map(async (name) => [name, (await (await caches.open(name)).keys()).map(({ url }) => url)]));
  });
  assert.equal(stored.length, 1);
  const [[name, urls]] = stored;
  assert.ok(name.startsWith(`warren-page:${place.site.url}:`), name);
  assert.ok(urls.includes(place.site.url));
  for (const url of urls) assert.ok(url === place.site.url || url.startsWith(`${place.site.url}assets/`), url);
  assert.ok(urls.some((url) => /assets\/settings-.*\.js$/.test(url)), "a part that was loaded later is kept, too");
  const ways = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name, workerStart }) => [name, workerStart > 0]));
  assert.ok(ways.some(([url, byWorker]) => url.includes("/assets/") && byWorker));
  assertQuiet(page);
  await page.context().close();
});

test("a new build takes the place of the old one at the next visit", async () => {
  const folder = await mkdtemp(join(tmpdir(), "warren-dist-"));
  await cp(DIST, folder, { recursive: true });
  const site = await place.serve({ files: true, folder });
  const page = await openPage(browser, site.url);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await kept(page);
  const before = await page.evaluate(() => caches.keys());
  await changeBuild(folder);
  await page.reload();
  await page.locator("meta[name=build][content=next]").waitFor({ state: "attached" });
  const after = await until(async () => {
    const names = await page.evaluate(() => caches.keys());
    return names.length === 1 && names[0] !== before[0] && names;
  }, "the cache of the new build alone");
  const html = await page.evaluate(async ([name, url]) => (await (await (await caches.open(name)).match(url)).text()), [after[0], site.url]);
  assert.match(html, /content="next"/);
  await page.context().close();
  site.close();
  await rm(folder, { recursive: true });
});

/** Makes of a build another one: a file has another name and other content, and so have the page and its service worker. */
async function changeBuild(folder) {
  const assets = await readdir(join(folder, "assets"));
  const style = assets.find((name) => /^index-.*\.css$/.test(name));
  const [page, worker] = await Promise.all(["index.html", "sw.js"].map((name) => readFile(join(folder, name), "utf8")));
  const renamed = (text) => text.replaceAll(style, "index-nextnext.css");
  await cp(join(folder, "assets", style), join(folder, "assets", "index-nextnext.css"));
  await rm(join(folder, "assets", style));
  await writeFile(join(folder, "index.html"), renamed(page).replace("<title>", '<meta name="build" content="next" /><title>'));
  await writeFile(join(folder, "sw.js"), renamed(worker).replace(/"[0-9a-f]{16}"/, '"nextnextnextnext"'));
}

test("the palette offers to install the page where the browser does", async () => {
  const page = await openPage(browser, place.site.url);
  // The browser's own offer comes when it likes.
  await page.addInitScript(() => window.addEventListener("beforeinstallprompt", (event) => event.isTrusted && event.stopImmediatePropagation(), true));
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("install warren");
  assert.equal(await page.getByRole("option", { name: "Install Warren as an app" }).count(), 0);
  await page.keyboard.press("Escape");
  await page.getByRole("combobox").waitFor({ state: "hidden" });
  await page.evaluate(() => {
    const offer = new Event("beforeinstallprompt", { cancelable: true });
    offer.prompt = () => { window.prompted = offer.defaultPrevented; };
    window.dispatchEvent(offer);
  });
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("install warren");
  await page.getByRole("option", { name: "Install Warren as an app" }).click();
  await page.waitForFunction(() => window.prompted === true);
  assertQuiet(page);
  await page.context().close();
});

/** Writes down what the system is asked to show, and what `hidden` makes of the page's visibility. */
function spy() {
  window.shown = [];
  ServiceWorkerRegistration.prototype.showNotification = function (title, options) {
    window.shown.push({ title, ...options });
    return Promise.resolve();
  };
  window.hide = (hidden) => {
    Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (hidden ? "hidden" : "visible") });
    document.hasFocus = () => !hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  };
}

async function choose(page, ...names) {
  await page.getByRole("button", { name: "Notifications" }).click();
  for (const name of names) await page.getByRole("dialog").getByLabel(name).check();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

/** Does what happens when somebody chooses a notification that the system shows. */
async function chooseNotification(context, href) {
  const [worker] = context.serviceWorkers();
  await worker.evaluate(async (to) => {
    await self.registration.showNotification("test", { data: { href: to } });
    const [notification] = await self.registration.getNotifications();
    self.dispatchEvent(new NotificationEvent("notificationclick", { notification }));
  }, href);
}

test("an agent that asks while the page is hidden is told by the system, once, and a click leads there", async () => {
  const page = await place.signedIn();
  const context = page.context();
  await context.grantPermissions(["notifications"], { origin: new URL(place.site.url).origin });
  await context.addInitScript(spy);
  await page.reload();
  await kept(page);
  await page.getByRole("button", { name: "Notifications" }).click();
  await page.getByRole("dialog", { name: "Notifications" }).getByText("Tell me when").waitFor();
  await assertAccessible(page, "the choice of notifications");
  await shot(page, "notices");
  await page.keyboard.press("Escape");
  await choose(page, "an agent asks for permission", "an agent has ended its turn");
  const other = await context.newPage();
  await other.goto(place.site.url);
  await other.getByRole("heading", { name: "Overview" }).waitFor();

  await page.bringToFront();
  await make(page, "New agent", { Name: "asker", Directory: place.home });
  await page.getByRole("textbox", { name: "Prompt" }).fill("slow 1200; ask Write; wait");
  await page.keyboard.press("Enter");
  await page.getByText("The agent works…").waitFor();
  const session = new URL(page.url()).hash;
  await Promise.all([page, other].map((each) => each.evaluate(() => window.hide(true))));
  place.site.cut();
  const shown = async () => (await Promise.all([page, other].map((each) => each.evaluate(() => window.shown)))).flat();
  const [first] = await until(async () => ((await shown()).length ? shown() : null), "a notification");
  assert.deepEqual([first.title, first.data.href], ["asker asks for permission", session]);
  const counted = async () => (await Promise.all([page, other].map((each) => each.title()))).filter((title) => title.startsWith("(1) ")).length;
  await until(async () => (await counted()) === 1, "a number in one title");

  await Promise.all([page, other].map((each) => each.evaluate(() => window.hide(false))));
  await until(async () => !(await page.title()).startsWith("(") && !(await other.title()).startsWith("("), "titles without a number");
  assert.equal((await shown()).length, 1);

  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.getByText("Interrupted.").waitFor();
  await page.getByRole("textbox", { name: "Prompt" }).fill("slow 700; say done");
  await page.keyboard.press("Enter");
  await page.getByText("The agent works…").waitFor();
  await Promise.all([page, other].map((each) => each.evaluate(() => window.hide(true))));
  const all = await until(async () => ((await shown()).length > 1 ? shown() : null), "a second notification");
  assert.deepEqual(all.map(({ title }) => title).sort(), ["asker asks for permission", "asker has ended its turn"], "the end of a turn that is looked at is not told");
  await Promise.all([page, other].map((each) => each.evaluate(() => window.hide(false))));

  await page.close();
  await chooseNotification(context, session);
  await other.getByRole("heading", { name: "asker" }).waitFor();
  assertQuiet(page);
  await context.close();
});

test("without the browser's permission notices are in the page, and lead to what they are about", async () => {
  const page = await place.signedIn({ viewport: PHONE, touch: true, scheme: "dark" });
  await page.evaluate(() => { Notification.requestPermission = () => Promise.resolve("denied"); });
  await page.getByRole("button", { name: "More: commands" }).click();
  await page.getByRole("combobox").fill("notifications");
  await page.getByRole("option", { name: /Notifications/ }).click();
  await page.getByRole("dialog").getByLabel("an agent has ended its turn").check();
  await assertFits(page);
  await assertAccessible(page, "the choice of notifications on a phone");
  await shot(page, "phone-notices");
  await page.getByRole("button", { name: "Close" }).click();
  await make(page, "New agent", { Name: "worker", Directory: place.home });
  await page.getByRole("textbox", { name: "Prompt" }).fill("slow 1500; say done");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("The agent works…").waitFor();
  const session = new URL(page.url()).hash;
  await page.getByRole("link", { name: "Overview" }).filter({ visible: true }).click();
  const notice = page.getByRole("link", { name: "worker has ended its turn" });
  await notice.waitFor();
  await shot(page, "phone-notice");
  await notice.click();
  await page.locator(".prose", { hasText: "done" }).waitFor();
  assert.equal(new URL(page.url()).hash, session);
  assert.equal(await notice.count(), 0);
  await page.reload();
  await page.getByRole("button", { name: "More: commands" }).click();
  await page.getByRole("combobox").fill("notifications");
  await page.getByRole("option", { name: /Notifications/ }).click();
  assert.ok(await page.getByRole("dialog").getByLabel("an agent has ended its turn").isChecked());
  assertQuiet(page);
  await page.context().close();
});

test("who leaves a room is told while the page is hidden, once it is seen again", async () => {
  const { data } = await place.warren.admin("/v1/rooms", { method: "POST", body: JSON.stringify({ name: "Lab" }) });
  const page = await place.signedIn();
  await page.addInitScript(spy);
  await page.reload();
  await choose(page, "somebody leaves a room");
  const here = page.waitForResponse(async (answer) => answer.url().endsWith("/participants") && (await answer.text()).includes("Ann"));
  const lender = place.warren.lender(data.room.code, "Ann");
  await here;
  await page.evaluate(() => window.hide(true));
  lender.kill("SIGTERM");
  await until(async () => (await page.title()).startsWith("(1) "), "the title with a number");
  assert.equal(await page.locator(".toast").count(), 0);
  await page.evaluate(() => window.hide(false));
  await page.getByRole("link", { name: "Ann left Lab" }).click();
  await page.getByRole("heading", { name: "Rooms" }).waitFor();
  assertQuiet(page);
  await page.context().close();
});
