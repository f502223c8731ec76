// The official Ollama package for Node, as it is, against Warren.
import assert from "node:assert/strict";
import { KEY, MODEL, PNG, URL, hungUp, installed, run } from "./scenario.mjs";

const { Ollama } = installed("ollama");
const headers = { authorization: `Bearer ${KEY}` };
const client = new Ollama({ host: URL, headers });
const HI = [{ role: "user", content: "hi" }];
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const TOOLS = ["get_weather", "get_time"].map((name) => ({
  type: "function", function: { name, description: "", parameters: city },
}));
const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, age: { type: "integer" } },
  required: ["name", "age"],
};

const chat = (more) => client.chat({ model: MODEL, messages: HI, ...more });

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

async function fails(ask, status, words) {
  try {
    await ask();
  } catch (error) {
    assert.equal(error.status_code, status, String(error));
    assert.ok(error.message.includes(words), `${words} is not in ${error.message}`);
    return;
  }
  assert.fail("an error was expected");
}

await run({
  // ── any backend ──

  async any_chat() {
    const answer = await chat({ options: { num_predict: 8 } });
    assert.ok(answer.message.content && answer.done && answer.eval_count > 0);
  },

  async any_stream() {
    const parts = await collect(await chat({ stream: true }));
    assert.ok(parts.map((part) => part.message.content).join(""));
    assert.deepEqual(parts.map((part) => part.done), parts.map((_, n) => n === parts.length - 1));
  },

  async any_generate() {
    const parts = await collect(await client.generate({ model: MODEL, prompt: "hi", stream: true }));
    assert.ok(parts.map((part) => part.response).join("") && parts.at(-1).done);
    const raw = await client.generate({ model: MODEL, prompt: "hi", raw: true });
    assert.ok(raw.response);
  },

  // ── models ──

  async models() {
    const { models } = await client.list();
    assert.ok(models.some((model) => model.name === `${MODEL}:latest`));
    const shown = await client.show({ model: MODEL });
    assert.ok(shown.capabilities.includes("completion"));
    assert.ok(Array.isArray((await client.ps()).models));
    assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
    assert.equal((await client.pull({ model: MODEL })).status, "success");
    const steps = await collect(await client.pull({ model: MODEL, stream: true }));
    assert.equal(steps.at(-1).status, "success");
  },

  async changes_are_refused() {
    const words = "models is not possible here";
    await fails(() => client.delete({ model: MODEL }), 501, words);
    await fails(() => client.copy({ source: MODEL, destination: "other" }), 501, words);
    await fails(() => client.create({ model: "other", from: MODEL }), 501, words);
    await fails(() => client.push({ model: MODEL }), 501, words);
    await fails(() => client.pull({ model: "nobody-has-it" }), 404, "fetches no models");
  },

  // ── chat ──

  async plain() {
    const answer = await chat({ messages: [{ role: "system", content: "Be brief." }, ...HI] });
    assert.equal(answer.message.content, "You said: hi");
    assert.equal(answer.done_reason, "stop");
    assert.equal(answer.eval_count, 3);
  },

  async stream() {
    const texts = (await collect(await chat({ stream: true }))).map((part) => part.message.content);
    assert.ok(texts.filter(Boolean).length > 1, "it came in one piece");
    assert.equal(texts.join(""), "You said: hi");
  },

  async tools() {
    const { message } = await chat({ tools: TOOLS });
    const called = message.tool_calls.map((call) => call.function);
    assert.deepEqual(called.map((call) => call.name), ["get_weather", "get_time"]);
    assert.deepEqual(called[0].arguments, { city: "Paris" });
    const results = ["sunny", "noon"].map((content, n) => ({
      role: "tool", content, tool_name: called[n].name,
    }));
    const second = await chat({ tools: TOOLS, messages: [...HI, message, ...results] });
    assert.equal(second.message.content, "The tools said: sunny; noon");
    const parts = await collect(await chat({ tools: TOOLS, stream: true }));
    const streamed = parts.flatMap((part) => part.message.tool_calls ?? []);
    assert.deepEqual(streamed.map((call) => call.function.arguments), [{ city: "Paris" }, { city: "Paris" }]);
  },

  async structured() {
    const answer = await chat({ format: PERSON });
    assert.deepEqual(JSON.parse(answer.message.content), { name: "example", age: 7 });
  },

  async vision() {
    const image = Buffer.from(PNG, "base64");
    const answer = await chat({ messages: [{ role: "user", content: "look", images: [image] }] });
    assert.equal(answer.message.content, "You said: look (images: 1)");
  },

  async thinking() {
    const { message } = await chat({ model: "reasoning", think: true });
    assert.equal(message.thinking, "Let me think about it.");
  },

  async errors() {
    await fails(() => chat({ model: "error-429" }), 429, "the backend says 429");
    await fails(() => chat({ model: "error-400", stream: true }), 400, "the backend says 400");
    await fails(() => chat({ model: "nobody-has-it" }), 404, "nobody-has-it");
    await fails(() => chat({ format: "xml" }), 400, "`format`");
  },

  async wrong_key() {
    const stranger = new Ollama({ host: URL, headers: { authorization: "Bearer not-a-key" } });
    await fails(() => stranger.list(), 401, "key");
  },

  async cancel() {
    const stream = await chat({ model: "endless", stream: true });
    for await (const part of stream) {
      if (part) break;
    }
    stream.abort();
    await hungUp();
  },
});
