// The official OpenAI package for Node, as it is, against Warren.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { KEY, MODEL, PNG, URL, hungUp, installed, run, throws, told } from "./scenario.mjs";

const OpenAI = installed("openai");
const options = { baseURL: `${URL}/v1`, apiKey: KEY, maxRetries: 0, timeout: 30_000 };
const client = new OpenAI(options);
const HI = [{ role: "user", content: "hi" }];
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const FLAT_TOOLS = ["get_weather", "get_time"].map((name) => ({
  type: "function", name, parameters: city, strict: false,
}));
const TOOLS = FLAT_TOOLS.map(({ name, parameters }) => ({
  type: "function", function: { name, parameters },
}));
const PARIS = { city: "Paris" };
const RESULTS = ["sunny", "noon"];
const PERSON = {
  name: "person", strict: true,
  schema: {
    type: "object",
    properties: { name: { type: "string" }, age: { type: "integer" } },
    required: ["name", "age"], additionalProperties: false,
  },
};

const digest = (bytes) => createHash("sha256").update(bytes).digest("hex").slice(0, 16);
const EVERY = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
const repeated = (times) => Buffer.concat(Array(times).fill(EVERY));
const SOUND = Buffer.concat([repeated(2000), Buffer.from("\r\n--")]);
const HEARD = `${MODEL} ${SOUND.length} ${digest(SOUND)}`;
const SPOKEN = Buffer.concat([Buffer.from("ID3\x04\r\n\r\ndata: [DONE]\n\nhello"), repeated(300)]);
const file = () => OpenAI.toFile(SOUND, "speech.wav", { type: "audio/wav" });

const chat = (more) => client.chat.completions.create({ model: MODEL, messages: HI, ...more });
const respond = (more) => client.responses.create({ model: MODEL, input: "hi", ...more });

