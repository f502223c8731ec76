"""The official OpenAI package for Python, as it is, against Warren."""
import asyncio
import base64
import hashlib
import json
import time

import openai
import pydantic
from scenario import KEY, MODEL, PNG, URL, equal, hung_up, raises, run

OPTIONS = {"base_url": f"{URL}/v1", "api_key": KEY, "max_retries": 0, "timeout": 30}
HI = [{"role": "user", "content": "hi"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
         for name in ("get_weather", "get_time")]
FLAT_TOOLS = [{"type": "function", **tool["function"], "strict": False} for tool in TOOLS]
PARIS = {"city": "Paris"}


class Person(pydantic.BaseModel):
    name: str
    age: int


def _client():
    return openai.OpenAI(**OPTIONS)


def _async_client():
    return openai.AsyncOpenAI(**OPTIONS)


# ── any backend ──


def any_plain():
    answer = _client().chat.completions.create(model=MODEL, messages=HI, max_tokens=8)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens > 0


def any_stream():
    stream = _client().chat.completions.create(
        model=MODEL, messages=HI, max_tokens=8, stream=True, stream_options={"include_usage": True})
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text and chunks[-1].usage.completion_tokens > 0


def any_responses():
    answer = _client().responses.create(model=MODEL, input="hi", max_output_tokens=8)
    assert answer.output_text


def any_responses_stream():
    with _client().responses.stream(model=MODEL, input="hi") as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
        equal(stream.get_final_response().output_text, "".join(texts))
    assert texts


def any_responses_continued():
    client = _client()
    first = client.responses.create(model=MODEL, input="hi", store=True)
    answer = client.responses.create(model=MODEL, input="more", previous_response_id=first.id)
    assert answer.output_text
    equal((answer.previous_response_id, answer.store), (first.id, False))
    with client.responses.stream(
            model=MODEL, input="more", previous_response_id=first.id, store=True) as stream:
        last = stream.get_final_response()
    equal(client.responses.retrieve(last.id).output_text, last.output_text)


# ── models ──


def models():
    assert MODEL in [model.id for model in _client().models.list()]
    equal(_client().models.retrieve(MODEL).id, MODEL)


# ── chat ──


def plain():
    messages = [{"role": "system", "content": "Be brief."}, *HI]
    answer = _client().chat.completions.create(model=MODEL, messages=messages)
    equal(answer.choices[0].message.content, "You said: hi")
    equal(answer.choices[0].finish_reason, "stop")
    equal((answer.usage.prompt_tokens, answer.usage.completion_tokens), (3, 3))


async def plain_async():
    async with _async_client() as client:
        asked = [client.chat.completions.create(model=MODEL, messages=HI) for _ in range(4)]
        for answer in await asyncio.gather(*asked):
            equal(answer.choices[0].message.content, "You said: hi")


def stream():
    chunks = list(_client().chat.completions.create(model=MODEL, messages=HI, stream=True))
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks]
    equal("".join(texts), "You said: hi")
    assert sum(map(bool, texts)) > 1, "it came in one piece"
    # Nobody asked for the usage.
    equal([chunk.usage for chunk in chunks if chunk.usage], [])


def stream_usage():
    chunks = list(_client().chat.completions.create(
        model=MODEL, messages=HI, stream=True, stream_options={"include_usage": True}))
    equal(chunks[-1].choices, [])
    equal((chunks[-1].usage.prompt_tokens, chunks[-1].usage.completion_tokens), (1, 3))


async def stream_async():
    async with _async_client() as client:
        stream = await client.chat.completions.create(model=MODEL, messages=HI, stream=True)
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        equal("".join(texts), "You said: hi")


def tools():
    messages = list(HI)
    answer = _client().chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    message = answer.choices[0].message
    equal(answer.choices[0].finish_reason, "tool_calls")
    equal([call.function.name for call in message.tool_calls], ["get_weather", "get_time"])
    equal(json.loads(message.tool_calls[0].function.arguments), PARIS)
    messages.append(message)
    for call, result in zip(message.tool_calls, ("sunny", "noon")):
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    answer = _client().chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
    equal(answer.choices[0].message.content, "The tools said: sunny; noon")


