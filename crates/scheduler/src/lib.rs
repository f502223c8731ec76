//! Runs the dispatcher.
//!
//! An API submits a [`Job`] and gets the reading end of its exchange. A provider connection joins
//! with an [`Offer`] and gets [`Assignment`]s, each with the writing end. In between, the
//! [`Scheduler`] is the only driver of the pure [`dispatch::Dispatcher`]: one short lock for each
//! event, no task hop, no polling. Bytes of answers never pass through it.
//!
//! - [`job`]: jobs, and how they can fail
//! - [`exchange`]: the two ends of a job's answer
//! - [`provider`]: the interface of a provider connection, and the terms on which it serves
//! - [`observer`]: receives the steps of each job
//! - [`service`]: the scheduler itself
//! - [`translate`]: the translation between a job and a provider of another shape
//! - [`resume`]: answers that break off, and that other providers resume
//! - [`status`]: the current state of queues and providers

mod claim;
mod clock;
pub mod exchange;
pub mod job;
mod model_change;
pub mod observer;
pub mod provider;
pub mod resume;
pub mod service;
pub mod status;
pub mod translate;

pub use dispatch::{
    Affinity, CancelReason, Config, Distance, Ending, LeaveReason, NoRoute, Route, Wait,
};
pub use exchange::{Answer, AnswerWriter, Event, Head, WriteError};
pub use job::{Failure, Job, JobRequest, LentFor, Meter, Usage};
pub use observer::{Announcement, JobEnd, JobFacts, Observer, Outcome};
pub use provider::{Assignment, Membership, Offer, Provider, RequestEdit, Terms};
pub use resume::{Break, BreakOutcome, Delivered, NextRequest, NoRequest, Record, Rest};
pub use service::{FleetAccess, Scheduler};
pub use status::{ModelLoad, QueueStatus, RunningJob, Status, WorkerStatus};
pub use translate::{
    AnswerMap, ProviderRequest, Translator, Unreadable, Untranslatable, Untranslated,
};
