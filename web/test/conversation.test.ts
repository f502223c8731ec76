import "fake-indexeddb/auto";
import { describe, expect, test } from "vitest";
import { messagesFor, newAnswer, newConversation, newTurn, reopened, speedOf, titleFrom, withAnswer, withPiece } from "../src/play/conversation";
import type { Conversation } from "../src/play/conversation";
import { fileName, fromJson, toJson, toMarkdown } from "../src/play/export";
import { examplesOf, pythonOf, quoted } from "../src/play/code";
import { openStore } from "../src/storage/conversations";

function talked(): Conversation {
  const conversation = newConversation(["a", "b"], 1);
  const turn = newTurn("Hi", [], ["a", "b"]);
  const answers = turn.answers.map((answer) => ({ ...answer, state: "done" as const, text: `from ${answer.model}` }));
  return { ...conversation, title: "Hi", system: "Be brief.", turns: [{ ...turn, answers }, newTurn("More", [{ url: "data:image/png;base64,AA", name: "p" }], ["a", "b"])] };
}

describe("a conversation", () => {
  test("gives each lane its own history", () => {
    const conversation = talked();
    const messages = messagesFor(conversation, 1, conversation.turns[1]!.id);
    expect(messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: "from b" },
      { role: "user", content: [{ type: "text", text: "More" }, { type: "image_url", image_url: { url: "data:image/png;base64,AA" } }] },
    ]);
    expect(messagesFor(conversation, 0, conversation.turns[0]!.id).at(-1)).toEqual({ role: "user", content: "Hi" });
  });

  test("keeps the turns that do not change", () => {
    const conversation = talked();
    const next = withAnswer(conversation, conversation.turns[1]!.id, 0, newAnswer("c"));
    expect(next.turns[0]).toBe(conversation.turns[0]);
    expect(next.turns[1]!.answers[0]!.model).toBe("c");
  });

  test("has answers that were cut off when their page ended", () => {
    expect(reopened(talked()).turns[1]!.answers[0]!.state).toBe("stopped");
    expect(reopened(talked()).turns[0]!.answers[0]!.state).toBe("done");
  });

  test("is called after its first question", () => {
    expect(titleFrom("  What?\nmore")).toBe("What?");
    expect(titleFrom("x".repeat(100))).toHaveLength(60);
    expect(titleFrom("")).toBe("Picture");
  });
});

describe("an answer", () => {
  test("counts from its first piece, thoughts included", () => {
    let answer = withPiece(newAnswer("m"), { kind: "waiting", why: "busy" }, 5);
    expect(answer.why).toBe("busy");
    answer = withPiece(answer, { kind: "thought", text: "hm" }, 100);
    answer = withPiece(answer, { kind: "text", text: "Hi" }, 200);
    expect(answer).toMatchObject({ firstMs: 100, pieces: 2, state: "coming", why: null, text: "Hi", thought: "hm" });
    expect(speedOf({ ...answer, completion: 11, totalMs: 1100 }, 0)).toBe(10);
    expect(speedOf(newAnswer("m"), 10)).toBeNull();
  });
});

describe("a file of conversations", () => {
  test("comes back as it was, under new ids", () => {
    const conversation = talked();
    const [back] = fromJson(toJson([conversation]));
    expect(back!.id).not.toBe(conversation.id);
    expect(back!.turns.map(({ text }) => text)).toEqual(["Hi", "More"]);
    expect(back!.turns[1]!.pictures).toHaveLength(1);
  });

  test.each(["", "{}", "[]", "null", '{"form":"warren-conversations","version":2,"conversations":[]}'])("that is none is refused: %s", (text) => {
    expect(() => fromJson(text)).toThrow();
  });

  test("that lies about its parts does no harm", () => {
    const conversations = [null, 3, { title: 7, turns: "x", lanes: [] }, { turns: [{ pictures: [{ url: "https://evil.example/p.png" }, { url: "data:image/svg+xml;base64,AA" }], answers: [{ state: "coming", text: 5 }] }] }];
    const read = fromJson(JSON.stringify({ form: "warren-conversations", version: 1, conversations }));
    expect(read.map(({ title }) => title)).toEqual(Array(4).fill("Imported"));
    expect(read[2]!.lanes).toEqual([""]);
    expect(read[3]!.turns[0]!.pictures).toEqual([]);
    expect(read[3]!.turns[0]!.answers[0]).toMatchObject({ state: "stopped", text: "" });
  });

  test("is to be read, too", () => {
    expect(toMarkdown(talked())).toContain("## b\n\nfrom b");
    expect(fileName("../../Ünï: code?", "md")).toBe("n-code.md");
    expect(fileName("☃", "md")).toBe("conversation.md");
  });
});

describe("a request as code", () => {
  test("survives a shell's quotes, and Python's words", () => {
    expect(quoted("it's $(rm)")).toBe("'it'\\''s $(rm)'");
    expect(pythonOf('{"a": true, "b": "true \\"null\\"", "c": null}')).toBe('{"a": True, "b": "true \\"null\\"", "c": None}');
  });

  test("never has the key, nor whole pictures", () => {
    const conversation = talked();
    const messages = messagesFor(conversation, 0, conversation.turns[1]!.id);
    messages.push({ role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(9999)}` } }] });
    for (const { text } of examplesOf({ model: "m", messages, parameters: {}, route: "local-only" }, "http://h/v1")) {
      expect(text.length).toBeLessThan(2500);
      expect(text).toContain("WARREN_KEY");
      expect(text).toContain("x-warren-route");
    }
  });
});

describe("the browser's store", () => {
  test("keeps, lists and deletes", async () => {
    const { store, lasting } = await openStore();
    expect(lasting).toBe(true);
    const [old, young] = [{ ...talked(), updated: 1 }, { ...talked(), updated: 2 }];
    await store.put(old);
    await store.put(young);
    expect((await store.list()).map(({ id }) => id)).toEqual([young.id, old.id]);
    expect(await store.get(old.id)).toEqual(old);
    await store.remove(old.id);
    expect(await store.get(old.id)).toBeNull();
    await store.clear();
    expect(await store.list()).toEqual([]);
  });
});
