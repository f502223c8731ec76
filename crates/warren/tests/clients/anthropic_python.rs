//! The `anthropic` package of PyPI.

use crate::sdk::scenarios;

scenarios!(
    "anthropic_python.py",
    translated: [
        models, plain, plain_async, limits, stream, stream_helper, stream_async, tools,
        tools_streamed, tools_chosen, structured, vision, thinking, count_tokens, errors, wrong_key,
        cancel, cancel_async,
    ],
    native: [any_plain, any_stream, any_count_tokens],
);
