"""Google's package for Python, as it is, against Warren."""
import asyncio
import base64

import pydantic
from google import genai
from google.genai import errors as failures, types
from scenario import KEY, MODEL, PNG, URL, equal, hung_up, run

HI = "hi"
PARIS = {"city": "Paris"}
CALLS = [("get_weather", PARIS), ("get_time", PARIS)]
THINKS = types.GenerateContentConfig(
    thinking_config=types.ThinkingConfig(include_thoughts=True, thinking_budget=512))


class Person(pydantic.BaseModel):
    name: str
    age: int


def get_weather(city: str) -> str:
    """What the weather is like."""
    return "sunny"


def get_time(city: str) -> str:
    """What time it is."""
    return "noon"


# What is no scenario.
get_weather.__module__ = get_time.__module__ = "tools"


def _new_client(key=KEY):
    options = types.HttpOptions(base_url=URL, timeout=30_000)
    return genai.Client(api_key=key, http_options=options)


# A client that nobody holds closes its connections.
CLIENT = _new_client()


def _client():
    return CLIENT


def _ask(contents=HI, model=MODEL, **config):
    config = types.GenerateContentConfig(**config)
    return _client().models.generate_content(model=model, contents=contents, config=config)


def _stream(contents=HI, model=MODEL, **config):
    config = types.GenerateContentConfig(**config)
    return _client().models.generate_content_stream(model=model, contents=contents, config=config)


def _refused(action, code, status, words):
    """Check that an error has the code and Google's word for it, and tells these words."""
    kind = failures.ClientError if code < 500 else failures.ServerError
    try:
        action()
    except kind as error:
        equal((error.code, error.status), (code, status))
        assert words in str(error), f"{words!r} is not in {error}"
        return
    raise AssertionError(f"{kind.__name__} was expected")


# ── any backend ──


def any_plain():
    answer = _ask(max_output_tokens=8)
    assert answer.text and answer.usage_metadata.candidates_token_count > 0


def any_stream():
    chunks = list(_stream(max_output_tokens=8))
    assert "".join(chunk.text or "" for chunk in chunks)
    assert chunks[-1].candidates[0].finish_reason in ("STOP", "MAX_TOKENS")


def any_count_tokens():
    assert _client().models.count_tokens(model=MODEL, contents=HI).total_tokens > 0


# ── models ──


def models():
    with_methods = {model.name: model.supported_actions for model in _client().models.list()}
    assert "generateContent" in with_methods[f"models/{MODEL}"], with_methods
    equal(_client().models.get(model=MODEL).name, f"models/{MODEL}")
    _refused(lambda: _client().models.get(model="nobody-has-it"), 404, "NOT_FOUND", "nobody-has-it")
    pages = _client().models.list(config={"page_size": 1})
    equal({model.name for model in pages}, set(with_methods))


# ── content ──


def plain():
    answer = _ask(system_instruction="Be brief.")
    equal((answer.text, answer.candidates[0].finish_reason.value), ("You said: hi", "STOP"))
    used = answer.usage_metadata
    equal((used.prompt_token_count, used.candidates_token_count, used.total_token_count), (3, 3, 6))
    equal(answer.model_version, MODEL)
    assert answer.response_id


async def plain_async():
    asked = [_client().aio.models.generate_content(model=MODEL, contents=HI) for _ in range(4)]
    for answer in await asyncio.gather(*asked):
        equal(answer.text, "You said: hi")


def limits():
    answer = _ask(max_output_tokens=2)
    equal((answer.text, answer.candidates[0].finish_reason.value), ("You said: ", "MAX_TOKENS"))


def stream():
    chunks = list(_stream())
    texts = [chunk.text for chunk in chunks if chunk.text]
    assert len(texts) > 1, "it came in one piece"
    equal("".join(texts), "You said: hi")
    last = chunks[-1]
    used = last.usage_metadata
    equal((last.candidates[0].finish_reason.value, used.candidates_token_count), ("STOP", 3))
    assert used.prompt_token_count > 0, used


async def stream_async():
    chunks = await _client().aio.models.generate_content_stream(model=MODEL, contents=HI)
    equal("".join([chunk.text or "" async for chunk in chunks]), "You said: hi")


def chat():
    talk = _client().chats.create(model=MODEL)
    equal(talk.send_message("one").text, "You said: one")
    equal("".join(chunk.text or "" for chunk in talk.send_message_stream("two")), "You said: two")
    equal([turn.role for turn in talk.get_history()][:3], ["user", "model", "user"])


def _by_hand(first):
    calls = [part.function_call for part in first if part.function_call]
    equal([(call.name, call.args) for call in calls], CALLS)
    results = [types.Part.from_function_response(name=call.name, response={"output": result})
               for call, result in zip(calls, ("sunny", "noon"))]
    turns = [types.UserContent(HI), types.ModelContent(first), types.UserContent(results)]
    answer = _ask(turns, tools=[_declared()])
    equal(answer.text, "The tools said: sunny; noon")


