"""Cohere's official package for Python, as it is, against Warren."""
import cohere
from cohere.errors import BadRequestError, NotFoundError, UnauthorizedError
from scenario import KEY, MODEL, URL, equal, raises, run

OPTIONS = {"base_url": URL, "api_key": KEY, "timeout": 30}
ASK = {"model": MODEL, "query": "q", "documents": ["a", "ccc", "bb"], "top_n": 2}


def _check(answer):
    equal([result.index for result in answer.results], [1, 2])
    equal([result.relevance_score for result in answer.results], [0.75, 1 - 1 / 3])
    equal(answer.id, "rank-1")


def rerank():
    answer = cohere.ClientV2(**OPTIONS).rerank(**ASK)
    _check(answer)
    equal(answer.meta.billed_units.search_units, 1)


def rerank_first_version():
    _check(cohere.Client(**OPTIONS).rerank(**ASK))


async def rerank_async():
    async with cohere.AsyncClientV2(**OPTIONS) as client:
        _check(await client.rerank(**ASK))


def errors():
    client = cohere.ClientV2(**OPTIONS)
    ask = lambda model: lambda: client.rerank(**{**ASK, "model": model})
    missing = raises(NotFoundError, ask("nobody-has-it"), 404, "nobody-has-it")
    assert missing.body["message"].startswith("no provider"), missing.body
    raises(BadRequestError, ask(""), 400, "`model` must not be empty")
    stranger = cohere.ClientV2(**{**OPTIONS, "api_key": "not-a-key"})
    raises(UnauthorizedError, lambda: stranger.rerank(**ASK), 401, "key")


if __name__ == "__main__":
    run(dict(globals()))