def tools_streamed():
    with _client().chat.completions.stream(model=MODEL, messages=HI, tools=TOOLS) as stream:
        calls = stream.get_final_completion().choices[0].message.tool_calls
    equal([call.function.name for call in calls], ["get_weather", "get_time"])
    equal([json.loads(call.function.arguments) for call in calls], [PARIS, PARIS])


def structured():
    answer = _client().chat.completions.parse(model=MODEL, messages=HI, response_format=Person)
    equal(answer.choices[0].message.parsed, Person(name="example", age=7))


def vision():
    url = f"data:image/png;base64,{PNG}"
    content = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    answer = _client().chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": content}])
    equal(answer.choices[0].message.content, "You said: look (images: 1)")


def reasoning():
    answer = _client().chat.completions.create(model="reasoning", messages=HI)
    equal(answer.choices[0].message.reasoning_content, "Let me think about it.")


def errors():
    def ask(model, **more):
        return lambda: _client().chat.completions.create(model=model, messages=HI, **more)
    raises(openai.RateLimitError, ask("error-429"), 429, "the backend says 429")
    raises(openai.BadRequestError, ask("error-400"), 400, "the backend says 400")
    raises(openai.BadRequestError, ask("error-400", stream=True), 400, "the backend says 400")
    raises(openai.NotFoundError, ask("nobody-has-it"), 404, "nobody-has-it")
    missing = raises(openai.BadRequestError, lambda: _client().post("/chat/completions", cast_to=object, body={}), 400, "model")
    assert missing.request_id, "an error can be told by its id"


def embeddings_are_not_served():
    error = raises(openai.NotFoundError,
                   lambda: _client().embeddings.create(model=MODEL, input="hi"), 404, "this endpoint")
    assert error.body, "the error is of OpenAI's shape"


def wrong_key():
    client = openai.OpenAI(**{**OPTIONS, "api_key": "not-a-key"})
    ask = lambda: client.chat.completions.create(model=MODEL, messages=HI)
    raises(openai.AuthenticationError, ask, 401, "key")


def cancel():
    stream = _client().chat.completions.create(model="endless", messages=HI, stream=True)
    next(iter(stream))
    stream.close()
    hung_up()


async def cancel_async():
    async def read(begun):
        stream = await _async_client().chat.completions.create(
            model="endless", messages=HI, stream=True)
        async for _ in stream:
            begun.set()

    begun = asyncio.Event()
    reading = asyncio.create_task(read(begun))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert begun.is_set(), reading.exception()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    hung_up()


# ── legacy completions ──


def completions():
    answer = _client().completions.create(model=MODEL, prompt="hi")
    equal((answer.choices[0].text, answer.choices[0].finish_reason), ("You said: hi", "stop"))
    stream = _client().completions.create(model=MODEL, prompt="hi", stream=True)
    equal("".join(chunk.choices[0].text for chunk in stream if chunk.choices), "You said: hi")


# ── responses ──


def responses():
    answer = _client().responses.create(model=MODEL, instructions="Be brief.", input="hi")
    equal((answer.status, answer.output_text), ("completed", "You said: hi"))
    equal((answer.usage.input_tokens, answer.usage.output_tokens), (3, 3))
    cut = _client().responses.create(model=MODEL, input="hi", max_output_tokens=2)
    equal((cut.status, cut.incomplete_details.reason), ("incomplete", "max_output_tokens"))


async def responses_async():
    async with _async_client() as client:
        answer = await client.responses.create(model=MODEL, input=HI)
        equal(answer.output_text, "You said: hi")
        stream = await client.responses.create(model=MODEL, input=HI, stream=True)
        types = [event.type async for event in stream]
        equal((types[0], types[-1]), ("response.created", "response.completed"))


