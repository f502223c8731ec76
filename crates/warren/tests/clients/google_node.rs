//! The `@google/genai` package of npm.

use crate::sdk::scenarios;

scenarios!(
    "google_node.mjs",
    translated: [
        models, plain, stream, tools, tools_streamed, structured, vision, thinking, count_tokens,
        errors, wrong_key, cancel,
    ],
    native: [any_plain, any_stream],
);
