//! The `@anthropic-ai/sdk` package of npm.

use crate::sdk::scenarios;

scenarios!(
    "anthropic_node.mjs",
    translated: [
        models, plain, stream, stream_helper, tools, tools_streamed, structured, vision, thinking,
        count_tokens, errors, wrong_key, cancel,
    ],
    native: [any_plain, any_stream],
);
