//! The life of one tunnel.

use std::{pin::pin, sync::Arc, time::Duration};

use base::ProviderId;
use protocol::room::tunnel::close;
use rand::RngExt;
use scheduler::{Gone, Offer, Provider, Scheduler};
use tokio::time::{Instant, sleep};
use tracing::Instrument;
use wire::{Link, Outbox};

use super::{
    offer::{capacity, offer, served},
    sender::Sender,
    session::Session,
};
use crate::member::{Member, Presence, now_ms};

/// A participant that is silent for so long is lost. It pings every 10 s.
const SILENCE: Duration = Duration::from_secs(30);

/// Why a tunnel ends, and what its close says.
type End = (Gone, (u16, &'static str));

/// Serves the tunnel of a participant until it ends. `cancels` means that it can be told to stop.
pub(super) async fn run(
    scheduler: &Scheduler,
    member: Member,
    link: Link,
    outbox: Outbox,
    cancels: bool,
) {
    let id = ProviderId::from_random(rand::rng().random());
    let room = member.room().id();
    let span = tracing::info_span!("participant", %id, %room, participant = member.id());
    serve(scheduler, id, member, link, outbox, cancels).instrument(span).await;
}

async fn serve(
    scheduler: &Scheduler,
    id: ProviderId,
    member: Member,
    link: Link,
    outbox: Outbox,
    cancels: bool,
) {
    let (room, now) = (Arc::clone(member.room()), now_ms());
    let connection = room.connect(member.id(), id, now).ok();
    let Some((participant, connection)) = member.served().zip(connection) else {
        let (code, reason) = close::REMOVED;
        return link.close(code, reason).await;
    };
    let presence = Presence::new(connection);
    let served = served(participant.capabilities);
    // A stock participant cannot be told to stop. One that can be told reports when it has stopped.
    let offer = Offer { lingers: true, ..offer(&member, &participant, served) };
    tracing::info!(max_concurrent = offer.max_concurrent, "participant connected");
    let sender = Arc::new(Sender::new(participant.nickname, member));
    let provider: Arc<dyn Provider> = Arc::<Sender>::clone(&sender);
    let membership = scheduler.join(id, offer, provider);
    let session = Session::new(membership, outbox, served, cancels);
    until_end(link, session, &sender, presence).await;
}

async fn until_end(mut link: Link, mut session: Session, sender: &Sender, presence: Presence) {
    let (why, (code, reason)) = tokio::select! {
        biased;
        close = presence.ended() => (Gone::Closed, close),
        end = serve_frames(&mut link, &mut session, sender, &presence) => end,
    };
    tracing::info!(reason, close = ?link.close_reason(), "participant disconnected");
    // Its jobs and its room first: they should not wait for a goodbye.
    session.leave(sender.notes.take(), why);
    drop(presence);
    link.close(code, reason).await;
}

async fn serve_frames(
    link: &mut Link,
    session: &mut Session,
    sender: &Sender,
    presence: &Presence,
) -> End {
    let mut silence = pin!(sleep(SILENCE));
    loop {
        tokio::select! {
            biased;
            () = sender.notes.woken() => {
                if session.notes(sender.notes.take()) {
                    return (Gone::Drained, close::CLOSING);
                }
            }
            () = presence.changed() => {
                let member = sender.member();
                if let Some(now) = member.served() {
                    let models = member.offered(&now.models);
                    session.changed(models, served(now.capabilities), capacity(&now));
                }
            }
            frame = link.next() => match frame {
                Ok(Some(frame)) => {
                    presence.heard();
                    session.frame(frame);
                }
                Ok(None) => return (Gone::Closed, close::CLOSING),
                Err(error) => {
                    tracing::warn!(%error, "the participant's tunnel broke");
                    return (Gone::Closed, close::PROTOCOL_ERROR);
                }
            },
            () = &mut silence => {
                let lost = link.heard() + SILENCE;
                if lost <= Instant::now() {
                    return (Gone::HeartbeatLost, close::PING_LAPSE);
                }
                silence.as_mut().reset(lost);
            }
        }
    }
}
