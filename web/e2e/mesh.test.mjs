// Two real servers as peers of each other: what they know of each other, and models that are passed on.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, launch, openPage, PHONE, shot, until } from "./browser.mjs";
import { serveSite } from "./site.mjs";
import { Warren } from "./warren.mjs";

const MIB = 1024 * 1024;

let browser, giver, taker, wire, site, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "warren-models-"));
  [browser] = await Promise.all([launch(), writeModel("small", 3 * MIB), writeModel("large", 24 * MIB), writeModel("wanted", MIB)]);
  giver = await Warren.start(["serve", "--mesh-listen", "127.0.0.1:0", "--mesh-share", "anyone", "--mesh-models", folder], { models: false });
  const { listen } = await until(async () => { const told = await giver.admin("/admin/mesh/id"); return told.listen && told; }, "a listener for peers");
  wire = await wireTo(Number(listen.split(":").pop()));
  taker = await Warren.start(["serve", "--mesh-peer", `127.0.0.1:${wire.port}`], { models: false });
  site = await serveSite({ warren: () => taker, base: "/warren/", files: Boolean(process.env.DIST) });
});

after(async () => {
  await browser?.close();
  site?.close();
  wire?.close();
  await Promise.all([giver?.remove(), taker?.remove()]);
  await rm(folder, { recursive: true, force: true });
});

/** A model whose pieces all differ. */
async function writeModel(name, length) {
  const bytes = Buffer.alloc(length);
  let state = length;
  for (let at = 0; at < length; at += 4) bytes.writeUInt32LE((state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0), at);
  await mkdir(join(folder, "org", name), { recursive: true });
  await writeFile(join(folder, "org", name, "model.gguf"), bytes);
}

/** A connection to a peer that can be made to carry no more than so many bytes, until it is let go on. */
async function wireTo(port) {
  const state = { most: Infinity, passed: 0 };
  const pairs = new Set();
  const server = createServer((socket) => {
    const onward = connect(port, "127.0.0.1");
    pairs.add(onward).add(socket);
    for (const [from, to] of [[socket, onward], [onward, socket]]) {
      from.on("error", () => to.destroy());
      from.on("close", () => { pairs.delete(from); to.destroy(); });
    }
    socket.pipe(onward);
    onward.on("data", (data) => {
      state.passed += data.length;
      socket.write(data);
      if (state.passed > state.most) onward.pause();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: server.address().port,
    holdAfter: (bytes) => { state.passed = 0; state.most = bytes; },
    letGo: () => { state.most = Infinity; pairs.forEach((end) => end.resume()); },
    close: () => { pairs.forEach((end) => end.destroy()); server.close(); },
  };
}

/** The page *Mesh* of somebody who administers the server. */
async function meshPage(of, at, options) {
  const { code } = await of.admin("/web/code", { method: "POST" });
  const page = await openPage(browser, `${at.url}#login=${code}`, options);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await page.evaluate(() => { location.hash = "#/mesh"; });
  await page.getByRole("heading", { name: "Mesh", exact: true }).waitFor();
  return page;
}

const row = (page, list, text) => page.getByRole("list", { name: list }).getByRole("listitem").filter({ hasText: text });

test("peers and their models are shown, and a model is pulled", async () => {
  const page = await meshPage(taker, site);
  const [self, other] = await Promise.all([taker, giver].map((each) => each.admin("/admin/mesh/id")));
  await page.getByText(self.id).waitFor();
  await page.getByText(self.fingerprint).first().waitFor();
  const peer = row(page, "Peers", "serves no model");
  await peer.getByText("on the LAN, sealed").waitFor();
  await peer.getByText("ready").waitFor();
  await peer.getByRole("button", { name: /^About/ }).click();
  await page.getByRole("dialog").getByText(other.id).waitFor();
  await page.getByRole("dialog").getByText("Warren 0").waitFor();
  await assertAccessible(page, "the facts of a peer");
  await shot(page, "mesh-peer");
  await page.keyboard.press("Escape");

  await row(page, "Models of the mesh", "org/small").getByRole("button", { name: "Pull org/small" }).click();
  await row(page, "Transfers", "org/small").getByText(/done · 3\.0 MiB of 3\.0 MiB/).waitFor();
  await row(page, "Models of the mesh", "org/small").getByText("here", { exact: true }).waitFor();
  const [came, sent] = await Promise.all([join(taker.home, "data", "models", "org", "small"), join(folder, "org", "small")].map((place) => readFile(join(place, "model.gguf"))));
  assert.ok(came.equals(sent));
  await shot(page, "mesh");
  await assertAccessible(page, "the mesh");
  assertQuiet(page);
  await page.context().close();
});

test("a transfer shows how far it is on a phone, is cancelled, and goes on from there", async () => {
  wire.holdAfter(9 * MIB);
  const page = await meshPage(taker, site, { viewport: PHONE, touch: true, scheme: "dark" });
  await page.getByRole("button", { name: "Pull org/large" }).click();
  await page.getByText("org/large is on its way.").waitFor();
  const transfer = row(page, "Transfers", "org/large");
  const bar = transfer.getByRole("progressbar");
  await until(async () => Number(await bar.getAttribute("aria-valuenow")) > 10, "some of the model");
  await page.getByRole("button", { name: "On its way: org/large" }).and(page.locator(":disabled")).waitFor();
  assert.ok(Number(await bar.getAttribute("aria-valuenow")) < 60);
  await transfer.getByText(/MiB of 24 MiB/).waitFor();
  await assertFits(page);
  await assertAccessible(page, "a transfer on a phone");
  await shot(page, "phone-mesh");
  await transfer.getByRole("button", { name: "Cancel the transfer of org/large" }).click();
  await page.getByRole("button", { name: "Let it go on" }).click();
  await transfer.getByRole("button", { name: "Cancel the transfer of org/large" }).click();
  await page.getByRole("button", { name: "Cancel it" }).click();
  await transfer.getByText("cancelled").waitFor();
  assert.equal(await bar.count(), 0);
  const { transfers } = await taker.admin("/admin/mesh/transfers");
  assert.equal(transfers.find(({ model }) => model === "org/large").state, "cancelled");

  wire.letGo();
  await page.getByRole("button", { name: "Pull org/large" }).and(page.locator(":enabled")).click();
  await transfer.getByText(/done · 24 MiB of 24 MiB/).waitFor();
  await page.getByText("org/large is here.").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a model that has come is told on any page, if that is wanted", async () => {
  const page = await meshPage(taker, site);
  await page.getByRole("button", { name: "Notifications" }).click();
  const seen = page.waitForResponse((answer) => answer.url().endsWith("/admin/mesh/transfers"));
  await page.getByRole("dialog").getByLabel("a model has come from the mesh").check();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Rooms" }).first().click();
  await page.getByRole("heading", { name: "Rooms" }).waitFor();
  await seen;
  await taker.admin("/admin/mesh/pull", { method: "POST", body: JSON.stringify({ model: "org/wanted" }) }).catch(() => undefined);
  await page.getByRole("link", { name: "org/wanted is here" }).click();
  await page.getByRole("heading", { name: "Mesh", exact: true }).waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a server without a mesh says how to take part in one, and who may not administer sees no mesh", async () => {
  const alone = await Warren.start(["serve"], { models: false });
  const own = await serveSite({ warren: () => alone, files: Boolean(process.env.DIST) });
  const page = await meshPage(alone, own, { viewport: PHONE });
  await page.getByRole("heading", { name: "This server takes no part in a mesh" }).waitFor();
  await page.getByText("--mesh-advertise --mesh-passcode").waitFor();
  await assertFits(page);
  await assertAccessible(page, "the page without a mesh");
  await shot(page, "phone-mesh-none");
  assertQuiet(page);
  await page.context().close();
  const { key } = await alone.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: "one", scopes: ["inference"] }) });
  const guest = await openPage(browser, own.url);
  await guest.getByRole("button", { name: "Sign in" }).first().click();
  await guest.getByLabel("Token, or login address").fill(key);
  await guest.getByRole("button", { name: "Sign in", exact: true }).last().click();
  await guest.getByRole("button", { name: "Sign out" }).waitFor();
  assert.equal(await guest.getByRole("link", { name: "Mesh" }).count(), 0);
  await guest.evaluate(() => { location.hash = "#/mesh"; });
  await guest.getByRole("heading", { name: "Overview" }).waitFor();
  assertQuiet(guest);
  await guest.context().close();
  own.close();
  await alone.remove();
});

