"""How a script of scenarios is run: `SCRIPT.py NAME`, or `SCRIPT.py --list` for all names.

A scenario is a function; it fails by raising. The server is told by the environment.
"""
import asyncio
import inspect
import os
import sys

URL = os.environ["SERVER_URL"]
KEY = os.environ["SERVER_KEY"]
MODEL = os.environ["MODEL"]
# A red dot.
PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO"
       "9TXL0Y4OHwAAAABJRU5ErkJggg==")


def run(functions):
    scenarios = {name: function for name, function in functions.items()
                 if inspect.isfunction(function) and function.__module__ == "__main__"
                 and not name.startswith("_")}
    name = sys.argv[1]
    if name == "--list":
        print("\n".join(scenarios))
        return
    outcome = scenarios[name]()
    if inspect.iscoroutine(outcome):
        asyncio.run(outcome)


def hung_up():
    """Tell the test that this client has hung up, and stay until it has seen that arrive."""
    print("hung up", flush=True)
    sys.stdin.readline()


def equal(actual, expected):
    assert actual == expected, f"got {actual!r}, expected {expected!r}"


def raises(kind, action, status, words):
    """Check that an error is of just this class, has the status, and tells these words."""
    try:
        action()
    except kind as error:
        equal(type(error).__name__, kind.__name__)
        equal(error.status_code, status)
        assert words in str(error), f"{words!r} is not in {error}"
        return error
    raise AssertionError(f"{kind.__name__} was expected")
