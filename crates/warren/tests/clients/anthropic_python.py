"""The official Anthropic package for Python, as it is, against Warren."""
import asyncio

import anthropic
import pydantic
from scenario import KEY, MODEL, PNG, URL, equal, hung_up, raises, run

OPTIONS = {"base_url": URL, "api_key": KEY, "max_retries": 0, "timeout": 30}
HI = [{"role": "user", "content": "hi"}]
ASK = {"model": MODEL, "max_tokens": 100, "messages": HI}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"name": name, "input_schema": SCHEMA} for name in ("get_weather", "get_time")]
PARIS = {"city": "Paris"}


class Person(pydantic.BaseModel):
    name: str
    age: int


def _client():
    return anthropic.Anthropic(**OPTIONS)


def _async_client():
    return anthropic.AsyncAnthropic(**OPTIONS)


def _text(message):
    return "".join(block.text for block in message.content if block.type == "text")


# ── any backend ──


def any_plain():
    message = _client().messages.create(**{**ASK, "max_tokens": 8})
    assert _text(message)
    assert message.usage.output_tokens > 0


def any_stream():
    with _client().messages.stream(**{**ASK, "max_tokens": 8}) as stream:
        text = "".join(stream.text_stream)
        message = stream.get_final_message()
    assert text and text == _text(message)
    assert message.stop_reason in ("end_turn", "max_tokens")


def any_count_tokens():
    assert _client().messages.count_tokens(model=MODEL, messages=HI).input_tokens > 0


# ── models ──


def models():
    assert MODEL in [model.id for model in _client().models.list()]


# ── messages ──


def plain():
    message = _client().messages.create(**ASK, system="Be brief.")
    equal((message.type, message.role, message.stop_reason), ("message", "assistant", "end_turn"))
    equal([block.type for block in message.content], ["text"])
    equal(_text(message), "You said: hi")
    equal((message.usage.input_tokens, message.usage.output_tokens), (3, 3))
    assert message.id.startswith("msg_")


async def plain_async():
    async with _async_client() as client:
        asked = [client.messages.create(**ASK) for _ in range(4)]
        for message in await asyncio.gather(*asked):
            equal(_text(message), "You said: hi")


def limits():
    message = _client().messages.create(**{**ASK, "max_tokens": 2})
    equal((_text(message), message.stop_reason), ("You said: ", "max_tokens"))


def stream():
    events = list(_client().messages.create(**ASK, stream=True))
    kinds = [event.type for event in events if event.type != "ping"]
    deltas = kinds.count("content_block_delta")
    assert deltas > 1, "it came in one piece"
    equal(kinds, ["message_start", "content_block_start", *["content_block_delta"] * deltas,
                  "content_block_stop", "message_delta", "message_stop"])
    texts = [event.delta.text for event in events if event.type == "content_block_delta"]
    equal("".join(texts), "You said: hi")
    equal(next(event for event in events if event.type == "message_delta").usage.output_tokens, 3)


def stream_helper():
    with _client().messages.stream(**ASK) as stream:
        equal("".join(stream.text_stream), "You said: hi")
        equal(stream.get_final_message().stop_reason, "end_turn")


async def stream_async():
    async with _async_client() as client, client.messages.stream(**ASK) as stream:
        texts = [text async for text in stream.text_stream]
        equal("".join(texts), "You said: hi")


def _call_and_tell(first):
    calls = [block for block in first.content if block.type == "tool_use"]
    equal(first.stop_reason, "tool_use")
    equal([(call.name, call.input) for call in calls],
          [("get_weather", PARIS), ("get_time", PARIS)])
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": result}
               for call, result in zip(calls, ("sunny", "noon"))]
    turn = [{"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
    second = _client().messages.create(**{**ASK, "messages": HI + turn}, tools=TOOLS)
    equal(_text(second), "The tools said: sunny; noon")


def tools():
    _call_and_tell(_client().messages.create(**ASK, tools=TOOLS))


def tools_streamed():
    with _client().messages.stream(**ASK, tools=TOOLS) as stream:
        _call_and_tell(stream.get_final_message())


def tools_chosen():
    choice = {"type": "tool", "name": "get_time"}
    message = _client().messages.create(**ASK, tools=TOOLS, tool_choice=choice)
    equal([block.name for block in message.content], ["get_time"])
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    message = _client().messages.create(**ASK, tools=TOOLS, tool_choice=choice)
    equal([block.name for block in message.content], ["get_weather"])
    message = _client().messages.create(**ASK, tools=TOOLS, tool_choice={"type": "none"})
    equal(_text(message), "You said: hi")


def structured():
    message = _client().messages.parse(**ASK, output_format=Person)
    equal(message.parsed_output, Person(name="example", age=7))


def vision():
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": source}]
    message = _client().messages.create(**{**ASK, "messages": [{"role": "user", "content": content}]})
    equal(_text(message), "You said: look (images: 1)")


def thinking():
    asked = {**ASK, "model": "reasoning"}
    message = _client().messages.create(**asked)
    equal([block.type for block in message.content], ["thinking", "text"])
    equal(message.content[0].thinking, "Let me think about it.")
    with _client().messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    equal([block.type for block in streamed.content], ["thinking", "text"])
    # What was thought may be sent back.
    turn = [{"role": "assistant", "content": streamed.content}, *HI]
    equal(_text(_client().messages.create(**{**ASK, "messages": HI + turn})), "You said: hi")


def count_tokens():
    few = _client().messages.count_tokens(model=MODEL, messages=HI).input_tokens
    more = _client().messages.count_tokens(
        model=MODEL, messages=[{"role": "user", "content": "many more words " * 50}], tools=TOOLS)
    assert 0 < few < more.input_tokens


def errors():
    def ask(model, **more):
        return lambda: _client().messages.create(**{**ASK, "model": model}, **more)
    raises(anthropic.RateLimitError, ask("error-429"), 429, "the backend says 429")
    raises(anthropic.RateLimitError, ask("error-429", stream=True), 429, "the backend says 429")
    raises(anthropic.BadRequestError, ask("error-400"), 400, "the backend says 400")
    error = raises(anthropic.NotFoundError, ask("nobody-has-it"), 404, "nobody-has-it")
    equal(error.body["error"]["type"], "not_found_error")
    search = [{"type": "mcp_toolset", "mcp_server_name": "elsewhere"}]
    error = raises(anthropic.BadRequestError, ask(MODEL, tools=search), 400, "tools[0]")
    equal(error.body["error"]["type"], "invalid_request_error")
    assert error.request_id, "an error can be told by its id"


def wrong_key():
    client = anthropic.Anthropic(**{**OPTIONS, "api_key": "not-a-key"})
    raises(anthropic.AuthenticationError, lambda: client.messages.create(**ASK), 401, "key")


def cancel():
    stream = _client().messages.create(**{**ASK, "model": "endless"}, stream=True)
    for event in stream:
        if event.type == "content_block_delta":
            break
    stream.close()
    hung_up()


async def cancel_async():
    async def read(begun):
        async with _async_client().messages.stream(**{**ASK, "model": "endless"}) as stream:
            async for _ in stream.text_stream:
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
