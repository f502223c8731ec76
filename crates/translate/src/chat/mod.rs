//! Answers on their way from any provider's shape to any client's.
//!
//! [`FromProvider`] does the whole conversion: a [`ProviderReader`] reads one provider's shape,
//! whole or as a stream, and passes the parts of the answer to a [`Writer`] for one client's shape:
//!
//! ```text
//! begin, (open, delta…, close)…, then finish or fail
//! ```
//!
//! Parts come one after the other and never interleave. If a backend streams several tool calls at
//! the same time, the later ones wait until the one before them is complete.
//!
//! - `provider`: the conversion from bytes to bytes
//! - `reader`: [`FromChat`], reading Chat Completions with the quirks of its many backends
//! - `writer`: [`Writer`] and the parts of an answer
//! - `chat_writer`: [`ChatStream`] and [`ChatWhole`], writing Chat Completions
//! - [`chunk`]: the chunks and answers on the wire
//! - `content`: the content of a message, thoughts among it
//! - [`parts`]: the order of parts

mod calls;
mod chat_writer;
pub mod chunk;
mod content;
pub mod parts;
mod provider;
mod reader;
mod writer;

pub(crate) use chat_writer::chat_answer;
pub use chat_writer::{ChatStream, ChatWhole};
pub use chunk::Usage;
pub(crate) use provider::not_understood;
pub use provider::{ClientAnswer, FromProvider, ProviderReader};
pub use reader::{FromChat, Reading};
pub use writer::{Finish, Outcome, Part, Writer};
