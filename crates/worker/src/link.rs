//! One link to one server, again and again.

use std::{error::Error, sync::Arc, time::Duration};

use http::StatusCode;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use wire::{DialError, dial::jitter};

use crate::{
    config::ServerTarget,
    dialer::Dialer,
    event::{Event, Teller},
    lent::Lent,
    node,
    reconnect::{Outcome, Reconnect},
    serving::{Ending, Serving},
};

/// What is spoken on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Speaks {
    /// The relay protocol.
    Relay,
    /// The node protocol, for one model.
    Node { model: String },
}

/// Lends one backend to one server until the worker ends.
#[derive(Clone)]
pub(crate) struct LinkLoop {
    pub(crate) server: ServerTarget,
    pub(crate) speaks: Speaks,
    /// The name of the link.
    pub(crate) name: String,
    pub(crate) lent: Arc<Lent>,
    pub(crate) dialer: Arc<dyn Dialer>,
    pub(crate) teller: Teller,
    pub(crate) drain_timeout: Duration,
    pub(crate) shutdown: CancellationToken,
}

impl LinkLoop {
    /// Runs until the shutdown, and returns how many jobs it cut off.
    pub(crate) async fn run(self) -> usize {
        if self.or_shutdown(self.first_offer()).await.is_none() {
            return 0;
        }
        let mut reconnect = Reconnect::new();
        let mut refused = None;
        loop {
            let outcome = match self.once().await {
                Ending::Left(cut_off) => return cut_off,
                Ending::Again(outcome) => outcome,
            };
            let wait = reconnect.after(&outcome, jitter());
            self.tell(&outcome, wait, &mut refused);
            if self.or_shutdown(sleep(wait)).await.is_none() {
                return 0;
            }
        }
    }

    /// One link from dialling to its end.
    async fn once(&self) -> Ending {
        match self.or_shutdown(self.dialer.dial(&self.server)).await {
            None => Ending::Left(0),
            Some(Ok(dialed)) => match &self.speaks {
                Speaks::Relay => Serving::new(self, dialed).run().await,
                Speaks::Node { model } => node::Serving::new(self, model, dialed).run().await,
            },
            Some(Err(error)) => Ending::Again(self.failed(&error)),
        }
    }

    fn failed(&self, error: &DialError) -> Outcome {
        match error {
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

    async fn or_shutdown<T>(&self, work: impl Future<Output = T>) -> Option<T> {
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
            Outcome::Refused(reason) if refused.as_ref() == Some(reason) => {
                tracing::debug!(server, name, ?retry_in, "refused again: {reason}");
            }
            Outcome::Refused(reason) => {
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

fn with_cause(error: &DialError) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
