//! The two ends of a job's answer.
//!
//! The provider's side writes a head, chunks and an end through an [`AnswerWriter`]; the API's side
//! reads them from an [`Answer`]. A writer never waits: each write returns how much is held back
//! for the reader. The reader returns credit for what it has taken, and a provider without credit
//! stops the stream at its source. For protocols without credit, the exchange bounds the held-back
//! bytes itself.
//!
//! Dropping the [`Answer`] before the end cancels the job at its provider and frees its slot,
//! whatever state it was in. Dropping the writer before the end fails the job. The two ends need
//! not be on the same machine: a link may carry the writer's calls to another.
//!
//! - [`Answer`]: the API's end
//! - [`AnswerWriter`]: the provider's end
//! - `traffic`: the types that pass between them
//! - `state`: the state that both ends share
//! - `rest`: answers that break off, and the rest of them that another provider writes

pub(crate) mod answer;
mod rest;
pub(crate) mod state;
pub(crate) mod traffic;
pub(crate) mod writer;

pub use self::{
    answer::Answer,
    rest::Seam,
    traffic::{CreditSink, ESTIMATED, Event, HELD_BACK, Head, USAGE_HEADER, WriteError},
    writer::AnswerWriter,
};
