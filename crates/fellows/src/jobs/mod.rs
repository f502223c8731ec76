//! Jobs that go to a fellow's worker, and jobs of fellows for the workers of this server.
//!
//! The job's *home* is the server that its client is connected to: it has the place in the queue, the key, the budget and the row of
//! the ledger. To its scheduler a fellow's worker is a provider like any other ([`seat`]). The serving server submits
//! the job to its own scheduler, pinned to that worker and `lent` ([`serving`]): it queues nowhere, and no observer
//! that counts usage hears of it.
//!
//! - [`seat`]: a fellow's worker as a provider
//! - `asking`: one job at a fellow
//! - [`serving`]: one job of a fellow
//! - `request`, `answer`: what goes over their stream

mod answer;
mod asking;
mod request;
pub(crate) mod seat;
pub(crate) mod serving;