async function collect(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

await run({
  // ── any backend ──

  async any_plain() {
    const answer = await chat({ max_tokens: 8 });
    assert.ok(answer.choices[0].message.content && answer.usage.completion_tokens > 0);
  },

  async any_stream() {
    const more = { max_tokens: 8, stream: true, stream_options: { include_usage: true } };
    const chunks = await collect(await chat(more));
    assert.ok(chunks.some((chunk) => chunk.choices[0]?.delta.content));
    assert.ok(chunks.at(-1).usage.completion_tokens > 0);
  },

  async any_responses() {
    assert.ok((await respond({ max_output_tokens: 8 })).output_text);
  },

  async any_responses_stream() {
    const stream = client.responses.stream({ model: MODEL, input: "hi" });
    const events = await collect(stream);
    const deltas = events.filter((event) => event.type === "response.output_text.delta");
    assert.ok(deltas.length > 0);
    const text = deltas.map((event) => event.delta).join("");
    assert.equal((await stream.finalResponse()).output_text, text);
  },

  async any_responses_continued() {
    const first = await respond({ store: true });
    const answer = await respond({ input: "more", previous_response_id: first.id });
    assert.ok(answer.output_text);
    assert.deepEqual([answer.previous_response_id, answer.store], [first.id, false]);
  },

  // ── models ──

  async models() {
    const models = await collect(client.models.list());
    assert.ok(models.some((model) => model.id === MODEL));
    assert.equal((await client.models.retrieve(MODEL)).id, MODEL);
  },

  // ── chat ──

  async plain() {
    const answer = await chat({ messages: [{ role: "system", content: "Be brief." }, ...HI] });
    assert.equal(answer.choices[0].message.content, "You said: hi");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.total_tokens, 6);
  },

  async stream() {
    const chunks = await collect(await chat({ stream: true }));
    const texts = chunks.map((chunk) => chunk.choices[0].delta.content).filter(Boolean);
    assert.ok(texts.length > 1, "it came in one piece");
    assert.equal(texts.join(""), "You said: hi");
  },

  async stream_helper() {
    const stream = client.chat.completions.stream({ model: MODEL, messages: HI });
    assert.equal(await stream.finalContent(), "You said: hi");
  },

  async tools() {
    const first = await chat({ tools: TOOLS });
    const { message } = first.choices[0];
    assert.deepEqual(message.tool_calls.map((call) => call.function.name), ["get_weather", "get_time"]);
    assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), PARIS);
    const told = message.tool_calls.map((call, n) => ({
      role: "tool", tool_call_id: call.id, content: RESULTS[n],
    }));
    const second = await chat({ tools: TOOLS, messages: [...HI, message, ...told] });
    assert.equal(second.choices[0].message.content, "The tools said: sunny; noon");
  },

  async tools_run() {
    // The package's own loop calls the functions and sends their results.
    const tools = TOOLS.map((tool, n) => ({
      type: "function", function: { ...tool.function, parse: JSON.parse, function: () => RESULTS[n] },
    }));
    const runner = client.chat.completions.runTools({ model: MODEL, messages: HI, tools, stream: true });
    assert.equal(await runner.finalContent(), "The tools said: sunny; noon");
  },

  async structured() {
    const answer = await chat({ response_format: { type: "json_schema", json_schema: PERSON } });
    assert.deepEqual(JSON.parse(answer.choices[0].message.content), { name: "example", age: 7 });
  },

  async vision() {
    const url = `data:image/png;base64,${PNG}`;
    const content = [{ type: "text", text: "look" }, { type: "image_url", image_url: { url } }];
    const answer = await chat({ messages: [{ role: "user", content }] });
    assert.equal(answer.choices[0].message.content, "You said: look (images: 1)");
  },

  async errors() {
    const ask = (model, more) => () => chat({ model, ...more });
    await throws(OpenAI.RateLimitError, ask("error-429"), 429, "the backend says 429");
    await throws(OpenAI.BadRequestError, ask("error-400"), 400, "the backend says 400");
    await throws(OpenAI.BadRequestError, ask("error-400", { stream: true }), 400, "the backend says 400");
    const error = await throws(OpenAI.NotFoundError, ask("nobody-has-it"), 404, "nobody-has-it");
    assert.ok(error.requestID, "an error can be told by its id");
  },

  async wrong_key() {
    const stranger = new OpenAI({ ...options, apiKey: "not-a-key" });
    await throws(OpenAI.AuthenticationError, () => stranger.models.list(), 401, "key");
  },

  async cancel() {
    const stream = await chat({ model: "endless", stream: true });
    // Leaving the loop aborts the request.
    for await (const chunk of stream) if (chunk) break;
    await hungUp();
  },

  async cancel_plain() {
    const leaving = new AbortController();
    const body = { model: "endless", messages: HI };
    const asked = client.chat.completions.create(body, { signal: leaving.signal });
    await told("asked");
    leaving.abort();
    await assert.rejects(asked, OpenAI.APIUserAbortError);
    await hungUp();
  },

  // ── legacy completions ──

  async completions() {
    const answer = await client.completions.create({ model: MODEL, prompt: "hi" });
    assert.equal(answer.choices[0].text, "You said: hi");
    const stream = await client.completions.create({ model: MODEL, prompt: "hi", stream: true });
    const texts = (await collect(stream)).map((chunk) => chunk.choices[0]?.text ?? "");
    assert.equal(texts.join(""), "You said: hi");
  },

  // ── responses ──

  async responses() {
    const answer = await respond({ instructions: "Be brief." });
    assert.equal(answer.status, "completed");
    assert.equal(answer.output_text, "You said: hi");
    assert.equal(answer.usage.total_tokens, 6);
  },

  async responses_stream() {
    const stream = client.responses.stream({ model: MODEL, input: "hi" });
    const events = await collect(stream);
    assert.equal((await stream.finalResponse()).output_text, "You said: hi");
    assert.equal(events[0].type, "response.created");
    assert.equal(events.at(-1).type, "response.completed");
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, n) => n));
  },

  async responses_tools() {
    const first = await client.responses.stream({ model: MODEL, input: "hi", tools: FLAT_TOOLS }).finalResponse();
    const calls = first.output.filter((item) => item.type === "function_call");
    assert.deepEqual(calls.map((call) => call.name), ["get_weather", "get_time"]);
    assert.deepEqual(calls.map((call) => JSON.parse(call.arguments)), [PARIS, PARIS]);
    const told = calls.map(({ call_id }, n) => ({
      type: "function_call_output", call_id, output: RESULTS[n],
    }));
    // What the helper added to the items for its user is not for the server.
    const items = calls.map(({ parsed_arguments, ...item }) => item);
    const second = await respond({ input: [...HI, ...items, ...told], tools: FLAT_TOOLS });
    assert.equal(second.output_text, "The tools said: sunny; noon");
  },

  async responses_structured() {
    const answer = await respond({ text: { format: { type: "json_schema", ...PERSON } } });
    assert.deepEqual(JSON.parse(answer.output_text), { name: "example", age: 7 });
  },

  async responses_errors() {
    await throws(OpenAI.RateLimitError, () => respond({ model: "error-429" }), 429, "the backend says 429");
    const more = { previous_response_id: "resp_1" };
    await throws(OpenAI.BadRequestError, () => respond(more), 400, "resp_1");
  },

  async responses_cancel() {
    const stream = await respond({ model: "endless", stream: true });
    for await (const event of stream) if (event.type === "response.output_text.delta") break;
    await hungUp();
  },

  // ── responses with state ──

  async responses_continued() {
    const first = await respond({ store: true });
    const second = await respond({ input: "more", previous_response_id: first.id, store: true });
    assert.equal(second.output_text, "You said: more");
    assert.equal(second.usage.input_tokens, 5);
    const stream = client.responses.stream({
      model: MODEL, input: "again", previous_response_id: second.id, store: true,
    });
    const events = await collect(stream);
    const third = await stream.finalResponse();
    const ids = events.flatMap((event) => (event.response ? [event.response.id] : []));
    assert.deepEqual([...new Set(ids)], [third.id]);
    assert.equal(third.usage.input_tokens, 9);
    assert.equal((await client.responses.retrieve(third.id)).output_text, "You said: again");
  },

  async responses_stored() {
    const made = await respond({ store: true });
    assert.equal((await client.responses.retrieve(made.id)).output_text, "You said: hi");
    const more = await respond({ input: "more", previous_response_id: made.id, store: true });
    const items = await collect(client.responses.inputItems.list(more.id, { limit: 1, order: "asc" }));
    assert.deepEqual(items.map((item) => item.content[0].text), ["hi", "You said: hi", "more"]);
    await client.responses.delete(made.id);
    await throws(OpenAI.NotFoundError, () => client.responses.retrieve(made.id), 404, made.id);
    const ask = () => respond({ previous_response_id: more.id });
    const error = await throws(OpenAI.BadRequestError, ask, 400, made.id);
    assert.equal(error.code, "previous_response_not_found");
  },

  async responses_background() {
    let made = await respond({ background: true });
    const until = Date.now() + 60_000;
    while (["queued", "in_progress"].includes(made.status)) {
      assert.ok(Date.now() < until, made.status);
      made = await client.responses.retrieve(made.id);
    }
    assert.equal(made.output_text, "You said: hi");
    assert.equal((await client.responses.cancel(made.id)).status, "completed");
    const events = await collect(await respond({ background: true, stream: true }));
    const last = events.at(-1);
    assert.equal(last.type, "response.completed");
    const after = { stream: true, starting_after: last.sequence_number - 1 };
    const again = await collect(await client.responses.retrieve(last.response.id, after));
    assert.deepEqual(again.map((event) => event.type), ["response.completed"]);
  },

  async responses_background_cancel() {
    let made = await respond({ model: "endless", background: true });
    const until = Date.now() + 60_000;
    while (made.status === "queued") {
      assert.ok(Date.now() < until, made.status);
      made = await client.responses.retrieve(made.id);
    }
    assert.equal((await client.responses.cancel(made.id)).status, "cancelled");
    await hungUp();
    assert.equal((await client.responses.retrieve(made.id)).status, "cancelled");
  },

  async conversations() {
    const before = { type: "message", role: "user", content: "before" };
    const talk = await client.conversations.create({ metadata: { topic: "x" }, items: [before] });
    for (const [said, tokens] of [["hi", 2], ["more", 6]]) {
      const answer = await respond({ input: said, conversation: talk.id });
      assert.equal(answer.output_text, `You said: ${said}`);
      assert.equal(answer.usage.input_tokens, tokens);
    }
    const items = await collect(client.conversations.items.list(talk.id, { order: "asc", limit: 2 }));
    const texts = items.map((item) => item.content[0].text);
    assert.deepEqual(texts, ["before", "hi", "You said: hi", "more", "You said: more"]);
    const added = (await client.conversations.items.create(talk.id, { items: [before] })).data[0];
    const of = { conversation_id: talk.id };
    assert.equal((await client.conversations.items.retrieve(added.id, of)).content[0].text, "before");
    await client.conversations.items.delete(added.id, of);
    await throws(OpenAI.NotFoundError, () => client.conversations.items.retrieve(added.id, of), 404, added.id);
    const changed = await client.conversations.update(talk.id, { metadata: { topic: "y" } });
    assert.deepEqual(changed.metadata, { topic: "y" });
    assert.deepEqual((await client.conversations.retrieve(talk.id)).metadata, { topic: "y" });
    assert.ok((await client.conversations.delete(talk.id)).deleted);
    await throws(OpenAI.NotFoundError, () => client.conversations.retrieve(talk.id), 404, talk.id);
  },

  // ── sound, pictures, judgements and rankings ──

  async transcriptions() {
    const more = { language: "en", timestamp_granularities: ["word"], response_format: "verbose_json" };
    const answer = await client.audio.transcriptions.create({ model: MODEL, file: await file(), ...more });
    assert.equal(answer.text, HEARD);
    assert.equal(answer.usage.output_tokens, 4);
    const text = await client.audio.transcriptions.create({ model: MODEL, file: await file(), response_format: "text" });
    assert.equal(text.trim(), HEARD);
  },

  async transcriptions_stream() {
    const asked = { model: MODEL, file: await file(), stream: true };
    const events = await collect(await client.audio.transcriptions.create(asked));
    assert.equal(events.at(-1).type, "transcript.text.done");
    assert.equal(events.slice(0, -1).map((event) => event.delta).join(""), HEARD);
  },

  async translations() {
    assert.equal((await client.audio.translations.create({ model: MODEL, file: await file() })).text, HEARD);
  },

  async speech() {
    const asked = { model: MODEL, voice: "alloy", input: "hello", response_format: "wav" };
    const answer = await client.audio.speech.create(asked);
    assert.equal(answer.headers.get("content-type"), "audio/wav");
    assert.ok(SPOKEN.equals(Buffer.from(await answer.arrayBuffer())));
  },

  async speech_stream() {
    const asked = { model: MODEL, voice: "alloy", input: "hello", stream_format: "sse" };
    const text = await (await client.audio.speech.create(asked)).text();
    const lines = text.split("\n").filter((line) => line.startsWith("data: "));
    const events = lines.map((line) => JSON.parse(line.slice(6)));
    assert.equal(events.at(-1).type, "speech.audio.done");
    const pieces = events.slice(0, -1).map((event) => Buffer.from(event.audio, "base64"));
    assert.ok(SPOKEN.equals(Buffer.concat(pieces)));
  },

  async images() {
    const decoded = (answer) => Buffer.from(answer.data[0].b64_json, "base64").toString();
    assert.equal(decoded(await client.images.generate({ model: MODEL, prompt: "a dot" })), "a dot");
    const png = Buffer.from(PNG, "base64");
    const image = () => OpenAI.toFile(png, "a.png", { type: "image/png" });
    const one = ` ${png.length} ${digest(png)}`;
    const edited = { model: MODEL, prompt: "larger", image: [await image(), await image()] };
    assert.equal(decoded(await client.images.edit(edited)), MODEL + one + one);
    assert.equal(decoded(await client.images.createVariation({ model: MODEL, image: await image() })), MODEL + one);
  },

  async images_stream() {
    const asked = { model: MODEL, prompt: "a dot", stream: true, partial_images: 1 };
    const types = (await collect(await client.images.generate(asked))).map((event) => event.type);
    assert.deepEqual(types, ["image_generation.partial_image", "image_generation.completed"]);
  },

  async moderations() {
    const answer = await client.moderations.create({ model: MODEL, input: ["good", "bad"] });
    assert.deepEqual(answer.results.map((result) => result.flagged), [false, true]);
  },

  async rankings() {
    const body = { model: MODEL, query: "q", documents: ["a", "ccc", "bb"] };
    const ranked = await client.post("/rerank", { body });
    assert.deepEqual(ranked.results.map((result) => result.index), [1, 2, 0]);
    const scored = await client.post("/score", { body: { model: MODEL, text_1: "a", text_2: "b" } });
    assert.equal(scored.data[0].score, 0.5);
  },

  async media_errors() {
    const hear = (model, more) => async () =>
      client.audio.transcriptions.create({ model, file: await file(), ...more });
    await throws(OpenAI.NotFoundError, hear("nobody-has-it"), 404, "nobody-has-it");
    await throws(OpenAI.BadRequestError, hear("m".repeat(300)), 400, "256 bytes");
    await throws(OpenAI.NotFoundError, () => chat(), 404, "this endpoint");
  },
});
