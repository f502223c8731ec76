//! How an agent thinks with this server's models: under a key of its own, so that what it uses is
//! counted for its session.

use access::{Keys, Moment, credential::new_token};
use base::{KeyId, KeyScope, Secret};
use protocol::workspace::SessionId;

use crate::{
    refusal::Refusal,
    sessions::Facts,
    settings::{AgentSettings, GatewaySlot},
};

/// What a model's name begins with that is one of this server's.
const OWN: &str = "warren:";
/// What the key of a session begins with.
const PREFIX: &str = "ws_";

/// Who can be told where its model is, in a form that this server speaks.
const ABLE: [&str; 4] = ["claude", "codex", "opencode", "opencode-acp"];

/// The model that an agent is to think with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Model {
    /// Its maker's, under the login of its user; its name, unless it chooses.
    Makers(Option<String>),
    /// This server's of this name.
    Ours(String),
}

impl Model {
    /// Which model a session is to have. One of ours is refused for agents that cannot have it.
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

/// A key for the models of this server and nothing else, which ends when this is dropped.
pub(crate) struct SessionKey {
    keys: Keys,
    id: KeyId,
    secret: Secret,
}

impl SessionKey {
    /// A new key. What is done with it is counted for `session:ID`.
    pub(crate) fn new(keys: &Keys, session: SessionId) -> Self {
        let id = KeyId::from(format!("session:{session}"));
        let secret = new_token(PREFIX);
        keys.add_ready_made(id.clone(), &secret, &[KeyScope::Inference], Moment::now());
        Self { keys: keys.clone(), id, secret }
    }

    /// What an agent of this key is started with.
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
