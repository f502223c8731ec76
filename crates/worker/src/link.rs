//! One link to one server, again and again.

use std::{error::Error, sync::Arc, time::Duration};

use http::StatusCode;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use wire::{DialError, DialedLink, dial::jitter};

use crate::{
    config::ServerTarget,
    dialer::Dialer,
    event::{Event, Teller},
    lent::Lent,
    node::{self, Work},
    reconnect::{Outcome, Reconnect},
    room::{GiveUpReason, InRoom},
    serving::{Ending, Serving},
    tunnel,
    worker::WorkerEnd,
};

/// What is spoken on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// The relay protocol.
    Relay,
    /// The node protocol, for one model.
    Node { model: String },
    /// The protocol of a stock participant.
    Tunnel,
    /// In a room: what the server understands best.
    Any,
}

/// Lends one backend to one server until the worker ends.
#[derive(Clone)]
pub(crate) struct LinkLoop {
    pub(crate) server: ServerTarget,
    /// The room that it is for, if it is for one.
    pub(crate) room: Option<Arc<InRoom>>,
    pub(crate) speaks: Speaks,
    /// The name of the link.
    pub(crate) name: String,
    pub(crate) lent: Arc<Lent>,
    pub(crate) dialer: Arc<dyn Dialer>,
    pub(crate) teller: Teller,
    pub(crate) drain_timeout: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) shutdown: CancellationToken,
}

impl LinkLoop {
    /// Runs until the shutdown, or until there is no use in going on.
    pub(crate) async fn run(self) -> WorkerEnd {
        if self.or_shutdown(self.first_offer()).await.is_none() {
            return WorkerEnd::default();
        }
        let mut reconnect = Reconnect::new();
        let mut refused = None;
        let mut work = Work::default();
        loop {
            work.give_up_late();
            let outcome = match self.once(&mut work).await {
                Ending::Left(cut_off) => return self.left(cut_off + work.pending()).await,
                Ending::Again(Outcome::Over(why)) => return self.give_up(why),
                Ending::Again(outcome) => outcome,
            };
            let wait = reconnect.after(&outcome, jitter());
            self.tell(&outcome, wait, &mut refused);
            if self.or_shutdown(sleep(wait)).await.is_none() {
                return self.left(work.pending()).await;
            }
        }
    }

    /// One link from dialling to its end. `work` is what a node carries over to the next link.
    async fn once(&self, work: &mut Work) -> Ending {
        let speaks = match (&self.speaks, &self.room) {
            (Speaks::Any, Some(room)) => match self.or_shutdown(room.look()).await {
                None => return Ending::Left(0),
                Some(Err(outcome)) => return Ending::Again(outcome),
                Some(Ok(speaks)) => speaks,
            },
            (speaks, _) => speaks.clone(),
        };
        match (speaks, &self.room) {
            (Speaks::Tunnel, Some(room)) => tunnel::once(self, room).await,
            (Speaks::Node { model }, _) => match self.dial().await {
                Ok(dialed) => node::Serving::new(self, &model, dialed, work).run().await,
                Err(ending) => ending,
            },
            _ => match self.dial().await {
                Ok(dialed) => Serving::new(self, dialed).run().await,
                Err(ending) => ending,
            },
        }
    }

    async fn dial(&self) -> Result<DialedLink, Ending> {
        match self.or_shutdown(self.dialer.dial(&self.server)).await {
            None => Err(Ending::Left(0)),
            Some(dialed) => dialed.map_err(|error| Ending::Again(self.failed(&error))),
        }
    }

    /// The worker ends; who should not stay in the room, leaves it.
    async fn left(&self, cut_off: usize) -> WorkerEnd {
        if let Some(room) = &self.room {
            room.leave().await;
        }
        WorkerEnd { cut_off, gave_up: None }
    }

    fn give_up(&self, why: GiveUpReason) -> WorkerEnd {
        let (server, name) = (self.server.to_string(), self.name.clone());
        self.teller.tell(&Event::GaveUp { server, name, why: why.clone() });
        WorkerEnd { cut_off: 0, gave_up: Some(why) }
    }

    fn failed(&self, error: &DialError) -> Outcome {
        match error {
            DialError::Refused { status, .. }
                if self.room.is_some() && *status == StatusCode::NOT_FOUND =>
            {
                Outcome::Over(GiveUpReason::NoRoom)
            }
            DialError::Refused { status, .. }
                if self.room.is_some() && *status == StatusCode::UNAUTHORIZED =>
            {
                Outcome::Over(GiveUpReason::Password)
            }
            DialError::Refused { status, .. }
                if matches!(*status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) =>
            {
                Outcome::Refused(format!("the server refused the secret ({status})"))
            }
            // A refusal may repeat the URL that was asked for.
            _ => {
                let reason = self.server.without_secret(with_cause(error));
                Outcome::Lost { reason, stood: None }
            }
        }
    }

    /// The backend has been asked once, so that the registration is true.
    async fn first_offer(&self) {
        // Fails only without a sender, and the backend's keeper is one.
        let _ = self.lent.offers().wait_for(|offer| offer.polls > 0).await;
    }

    pub(crate) async fn or_shutdown<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            done = work => Some(done),
        }
    }

    /// Tells how a link ended; a refusal only when it is a new one.
    fn tell(&self, outcome: &Outcome, retry_in: Duration, refused: &mut Option<String>) {
        let (server, name) = (self.server.to_string(), self.name.clone());
        match outcome {
            // Told where it is given up.
            Outcome::Over(_) => {}
            Outcome::Refused(reason) | Outcome::Throttled(reason)
                if refused.as_ref() == Some(reason) =>
            {
                tracing::debug!(server, name, ?retry_in, "refused again: {reason}");
            }
            Outcome::Refused(reason) | Outcome::Throttled(reason) => {
                *refused = Some(reason.clone());
                let reason = reason.clone();
                self.teller.tell(&Event::Refused { server, name, reason, retry_in });
            }
            Outcome::Drained(reason) | Outcome::Spent(reason) | Outcome::Lost { reason, .. } => {
                *refused = None;
                let reason = reason.clone();
                self.teller.tell(&Event::Disconnected { server, name, reason, retry_in });
            }
        }
    }
}

pub(crate) fn with_cause(error: &DialError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
