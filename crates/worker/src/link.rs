//! Keeps a link of one backend to one server: dials it again whenever it has ended.

use std::time::Duration;

use protocol::relay::Version;
use tokio::time::sleep;
use tracing::Instrument;
use wire::{DialedLink, dial::jitter};

use crate::{
    config::LinkProtocol,
    context::LinkContext,
    driver::drive,
    event::Event,
    failures::Failures,
    node::{NodeCodec, TaskSlot},
    outcome::{GOOD, LinkEnd, Outcome, Reconnect, WorkerEnd},
    relay::RelayCodec,
    room::GiveUpReason,
    tunnel::{self, TunnelCodec},
};

/// Why a cloud is not lent to a stock server.
const NOT_TOLD_APART: &str = "the server is no Warren, and would ask a cloud as if it were a machine of \
     one's own: it is not lent there";

/// Lends one backend to one server until the worker ends, or until the server is given up.
pub(crate) async fn run(context: LinkContext) -> WorkerEnd {
    let span = tracing::info_span!("link", server = %context.server, name = context.name);
    context.again_and_again().instrument(span).await
}

impl LinkContext {
    async fn again_and_again(self) -> WorkerEnd {
        // After a registration without models, the server would refuse requests that the backend can
        // serve.
        if self.or_shutdown(self.first_offer()).await.is_none() {
            return WorkerEnd::default();
        }
        let mut reconnect = Reconnect::new();
        let mut failures = Failures::default();
        let mut slot = TaskSlot::default();
        loop {
            // Checked between two links, so that a task that has waited too long is not sent over
            // the next one.
            slot.give_up_late();
            let outcome = match self.once(&mut slot).await {
                LinkEnd::Left(cut_off) => return self.left(cut_off + slot.pending()).await,
                LinkEnd::Again(Outcome::Over(why)) => return self.give_up(why),
                LinkEnd::Again(outcome) => outcome,
            };
            let wait = reconnect.after(&outcome, jitter());
            self.report(&outcome, wait, &mut failures);
            if self.or_shutdown(sleep(wait)).await.is_none() {
                return self.left(slot.pending()).await;
            }
        }
    }

    /// One link from dialling to its end. A node carries its `slot` over to the next link.
    async fn once(&self, slot: &mut TaskSlot) -> LinkEnd {
        let protocol = match (&self.protocol, &self.room) {
            (LinkProtocol::Any, Some(room)) => match self.or_shutdown(room.best_protocol()).await {
                None => return LinkEnd::Left(0),
                Some(Err(outcome)) => return LinkEnd::Again(outcome),
                Some(Ok(protocol)) => protocol,
            },
            (protocol, _) => protocol.clone(),
        };
        match (protocol, &self.room) {
            (LinkProtocol::Tunnel, Some(room)) => {
                match self.or_shutdown(tunnel::open(self, room)).await {
                    None => LinkEnd::Left(0),
                    Some(Err(outcome)) => LinkEnd::Again(outcome),
                    Some(Ok(open)) => {
                        let (link, codec) = TunnelCodec::new(self, room, open);
                        drive(self, link, codec).await
                    }
                }
            }
            (LinkProtocol::Node { model }, _) => match self.dial().await {
                Ok(dialed) => {
                    let (link, codec) = NodeCodec::new(self, &model, dialed, slot);
                    drive(self, link, codec).await
                }
                Err(end) => end,
            },
            _ => match self.dial().await {
                Ok(dialed) if self.is_unsafe(&dialed) => {
                    LinkEnd::Again(Outcome::Refused(NOT_TOLD_APART.to_owned()))
                }
                Ok(dialed) => {
                    let (link, codec) = RelayCodec::new(self, dialed);
                    drive(self, link, codec).await
                }
                Err(end) => end,
            },
        }
    }

    /// Whether a cloud would be lent to a server that speaks only the stock protocol. Such a server
    /// would treat it as one of the owner's machines.
    fn is_unsafe(&self, dialed: &DialedLink) -> bool {
        let is_warren = dialed.subprotocol.as_deref().and_then(Version::of).is_some();
        self.lent.backend().is_cloud() && !is_warren
    }

    /// The worker ends: leaves the room, unless it is to stay in it.
    async fn left(&self, cut_off: usize) -> WorkerEnd {
        if let Some(room) = &self.room {
            room.leave().await;
        }
        WorkerEnd { cut_off, gave_up: None }
    }

    fn give_up(&self, why: GiveUpReason) -> WorkerEnd {
        let (server, name) = (self.server.to_string(), self.name.clone());
        self.events.send(&Event::GaveUp { server, name, why: why.clone() });
        WorkerEnd { cut_off: 0, gave_up: Some(why) }
    }

    /// Waits until the backend has been asked once, so that the registration is true.
    async fn first_offer(&self) {
        // Fails only if the sender is gone, and `self.lent` holds it.
        let _ = self.lent.offers().wait_for(|offer| offer.polls > 0).await;
    }

    /// Reports how a link ended. Repeated failures are reported at growing intervals, and not at each
    /// try.
    fn report(&self, outcome: &Outcome, retry_in: Duration, failures: &mut Failures) {
        let (server, name) = (self.server.to_string(), self.name.clone());
        // After a good link, the next failure is reported even if its words are the same.
        if was_good(outcome) {
            failures.over();
        }
        let (reason, is_refusal) = match outcome {
            // Reported by `give_up`.
            Outcome::Over(_) => return,
            Outcome::Refused(reason) | Outcome::Throttled(reason) => (reason, true),
            Outcome::Drained(reason) | Outcome::Spent(reason) | Outcome::Lost { reason, .. } => {
                (reason, false)
            }
        };
        let Some(tries) = failures.count_one(reason) else {
            tracing::debug!(server, name, ?retry_in, "not connected again: {reason}");
            return;
        };
        let reason = reason.clone();
        self.events.send(&match is_refusal {
            true => Event::Refused { server, name, reason, retry_in },
            false => Event::Disconnected { server, name, reason, tries, retry_in },
        });
    }
}

/// Whether there was a link that lasted, or ended in an orderly way.
fn was_good(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Drained(_) | Outcome::Spent(_) => true,
        Outcome::Lost { stood, .. } => stood.is_some_and(|stood| stood >= GOOD),
        Outcome::Over(_) | Outcome::Refused(_) | Outcome::Throttled(_) => false,
    }
}
