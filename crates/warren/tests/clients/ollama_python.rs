//! The `ollama` package of PyPI.

use crate::sdk::scenarios;

scenarios!(
    "ollama_python.py",
    translated: [
        models, changes_are_refused, load, plain, plain_async, stream, tools, tools_streamed,
        structured, vision, thinking, errors, wrong_key, cancel,
    ],
    native: [any_chat, any_stream, any_generate, any_raw],
);
