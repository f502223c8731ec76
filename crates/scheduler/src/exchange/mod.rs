//! The two ends of a job's answer.
//!
//! The provider's side writes a head, chunks and an end through an [`AnswerWriter`]; the API's
//! side reads them from an [`Answer`]. A writer never waits: it is told how much is held back for
//! the reader, and a reader tells how much it has taken, so that a connection with credit stops a
//! stream at its source. What no credit stops is bounded here.
//!
//! Dropping the [`Answer`] before the end cancels the job at its provider and frees its slot,
//! whatever state it was in. Dropping the writer before the end fails the job. The two need not be
//! on the same machine: whatever carries the writer's calls elsewhere may do so.
//!
//! - [`Answer`]: the API's end
//! - [`AnswerWriter`]: the provider's end
//! - `traffic`: what passes between them
//! - `state`: what lies between them

pub(crate) mod answer;
pub(crate) mod state;
pub(crate) mod traffic;
pub(crate) mod writer;

pub use self::{
    answer::Answer,
    traffic::{CreditSink, ESTIMATED, Event, HELD_BACK, Head, USAGE_HEADER, WriteError},
    writer::AnswerWriter,
};