def responses_stream():
    with _client().responses.stream(model=MODEL, input="hi") as stream:
        events = list(stream)
        equal(stream.get_final_response().output_text, "You said: hi")
    texts = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert len(texts) > 1 and "".join(texts) == "You said: hi", texts
    numbers = [event.sequence_number for event in events]
    equal(numbers, sorted(set(numbers)))


def responses_tools():
    asked = [{"role": "user", "content": "hi"}]
    with _client().responses.stream(model=MODEL, input=asked, tools=FLAT_TOOLS) as stream:
        answer = stream.until_done().get_final_response()
    calls = [item for item in answer.output if item.type == "function_call"]
    equal([call.name for call in calls], ["get_weather", "get_time"])
    equal([json.loads(call.arguments) for call in calls], [PARIS, PARIS])
    asked += answer.output
    for call, result in zip(calls, ("sunny", "noon")):
        asked.append({"type": "function_call_output", "call_id": call.call_id, "output": result})
    answer = _client().responses.create(model=MODEL, input=asked, tools=FLAT_TOOLS)
    equal(answer.output_text, "The tools said: sunny; noon")


def responses_structured():
    answer = _client().responses.parse(model=MODEL, input="hi", text_format=Person)
    equal(answer.output_parsed, Person(name="example", age=7))


def responses_vision():
    content = [{"type": "input_text", "text": "look"},
               {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}]
    answer = _client().responses.create(model=MODEL, input=[{"role": "user", "content": content}])
    equal(answer.output_text, "You said: look (images: 1)")


def responses_reasoning():
    answer = _client().responses.create(model="reasoning", input="hi")
    equal([item.type for item in answer.output], ["reasoning", "message"])
    equal(answer.output_text, "You said: hi")
    with _client().responses.stream(model="reasoning", input="hi") as stream:
        answer = stream.get_final_response()
    equal([item.type for item in answer.output], ["reasoning", "message"])


def responses_errors():
    def ask(model, **more):
        return lambda: _client().responses.create(model=model, input="hi", **more)
    raises(openai.RateLimitError, ask("error-429"), 429, "the backend says 429")
    raises(openai.RateLimitError, ask("error-429", stream=True), 429, "the backend says 429")
    raises(openai.NotFoundError, ask("nobody-has-it"), 404, "nobody-has-it")
    raises(openai.BadRequestError, ask(MODEL, previous_response_id="resp_1"), 400, "resp_1")


def responses_cancel():
    stream = _client().responses.create(model="endless", input="hi", stream=True)
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    stream.close()
    hung_up()


# ── responses with state ──


def responses_continued():
    client = _client()
    first = client.responses.create(model=MODEL, input="hi", store=True)
    second = client.responses.create(
        model=MODEL, input="more", previous_response_id=first.id, store=True)
    equal((second.output_text, second.previous_response_id), ("You said: more", first.id))
    equal(second.usage.input_tokens, 5)
    with client.responses.stream(
            model=MODEL, input="again", previous_response_id=second.id, store=True) as stream:
        events = list(stream)
        third = stream.get_final_response()
    equal({event.response.id for event in events if hasattr(event, "response")}, {third.id})
    equal(third.usage.input_tokens, 9)
    equal(client.responses.retrieve(third.id).output_text, "You said: again")


def responses_stored():
    client = _client()
    made = client.responses.create(model=MODEL, input="hi", store=True)
    kept = client.responses.retrieve(made.id)
    equal((kept.id, kept.output_text, kept.store), (made.id, "You said: hi", True))
    more = client.responses.create(
        model=MODEL, input="more", previous_response_id=made.id, store=True)
    items = client.responses.input_items.list(more.id, limit=1, order="asc")
    equal([item.content[0].text for item in items], ["hi", "You said: hi", "more"])
    client.responses.delete(made.id)
    raises(openai.NotFoundError, lambda: client.responses.retrieve(made.id), 404, made.id)
    raises(openai.NotFoundError, lambda: client.responses.delete(made.id), 404, made.id)
    ask = lambda: client.responses.create(
        model=MODEL, input="x", previous_response_id=more.id)
    error = raises(openai.BadRequestError, ask, 400, made.id)
    equal((error.code, error.param), ("previous_response_not_found", "previous_response_id"))
    unkept = client.responses.create(model=MODEL, input="hi")
    raises(openai.NotFoundError, lambda: client.responses.retrieve(unkept.id), 404, unkept.id)


