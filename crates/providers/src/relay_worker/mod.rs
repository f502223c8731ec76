//! Workers that dial out to the server (relay protocol).
//!
//! - `accept`: from an HTTP request to a link
//! - `link`: the life of one link: registration, heartbeat, end
//! - `session`: what each message of a worker means
//! - `plain`: answers in JSON messages, as stock workers send them
//! - `place`: where a worker serves: for the whole server, or in one room
//! - `sender`: what the scheduler tells a worker
//! - `request`: a request cut into frames

mod accept;
mod link;
mod place;
mod plain;
mod request;
mod sender;
mod session;

use std::{sync::Arc, time::Duration};

use access::LenderRules;
use rooms::Rooms;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

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
    rooms: Rooms,
    links: TaskTracker,
}

impl RelayWorkers {
    /// Links that offer their capacity to `scheduler`: to all of the server, or in one of `rooms`.
    pub fn new(settings: Settings, scheduler: Scheduler, rooms: Rooms) -> Self {
        Self { settings: Arc::new(settings), scheduler, rooms, links: TaskTracker::new() }
    }

    /// The same; the tasks of its links are among `links`, so that somebody can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
