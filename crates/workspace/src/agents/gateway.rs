//! How an agent uses this server's models, and those of other machines: with a key of its own, so
//! that its usage is counted for its session.

use std::sync::Arc;

use access::{Keys, Moment, credential::new_token};
use base::{KeyId, KeyScope, Secret};
use protocol::workspace::{SessionId, SessionKind, SessionMode};

use crate::{
    host::{EngineHost, SessionModels},
    refusal::Refusal,
    sessions::Facts,
    settings::{AgentSettings, GatewaySlot},
};

/// The prefix of a model's name that says that the model is this server's, or one of its cluster's.
const OWN: &str = "warren:";
/// The prefix of a session's key.
const PREFIX: &str = "ws_";

/// The agents that can use this server: they can be given its address, and speak an API that it serves.
const ABLE: [&str; 6] = ["claude", "codex", "opencode", "opencode-acp", "gemini", "gemini-acp"];

/// The model that an agent uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Model {
    /// A model of the agent's maker, under the login of its user; `None`: the agent chooses the
    /// model.
    Makers(Option<String>),
    /// This server's model of this name.
    Ours(String),
}

impl Model {
    /// The name of the model that a session's agent needs, if it is not one of the agent's maker. `None` after an
    /// error, too: [`Model::of`] reports it.
    pub(crate) fn wanted(settings: &AgentSettings, facts: &Facts) -> Option<String> {
        let is_shell = matches!(facts.kind, SessionKind::Shell { .. });
        if is_shell || facts.mode == SessionMode::Adopted {
            return None;
        }
        match Self::of(settings, facts) {
            Ok(Self::Ours(model)) => Some(model),
            Ok(Self::Makers(_)) | Err(_) => None,
        }
    }

    /// The model of a session. This server's models are refused for agents that cannot use them.
    pub(crate) fn of(settings: &AgentSettings, facts: &Facts) -> Result<Self, Refusal> {
        let named = facts.model.as_ref().or(settings.model.as_ref());
        let own = named.and_then(|name| name.strip_prefix(OWN));
        let model = match (own, named) {
            (Some(own), _) => Self::Ours(own.to_owned()),
            (None, Some(name)) if settings.use_gateway => Self::Ours(name.clone()),
            (None, None) if settings.use_gateway => return Err(unnamed()),
            (None, named) => return Ok(Self::Makers(named.cloned())),
        };
        if settings.acp.contains_key(&facts.provider) {
            return Err(unable(&facts.provider, "its own configuration says where its model is"));
        }
        if !ABLE.contains(&facts.provider.as_str()) {
            return Err(unable(
                &facts.provider,
                "it speaks an API that this server does not serve",
            ));
        }
        Ok(model)
    }
}

/// A key for the models of this server and nothing else. It is removed when this is dropped.
pub(crate) struct SessionKey {
    keys: Keys,
    models: Option<Arc<dyn SessionModels>>,
    id: KeyId,
    secret: Secret,
}

impl SessionKey {
    /// A new key. Its usage is counted for `session:ID`.
    pub(crate) fn new(host: &EngineHost, session: SessionId, model: &str) -> Self {
        Self::with_secret(host, session, model, new_token(PREFIX))
    }

    /// A key with this secret, which an agent may have from an earlier daemon.
    pub(crate) fn with_secret(
        host: &EngineHost,
        session: SessionId,
        model: &str,
        secret: Secret,
    ) -> Self {
        let (keys, models) = (host.keys.clone(), host.models());
        let id = KeyId::from(format!("session:{session}"));
        keys.add_ready_made(id.clone(), &secret, &[KeyScope::Inference], Moment::now());
        if let Some(models) = &models {
            models.begin(&id, session, model);
        }
        Self { keys, models, id, secret }
    }

    /// The key's secret, which is kept for the next daemon.
    pub(crate) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// The settings by which an agent uses this server with this key. It is an error if the
    /// server's address is not known yet.
    pub(crate) fn gateway(
        &self,
        gateway: &GatewaySlot,
        model: &str,
    ) -> Result<session::agent::Gateway, Refusal> {
        let server = gateway.get().ok_or_else(not_known)?;
        Ok(session::agent::Gateway {
            base_url: server.url.trim_end_matches('/').to_owned(),
            key: self.secret.clone(),
            model: model.to_owned(),
        })
    }
}

impl Drop for SessionKey {
    fn drop(&mut self) {
        self.keys.remove_ready_made(&self.id);
        if let Some(models) = &self.models {
            models.end(&self.id);
        }
    }
}

fn unnamed() -> Refusal {
    Refusal::invalid(
        "agents are to think with this server's models, but no model is named: name one for the \
         session (model \"warren:NAME\"), or for all with model in the section [workspace.agents] \
         of the configuration",
    )
}

fn unable(provider: &str, why: &str) -> Refusal {
    Refusal::Invalid(format!(
        "{provider} cannot think with this server's models: {why}; {} can. For {provider} with its \
         own, name a model that does not begin with {OWN:?}, or none, and turn use_gateway off in the \
         section [workspace.agents] of the configuration",
        ABLE.join(", ")
    ))
}

fn not_known() -> Refusal {
    Refusal::Failed(
        "the address at which agents reach this server is not known yet: try again in a moment"
            .to_owned(),
    )
}
