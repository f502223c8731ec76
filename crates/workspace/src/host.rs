//! The parts of the workspace that engines use.

use std::sync::{Arc, OnceLock, Weak};

use access::Keys;
use base::KeyId;
use futures_util::future::BoxFuture;
use protocol::workspace::{ProjectId, SessionId, TeamId};
use session::agent::McpServer;

use crate::{
    identity::Member,
    member_tokens::MemberTokens,
    projects::Projects,
    settings::{GatewaySlot, Settings},
};

/// Where the models are that agents name with `warren:`: at this server, or on other machines.
pub trait SessionModels: Send + Sync {
    /// Looks for a model, for a new session.
    ///
    /// # Errors
    /// The reason, for people, if no machine has such a model.
    fn find<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Notes that requests with this key are for this model, wherever it is, until [`SessionModels::end`].
    fn begin(&self, key: &KeyId, session: SessionId, model: &str);

    /// Forgets a key that has ended, and ends what was made for it on other machines.
    fn end(&self, key: &KeyId);
}

/// The parts of the workspace that terminals, agents and adopted processes use. An engine knows no
/// session but its own.
pub(crate) struct EngineHost {
    pub(crate) settings: Arc<Settings>,
    pub(crate) supervisor: process::Supervisor,
    pub(crate) keys: Keys,
    pub(crate) projects: Arc<Projects>,
    pub(crate) gateway: GatewaySlot,
    /// Set if the server has models. Weak, because it leads back to this workspace.
    pub(crate) models: OnceLock<Weak<dyn SessionModels>>,
    pub(crate) member_tokens: Arc<MemberTokens>,
}

impl EngineHost {
    /// The models that agents name with `warren:`, if the server has any.
    pub(crate) fn models(&self) -> Option<Arc<dyn SessionModels>> {
        self.models.get().and_then(Weak::upgrade)
    }

    /// The environment that a project gives to its sessions.
    pub(crate) fn project_env(&self, project: Option<ProjectId>) -> Vec<(String, String)> {
        let project = project.and_then(|id| self.projects.get(id).ok());
        project.into_iter().flat_map(|project| project.env).collect()
    }

    /// The MCP server by which a member of a team reaches the team.
    pub(crate) fn team_server(&self, team: TeamId, session: SessionId) -> McpServer {
        self.member_tokens.mcp(self.gateway.get(), Member { team, session })
    }
}
