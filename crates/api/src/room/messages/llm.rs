//! The spec's `llm:request`: a prompt for a participant's model, converted into a chat.

use std::{sync::Arc, time::Duration};

use access::Moment;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use base::JobId;
use bytes::Bytes;
use http::{StatusCode, header, request::Parts};
use protocol::room::{
    ServerMessage, llm_request_body,
    message::{LlmError, LlmRequest},
    plane::ErrorCode,
};
use rooms::{EntryError, Room};
use serde_json::json;

use super::Post;
use crate::{
    consume,
    head::new_id,
    request_scope::RequestScope,
    room::{
        ask::{self, Ask},
        failure::Failure,
        inference,
        message_jobs::{InFlight, NotTaken},
        stream::EventStream,
    },
};

/// The `retry-after` for a room with too many requests in flight.
const AGAIN: Duration = Duration::from_secs(1);

impl Post<'_> {
    /// Submits the request, then streams the answer or leaves it to the room's event streams.
    pub(super) async fn ask(&self, request: LlmRequest) -> Response {
        let (room, request_scope) = match self.room_and_scope(&request).await {
            Ok(found) => found,
            Err(failure) => return failure.message(),
        };
        let ask = match self.begin(&room, request_scope, &request).await {
            Ok(ask) => ask,
            Err(failure) => return not_taken(&request.request_id, &failure),
        };
        if wants_events(self.parts) {
            return EventStream::new(ask).response();
        }
        // The task ends with its job, and the job has deadlines.
        tokio::spawn(ask.run());
        let accepted = json!({ "type": "llm:accepted", "requestId": request.request_id });
        (StatusCode::ACCEPTED, Json(accepted)).into_response()
    }

    /// The room of a request, and the scope that it counts for.
    async fn room_and_scope(
        &self,
        request: &LlmRequest,
    ) -> Result<(Arc<Room>, RequestScope), Failure> {
        let Some(code) = request.room_code.as_deref().or(self.code) else {
            let words = "The request says no room: post it to /rooms/CODE/messages, or add \
                         `roomCode`.";
            return Err(Failure::invalid(words));
        };
        let request_scope = inference::request_scope(self.api, code, self.parts).await?;
        let room = request_scope.room().cloned().ok_or(EntryError::Unknown)?;
        self.expect(&room)?;
        Ok((room, request_scope))
    }

    async fn begin(
        &self,
        room: &Arc<Room>,
        request_scope: RequestScope,
        request: &LlmRequest,
    ) -> Result<Ask, Failure> {
        let id = new_id();
        let in_flight = self.api.rooms().by_message.take(room.id(), &request.request_id, id)?;
        let begun = self.submit(room, request_scope, request, id, in_flight).await;
        if let Err(failure) = &begun {
            // The id belongs to this request alone: a watcher that waits for its answer learns that
            // none will come.
            room.tell(None, Some(error(&request.request_id, failure)), Moment::now().wall_ms);
        }
        begun
    }

    /// Submits a request as a chat, addressed to its participant.
    async fn submit(
        &self,
        room: &Arc<Room>,
        request_scope: RequestScope,
        request: &LlmRequest,
        id: JobId,
        in_flight: InFlight,
    ) -> Result<Ask, Failure> {
        let body = Bytes::from(llm_request_body(request));
        let submitted = consume::chat(self.api, request_scope, id, body).await?;
        let jobs = Arc::clone(&self.api.rooms().by_message);
        let (id, target) = (request.request_id.clone(), request.target_id.clone());
        let request = ask::Request { id, target };
        let mut ask = Ask::new(Arc::clone(room), jobs, in_flight, submitted, request);
        match ask.refused() {
            Some(error) => Err(error.into()),
            None => Ok(ask),
        }
    }
}

/// The answer to a request that never became a job.
pub(super) fn not_taken(request_id: &str, failure: &Failure) -> Response {
    failure.response(error(request_id, failure))
}

fn error(request_id: &str, failure: &Failure) -> ServerMessage {
    ServerMessage::LlmError(LlmError {
        request_id: request_id.to_owned(),
        participant_id: String::new(),
        error: failure.text(),
    })
}

fn wants_events(parts: &Parts) -> bool {
    let accept = parts.headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    accept.is_some_and(|accept| accept.to_ascii_lowercase().contains("text/event-stream"))
}

impl From<NotTaken> for Failure {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::Twice => {
                let words = "The room has a request of this id already: choose another requestId.";
                Self::new(StatusCode::CONFLICT, ErrorCode::InvalidRequest, words)
            }
            NotTaken::TooMany => {
                let words = "Too many requests are in flight in this room.";
                Self::too_many(words).retry_after(AGAIN)
            }
        }
    }
}
