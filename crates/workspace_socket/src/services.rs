//! The services behind requests.

use std::sync::Arc;

use files::{Git, Watches};
use tokio::sync::Semaphore;
use workspace::{Audit, Events, GatewaySlot, MemberTokens, NodeSlot, Projects, Sessions};
use workspace_teams::TeamRequests;

use crate::{membership::Membership, moving::Moves, project_files::ProjectFiles};

/// The most projects that are watched at the same time, for all clients.
pub(crate) const WATCHES: usize = 256;

/// The parts of the workspace that clients can reach. A handler takes the one that it needs.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) sessions: Sessions,
    pub(crate) projects: Arc<Projects>,
    pub(crate) teams: TeamRequests,
    pub(crate) member_tokens: Arc<MemberTokens>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) events: Events,
    pub(crate) files: Arc<ProjectFiles>,
    pub(crate) git: Git,
    pub(crate) watches: WatchBudget,
    pub(crate) node: Node,
    pub(crate) membership: Arc<Membership>,
    pub(crate) moves: Arc<Moves>,
    /// The node id that sessions and projects show.
    pub(crate) shown_node: NodeSlot,
}

/// The bounds of all clients' watches together.
#[derive(Clone)]
pub(crate) struct WatchBudget {
    pub(crate) directories: Arc<Watches>,
    pub(crate) projects: Arc<Semaphore>,
}

impl Default for WatchBudget {
    fn default() -> Self {
        Self { directories: Arc::default(), projects: Arc::new(Semaphore::new(WATCHES)) }
    }
}

/// This machine, as a cluster would know it.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) gateway: GatewaySlot,
}
