//! From a Chat Completions client to a model node: a conversation becomes a task of the node
//! protocol, and the node's text becomes an answer.
//!
//! A task can hold a system message, alternating text, a token limit and a temperature.
//!
//! | Of the request | What becomes of it |
//! | --- | --- |
//! | `messages` of `system` and `developer` | joined by an empty line, wherever they stand |
//! | `messages` of `user` and `assistant` | carried; parts of text are joined |
//! | `max_completion_tokens`, else `max_tokens` | carried; absent: [`DEFAULT_TOKENS`] |
//! | `temperature` | from 0.01 to 0.99 carried, under it 0, over it 0.99; absent: 0, as stock |
//! | `stop` | honoured here: the answer ends before it, and the node is told to stop |
//! | `stream`, `stream_options` | honoured here |
//! | pictures, sound, files, tool calls and results, `tools`, `functions`, `response_format` other than text, `n` over 1, `logprobs`, `audio`, `modalities` other than text, `web_search_options` | refused by name |
//! | everything else (`top_p`, `seed`, penalties, `user`, …) | dropped |
//!
//! An answer always ends with the reason `stop`: a node does not report whether it was cut short.
//! Tokens are estimated.
//!
//! - `request`: from a body to an [`Order`]
//! - `answer`: from text to chunks, or to one completion
//! - `stop`: finds the end of a text

mod answer;
mod request;
mod stop;

pub use answer::{Next, NodeAnswer, answer};
pub use request::{DEFAULT_TOKENS, Order, request};
