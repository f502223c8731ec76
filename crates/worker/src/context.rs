//! The state and settings that all links of one backend to one server share.

use std::{error::Error, sync::Arc, time::Duration};

use http::StatusCode;
use tokio_util::sync::CancellationToken;
use wire::{DialError, DialedLink, dial::PAGE};

use crate::{
    config::{LinkProtocol, ServerTarget},
    dialer::Dialer,
    event::EventSink,
    lent::LentBackend,
    outcome::{LinkEnd, Outcome},
    room::{GiveUpReason, member::RoomMember},
};

/// The state that the links of one backend to one server share.
#[derive(Clone)]
pub(crate) struct LinkContext {
    pub(crate) server: ServerTarget,
    /// The room that the backend is lent to, if any.
    pub(crate) room: Option<Arc<RoomMember>>,
    pub(crate) protocol: LinkProtocol,
    /// The name of the link.
    pub(crate) name: String,
    /// A random id, by which a server recognises a link that is dialled again.
    pub(crate) id: String,
    pub(crate) lent: Arc<LentBackend>,
    pub(crate) dialer: Arc<dyn Dialer>,
    pub(crate) events: EventSink,
    pub(crate) drain_timeout: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) shutdown: CancellationToken,
}

impl LinkContext {
    pub(crate) async fn dial(&self) -> Result<DialedLink, LinkEnd> {
        match self.or_shutdown(self.dialer.dial(&self.server)).await {
            None => Err(LinkEnd::Left(0)),
            Some(dialed) => dialed.map_err(|error| LinkEnd::Again(self.failed(&error))),
        }
    }

    pub(crate) async fn or_shutdown<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.shutdown.cancelled() => None,
            done = work => Some(done),
        }
    }

    fn failed(&self, error: &DialError) -> Outcome {
        match error {
            // A web page comes from something between worker and server, such as a proxy.
            DialError::Refused { body, .. } if body == PAGE => {
                Outcome::Lost { reason: with_cause(error), stood: None }
            }
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
            // A refusal may repeat the URL, and with it the secret.
            _ => {
                let reason = self.server.without_secret(with_cause(error));
                Outcome::Lost { reason, stood: None }
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