def _declared():
    city = types.Schema(type="OBJECT", properties={"city": types.Schema(type="STRING")},
                        required=["city"])
    return types.Tool(function_declarations=[
        types.FunctionDeclaration(name=name, description="Asks.", parameters=city)
        for name in ("get_weather", "get_time")])


def tools():
    _by_hand(_ask(tools=[_declared()]).candidates[0].content.parts)


def tools_streamed():
    chunks = list(_stream(tools=[_declared()]))
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
    _by_hand([part for part in parts if part.function_call])


def tools_by_themselves():
    answer = _ask(tools=[get_weather, get_time])
    assert "sunny" in answer.text and "noon" in answer.text, answer.text
    equal(len(answer.automatic_function_calling_history), 3)


def tools_chosen():
    def called(mode, names=None):
        calling = types.FunctionCallingConfig(mode=mode, allowed_function_names=names)
        answer = _ask(tools=[_declared()],
                      tool_config=types.ToolConfig(function_calling_config=calling))
        return [call.name for call in answer.function_calls or []]
    equal(called("ANY", ["get_time"]), ["get_time"])
    equal(called("NONE"), [])


def structured():
    answer = _ask(response_mime_type="application/json", response_schema=Person)
    equal(answer.parsed, Person(name="example", age=7))
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = _ask(response_mime_type="application/json", response_json_schema=schema)
    equal(answer.parsed, {"name": "example"})


def vision():
    picture = types.Part.from_bytes(data=base64.b64decode(PNG), mime_type="image/png")
    equal(_ask(["look", picture]).text, "You said: look (images: 1)")


def thinking():
    def parts(answer):
        return [(bool(part.thought), part.text) for part in answer.candidates[0].content.parts]
    thought = (True, "Let me think about it.")
    answer = _client().models.generate_content(model="reasoning", contents=HI, config=THINKS)
    equal(parts(answer)[0], thought)
    chunks = _client().models.generate_content_stream(model="reasoning", contents=HI, config=THINKS)
    told = [part for chunk in chunks for part in parts(chunk)]
    equal("".join(text for is_thought, text in told if is_thought), thought[1])
    without = _ask(model="reasoning")
    assert not any(is_thought for is_thought, _ in parts(without))
    # What was thought may be sent back.
    equal(_ask([types.UserContent(HI), answer.candidates[0].content, types.UserContent(HI)]).text,
          "You said: hi")


def count_tokens():
    few = _client().models.count_tokens(model=MODEL, contents=HI).total_tokens
    more = _client().models.count_tokens(model=MODEL, contents="many more words " * 50).total_tokens
    assert 0 < few < more


def errors():
    def ask(model, **config):
        return lambda: _ask(model=model, **config)
    _refused(ask("error-429"), 429, "RESOURCE_EXHAUSTED", "the backend says 429")
    _refused(lambda: list(_stream(model="error-429")), 429, "RESOURCE_EXHAUSTED", "says 429")
    _refused(ask("error-400"), 400, "INVALID_ARGUMENT", "the backend says 400")
    _refused(ask("nobody-has-it"), 404, "NOT_FOUND", "nobody-has-it")
    search = types.Tool(google_search=types.GoogleSearch())
    _refused(ask(MODEL, tools=[search]), 400, "INVALID_ARGUMENT", "tools[0].googleSearch")
    _refused(ask(MODEL, response_modalities=["IMAGE"]), 400, "INVALID_ARGUMENT", "responseModalities")
    _refused(ask(MODEL, cached_content="cachedContents/1"), 400, "INVALID_ARGUMENT", "cachedContent")


def embeddings_are_not_served():
    embed = _client().models.embed_content
    _refused(lambda: embed(model=MODEL, contents=["a", "b"]), 404, "NOT_FOUND", MODEL)


def wrong_key():
    client = _new_client("not-a-key")
    ask = client.models.generate_content
    _refused(lambda: ask(model=MODEL, contents=HI), 401, "UNAUTHENTICATED", "key")


def cancel():
    client = _new_client()
    chunks = client.models.generate_content_stream(model="endless", contents=HI)
    next(chunks)
    chunks.close()
    client.close()
    hung_up()


async def cancel_async():
    async def read(begun):
        client = _client().aio
        chunks = await client.models.generate_content_stream(model="endless", contents=HI)
        async for _ in chunks:
            begun.set()

    begun = asyncio.Event()
    reading = asyncio.create_task(read(begun))
    waiting = asyncio.create_task(begun.wait())
    await asyncio.wait([reading, waiting], return_when=asyncio.FIRST_COMPLETED)
    assert begun.is_set(), reading.exception()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    hung_up()


if __name__ == "__main__":
    run(dict(globals()))
