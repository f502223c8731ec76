//! Bare model nodes (node protocol).
//!
//! A node takes conversations, so it is offered as a provider of Chat Completions and serves any
//! API whose requests translate into that shape. The protocol has no messages for draining and
//! credit. A draining node gets no more tasks and is closed when it is idle; a client that reads
//! too slowly loses its task once the task's buffer is full.
//!
//! - `accept`: turns an HTTP request into a registered node, or refuses it
//! - `codec`: sends tasks, receives results
//! - `task`: one task and its answer; ids of tasks

mod accept;
mod codec;
mod task;

use std::sync::Arc;

use access::LenderRules;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

use self::task::Numbers;
use crate::claims::Claims;

type Name = (String, String);

/// The settings of links to nodes.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The credentials that admit a node: the node token, or a key for lending.
    pub lenders: LenderRules,
}

/// All links to nodes.
#[derive(Clone)]
pub struct ModelNodes {
    settings: Settings,
    scheduler: Scheduler,
    /// The names of nodes; the newest link of a node holds its name.
    names: Arc<Claims<Name>>,
    numbers: Arc<Numbers>,
    links: TaskTracker,
}

impl ModelNodes {
    /// Creates the set of links, which offer their capacity to `scheduler`.
    pub fn new(settings: Settings, scheduler: Scheduler) -> Self {
        let numbers = Arc::new(Numbers::from_random(rand::random()));
        let links = TaskTracker::new();
        Self { settings, scheduler, names: Arc::default(), numbers, links }
    }

    /// Tracks the tasks of the links in `links`, so that a caller can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
