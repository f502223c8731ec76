//! From an Ollama client's chat to a Chat Completions provider.
//!
//! | In the request | What becomes of it |
//! | --- | --- |
//! | `messages` of `system`, `user`, `assistant` and `tool` | messages; nothing else is a role |
//! | `images` of a message: base64 | parts of its content, as `data:` URLs of the type that the bytes show |
//! | `thinking` of a message | `reasoning_content` |
//! | `tool_calls`: arguments are an object | calls with the arguments as text; without an `id` they get one by their place |
//! | `tool_call_id`, else `tool_name`, else the order | which call a result belongs to |
//! | `tools` | tools |
//! | `format`: `"json"` or a schema | `response_format` |
//! | `think`: a boolean | `enable_thinking` of `chat_template_kwargs`; with `false` thoughts are also left out of the answer |
//! | `think`: `low`, `medium`, `high` | `reasoning_effort` |
//! | `options` | see `ollama::options` |
//! | `stream` | itself; absent, true (the API writes it into the body) |
//! | `keep_alive` and fields not known | dropped |
//!
//! The answer has one JSON object on each line, or is one object. A call comes in one piece.

mod conversation;
mod request;

pub use request::request;

use crate::{
    Context,
    answer::Answer,
    chat::FromChat,
    ollama::{Form, OllamaWriter},
    refusal::ClientNames,
};

/// The client's names of fields, for refusals by a second translation.
pub(crate) const NAMES: ClientNames = ClientNames {
    fields: &[
        ("max_tokens", "options.num_predict"),
        ("stop", "options.stop"),
        ("temperature", "options.temperature"),
        ("top_p", "options.top_p"),
        ("seed", "options.seed"),
        ("frequency_penalty", "options.frequency_penalty"),
        ("presence_penalty", "options.presence_penalty"),
        ("response_format", "format"),
        ("reasoning_effort", "think"),
    ],
    said: "messages",
    origins: request::origins,
};

/// Reads the provider's answer. `request` is the client's own body.
pub fn answer(context: &Context, request: &[u8]) -> impl Answer + use<> {
    FromChat::new(OllamaWriter::new(Form::Chat, context, request))
}

#[cfg(test)]
mod tests;
