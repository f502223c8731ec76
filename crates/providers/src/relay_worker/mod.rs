//! Workers that dial out to the server (relay protocol).
//!
//! - `accept`: from an HTTP request to a link
//! - `link`: the life of one link: registration, heartbeat, end
//! - `session`: what each message of a worker means
//! - `plain`: answers in JSON messages, as stock workers send them
//! - `frames`: answers in binary frames, as another Warren's workers send them
//! - `sender`: what the scheduler tells a worker
//! - `request`: a request cut into frames
//! - `head`: statuses and headers, checked
//! - `served`: what a worker's backend serves, told or learnt

mod accept;
mod frames;
mod head;
mod link;
mod plain;
mod request;
mod sender;
mod served;
mod session;

use std::{sync::Arc, time::Duration};

use access::LenderRules;
use scheduler::Scheduler;

/// How links to workers are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who is let in: whoever has the worker secret, or a key for lending.
    pub lenders: LenderRules,
    /// How often a worker is pinged. Three such intervals of silence are a lost worker.
    pub heartbeat: Duration,
}

/// All links to workers.
#[derive(Clone)]
pub struct RelayWorkers {
    settings: Arc<Settings>,
    scheduler: Scheduler,
}

impl RelayWorkers {
    /// Links that offer their capacity to `scheduler`.
    pub fn new(settings: Settings, scheduler: Scheduler) -> Self {
        Self { settings: Arc::new(settings), scheduler }
    }
}
