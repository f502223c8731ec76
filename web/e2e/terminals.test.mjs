// Terminals in a real browser, with a real server.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, openPage, PHONE, shot, until } from "./browser.mjs";
import { browser, place } from "./place.mjs";
import { make, makeShell, screenText, shows } from "./workspace.mjs";

test("a terminal types and shows, and its screen is right again after the connection was cut", async () => {
  const page = await place.signedIn();
  await page.getByText("There is no session.").waitFor();
  await assertAccessible(page, "an empty workspace");
  await make(page, "New terminal", { Name: "shell", Directory: place.home, "Command; empty for a shell": "PS1='$ ' exec bash --norc" });
  await page.locator(".xterm-rows").waitFor();
  await shows(page, "$");
  await page.keyboard.type("echo one-$((20 + 22))\n");
  await shows(page, "one-42");
  await page.keyboard.type("printf '\\033[38;2;200;40;40mred\\033[0m \\033]0;a <b>title</b>\\007 \\033]52;c;aGFja2Vk\\007 \\033]8;;https://example.org/\\033\\\\link\\033]8;;\\033\\\\\\n'\n");
  await page.locator(".terminal-title bdi").filter({ hasText: "a <b>title</b>" }).waitFor();
  const red = page.locator(".xterm-rows span").filter({ hasText: /^red$/ });
  await red.waitFor();
  assert.match(await red.evaluate((element) => element.style.color), /^(#|rgb)/);
  await shot(page, "terminal");
  await assertAccessible(page, "a terminal");

  await page.keyboard.type("for i in 1 2 3; do sleep 0.7; echo line-$i; done; echo all-$((1 + 1))\n");
  await shows(page, "line-1");
  place.site.cut();
  await page.getByText("Connecting…").waitFor();
  await page.keyboard.type("echo typed-$((3 + 4))\n");
  await shows(page, "typed-7");
  const lines = (await screenText(page)).split("\n").filter((line) => /^(line-\d|all-2|typed-7)$/.test(line));
  assert.deepEqual(lines, ["line-1", "line-2", "line-3", "all-2", "typed-7"]);
  assert.equal(await page.locator("style").count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("a phone has the keys that it lacks, scrolls, pastes, and shares a terminal with a desktop", async () => {
  const page = await place.signedIn({ viewport: PHONE, touch: true, scheme: "dark" });
  await makeShell(place, page, "shared");
  await page.locator(".xterm").click();
  await page.keyboard.type("cat");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Ctrl" }).click();
  await page.keyboard.type("c");
  await shows(page, "^C");
  await page.getByRole("button", { name: "Up" }).click();
  await until(async () => (await screenText(page)).split("$ cat").length === 3, "the command before");
  await page.getByRole("button", { name: "Ctrl" }).click();
  await page.keyboard.type("u");
  await page.getByRole("button", { name: "Paste" }).click();
  await page.getByLabel("What the program gets").fill("seq 1 200; stty size");
  await page.getByRole("button", { name: "Paste it" }).click();
  await page.keyboard.press("Enter");
  await shows(page, "200");
  await assertFits(page);
  await assertAccessible(page, "a terminal on a phone");
  await shot(page, "phone-terminal");
  await swipe(page, ".terminal-host", 400);
  await until(async () => !(await screenText(page)).includes("200"), "earlier lines");
  await page.getByRole("button", { name: "Show as text" }).click();
  const text = await page.locator(".terminal-text").innerText();
  assert.ok(text.includes("1\n2\n3\n") && text.includes("199\n200\n"));
  await assertAccessible(page, "a terminal as text");
  await page.keyboard.press("Escape");

  const [rows, cols] = /200\n(\d+) (\d+)/.exec(text).slice(1).map(Number);
  assert.ok(cols < 60 && rows > 15, `${rows} rows of ${cols} columns`);
  const desk = await place.signedIn();
  await desk.getByRole("link", { name: /shared/ }).click();
  await shows(desk, "200");
  // Typing takes the size over, but not at once.
  await desk.keyboard.type("until stty size | grep -q ' [0-9][0-9][0-9]$'; do sleep 0.1; done; stty size; echo at-the-desk\n");
  await shows(desk, "at-the-desk");
  const wide = await until(async () => /\n(\d+) (\d\d\d)\nat-the-desk/.exec(await screenText(desk)), "a wide terminal");
  assert.ok(Number(wide[2]) > 100);
  await shows(page, "at-the-desk");
  await page.locator(".xterm").click();
  await page.keyboard.type(`\nuntil stty size | grep -q ' ${cols}$'; do sleep 0.1; done; clear; stty size; echo on-the-phone\n`);
  await until(async () => new RegExp(`(^|\n)${rows} ${cols}\non-the-phone`).test(await screenText(page)), "the phone's size again");
  await until(async () => (await screenText(desk)).includes(`${rows} ${cols}\non-the-phone`), "the same at the desk");
  assertQuiet(page);
  assertQuiet(desk);
  await page.context().close();
  await desk.context().close();
});

/** Draws one finger down. */
async function swipe(page, selector, distance) {
  await page.locator(selector).evaluate((element, distance) => {
    const { left, top } = element.getBoundingClientRect();
    const fire = (type, y) => {
      const touch = new Touch({ identifier: 1, target: element, clientX: left + 50, clientY: y });
      element.dispatchEvent(new TouchEvent(type, { touches: type === "touchend" ? [] : [touch], changedTouches: [touch], bubbles: true, cancelable: true }));
    };
    fire("touchstart", top + 20);
    for (let moved = 0; moved <= distance; moved += 20) fire("touchmove", top + 20 + moved);
    fire("touchend", top + 20 + distance);
  }, distance);
}

test("two terminals are side by side; a flood and a link do no harm; the program's end is told", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "left");
  const left = page.url().split("/").pop();
  await page.getByRole("button", { name: "Back to the sessions" }).click();
  await makeShell(place, page, "right");
  await page.getByRole("button", { name: "Show another beside it" }).click();
  await page.getByRole("dialog").getByRole("link", { name: /left/ }).click();
  await page.locator(".pane").nth(1).waitFor();
  assert.ok(page.url().endsWith(left));
  await page.locator(".xterm").nth(1).click();
  await page.keyboard.type("echo second-$((1 + 1))\n");
  await shows(page, "second-2");
  await assertAccessible(page, "two terminals");
  await shot(page, "terminals");
  await page.getByRole("button", { name: "Close the view of left" }).click();
  await page.locator(".pane").nth(1).waitFor({ state: "detached" });

  await page.locator(".xterm").click();
  await page.evaluate(() => (window.open = (...how) => (window.opened = how)));
  await page.keyboard.type("clear; echo https://example.org/x\n");
  const link = page.locator(".xterm-rows span").filter({ hasText: /^https:..example.org.x/ }).first();
  await link.waitFor();
  const box = await link.boundingBox();
  await page.mouse.move(box.x + 40, box.y + 8);
  await page.mouse.click(box.x + 40, box.y + 8);
  assert.equal(await page.evaluate(() => window.opened), undefined);
  // The terminal finds a link some time after the pointer has come to it.
  await page.keyboard.down("Control");
  await until(async () => {
    await page.mouse.click(box.x + 40, box.y + 8);
    return page.evaluate(() => window.opened);
  }, "the link opens");
  await page.keyboard.up("Control");
  assert.deepEqual(await page.evaluate(() => window.opened), ["https://example.org/x", "_blank", "noopener,noreferrer"]);

  await page.keyboard.type("clear; seq 1 3000000; clear; echo after-$((40 + 2))\n");
  await until(async () => (await screenText(page)).trim().startsWith("after-42"), "the end of the flood");
  await page.keyboard.type("exit 3\n");
  await page.getByText("ended with 3").waitFor();
  await page.getByText("The program has ended.").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("a terminal goes on when the server starts again, and a page that was away goes on with it", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "lasting");
  await page.keyboard.type("clear; (sleep 2; echo from-the-gap) & echo before-$((1 + 1))\n");
  await shows(page, "before-2");
  await place.crash();
  await page.getByText("Connecting…").waitFor();
  await place.startAgain();
  await shows(page, "from-the-gap");
  await page.keyboard.type("echo after-$((2 + 2))\n");
  await shows(page, "after-4");
  assert.ok((await screenText(page)).includes("before-2"));
  assertQuiet(page);
  await page.context().close();
});

test("a connection that died in its sleep is noticed when the page wakes up, and Ctrl K is the terminal's", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "sleeper");
  assert.ok(await page.locator(".xterm-helper-textarea").evaluate((field) => field === document.activeElement));
  place.site.freeze();
  await page.keyboard.type("echo XY");
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Control+k");
  await page.keyboard.type("echo awake-$((1 + 1))\n");
  await page.evaluate(() => window.dispatchEvent(new Event("online")));
  await shows(page, "awake-2");
  assert.ok(!(await screenText(page)).includes("XY"));
  assert.equal(await page.getByRole("dialog").count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("who may only look sees sessions, and has no way to change them", async () => {
  const { key } = await place.warren.admin("/admin/keys", { method: "POST", body: JSON.stringify({ name: "looker", scopes: ["inference", "workspace:read"] }) });
  const page = await openPage(browser, place.site.url);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(key);
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Workspace" }).click();
  await page.getByRole("link", { name: /lasting/ }).click();
  await shows(page, "after-4");
  await page.getByText("You may look, not type.").waitFor();
  await page.locator(".xterm").click();
  await page.keyboard.type("echo not-typed\n");
  await page.getByRole("button", { name: "Back to the sessions" }).click();
  await page.getByRole("list", { name: "Sessions" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^(New|End)/ }).count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("a server without sessions gets the token at its socket, once the workspace is opened", async () => {
  const sessions = (_, outgoing) => outgoing.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"nothing"}}');
  const own = await place.serve({ sessions });
  const page = await openPage(browser, own.url);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByLabel("Token, or login address").fill(await place.warren.adminToken());
  await page.getByRole("dialog").getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Administration" }).waitFor();
  assert.equal(own.links.size, 0);
  await page.getByRole("link", { name: "Workspace" }).click();
  await makeShell(place, page, "by-token");
  own.cut();
  await page.locator(".xterm").click();
  await page.keyboard.type("echo back-$((1 + 1))\n");
  await shows(page, "back-2");
  assertQuiet(page);
  await page.context().close();
  own.close();
});

test("a terminal is drawn by WebGL, and by elements once that fails or somebody wants it", async () => {
  const page = await place.signedIn({ webgl: true });
  await make(page, "New terminal", { Name: "drawn", Directory: place.home, "Command; empty for a shell": "PS1='$ ' exec bash --norc" });
  const canvas = page.locator(".xterm-screen > canvas").first();
  await canvas.waitFor();
  assert.equal(await page.locator(".xterm-rows").count(), 0);
  await page.keyboard.type("printf '\\033[41m \\033[42m \\033[0m drawn-%s\\n' $((40 + 2))\n");
  await until(async () => (await asText(page)).includes("drawn-42"), "what the terminal shows as text");
  await page.locator(".xterm").click();
  const first = await canvas.screenshot();
  await page.keyboard.type("echo more\n");
  await until(async () => !(await canvas.screenshot()).equals(first), "another picture");
  await shot(page, "terminal-webgl");
  await assertAccessible(page, "a terminal drawn by WebGL");

  await page.getByRole("button", { name: "How terminals are shown" }).click();
  await page.locator(".tabs label", { hasText: "Plain" }).click();
  await page.keyboard.press("Escape");
  await shows(page, "drawn-42");
  assert.equal(await page.locator(".xterm-screen > canvas").count(), 0);
  await page.getByRole("button", { name: "How terminals are shown" }).click();
  await shot(page, "terminal-options");
  await assertAccessible(page, "how terminals are shown");
  await page.locator(".tabs label", { hasText: "WebGL" }).click();
  await page.keyboard.press("Escape");
  await canvas.waitFor();
  await page.reload();
  await canvas.waitFor();
  const lost = await page.evaluate(() => {
    const drawing = [...document.querySelectorAll(".xterm-screen > canvas")].map((each) => each.getContext("webgl2")).find(Boolean);
    drawing.getExtension("WEBGL_lose_context").loseContext();
    return drawing.isContextLost();
  });
  assert.ok(lost);
  await shows(page, "drawn-42");
  await page.locator(".xterm").click();
  await page.keyboard.type("echo after-$((1 + 1))\n");
  await shows(page, "after-2");
  assertQuiet(page);
  await page.context().close();
});

/** What the dialog with the terminal's text has. */
async function asText(page) {
  await page.getByRole("button", { name: "Show as text" }).click();
  const text = await page.locator(".terminal-text").innerText();
  await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
  return text;
}

test("what was printed before is read back, searched and saved", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "past");
  await page.keyboard.type("for i in $(seq 1 60000); do echo line $i of many; done; printf '\\033[31mNEEDLE\\033[0m\\n'; seq 1 100; echo all-$((1 + 1))\n");
  await shows(page, "all-2");
  await page.reload();
  await shows(page, "all-2");
  // A new page has no line above the screen.
  const earlier = page.getByRole("button", { name: "Show earlier output" });
  assert.equal(await earlier.count(), 0);
  await page.locator(".xterm").hover();
  await page.mouse.wheel(0, -100);
  await earlier.waitFor();
  await page.keyboard.type("seq 1 300; echo again-$((1 + 1))\n");
  await shows(page, "again-2");
  await earlier.waitFor({ state: "detached" });
  await until(async () => {
    await page.mouse.wheel(0, -20_000);
    return earlier.isVisible();
  }, "the top of the terminal");
  await earlier.click();
  const list = page.getByRole("list", { name: "Output" });
  await list.getByText("again-2", { exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Search the output" }).fill("needle");
  await page.locator("mark.now", { hasText: "NEEDLE" }).waitFor();
  await page.getByText("1 of 1 so far").waitFor();
  await shot(page, "terminal-earlier");
  await assertAccessible(page, "earlier output");
  await page.getByRole("searchbox", { name: "Search the output" }).fill("");
  await until(async () => {
    await list.evaluate((element) => (element.scrollTop = 0));
    return list.getByText("line 1 of many", { exact: true }).isVisible();
  }, "the beginning");
  assert.equal(await page.getByRole("button", { name: "Read more" }).count(), 0);
  assert.ok((await list.getByRole("listitem").count()) < 100);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Save as a file" }).click();
  const saved = await readFile(await (await download).path(), "utf8");
  const numbers = saved.split("\n").map((line) => /^line (\d+) of many$/.exec(line)?.[1]).filter(Boolean).map(Number);
  assert.deepEqual(numbers, Array.from({ length: 60_000 }, (_, i) => i + 1));
  assert.ok(!saved.includes("\u001b"));
  await page.keyboard.press("Escape");
  assertQuiet(page);
  await page.context().close();
});

test("a phone reads earlier output, in the dark", async () => {
  const page = await place.signedIn({ viewport: PHONE, touch: true, scheme: "dark" });
  await page.getByRole("link", { name: /past/ }).click();
  await shows(page, "again-2");
  await page.getByRole("button", { name: "Earlier output, and search" }).click();
  await page.getByRole("list", { name: "Output" }).getByText("again-2", { exact: true }).waitFor();
  await page.getByRole("searchbox", { name: "Search the output" }).fill("many");
  await page.locator("mark.now").waitFor();
  await assertFits(page);
  await assertAccessible(page, "earlier output on a phone");
  await shot(page, "phone-terminal-earlier");
  assertQuiet(page);
  await page.context().close();
});

test("a screen reader gets the lines of a terminal", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "read aloud");
  assert.equal(await page.locator(".xterm-accessibility").count(), 0);
  await page.getByRole("button", { name: "How terminals are shown" }).click();
  await page.getByRole("checkbox", { name: /screen reader/ }).check();
  await page.keyboard.press("Escape");
  await page.locator(".xterm").click();
  await page.keyboard.type("echo aloud-$((1 + 1))\n");
  await page.locator(".xterm-accessibility-tree").getByText("aloud-2").waitFor();
  await assertAccessible(page, "a terminal for a screen reader");
  await page.reload();
  await page.locator(".xterm-accessibility-tree").getByText("aloud-2").waitFor();
  assertQuiet(page);
  await page.context().close();
});

test("what programs print harms nothing: titles, links, the clipboard, questions, a line without an end", async () => {
  const page = await place.signedIn();
  await makeShell(place, page, "hostile");
  await page.evaluate(() => {
    window.open = (...how) => (window.opened = how);
    navigator.clipboard.writeText = (text) => (window.copied = text);
    document.execCommand = () => (window.copied = "by command");
  });
  const script = join(place.home, "hostile.sh");
  await writeFile(script, `printf '\\033]0;<img src=x onerror=alert(1)>%s\\007' "$(head -c 5000 /dev/zero | tr '\\0' t)"
printf '\\033]52;c;aGFja2Vk\\007\\033]52;p;aGFja2Vk\\033\\\\'
printf '\\033]8;;javascript:alert(1)\\033\\\\badlink\\033]8;;\\033\\\\\\n'
printf '\\033[8;200;400t\\033[21t\\033[c\\033[>q\\033[6n'
printf '\\033]4;1;?\\007\\033]1337;File=inline=1:AAAA\\007\\033Pq#0~~\\033\\\\'
printf '\\033]0;'; head -c 3000000 /dev/zero | tr '\\0' u; printf '\\007'
head -c 10485760 /dev/zero | tr '\\0' x; echo; echo survived-$((1 + 1))
`);
  await page.keyboard.type(`clear; sh ${script}\n`);
  await shows(page, "survived-2");
  await page.keyboard.press("Control+c");
  await page.keyboard.type("\nclear; echo typing-$((2 + 2))\n");
  await shows(page, "typing-4");
  assert.ok((await page.locator(".terminal-title").innerText()).length <= 200);
  assert.equal(await page.locator("img").count(), 0);
  await page.keyboard.type("clear; printf '\\033]8;;javascript:alert(1)\\033\\\\badlink\\033]8;;\\033\\\\\\n'\n");
  const link = page.locator(".xterm-rows span").filter({ hasText: /^badlink$/ }).first();
  await link.waitFor();
  const box = await link.boundingBox();
  await page.keyboard.down("Control");
  for (let clicks = 0; clicks < 5; clicks += 1) {
    await page.mouse.move(box.x + 5 + clicks, box.y + 8);
    await page.mouse.click(box.x + 5 + clicks, box.y + 8);
  }
  await page.keyboard.up("Control");
  assert.deepEqual(await page.evaluate(() => [window.opened, window.copied]), [undefined, undefined]);
  await page.getByRole("button", { name: "Earlier output, and search" }).click();
  await page.getByRole("list", { name: "Output" }).getByText("badlink", { exact: true }).first().waitFor();
  assert.equal(await page.locator(".earlier a").count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("without a sign-in the page says what to do, and opens no socket", async () => {
  const page = await openPage(browser, `${place.site.url}#/workspace`);
  await page.getByRole("button", { name: "Sign in to the workspace" }).waitFor();
  assert.equal(place.site.links.size, 0);
  await assertAccessible(page, "the workspace of somebody who is not signed in");
  assertQuiet(page);
  await page.context().close();
});
