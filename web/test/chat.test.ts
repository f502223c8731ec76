import { describe, expect, test } from "vitest";
import { bodyOf, piecesIn, piecesOf, type ChatPiece } from "../src/api/chat";
import { ApiError } from "../src/api/errors";

function stream(text: string): ReadableStream<Uint8Array> {
  return new Response(text).body!;
}

async function all(text: string): Promise<ChatPiece[]> {
  const pieces: ChatPiece[] = [];
  for await (const piece of piecesOf(stream(text), new AbortController().signal)) pieces.push(piece);
  return pieces;
}

const chunk = (delta: object, finish: string | null = null) => `data: ${JSON.stringify({ choices: [{ delta, finish_reason: finish }] })}\n\n`;

describe("an answer's stream", () => {
  test("gives text, thoughts, what it waits for, the end and the usage", async () => {
    const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 2 } })}\n\n`;
    const text = `: waiting for m: busy\n\n${chunk({ reasoning_content: "hm" })}${chunk({ content: "Hi" })}${chunk({}, "stop")}${usage}data: [DONE]\n\n`;
    expect(await all(text)).toEqual([
      { kind: "waiting", why: "waiting for m: busy" },
      { kind: "thought", text: "hm" },
      { kind: "text", text: "Hi" },
      { kind: "finish", reason: "stop" },
      { kind: "usage", prompt: 3, completion: 2 },
    ]);
  });

  test("without its end is an error", async () => {
    await expect(all(chunk({ content: "Hi" }))).rejects.toMatchObject({ code: "cut_off" });
  });

  test("may lack the last mark when it said that it is finished", async () => {
    expect(await all(chunk({ content: "Hi" }, "stop"))).toHaveLength(2);
  });

  test("tells of an error in the server's words, with advice", async () => {
    const text = `${chunk({ content: "Hi" })}data: {"error":{"message":"the worker was lost while it answered","code":"worker_lost"}}\n\n`;
    const error = await all(text).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).message).toBe("the worker was lost while it answered");
    expect((error as ApiError).advice).toContain("Try again");
  });

  test.each(["", "nonsense", "null", "[]", "3", '{"choices":[{"delta":{"content":7}}]}', '{"choices":"x"}', '{"choices":[null]}', '{"usage":{}}'])(
    "passes over what it does not know: %s",
    (data) => expect(piecesIn(data)).toEqual([]),
  );
});

describe("a request", () => {
  test("has only the parameters that are set", () => {
    const body = bodyOf({ model: "m", messages: [], parameters: { temperature: 0, seed: undefined } });
    expect(body).toEqual({ model: "m", messages: [], temperature: 0, stream: true, stream_options: { include_usage: true } });
  });
});
