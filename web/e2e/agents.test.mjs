// Conversations with agents in a real browser, with a real server whose agents are fakes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { assertAccessible, assertFits, assertQuiet, PHONE, shot } from "./browser.mjs";
import { browser, place } from "./place.mjs";
import { longestTasks, startTasks } from "./tasks.mjs";
import { make } from "./workspace.mjs";

test("an agent asks for permission, is allowed on a phone, and goes on", async () => {
  const page = await place.signedIn({ viewport: PHONE, touch: true });
  await make(page, "New agent", { Name: "helper", Directory: place.home });
  await page.getByText("Nothing was said yet.").waitFor();
  await page.getByRole("textbox", { name: "Prompt" }).fill("ask Bash; say It is **done**.");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("heading", { name: "May it use Bash?" }).waitFor();
  await page.getByRole("link", { name: /Workspace.*an agent asks/ }).filter({ visible: true }).waitFor();
  await assertFits(page);
  await assertAccessible(page, "a question on a phone");
  await shot(page, "phone-agent-question");

  await page.getByRole("button", { name: "Back to the sessions" }).click();
  await page.getByRole("list", { name: "Sessions" }).getByText("asks for permission").waitFor();
  await assertFits(page);
  await shot(page, "phone-sessions");
  await assertAccessible(page, "the list of sessions on a phone");
  await page.getByRole("list", { name: "Sessions" }).getByRole("link", { name: /helper/ }).click();

  place.site.cut();
  await page.getByRole("button", { name: "Allow" }).click();
  await page.getByText("Bash was allowed").waitFor();
  await page.locator(".prose strong", { hasText: "done" }).waitFor();
  await page.getByText("The agent works…").waitFor({ state: "detached" });
  assert.equal(await page.getByRole("button", { name: "Allow" }).count(), 0);
  await page.locator(".badge").first().waitFor({ state: "detached" });
  await page.locator(".agent-fold.tool summary").click();
  await shot(page, "phone-agent");
  await assertAccessible(page, "a conversation with an agent");
  await page.reload();
  await page.locator(".prose strong", { hasText: "done" }).waitFor();
  assert.equal(await page.locator(".agent-prompt").count(), 1);
  assertQuiet(page);
  await page.context().close();
});

test("a question of an agent that nobody looks at is seen on any page, and denied", async () => {
  const page = await place.signedIn();
  await make(page, "New agent", { Name: "asker", Directory: place.home });
  await page.getByRole("textbox", { name: "Prompt" }).fill("slow 1500; ask Write; wait");
  await page.keyboard.press("Enter");
  await page.getByText("The agent works…").waitFor();
  await page.getByRole("link", { name: "Overview" }).click();
  await page.getByRole("link", { name: /Workspace.*an agent asks/ }).click();
  await shot(page, "sessions-asking");
  await assertAccessible(page, "the list of sessions");
  await page.getByRole("link", { name: /asker/ }).click();
  await page.getByRole("button", { name: "Deny" }).click();
  await page.getByText(/Write was denied/).waitFor();
  await page.getByRole("button", { name: "Interrupt" }).click();
  await page.getByText("Interrupted.").waitFor();
  await shot(page, "agent");
  await page.getByRole("button", { name: "End asker" }).click();
  await page.getByRole("button", { name: "End it" }).click();
  await page.getByRole("heading", { name: "Workspace" }).waitFor();
  assert.equal(await page.getByRole("link", { name: /asker/ }).count(), 0);
  assertQuiet(page);
  await page.context().close();
});

test("a long conversation is drawn in parts, and streams without a long task", async () => {
  const page = await place.signedIn();
  await make(page, "New agent", { Name: "talker", Directory: place.home });
  const prompt = page.getByRole("textbox", { name: "Prompt" });
  await prompt.fill([...Array(400).keys()].map((n) => `use Tool${n}`).join(";"));
  await page.keyboard.press("Enter");
  await page.getByText("waits for a prompt").waitFor();
  await page.locator(".agent-fold b", { hasText: /^Tool399$/ }).waitFor();
  assert.equal(await page.locator(".agent-fold, .agent-turn-used").count(), 300);
  await page.getByRole("button", { name: "Show what was before" }).click();
  await page.locator(".agent-fold b", { hasText: /^Tool0$/ }).waitFor({ state: "attached" });
  assert.equal(await page.getByRole("button", { name: "Show what was before" }).count(), 0);
  await page.reload();
  await page.locator(".agent-fold b", { hasText: /^Tool399$/ }).waitFor();

  await prompt.fill("say " + "A word of **many**. ".repeat(2000));
  await startTasks(browser, page);
  await page.keyboard.press("Enter");
  await page.locator(".agent-text strong").nth(1999).waitFor();
  const [longest] = await longestTasks(browser);
  assert.ok(longest < 200, `a task of ${longest} ms`);
  assertQuiet(page);
  await page.context().close();
});
