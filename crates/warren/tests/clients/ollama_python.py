"""The official Ollama package for Python, as it is, against Warren."""
import asyncio
import json

import ollama
import pydantic
from scenario import KEY, MODEL, PNG, URL, equal, hung_up, run

OPTIONS = {"host": URL, "headers": {"authorization": f"Bearer {KEY}"}, "timeout": 30}
HI = [{"role": "user", "content": "hi"}]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}}
         for name in ("get_weather", "get_time")]
PARIS = {"city": "Paris"}


class Person(pydantic.BaseModel):
    name: str
    age: int


def _client():
    return ollama.Client(**OPTIONS)


def _fails(ask, status, words):
    try:
        ask()
    except ollama.ResponseError as error:
        equal(error.status_code, status)
        assert words in error.error, f"{words} is not in {error.error}"
        return
    raise AssertionError("an error was expected")


# ── any backend ──


def any_chat():
    answer = _client().chat(MODEL, HI, options={"num_predict": 8})
    assert answer.message.content and answer.done and answer.eval_count > 0
    assert answer.total_duration > 0 and answer.created_at.endswith("Z")


def any_stream():
    parts = list(_client().chat(MODEL, HI, stream=True))
    assert "".join(part.message.content for part in parts)
    equal([part.done for part in parts], [False] * (len(parts) - 1) + [True])
    assert parts[-1].eval_duration >= 0 and parts[-1].prompt_eval_duration > 0


def any_generate():
    answer = _client().generate(MODEL, "hi", system="Be brief.")
    assert answer.response and answer.done_reason in ("stop", "length")
    parts = list(_client().generate(MODEL, "hi", stream=True))
    assert "".join(part.response for part in parts) and parts[-1].done


def any_raw():
    answer = _client().generate(MODEL, "fn f() {", suffix="}", options={"num_predict": 8})
    assert answer.response and answer.done
    parts = list(_client().generate(MODEL, "once", raw=True, stream=True))
    assert "".join(part.response for part in parts) and parts[-1].done


# ── models ──


def models():
    listed = [model.model for model in _client().list().models]
    assert f"{MODEL}:latest" in listed, listed
    shown = _client().show(MODEL)
    assert "completion" in shown.capabilities and shown.modelinfo["general.architecture"]
    equal(_client().show(f"{MODEL}:latest").capabilities, shown.capabilities)
    assert _client().ps().models is not None
    equal(_client().pull(MODEL).status, "success")
    equal([step.status for step in _client().pull(MODEL, stream=True)][-1], "success")


def changes_are_refused():
    for change in (
        lambda: _client().delete(MODEL),
        lambda: _client().copy(MODEL, "other"),
        lambda: _client().create("other", from_=MODEL, system="x"),
        lambda: _client().push(MODEL),
        lambda: _client().create_blob(__file__),
    ):
        _fails(change, 501, "models is not possible here")
    _fails(lambda: _client().pull("nobody-has-it"), 404, "fetches no models")


def load():
    answer = _client().generate(MODEL, keep_alive="5m")
    equal((answer.done_reason, answer.response), ("load", ""))
    equal(_client().chat(MODEL, [], keep_alive=0).done_reason, "unload")


# ── chat ──


def plain():
    answer = _client().chat(f"{MODEL}:latest", [{"role": "system", "content": "Be brief."}, *HI])
    equal(answer.message.content, "You said: hi")
    equal((answer.done_reason, answer.prompt_eval_count, answer.eval_count), ("stop", 3, 3))
    cut = _client().chat(MODEL, HI, options={"num_predict": 2})
    equal(cut.done_reason, "length")


async def plain_async():
    client = ollama.AsyncClient(**OPTIONS)
    for answer in await asyncio.gather(*[client.chat(MODEL, HI) for _ in range(4)]):
        equal(answer.message.content, "You said: hi")
    parts = [part async for part in await client.chat(MODEL, HI, stream=True)]
    equal("".join(part.message.content for part in parts), "You said: hi")


def stream():
    texts = [part.message.content for part in _client().chat(MODEL, HI, stream=True)]
    equal("".join(texts), "You said: hi")
    assert sum(map(bool, texts)) > 1, "it came in one piece"


def tools():
    messages = list(HI)
    message = _client().chat(MODEL, messages, tools=TOOLS).message
    equal([call.function.name for call in message.tool_calls], ["get_weather", "get_time"])
    equal(message.tool_calls[0].function.arguments, PARIS)
    messages.append(message)
    for call, result in zip(message.tool_calls, ("sunny", "noon")):
        messages.append({"role": "tool", "tool_name": call.function.name, "content": result})
    equal(_client().chat(MODEL, messages, tools=TOOLS).message.content, "The tools said: sunny; noon")


def tools_streamed():
    parts = _client().chat(MODEL, HI, tools=TOOLS, stream=True)
    calls = [call for part in parts for call in part.message.tool_calls or []]
    equal([(call.function.name, call.function.arguments) for call in calls],
          [("get_weather", PARIS), ("get_time", PARIS)])


def structured():
    answer = _client().chat(MODEL, HI, format=Person.model_json_schema())
    equal(Person.model_validate_json(answer.message.content), Person(name="example", age=7))
    answer = _client().generate(MODEL, "hi", format=Person.model_json_schema())
    equal(json.loads(answer.response), {"name": "example", "age": 7})


def vision():
    messages = [{"role": "user", "content": "look", "images": [PNG]}]
    equal(_client().chat(MODEL, messages).message.content, "You said: look (images: 1)")
    equal(_client().generate(MODEL, "look", images=[PNG]).response, "You said: look (images: 1)")


def thinking():
    message = _client().chat("reasoning", HI, think=True).message
    equal((message.thinking, message.content), ("Let me think about it.", "You said: hi"))
    message = _client().chat("reasoning", HI, think=False).message
    equal((message.thinking, message.content), (None, "You said: hi"))
    parts = list(_client().generate("reasoning", "hi", think="low", stream=True))
    equal("".join(part.thinking or "" for part in parts), "Let me think about it.")


def errors():
    def ask(model, **more):
        return lambda: list(_client().chat(model, HI, **more))
    _fails(ask("error-429"), 429, "the backend says 429")
    _fails(ask("error-400"), 400, "the backend says 400")
    _fails(ask("error-400", stream=True), 400, "the backend says 400")
    _fails(ask("nobody-has-it"), 404, "nobody-has-it")
    _fails(ask(MODEL, options={"temperature": -1}), 400, "`options.temperature`")
    _fails(lambda: _client().generate(MODEL, "x", suffix="y"), 400, "`suffix`")
    _fails(lambda: _client().embed(MODEL, "hi"), 404, "this endpoint")
    _fails(lambda: _client().show("nobody-has-it"), 404, "not found")


def wrong_key():
    client = ollama.Client(host=URL, headers={"authorization": "Bearer not-a-key"})
    _fails(lambda: client.chat(MODEL, HI), 401, "key")
    _fails(client.list, 401, "key")


def cancel():
    stream = _client().chat("endless", HI, stream=True)
    next(stream)
    stream.close()
    hung_up()


if __name__ == "__main__":
    run(dict(globals()))
