//! Bare model nodes (node protocol).
//!
//! A node takes conversations, so it is offered as a provider of Chat Completions: any API whose
//! requests can be put into that shape is served by it. There is no word for draining in this
//! protocol, and none for credit: a node that drains is given nothing more and closed when it is
//! idle, and a client that reads too slowly for what is held back for it loses its task.
//!
//! - `accept`: from an HTTP request to a link, or to a close code
//! - `link`: the life of one link: keep-alive, replacement, end
//! - `session`: tasks out, results in
//! - `task`: one task and its answer
//! - `sender`: what the scheduler tells a node
//! - `names`: which link is a node's newest
//! - `numbers`: ids of tasks

mod accept;
mod link;
mod names;
mod numbers;
mod sender;
mod session;
mod task;

use std::sync::Arc;

use access::LenderRules;
use scheduler::Scheduler;
use tokio_util::task::TaskTracker;

use self::{names::Names, numbers::Numbers};

/// How links to nodes are kept.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Who is let in: whoever has the node token, or a key for lending.
    pub lenders: LenderRules,
}

/// All links to nodes.
#[derive(Clone)]
pub struct ModelNodes {
    settings: Settings,
    scheduler: Scheduler,
    names: Arc<Names>,
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

    /// The same; the tasks of its links are among `links`, so that somebody can wait for their end.
    #[must_use]
    pub fn tracked_by(self, links: TaskTracker) -> Self {
        Self { links, ..self }
    }
}
