//! The programs of the measured sessions: our own, so that they are equally fast everywhere.
//!
//! - [`flood`]: writes a given amount of text
//! - [`keys`]: gives back each key that is typed
//! - [`agent`]: an agent that answers at once, spoken to as Claude Code is
//!
//! A program of a terminal says [`READY`] when it waits for a line to begin, and [`OVER`] when it has
//! written all.

pub(crate) mod agent;
pub(crate) mod flood;
pub(crate) mod keys;

/// The line that a program prints when it can begin.
pub(crate) const READY: &str = "[ready]";

pub(crate) const OVER: &str = "[over]";
