//! Workers that dial out to the server (relay protocol).
//!
//! - `accept`: turns an HTTP request into a link
//! - `register`: turns a worker's first message into a registered worker
//! - `codec`: a worker's messages and frames, in both forms
//! - `model_changes`: the loads and unloads of models that a worker has begun
//! - `plain`: answers in JSON messages, as stock workers send them
//! - `scope`: the scope that a worker serves: the whole server, or one room
//! - `sender`: the scheduler's side of a worker
//! - `request`: a request cut into frames

mod accept;
mod codec;
mod model_changes;
mod plain;
mod register;
mod request;
mod scope;
mod sender;

use std::{sync::Arc, time::Duration};

use access::LenderRules;
use rooms::Rooms;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

use crate::claims::Claims;

/// The settings of links to workers.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The credentials that admit a worker: the worker secret, or a key for lending.
    pub lenders: LenderRules,
    /// The interval of pings to a worker. After three silent intervals it is lost.
    pub heartbeat: Duration,
}

/// All links to workers. Unlike a model node, a worker may be in a room, and its link has a name.
#[derive(Clone)]
pub struct RelayWorkers {
    settings: Arc<Settings>,
    scheduler: Scheduler,
    rooms: Rooms,
    links: TaskTracker,
    /// The names of links. A link that is dialled again replaces the older one at once.
    names: Arc<Claims<String>>,
}

impl RelayWorkers {
    /// Creates the set of links, which offer their capacity to `scheduler`: to the whole server, or
    /// in one of `rooms`.
    pub fn new(settings: Settings, scheduler: Scheduler, rooms: Rooms) -> Self {
        let (links, names) = (TaskTracker::new(), Arc::default());
        Self { settings: Arc::new(settings), scheduler, rooms, links, names }
    }

    /// Tracks the tasks of the links in `links`, so that a caller can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
