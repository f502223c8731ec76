//! Bare model nodes (node protocol).
//!
//! A node takes conversations, so it is offered as a provider of Chat Completions: it serves any API whose
//! requests can be translated into that shape. The protocol has no message for draining and none for
//! credit. A draining node gets no more tasks and is closed when it is idle; a client that reads too slowly
//! loses its task once the buffer for it is full.
//!
//! - `accept`: from an HTTP request to a registered node, or to a close code
//! - `codec`: tasks out, results in
//! - `task`: one task and its answer
//! - `numbers`: ids of tasks

mod accept;
mod codec;
mod numbers;
mod task;

use std::sync::Arc;

use access::LenderRules;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

use self::numbers::Numbers;
use crate::claims::Claims;

type Name = (String, String);

/// How links to nodes are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The credentials that let a node in: the node token, or a key for lending.
    pub lenders: LenderRules,
}

/// All links to nodes.
#[derive(Clone)]
pub struct ModelNodes {
    settings: Settings,
    scheduler: Scheduler,
    /// The newest link of each node holds its name.
    names: Arc<Claims<Name>>,
    numbers: Arc<Numbers>,
    links: TaskTracker,
}

impl ModelNodes {
    /// Links that offer their capacity to `scheduler`.
    pub fn new(settings: Settings, scheduler: Scheduler) -> Self {
        let numbers = Arc::new(Numbers::from_random(rand::random()));
        let links = TaskTracker::new();
        Self { settings, scheduler, names: Arc::default(), numbers, links }
    }

    /// The same; `links` tracks the tasks of its links, so that a caller can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
