//! Errors of rooms, and their three forms.

use std::time::Duration;

use access::Denied;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{StatusCode, header};
use protocol::room::{
    ServerMessage,
    invalid::Invalid,
    message::RoomErrorMessage,
    plane::{ErrorCode, ErrorEnvelope, Meta, PlaneError},
};
use rooms::{EntryError, RoomError};
use serde_json::json;

use crate::{
    admin, cors,
    error::{ApiError, retry_after},
};

const NO_ROOM: &str = "Run `warren room list` to see which rooms there are. A code is two words and \
    a number, such as swift-eagle-42, or six characters.";

const NO_PASSWORD: &str = "This room has a password: give it with `--password`, or send it as \
    `Authorization: Bearer PASSWORD`.";

/// The `retry-after` for a client whose room was moving to another server.
const MOVED: Duration = Duration::from_secs(2);

/// An error of a room's request.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) status: StatusCode,
    pub(super) error: PlaneError,
    retry_after: Option<Duration>,
    /// Whether the page that sent the request may read it.
    is_for_page: bool,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        let error = PlaneError { code, message: message.into(), hint: None, details: None };
        Self { status, error, retry_after: None, is_for_page: false }
    }

    /// The request is at fault.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidRequest, message)
    }

    /// Nothing is served at this path, or the path does not have this method.
    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::InvalidRequest, "Route not found.")
    }

    /// There is no such participant.
    pub(super) fn no_participant() -> Self {
        let (status, code) = (StatusCode::NOT_FOUND, ErrorCode::ParticipantNotFound);
        Self::new(status, code, "Participant not found.")
            .hint("Run `warren room show CODE` to see who is in the room.")
    }

    /// Too many requests, rooms or participants.
    pub(super) fn too_many(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooMany, message)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.error.hint = Some(hint.into());
        self
    }

    /// The time after which the client should try again, if it is told one.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    pub(super) fn retry_after(self, after: Duration) -> Self {
        Self { retry_after: Some(after), ..self }
    }

    /// The message and the hint in one text.
    pub(super) fn text(&self) -> String {
        match &self.error.hint {
            Some(hint) => format!("{} {hint}", self.error.message),
            None => self.error.message.clone(),
        }
    }

    /// The response `{"error": TEXT}`, used by the paths below `/rooms`.
    pub(super) fn plain(self) -> Response {
        let text = self.error.message.trim_end_matches('.');
        self.response(json!({ "error": text }))
    }

    /// The response as the spec's `room:error`.
    pub(super) fn message(self) -> Response {
        let message = ServerMessage::RoomError(RoomErrorMessage { error: self.text() });
        self.response(message)
    }

    /// The response with `form` as its JSON body. Logs the refusal, without the path, which holds a room's code.
    pub(super) fn response(&self, form: impl serde::Serialize) -> Response {
        let (status, message) = (self.status.as_u16(), &self.error.message);
        tracing::info!(target: "request", outcome = "refused", status, %message, "rooms");
        let mut response = (self.status, Json(form)).into_response();
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, retry_after(after));
        }
        if self.is_for_page {
            cors::open_to_page(&mut response);
        }
        response
    }
}

/// Answers in the envelope of the paths below `/v1/rooms`.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let meta = Meta { request_id: rooms::uuid() };
        self.response(ErrorEnvelope { error: self.error.clone(), meta })
    }
}

impl From<EntryError> for Failure {
    fn from(refused: EntryError) -> Self {
        match refused {
            EntryError::Unknown => {
                Self::new(StatusCode::NOT_FOUND, ErrorCode::RoomNotFound, "Room not found.")
                    .hint(NO_ROOM)
            }
            EntryError::TooMany { retry_after } => {
                Self::too_many(refused.to_string()).retry_after(retry_after)
            }
            EntryError::PasswordMissing | EntryError::PasswordWrong => {
                let (status, code) = (StatusCode::UNAUTHORIZED, ErrorCode::InvalidPassword);
                Self::new(status, code, "Invalid password.").hint(NO_PASSWORD)
            }
        }
    }
}

impl From<RoomError> for Failure {
    fn from(error: RoomError) -> Self {
        let words = error.to_string();
        match error {
            RoomError::Invalid(_) => Self::invalid(words),
            RoomError::TooMany(_) => Self::too_many(words),
            RoomError::NoParticipant(_) => Self::no_participant(),
            RoomError::Conflict(_) => {
                Self::new(StatusCode::CONFLICT, ErrorCode::ParticipantConflict, words)
            }
            RoomError::NotAllowed(_) => {
                Self::new(StatusCode::FORBIDDEN, ErrorCode::Unauthorized, words)
            }
            RoomError::BadTunnelToken => {
                Self::new(StatusCode::UNAUTHORIZED, ErrorCode::InvalidRequest, words)
            }
            RoomError::Moved => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::InternalError, words)
                    .retry_after(MOVED)
            }
            RoomError::Store(error) => admin::failed(&error).into(),
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        let code = match error.status.as_u16() {
            401 | 403 => ErrorCode::Unauthorized,
            429 => ErrorCode::TooMany,
            500.. => ErrorCode::InternalError,
            _ => ErrorCode::InvalidRequest,
        };
        let (retry_after, is_for_page) = (error.retry_after, error.is_for_page());
        Self { retry_after, is_for_page, ..Self::new(error.status, code, error.message) }
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        ApiError::from(denied).into()
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        let message = match () {
            () if invalid.cause.is_some() => "Invalid JSON body.",
            // The only forbidden field; the message is that of stock servers.
            () if !invalid.forbidden.is_empty() => {
                "Participant auth headers are not accepted by the hub."
            }
            () if !invalid.required.is_empty() => "Missing required fields.",
            () => "Invalid fields.",
        };
        let mut failure = Self::invalid(message).hint(format!("{invalid}."));
        failure.error.details = Some(invalid.details());
        failure
    }
}
