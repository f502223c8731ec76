// Google's package for Node, as it is, against Warren.
import assert from "node:assert/strict";
import { KEY, MODEL, PNG, URL, hungUp, installed, run, throws } from "./scenario.mjs";

const { ApiError, GoogleGenAI } = installed("@google/genai");
const httpOptions = { baseUrl: URL, timeout: 30_000 };
const { models } = new GoogleGenAI({ apiKey: KEY, httpOptions });
const HI = [{ role: "user", parts: [{ text: "hi" }] }];
const city = { type: "OBJECT", properties: { city: { type: "STRING" } }, required: ["city"] };
const names = ["get_weather", "get_time"];
const TOOLS = [{ functionDeclarations: names.map((name) => ({ name, parameters: city })) }];
const RESULTS = ["sunny", "noon"];

const ask = (config, more) => models.generateContent({ model: MODEL, contents: HI, config, ...more });
const stream = (config, more) =>
  models.generateContentStream({ model: MODEL, contents: HI, config, ...more });

async function all(stream) {
  const chunks = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks) => chunks.map((chunk) => chunk.text ?? "").join("");
const partsOf = (chunks) => chunks.flatMap((chunk) => chunk.candidates[0].content.parts);

/** Checks two calls, and sends their results. */
async function callAndTell(parts) {
  const calls = parts.filter((part) => part.functionCall).map((part) => part.functionCall);
  assert.deepEqual(calls.map((call) => call.name), names);
  assert.deepEqual(calls.map((call) => call.args), [{ city: "Paris" }, { city: "Paris" }]);
  const results = calls.map(({ id, name }, n) => ({
    functionResponse: { id, name, response: { output: RESULTS[n] } },
  }));
  const contents = [...HI, { role: "model", parts }, { role: "user", parts: results }];
  assert.equal((await ask({ tools: TOOLS }, { contents })).text, "The tools said: sunny; noon");
}

await run({
  // ── any backend ──

  async any_plain() {
    const answer = await ask({ maxOutputTokens: 8 });
    assert.ok(answer.text && answer.usageMetadata.candidatesTokenCount > 0);
  },

  async any_stream() {
    const chunks = await all(stream({ maxOutputTokens: 8 }));
    assert.ok(textOf(chunks) && chunks.at(-1).usageMetadata.totalTokenCount > 0);
  },

  // ── models ──

  async models() {
    const listed = [];
    for await (const model of await models.list()) listed.push(model.name);
    assert.ok(listed.includes(`models/${MODEL}`));
    assert.equal((await models.get({ model: MODEL })).name, `models/${MODEL}`);
  },

  // ── content ──

  async plain() {
    const answer = await ask({ systemInstruction: "Be brief." });
    assert.equal(answer.text, "You said: hi");
    assert.equal(answer.candidates[0].finishReason, "STOP");
    assert.equal(answer.usageMetadata.promptTokenCount, 3);
  },

  async stream() {
    const chunks = await all(stream());
    assert.ok(chunks.length > 2, "it came in one piece");
    assert.equal(textOf(chunks), "You said: hi");
    assert.equal(chunks.at(-1).candidates[0].finishReason, "STOP");
  },

  async tools() {
    await callAndTell(partsOf([await ask({ tools: TOOLS })]));
  },

  async tools_streamed() {
    const chunks = await all(stream({ tools: TOOLS }));
    await callAndTell(partsOf(chunks).filter((part) => part.functionCall));
  },

  async structured() {
    const schema = { type: "OBJECT", properties: { name: { type: "STRING" } }, required: ["name"] };
    const config = { responseMimeType: "application/json", responseSchema: schema };
    assert.deepEqual(JSON.parse((await ask(config)).text), { name: "example" });
  },

  async vision() {
    const picture = { inlineData: { mimeType: "image/png", data: PNG } };
    const contents = [{ role: "user", parts: [{ text: "look" }, picture] }];
    assert.equal((await ask({}, { contents })).text, "You said: look (images: 1)");
  },

  async thinking() {
    const config = { thinkingConfig: { includeThoughts: true } };
    const parts = partsOf(await all(stream(config, { model: "reasoning" })));
    const thoughts = parts.filter((part) => part.thought).map((part) => part.text);
    assert.equal(thoughts.join(""), "Let me think about it.");
  },

  async count_tokens() {
    assert.ok((await models.countTokens({ model: MODEL, contents: HI })).totalTokens > 0);
  },

  async errors() {
    const of = (model) => () => ask({}, { model });
    await throws(ApiError, of("error-429"), 429, "the backend says 429");
    await throws(ApiError, () => all(stream({}, { model: "error-429" })), 429, "says 429");
    await throws(ApiError, of("error-400"), 400, "INVALID_ARGUMENT");
    await throws(ApiError, of("nobody-has-it"), 404, "nobody-has-it");
    const search = () => ask({ tools: [{ googleSearch: {} }] });
    await throws(ApiError, search, 400, "tools[0].googleSearch");
  },

  async wrong_key() {
    const stranger = new GoogleGenAI({ apiKey: "not-a-key", httpOptions }).models;
    const action = () => stranger.generateContent({ model: MODEL, contents: HI });
    await throws(ApiError, action, 401, "UNAUTHENTICATED");
  },

  async cancel() {
    const stop = new AbortController();
    const config = { abortSignal: stop.signal };
    const chunks = await stream(config, { model: "endless" });
    await chunks.next();
    stop.abort();
    await assert.rejects(async () => {
      while (!(await chunks.next()).done);
    });
    await hungUp();
  },
});
