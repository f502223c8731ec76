//! The `ollama` package of npm.

use crate::sdk::scenarios;

scenarios!(
    "ollama_node.mjs",
    translated: [
        models, changes_are_refused, plain, stream, tools, structured, vision, thinking, errors,
        wrong_key, cancel,
    ],
    native: [any_chat, any_stream, any_generate],
);
