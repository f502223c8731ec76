//! Which provider serves which job, and when.
//!
//! A plain state machine: it owns every decision of queueing, routing, requeueing, timing out and
//! draining, and no socket, task, clock or channel. The `scheduler` is its only driver:
//!
//! 1. [`Dispatcher::handle`] one [`Input`] with the current time, or [`Dispatcher::handle_timeout`]
//!    when a deadline has come;
//! 2. [`Dispatcher::poll_output`] until it is empty, carrying out each [`Output`] in order;
//! 3. wait for the next input or for [`Dispatcher::poll_timeout`].
//!
//! It has never heard of JSON, HTTP or a protocol: a model is a name, a body is a size, a
//! conversation is a hash that the caller made.

mod input;
mod output;

pub use input::{Affinity, Gone, Input, JobSpec, Offer, Verdict, Waiting};
pub use output::{CancelReason, Ending, Output};
