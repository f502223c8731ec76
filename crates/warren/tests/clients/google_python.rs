//! The `google-genai` package of PyPI.

use crate::sdk::scenarios;

scenarios!(
    "google_python.py",
    translated: [
        models, plain, plain_async, limits, stream, stream_async, chat, tools, tools_streamed,
        tools_by_themselves, tools_chosen, structured, vision, thinking, count_tokens, errors,
        embeddings_are_not_served, wrong_key, cancel, cancel_async,
    ],
    native: [any_plain, any_stream, any_count_tokens],
);