test("a mesh of 600 peers and 400 models, with names that are hostile, scrolls and is filtered", async () => {
  const page = await meshPage(taker, site);
  const peers = [...Array(600).keys()].map((n) => ({
    id: n.toString(16).padStart(64, "0"), name: n === 3 ? "<img src=x onerror=alert(1)>\u202Egpj" : `machine-${n}`, link: n % 3 ? "lan" : "relay", sealed: n % 5 > 0, status: "ok",
    models: [`model-${n}`], capacity: 2, queue_depth: n % 4, generating: n % 2 === 0, throttle: 100, thermal: "nominal", tokens_per_second: 20.5, chip: "A chip", ram_gb: 16, warren: "0.1.0", heard_secs: 1,
  }));
  const models = [...Array(400).keys()].map((n) => ({ id: `org/model-${n}`, bytes: n * MIB, served_by: [], offered_by: [peers[n].id], served_here: false, files_here: n % 7 === 0 }));
  await page.route("**/admin/mesh/peers", (route) => route.fulfill({ json: { peers, unlinked: [{ place: "10.0.0.7:9180", why: "another passcode", met_secs: 4 }] } }));
  await page.route("**/admin/mesh/models", (route) => route.fulfill({ json: { models } }));
  await page.reload();
  await page.getByRole("heading", { name: "600 peers" }).waitFor();
  await page.getByText("another passcode").waitFor();
  const list = page.getByRole("list", { name: "Peers" });
  assert.ok((await list.getByRole("listitem").count()) < 60);
  await list.getByText("<img src=x onerror=alert(1)>").waitFor();
  await list.evaluate((element) => element.scrollTo(0, element.scrollHeight));
  await list.getByText("machine-599").waitFor();
  await assertAccessible(page, "a large mesh");
  await shot(page, "mesh-large");
  await page.getByLabel("Filter peers").fill("machine-42");
  await list.getByText("machine-421").waitFor();
  assert.equal(await page.getByText("machine-599").count(), 0);
  await page.setViewportSize(PHONE);
  await assertFits(page);
  await shot(page, "phone-mesh-large");
  assertQuiet(page);
  await page.context().close();
});
