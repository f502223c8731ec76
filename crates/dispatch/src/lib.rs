//! Which provider serves which job, and when.
//!
//! A plain state machine: it makes every decision on queueing, routing, requeueing, time-outs and
//! draining, and has no socket, task, clock or channel. The `scheduler` is its only driver:
//!
//! 1. [`Dispatcher::handle`] one [`Input`] with the current time, or [`Dispatcher::handle_timeout`]
//!    when a deadline has come;
//! 2. [`Dispatcher::poll_output`] until it is empty, carrying out each [`Output`] in order;
//! 3. wait for the next input or for [`Dispatcher::poll_timeout`].
//!
//! It knows nothing of JSON, HTTP or protocols: a model is a name, a body is a size, a prompt is
//! the hashes of how it begins.
//!
//! - [`Config`]: limits and delays
//! - [`Affinity`]: how a prompt begins
//! - [`input`](Input), [`output`](Output): events in, actions out
//! - [`Dispatcher`]: the state machine; [`view`](ProviderView): views of its state
//! - [`route`]: the choice among several free providers

mod affinity;
mod config;
mod dispatcher;
mod distance;
mod health;
mod input;
mod job;
mod output;
mod provider;
mod providers;
mod queue;
mod readiness;
pub mod route;
mod speed;
mod timers;
mod unloaded;
mod view;

#[cfg(test)]
mod fixture;

pub use affinity::{Affinity, Head};
pub use config::Config;
pub use dispatcher::Dispatcher;
pub use distance::{Distance, NoRoute, Route};
pub use input::{BlockedOn, Input, JobSpec, LeaveReason, Offer, Resumable, Unloaded, Verdict};
pub use output::{CancelReason, Ending, Output};
pub use route::{Candidate, Known, LeastLoaded, Policy, PrefixAffinity, Start};
pub use view::{Loading, ProviderView, QueueView, Wait};
