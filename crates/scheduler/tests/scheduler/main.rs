//! The scheduler and its exchanges, under paused time.

mod cancel;
mod flow;
mod kit;
mod remote;
mod requeue;
mod timeouts;
