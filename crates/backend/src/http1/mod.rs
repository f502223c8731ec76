//! Plain HTTP/1.1 to one backend, without a task for each connection.
//!
//! The exchange is driven by the task that waits for the answer. Each read of the socket gives one piece of the
//! body, and dropping the answer closes the connection. A pure machine parses the answer: bytes in, head and
//! body out. Connections by TLS are hyper's.
//!
//! - [`AnswerReader`]: an answer, from its bytes; `head` and `body` are its two parts
//! - `request`: the bytes of a request, and how far they are written
//! - `exchange`: one request and its answer on one connection
//! - `pool`: connections that are kept for a while
//! - `client`: sends requests over kept connections, and once more if such a connection had ended

mod answer;
mod body;
mod client;
mod exchange;
mod head;
mod malformed;
mod pool;
mod request;
#[cfg(test)]
mod tests;

pub use self::{
    answer::{AnswerReader, Fed},
    head::{Head, MAX_FIELDS, MAX_HEAD},
    malformed::Malformed,
};
pub(crate) use self::{
    client::Client,
    exchange::{Body, Broken},
    request::Request,
};
