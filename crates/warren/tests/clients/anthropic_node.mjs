// The official Anthropic package for Node, as it is, against Warren.
import assert from "node:assert/strict";
import { KEY, MODEL, PNG, URL, hungUp, installed, run, throws } from "./scenario.mjs";

const Anthropic = installed("@anthropic-ai/sdk");
const options = { baseURL: URL, apiKey: KEY, maxRetries: 0, timeout: 30_000 };
const client = new Anthropic(options);
const ASK = { model: MODEL, max_tokens: 100, messages: [{ role: "user", content: "hi" }] };
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = ["get_weather", "get_time"].map((name) => ({ name, input_schema: city }));
const RESULTS = ["sunny", "noon"];

const create = (more) => client.messages.create({ ...ASK, ...more });
const textOf = (message) => message.content.map((block) => block.text ?? "").join("");

/** Checks two calls, and sends their results. */
async function callAndTell(first) {
  const calls = first.content.filter((block) => block.type === "tool_use");
  assert.equal(first.stop_reason, "tool_use");
  assert.deepEqual(calls.map((call) => call.name), ["get_weather", "get_time"]);
  assert.deepEqual(calls.map((call) => call.input), [{ city: "Paris" }, { city: "Paris" }]);
  const content = calls.map(({ id }, n) => ({
    type: "tool_result", tool_use_id: id, content: RESULTS[n],
  }));
  const turn = [{ role: "assistant", content: first.content }, { role: "user", content }];
  const second = await create({ tools: TOOLS, messages: [...ASK.messages, ...turn] });
  assert.equal(textOf(second), "The tools said: sunny; noon");
}

await run({
  // ── any backend ──

  async any_plain() {
    const message = await create({ max_tokens: 8 });
    assert.ok(textOf(message) && message.usage.output_tokens > 0);
  },

  async any_stream() {
    const message = await client.messages.stream({ ...ASK, max_tokens: 8 }).finalMessage();
    assert.ok(textOf(message) && message.usage.output_tokens > 0);
  },

  // ── models ──

  async models() {
    const ids = [];
    for await (const model of client.models.list()) ids.push(model.id);
    assert.ok(ids.includes(MODEL));
  },

  // ── messages ──

  async plain() {
    const message = await create({ system: "Be brief." });
    assert.equal(message.stop_reason, "end_turn");
    assert.equal(textOf(message), "You said: hi");
    assert.equal(message.usage.input_tokens, 3);
  },

  async stream() {
    const kinds = [];
    for await (const event of await create({ stream: true })) {
      if (event.type !== "ping" && kinds.at(-1) !== event.type) kinds.push(event.type);
    }
    assert.deepEqual(kinds, [
      "message_start", "content_block_start", "content_block_delta", "content_block_stop",
      "message_delta", "message_stop",
    ]);
  },

  async stream_helper() {
    const texts = [];
    const stream = client.messages.stream(ASK).on("text", (text) => texts.push(text));
    const message = await stream.finalMessage();
    assert.ok(texts.length > 1, "it came in one piece");
    assert.equal(texts.join(""), "You said: hi");
    assert.equal(textOf(message), "You said: hi");
    assert.equal(message.usage.output_tokens, 3);
  },

  async tools() {
    await callAndTell(await create({ tools: TOOLS }));
  },

  async tools_streamed() {
    await callAndTell(await client.messages.stream({ ...ASK, tools: TOOLS }).finalMessage());
  },

  async structured() {
    const schema = {
      type: "object", properties: { age: { type: "integer" } }, required: ["age"],
      additionalProperties: false,
    };
    const message = await create({ output_config: { format: { type: "json_schema", schema } } });
    assert.deepEqual(JSON.parse(textOf(message)), { age: 7 });
  },

  async vision() {
    const source = { type: "base64", media_type: "image/png", data: PNG };
    const content = [{ type: "text", text: "look" }, { type: "image", source }];
    const message = await create({ messages: [{ role: "user", content }] });
    assert.equal(textOf(message), "You said: look (images: 1)");
  },

  async thinking() {
    const message = await client.messages.stream({ ...ASK, model: "reasoning" }).finalMessage();
    assert.deepEqual(message.content.map((block) => block.type), ["thinking", "text"]);
    assert.equal(message.content[0].thinking, "Let me think about it.");
  },

  async count_tokens() {
    const { input_tokens } = await client.messages.countTokens({ model: MODEL, messages: ASK.messages });
    assert.ok(input_tokens > 0);
  },

  async errors() {
    const ask = (more) => () => create(more);
    await throws(Anthropic.RateLimitError, ask({ model: "error-429" }), 429, "the backend says 429");
    await throws(Anthropic.BadRequestError, ask({ model: "error-400" }), 400, "the backend says 400");
    const error = await throws(Anthropic.NotFoundError, ask({ model: "nobody-has-it" }), 404, "nobody-has-it");
    assert.equal(error.error.error.type, "not_found_error");
    assert.ok(error.requestID, "an error can be told by its id");
  },

  async wrong_key() {
    const stranger = new Anthropic({ ...options, apiKey: "not-a-key" });
    await throws(Anthropic.AuthenticationError, () => stranger.messages.create(ASK), 401, "key");
  },

  async cancel() {
    const stream = client.messages.stream({ ...ASK, model: "endless" });
    stream.on("text", () => stream.abort());
    await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError);
    await hungUp();
  },
});
