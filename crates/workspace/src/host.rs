//! The parts of the workspace that engines use.

use std::sync::{Arc, OnceLock, Weak};

use access::Keys;
use protocol::workspace::{ProjectId, SessionId, TeamId};
use session::agent::McpServer;

use crate::{
    identity::Member,
    member_tokens::MemberTokens,
    projects::Projects,
    session_models::SessionModels,
    settings::{GatewaySlot, Settings},
};

/// The parts of the workspace that terminals, agents and adopted processes use. An engine knows no
/// session but its own.
pub(crate) struct EngineHost {
    pub(crate) settings: Arc<Settings>,
    pub(crate) supervisor: process::Supervisor,
    pub(crate) keys: Keys,
    pub(crate) projects: Arc<Projects>,
    pub(crate) gateway: GatewaySlot,
    /// Set if the server has models. Weak, because it leads back here.
    pub(crate) models: OnceLock<Weak<dyn SessionModels>>,
    pub(crate) member_tokens: Arc<MemberTokens>,
}

impl EngineHost {
    /// Where the models of this server are, if it has any.
    pub(crate) fn models(&self) -> Option<Arc<dyn SessionModels>> {
        self.models.get().and_then(Weak::upgrade)
    }

    /// The environment that a project gives to its sessions.
    pub(crate) fn project_env(&self, project: Option<ProjectId>) -> Vec<(String, String)> {
        let project = project.and_then(|id| self.projects.get(id).ok());
        project.into_iter().flat_map(|project| project.env).collect()
    }

    /// The MCP server by which a member of a team reaches it.
    pub(crate) fn team_server(&self, team: TeamId, session: SessionId) -> McpServer {
        self.member_tokens.mcp(self.gateway.get(), Member { team, session })
    }
}
