//! One caller for each endpoint of a participant, and the life of one: the server calls it while it answers, and retries when it does not.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use backend::{BackendConfig, BackendError, HttpBackend};
use base::{Backoff, ProviderId, RoomId};
use protocol::json::clip;
use rand::RngExt;
use rooms::{Kind, room::ServedParticipant as Participant};
use scheduler::{LeaveReason, Provider, Scheduler};
use tokio::{task::JoinSet, time::sleep};
use tracing::Instrument;

use super::{
    Participants,
    calls::Calls,
    offer::{offer, served},
};
use crate::{
    claims::{Claim, Claims},
    member::{Member, Presence, now_ms},
    notes::Sender,
};

/// How often an endpoint is queried for its models, as a sign of life.
const LOOK: Duration = Duration::from_secs(10);

/// An endpoint is lost after this much silence.
const SILENCE: Duration = Duration::from_secs(30);

/// The delays between retries of an endpoint that does not answer.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));

/// The shortest time between two connections to the same endpoint.
const PAUSE: Duration = Duration::from_secs(1);

/// How many bytes of an endpoint's error are logged.
const MAX_WORDS: usize = 300;

impl Participants {
    /// Calls the endpoints of all participants that have one, until this is dropped.
    pub async fn call_endpoints(self) {
        // One caller for each participant of a room: there are never more callers than
        // participants.
        let callers = Arc::new(Claims::<(RoomId, String)>::default());
        let mut calls = JoinSet::new();
        loop {
            for (room, id) in self.rooms.unserved_endpoints() {
                if let Some(claim) = callers.take_free((room.id().clone(), id.clone())) {
                    let member = Member::new(room, id);
                    calls.spawn(serve(self.scheduler.clone(), member, claim));
                }
            }
            tokio::select! {
                () = self.rooms.endpoint_joined() => {}
                // A participant may have joined again while its old caller was about to end.
                Some(_) = calls.join_next() => {}
            }
        }
    }
}

/// Calls the endpoint of a participant until the participant leaves or no longer has an endpoint.
async fn serve(scheduler: Scheduler, member: Member, claim: Claim<(RoomId, String)>) {
    let room = member.room().id();
    let span = tracing::info_span!("endpoint", %room, participant = member.id());
    let room = Arc::clone(member.room());
    let serving = async {
        tokio::select! {
            () = room.closed() => {}
            () = until_gone(&scheduler, &member, &claim) => {}
        }
    };
    serving.instrument(span).await;
}

async fn until_gone(scheduler: &Scheduler, member: &Member, claim: &Claim<(RoomId, String)>) {
    let mut backoff = RETRY.clone();
    let mut was_down = false;
    while let Some((participant, address, url)) = to_call(member) {
        match answering(url, address).await {
            Ok(backend) => {
                (backoff, was_down) = (RETRY.clone(), false);
                if !connected(scheduler, member, participant, address, backend).await {
                    return;
                }
                sleep(PAUSE).await;
            }
            Err(error) if !std::mem::replace(&mut was_down, true) => {
                tracing::warn!(error = clip(&error, MAX_WORDS), "an endpoint does not answer");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = sleep(backoff.next(rand::rng().random())) => {}
            () = claim.contested() => {}
        }
    }
}

/// The participant and its endpoint, while it has one.
fn to_call(member: &Member) -> Option<(Participant, SocketAddr, String)> {
    let participant = member.served()?;
    let Kind::Endpoint(address) = participant.kind else { return None };
    let url = member.room().participant(member.id())?.endpoint;
    Some((participant, address, url))
}

/// The backend at this URL and this address only, if it answers.
async fn answering(url: String, address: SocketAddr) -> Result<Arc<HttpBackend>, String> {
    let config = BackendConfig { address: Some(address.ip()), ..BackendConfig::new(url) };
    let backend = HttpBackend::new(&config).map_err(|error| error.to_string())?;
    look(&backend).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(backend))
}

/// Checks whether it answers. Any answer counts.
async fn look(backend: &HttpBackend) -> Result<(), BackendError> {
    match backend.models().await {
        Ok(_) | Err(BackendError::NoModels { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Serves an endpoint that answers until it ends. Returns whether to try it again.
async fn connected(
    scheduler: &Scheduler,
    member: &Member,
    participant: Participant,
    address: SocketAddr,
    backend: Arc<HttpBackend>,
) -> bool {
    let id = ProviderId::from_random(rand::rng().random());
    let room = member.room();
    // The participant may have joined again while its endpoint was being checked.
    let Ok(connection) = room.connect_endpoint(member.id(), address, id, now_ms()) else {
        return true;
    };
    let presence = Arc::new(Presence::new(connection));
    let served = served(participant.capabilities);
    let offer = offer(member, &participant, &served);
    tracing::info!(provider = %id, max_concurrent = offer.max_concurrent, "endpoint connected");
    let sender = Arc::new(Sender::new(participant.nickname, Some(member.clone())));
    let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
    let membership = scheduler.join(id, offer, provider);
    let mut calls = Calls::new(membership, Arc::clone(&backend), served, Arc::clone(&presence));
    let (why, reason, may_return) = tokio::select! {
        biased;
        (_, reason) = presence.ended() => (LeaveReason::Closed, reason, false),
        () = calls.serve(&sender) => (LeaveReason::Drained, "drained", true),
        () = presence.changed() => (LeaveReason::Closed, "it joined anew", true),
        () = until_lost(&backend, &presence) => (LeaveReason::HeartbeatLost, "it does not answer", true),
    };
    tracing::info!(provider = %id, reason, "endpoint disconnected");
    calls.leave(sender.notes.take(), why);
    may_return
}

async fn until_lost(backend: &HttpBackend, presence: &Presence) {
    while presence.silence() < SILENCE {
        sleep(LOOK).await;
        if look(backend).await.is_ok() {
            presence.heard();
        }
    }
}
