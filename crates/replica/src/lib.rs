//! The objects that every member of a workspace cluster has: sessions, projects, teams, members.
//!
//! A plain state machine without socket, task, clock or disk. Its driver
//!
//! 1. calls [`Replica::handle`] with one [`Input`] and the current times, or
//!    [`Replica::handle_timeout`] when a deadline has come;
//! 2. drains [`Replica::poll_output`], carrying out each [`Output`] in order: it stores the facts
//!    of a [`Output::Keep`] in one transaction and answers with [`Input::Kept`];
//! 3. waits for the next input or for [`Replica::poll_timeout`].
//!
//! # The rules
//!
//! A write is an [`Entry`] under a [`Key`], named by its [`Dot`]. A [`Context`] is the set of dots
//! that a member has taken in. Every rule serves one claim: *a member's live entries are a function
//! of the writes whose dots it has noted: for each key the greatest write, nothing where that is a
//! delete.* So merging two members is the union of two sets. The order does not matter, nor does
//! repetition.
//!
//! - [`entry`]: which of two versions is the greater ([`Entry::beats`])
//! - `take`: one entry of another member, taken in
//! - `write`, `own`: writes of this member, and its repeated writes of its own sessions
//! - `held`: versions whose writer's clock is ahead
//! - `tombstones`, `retire`: when tombstones and old incarnations are dropped
//! - `digest`, `ask`, `answer`, `backstop`: how two members become equal
//!
//! # The interface
//!
//! - [`Config`], [`Limits`], [`Rules`]: how it is set up
//! - [`Input`], [`Output`], [`Refused`], [`Notice`]: what goes in and comes out
//! - [`Message`]: what members say to each other; [`encode`](Message::encode) and
//!   [`decode`](Message::decode)
//! - [`Fact`], [`Stored`]: what lies on the disk
//! - [`handover`]: how a session moves to another member
//! - `view`: the shown objects ([`Replica::get`], [`Replica::entries`]), and figures ([`Figures`])

mod answer;
mod ask;
mod backstop;
mod bound;
mod claims;
mod clock;
mod config;
mod context;
mod digest;
mod dot;
pub mod entry;
mod fact;
pub mod handover;
mod held;
mod input;
mod knowledge;
mod link;
mod message;
mod notice;
mod outbox;
mod output;
mod own;
mod print;
mod random;
mod replica;
mod retire;
mod table;
mod take;
mod tombstones;
mod view;
mod write;

#[cfg(test)]
mod tests;

pub use config::{Config, Limits, Rules};
pub use context::{Context, Seen};
pub use dot::{Dot, Incarnation};
pub use entry::{Entry, Key, Kind, NodeId, Rank, Stamp, Version};
pub use fact::{Fact, Stored, Unreadable};
pub use input::{Change, Input, LinkId, Refused};
pub use knowledge::Record;
pub use message::{BadMessage, Batch, Digest, KeyList, LargestDots, Last, Message, Pull};
pub use notice::Notice;
pub use output::Output;
pub use replica::Replica;
pub use table::Layer;
pub use view::Figures;
