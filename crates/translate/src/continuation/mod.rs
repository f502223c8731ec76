//! Continues an answer whose provider was lost with another provider, so that the client sees one answer.
//!
//! All of it is in the shape of one endpoint, which is the first provider's. [`Delivered`] notes what is passed on to
//! the client. After a loss, [`Delivered::rest`] says what is missing, and [`request`] makes the body for the next
//! provider. [`Seam`] turns that provider's stream into the rest of the first answer, and notes it as well.
//! [`closing`] ends an answer of which only the end is missing.
//!
//! Streams of Chat Completions, Completions, Messages and Responses are continued. Some answers are not, for
//! example inside or after a call of a tool: see [`CannotContinue`].
//!
//! - `delivered`: the part that was delivered so far, and the shape of each endpoint; `seam`: the next provider's
//!   stream as the rest of the first one's
//! - `request`: the bodies for providers that continue; `body`: their edits
//! - `shape`: the trait of shapes; `record`: the notes that all shapes share, and the missing rest
//! - `chat`, `completions`, `messages`, `responses`: one shape each
//! - `chunks`: what Chat Completions and Completions share
//! - `tokens`: the usage of all parts, added up

mod body;
mod chat;
mod chunks;
mod completions;
mod delivered;
mod messages;
mod record;
mod request;
mod responses;
mod seam;
mod shape;
#[cfg(test)]
mod tests;
mod tokens;

pub use delivered::{Delivered, MAX_HALF, MAX_TEXT, closing};
pub use record::{CannotContinue, Rest};
pub use request::{endpoint, may_continue, request, translated};
pub use seam::Seam;