def responses_background():
    client = _client()
    made = client.responses.create(model=MODEL, input="hi", background=True)
    equal((made.background, made.store), (True, True))
    until = time.monotonic() + 60
    while made.status in ("queued", "in_progress"):
        assert time.monotonic() < until, made
        made = client.responses.retrieve(made.id)
    equal((made.status, made.output_text), ("completed", "You said: hi"))
    equal(client.responses.cancel(made.id).status, "completed")
    stream = client.responses.create(model=MODEL, input="hi", background=True, stream=True)
    events = list(stream)
    equal((events[0].type, events[-1].type), ("response.created", "response.completed"))
    last = events[-1]
    again = client.responses.retrieve(
        last.response.id, stream=True, starting_after=last.sequence_number - 1)
    equal([event.type for event in again], ["response.completed"])
    plain = client.responses.create(model=MODEL, input="hi", store=True)
    raises(openai.BadRequestError, lambda: client.responses.cancel(plain.id), 400, "synchronous")


def responses_background_cancel():
    client = _client()
    made = client.responses.create(model="endless", input="hi", background=True)
    until = time.monotonic() + 60
    while made.status == "queued":
        assert time.monotonic() < until, made
        made = client.responses.retrieve(made.id)
    equal(client.responses.cancel(made.id).status, "cancelled")
    hung_up()
    equal(client.responses.retrieve(made.id).status, "cancelled")


def conversations():
    client = _client()
    before = {"type": "message", "role": "user", "content": "before"}
    talk = client.conversations.create(metadata={"topic": "x"}, items=[before])
    equal(talk.metadata, {"topic": "x"})
    for said, tokens in (("hi", 2), ("more", 6)):
        answer = client.responses.create(model=MODEL, input=said, conversation=talk.id)
        equal((answer.output_text, answer.usage.input_tokens), (f"You said: {said}", tokens))
        equal(answer.conversation.id, talk.id)
    items = list(client.conversations.items.list(talk.id, order="asc", limit=2))
    texts = [item.content[0].text for item in items]
    equal(texts, ["before", "hi", "You said: hi", "more", "You said: more"])
    added = client.conversations.items.create(talk.id, items=[before]).data[0]
    shown = client.conversations.items.retrieve(added.id, conversation_id=talk.id)
    equal(shown.content[0].text, "before")
    client.conversations.items.delete(added.id, conversation_id=talk.id)
    gone = lambda: client.conversations.items.retrieve(added.id, conversation_id=talk.id)
    raises(openai.NotFoundError, gone, 404, added.id)
    equal(client.conversations.update(talk.id, metadata={"topic": "y"}).metadata, {"topic": "y"})
    equal(client.conversations.retrieve(talk.id).metadata, {"topic": "y"})
    assert client.conversations.delete(talk.id).deleted
    raises(openai.NotFoundError, lambda: client.conversations.retrieve(talk.id), 404, talk.id)


# ── sound, pictures, judgements and rankings ──


SOUND = bytes(range(256)) * 2000 + b"\r\n--"
HEARD = f"{MODEL} {len(SOUND)} {hashlib.sha256(SOUND).hexdigest()[:16]}"
FILE = ("speech.wav", SOUND, "audio/wav")
SPOKEN = b"ID3\x04\r\n\r\ndata: [DONE]\n\nhello" + bytes(range(256)) * 300


def transcriptions():
    create = _client().audio.transcriptions.create
    answer = create(model=MODEL, file=FILE, prompt="names", language="en",
                    timestamp_granularities=["word"], response_format="verbose_json")
    equal((answer.text, answer.usage.type), (HEARD, "tokens"))
    equal((answer.usage.input_tokens, answer.usage.output_tokens), (14, 4))
    equal(create(model=MODEL, file=FILE, response_format="text").strip(), HEARD)


