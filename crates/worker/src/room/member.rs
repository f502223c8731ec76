//! A backend as a member of one room, over all its connections.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use backend::NotABackend;
use base::{Endpoint, Secret};
use protocol::{
    relay::WorkerParticipant,
    room::{Capabilities, Capability, plane::PutParticipant},
};
use tokio::time::timeout;

use super::{
    JoinRoom,
    plane::{HeartbeatFailure, JoinAnswer, Plane},
};
use crate::{
    config::{LinkProtocol, ServerTarget},
    event::Event,
    lent::{LentBackend, Offer},
    outcome::Outcome,
};

/// How long to wait for the server's answer when a participant leaves.
const GOODBYE: Duration = Duration::from_secs(5);

/// A backend's identity in a room, and the token that the server has given it.
#[derive(Debug)]
pub(crate) struct RoomMember {
    join: Arc<JoinRoom>,
    password: Option<Secret>,
    plane: Plane,
    session_token: Mutex<Option<Secret>>,
    /// Whether it has joined the room, and so may have to leave.
    was_in: AtomicBool,
}

impl RoomMember {
    pub(crate) fn new(join: Arc<JoinRoom>, server: &ServerTarget) -> Result<Self, NotABackend> {
        let plane = Plane::new(server, &join.code)?;
        let session_token = Mutex::new(join.session_token.clone());
        let password = server.secret.clone().filter(|secret| !secret.expose().is_empty());
        Ok(Self { join, password, plane, session_token, was_in: AtomicBool::new(false) })
    }

    /// The best protocol that the room's server understands.
    pub(crate) async fn best_protocol(&self) -> Result<LinkProtocol, Outcome> {
        let summary = self.plane.summary().await?;
        Ok(if summary.spoken_code.is_some() { LinkProtocol::Relay } else { LinkProtocol::Tunnel })
    }

    /// Notes that it has joined. From now on, `token` proves its identity.
    pub(crate) fn joined(&self, token: Option<Secret>) {
        self.was_in.store(true, Ordering::Relaxed);
        if token.is_some() {
            *self.token() = token;
        }
    }

    /// Leaves the room, unless it is to stay or has never joined.
    pub(crate) async fn leave(&self) {
        if self.join.stay || !self.was_in.load(Ordering::Relaxed) {
            return;
        }
        let token = self.token().clone();
        let leaving = self.plane.leave(&self.join.id, token.as_ref());
        let left = timeout(GOODBYE, leaving).await;
        if let Err(why) = left.unwrap_or_else(|_| Err("it did not answer".to_owned())) {
            tracing::warn!("the room was not told that this participant leaves: {why}");
        }
    }

    /// The member's description of itself, in a relay worker's form.
    pub(crate) fn participant(&self) -> WorkerParticipant {
        let JoinRoom { id, nickname, specs, config, .. } = &*self.join;
        WorkerParticipant {
            id: id.clone(),
            nickname: nickname.clone(),
            specs: specs.clone(),
            config: config.clone(),
            session_token: self.token().as_ref().map(|token| token.expose().to_owned()),
        }
    }

    /// Joins as a stock participant does, with this model.
    pub(crate) async fn put(
        &self,
        lent: &LentBackend,
        offer: &Offer,
        model: &str,
    ) -> Result<JoinAnswer, Outcome> {
        let WorkerParticipant { nickname, specs, config, session_token, .. } = self.participant();
        let body = PutParticipant {
            nickname,
            model: model.to_owned(),
            endpoint: endpoint(lent),
            password: self.password.as_ref().map(|password| password.expose().to_owned()),
            specs: Some(specs),
            config: Some(config).filter(|config| !config.is_empty()),
            capabilities: Some(capabilities(offer)),
            max_concurrent: Some(lent.max_concurrent()),
            session_token,
        };
        self.plane.put(&self.join.id, &body).await
    }

    /// Sends a heartbeat of the participant.
    pub(crate) async fn heartbeat(&self) -> Result<(), HeartbeatFailure> {
        self.plane.heartbeat(&self.join.id).await
    }

    pub(crate) fn joined_event(
        &self,
        server: String,
        name: String,
        room: String,
        id: Option<String>,
        tunnel: bool,
    ) -> Event {
        Event::Joined {
            server,
            name,
            room,
            participant_id: id.unwrap_or_else(|| self.join.id.clone()),
            session_token: self.token().clone(),
            tunnel,
        }
    }

    /// The room's code, as it was given.
    pub(crate) fn code(&self) -> &str {
        &self.join.code
    }

    fn token(&self) -> MutexGuard<'_, Option<Secret>> {
        self.session_token.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A URL for the backend. Servers require one, but never call it.
fn endpoint(lent: &LentBackend) -> String {
    match lent.backend().label() {
        "demo" => "http://demo.invalid/".to_owned(),
        host => format!("http://{host}/"),
    }
}

fn capabilities(offer: &Offer) -> Capabilities {
    let capability = |endpoint| match offer.endpoints {
        None => Capability::Unknown,
        Some(served) if served.contains(endpoint) => Capability::Supported,
        Some(_) => Capability::Unsupported,
    };
    Capabilities {
        open_responses: capability(Endpoint::Responses),
        chat_completions: capability(Endpoint::ChatCompletions),
    }
}
