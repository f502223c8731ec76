//! Refusals of tunnels, in the words of stock servers.

use std::time::Duration;

use http::{HeaderValue, Response, StatusCode, header};
use protocol::{
    json::clip,
    room::plane::{ErrorCode, ErrorEnvelope, Meta, PlaneError},
};
use rooms::{EntryError, RoomError};
use wire::UpgradeError;

/// The most bytes of an error that are logged: it may contain a stranger's text.
const MAX_WORDS: usize = 200;

/// Why a tunnel is refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The request has no token.
    #[error("the tunnel token is missing: join, and connect to the tunnel's URL with ?token=")]
    NoToken,
    /// There is no such room, or too many codes were tried.
    #[error(transparent)]
    Room(#[from] EntryError),
    /// There is no such participant, or its token is not valid.
    #[error(transparent)]
    Participant(#[from] RoomError),
    /// The request is not a WebSocket upgrade.
    #[error(transparent)]
    Upgrade(#[from] UpgradeError),
}

impl Refusal {
    pub(super) fn response(&self) -> Response<String> {
        let (status, code) = self.kind();
        let message = self.to_string();
        tracing::warn!(why = clip(&message, MAX_WORDS), "a tunnel was refused");
        let error = PlaneError { code, message, hint: None, details: None };
        let meta = Meta { request_id: rooms::uuid() };
        let envelope = serde_json::to_string(&ErrorEnvelope { error, meta });
        let mut response = Response::new(envelope.unwrap_or_default());
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Self::Room(EntryError::TooMany { retry_after }) = self {
            headers.insert(header::RETRY_AFTER, seconds(*retry_after).into());
        }
        response
    }

    fn kind(&self) -> (StatusCode, ErrorCode) {
        match self {
            Self::NoToken => (StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest),
            Self::Room(EntryError::Unknown) => (StatusCode::NOT_FOUND, ErrorCode::RoomNotFound),
            Self::Room(EntryError::TooMany { .. }) => {
                (StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooMany)
            }
            Self::Room(EntryError::PasswordMissing | EntryError::PasswordWrong) => {
                (StatusCode::UNAUTHORIZED, ErrorCode::InvalidPassword)
            }
            Self::Participant(RoomError::NoParticipant(_)) => {
                (StatusCode::NOT_FOUND, ErrorCode::ParticipantNotFound)
            }
            Self::Participant(RoomError::BadTunnelToken) => {
                (StatusCode::UNAUTHORIZED, ErrorCode::InvalidRequest)
            }
            // Stock servers use this code.
            Self::Upgrade(_) => (StatusCode::BAD_REQUEST, ErrorCode::InternalError),
            Self::Participant(_) => (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::InternalError),
        }
    }
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs().max(1)
}