def transcriptions_stream():
    events = list(_client().audio.transcriptions.create(model=MODEL, file=FILE, stream=True))
    equal("".join(event.delta for event in events[:-1]), HEARD)
    equal((events[0].type, events[-1].type), ("transcript.text.delta", "transcript.text.done"))
    equal(events[-1].text, HEARD)


def translations():
    equal(_client().audio.translations.create(model=MODEL, file=FILE).text, HEARD)


def speech():
    client = _client().audio.speech
    answer = client.create(model=MODEL, voice="alloy", input="hello", response_format="wav")
    equal(answer.read(), SPOKEN)
    equal(answer.response.headers["content-type"], "audio/wav")
    with client.with_streaming_response.create(model=MODEL, voice="alloy", input="hello") as answer:
        equal(b"".join(answer.iter_bytes(1000)), SPOKEN)


def speech_stream():
    create = _client().audio.speech.with_streaming_response.create
    with create(model=MODEL, voice="alloy", input="hello", stream_format="sse") as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    events = [json.loads(line[6:]) for line in lines]
    equal(events[-1]["type"], "speech.audio.done")
    equal(b"".join(base64.b64decode(event["audio"]) for event in events[:-1]), SPOKEN)


def images():
    client = _client().images
    made = client.generate(model=MODEL, prompt="a dot", n=1, size="256x256")
    equal(base64.b64decode(made.data[0].b64_json), b"a dot")
    equal(made.usage.total_tokens, 14)
    png = base64.b64decode(PNG)
    one = f" {len(png)} {hashlib.sha256(png).hexdigest()[:16]}"
    edited = client.edit(model=MODEL, prompt="larger", image=[("a.png", png), ("b.png", png)], mask=("m.png", png))
    equal(base64.b64decode(edited.data[0].b64_json).decode(), MODEL + 3 * one)
    other = client.create_variation(model=MODEL, image=("a.png", png))
    equal(base64.b64decode(other.data[0].b64_json).decode(), MODEL + one)


def images_stream():
    stream = _client().images.generate(model=MODEL, prompt="a dot", stream=True, partial_images=1)
    events = list(stream)
    equal([event.type for event in events], ["image_generation.partial_image", "image_generation.completed"])
    equal(base64.b64decode(events[-1].b64_json), b"a dot")


def moderations():
    answer = _client().moderations.create(model=MODEL, input=["good", "bad"])
    equal([result.flagged for result in answer.results], [False, True])


def rankings():
    asked = {"model": MODEL, "query": "q", "documents": ["a", "ccc", "bb"]}
    ranked = _client().post("/rerank", cast_to=object, body=asked)
    equal([result["index"] for result in ranked["results"]], [1, 2, 0])
    scored = _client().post("/score", cast_to=object, body={"model": MODEL, "text_1": "a", "text_2": "b"})
    equal(scored["data"][0]["score"], 0.5)


def media_errors():
    hear = lambda model, **more: lambda: _client().audio.transcriptions.create(model=model, file=FILE, **more)
    raises(openai.NotFoundError, hear("nobody-has-it"), 404, "nobody-has-it")
    raises(openai.BadRequestError, hear(""), 400, "`model` must not be empty")
    raises(openai.BadRequestError, hear("m" * 300), 400, "256 bytes")
    raises(openai.BadRequestError, hear(MODEL, extra_body={"stream": "perhaps"}), 400, "stream")
    ask = lambda: _client().chat.completions.create(model=MODEL, messages=HI)
    raises(openai.NotFoundError, ask, 404, "this endpoint")


async def media_async():
    async with _async_client() as client:
        answer = await client.audio.transcriptions.create(model=MODEL, file=FILE)
        equal(answer.text, HEARD)
        async with client.audio.speech.with_streaming_response.create(
                model=MODEL, voice="alloy", input="hello") as answer:
            equal(b"".join([piece async for piece in answer.iter_bytes(4096)]), SPOKEN)


if __name__ == "__main__":
    run(dict(globals()))
