//! An answer whose provider was lost: how another one goes on with it, so that the client sees one answer.
//!
//! All of it is in the shape of one endpoint: that of the first provider. [`Delivered`] notes what passes on to the
//! client. After a loss [`Delivered::rest`] says what is missing; [`request`] makes the body for a provider that goes
//! on; [`Seam`] makes the rest of the first answer of what that provider streams, and goes on noting; [`closing`] ends
//! an answer of which only its end is missing.
//!
//! Chat Completions, Completions, Messages and Responses are continued, as streams. An answer is not continued
//! inside or after a call of a tool, nor where its rest cannot be had from the middle: see [`CannotContinue`].
//!
//! - `delivered`: the part that passed on so far, and the shape of each endpoint; `seam`: the next provider's stream as the rest of the first one's
//! - `request`: the bodies for providers that go on; `body`: their edits
//! - `shape`: the trait of shapes; `record`: the notes of all of them, the
//!   missing rest, and why it cannot be had
//! - `chat`, `completions`, `messages`, `responses`: one shape each
//! - `chunks`: what Chat Completions and Completions share
//! - `tokens`: usage, added up

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
