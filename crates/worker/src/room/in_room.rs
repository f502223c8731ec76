//! One room of one server, over all its connections.

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
    HeartbeatFailed, JoinRoom,
    plane::{Joined, Plane},
};
use crate::{
    config::ServerTarget,
    event::Event,
    lent::{Lent, Offer},
    link::{LinkLoop, Speaks},
    reconnect::Outcome,
};

/// How long a server may take to let a participant go.
const GOODBYE: Duration = Duration::from_secs(5);

/// A room, who a backend is in it, and what its server has given it.
#[derive(Debug)]
pub(crate) struct InRoom {
    join: Arc<JoinRoom>,
    password: Option<Secret>,
    plane: Plane,
    session: Mutex<Option<Secret>>,
    /// Whether it has been in the room, and so may have to leave.
    was_in: AtomicBool,
}

impl InRoom {
    pub(crate) fn new(join: Arc<JoinRoom>, server: &ServerTarget) -> Result<Self, NotABackend> {
        let plane = Plane::new(server, &join.code)?;
        let session = Mutex::new(join.session_token.clone());
        let password = server.secret.clone().filter(|secret| !secret.expose().is_empty());
        Ok(Self { join, password, plane, session, was_in: AtomicBool::new(false) })
    }

    /// What the room's server understands best.
    pub(crate) async fn look(&self) -> Result<Speaks, Outcome> {
        let summary = self.plane.summary().await?;
        Ok(if summary.spoken_code.is_some() { Speaks::Relay } else { Speaks::Tunnel })
    }

    /// It is in the room, and this shows from now on that it is itself.
    pub(crate) fn joined(&self, session: Option<Secret>) {
        self.was_in.store(true, Ordering::Relaxed);
        if session.is_some() {
            *self.session() = session;
        }
    }

    /// Leaves the room, unless it is to stay, or was never there.
    pub(crate) async fn leave(&self) {
        if self.join.stay || !self.was_in.load(Ordering::Relaxed) {
            return;
        }
        let session = self.session().clone();
        let leaving = self.plane.leave(&self.join.id, session.as_ref());
        let left = timeout(GOODBYE, leaving).await;
        if let Err(why) = left.unwrap_or_else(|_| Err("it did not answer".to_owned())) {
            tracing::warn!("the room was not told that this participant leaves: {why}");
        }
    }

    /// Who it is, as a relay worker says it.
    pub(crate) fn participant(&self) -> WorkerParticipant {
        let JoinRoom { id, nickname, specs, config, .. } = &*self.join;
        WorkerParticipant {
            id: id.clone(),
            nickname: nickname.clone(),
            specs: specs.clone(),
            config: config.clone(),
            session_token: self.session().as_ref().map(|token| token.expose().to_owned()),
        }
    }

    /// Joins as a stock participant does, with this model.
    pub(crate) async fn put(
        &self,
        lent: &Lent,
        offer: &Offer,
        model: &str,
    ) -> Result<Joined, Outcome> {
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

    /// Says that the participant is there.
    pub(crate) async fn heartbeat(&self) -> Result<(), HeartbeatFailed> {
        self.plane.heartbeat(&self.join.id).await
    }

    /// The event that it is in the room now.
    pub(crate) fn event(
        &self,
        link: &LinkLoop,
        room: String,
        id: Option<String>,
        tunnel: bool,
    ) -> Event {
        Event::Joined {
            server: link.server.to_string(),
            name: link.name.clone(),
            room,
            participant_id: id.unwrap_or_else(|| self.join.id.clone()),
            session_token: self.session().clone(),
            tunnel,
        }
    }

    /// The room's code, as it was given.
    pub(crate) fn code(&self) -> &str {
        &self.join.code
    }

    fn session(&self) -> MutexGuard<'_, Option<Secret>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the backend is. Servers want a URL, and call it never.
fn endpoint(lent: &Lent) -> String {
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
