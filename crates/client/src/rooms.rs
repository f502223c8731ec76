//! The rooms of a server, and their requests.

use std::time::Duration;

use base::Secret;
use http::{Method, StatusCode};
use protocol::room::{
    ParticipantInfo, RoomSummary,
    message::LlmRequest,
    plane::{ChangeRoom, CreateRoom, CreatedRoom, Envelope, ErrorEnvelope, PlaneHealth, Success},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    connection::{Connection, DEADLINE, refusal},
    error::ClientError,
    events::{AnswerEvents, RoomEvents},
    server::{Warren, segment},
};

/// A room of a server. Its code is enough for most requests; some need a token as well.
#[derive(Debug, Clone)]
pub struct RoomClient {
    connection: Connection,
    code: String,
}

impl Warren {
    /// The health of a server of rooms, Warren or stock.
    ///
    /// # Errors
    /// When the server cannot be reached, or is not a server of rooms.
    pub async fn rooms_health(&self) -> Result<PlaneHealth, ClientError> {
        plane(&self.0, Method::GET, "/v1/health", None::<&()>).await
    }

    /// Creates a room. Only this answer has the token that closes the room.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn create_room(&self, room: &CreateRoom) -> Result<CreatedRoom, ClientError> {
        plane(&self.0, Method::POST, "/v1/rooms", Some(room)).await
    }

    /// The rooms that the server shows.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn rooms(&self) -> Result<Vec<RoomSummary>, ClientError> {
        plane(&self.0, Method::GET, "/v1/rooms", None::<&()>).await
    }

    /// The room with this code, with `password` in each request. Does not connect yet.
    ///
    /// # Errors
    /// When the password cannot be sent in a header.
    pub fn room(&self, code: &str, password: Option<&Secret>) -> Result<RoomClient, ClientError> {
        let connection = self.0.showing(password)?;
        Ok(RoomClient { connection, code: code.trim().to_owned() })
    }
}

impl RoomClient {
    /// The code of the room.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The summary of the room.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses; [`ClientError::NotFound`] when the room does
    /// not exist.
    pub async fn summary(&self) -> Result<RoomSummary, ClientError> {
        self.plane(Method::GET, "", None::<&()>).await
    }

    /// Its participants.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn participants(&self) -> Result<Vec<ParticipantInfo>, ClientError> {
        self.plane(Method::GET, "/participants", None::<&()>).await
    }

    /// Closes the room, for good.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn close(&self, host_token: &Secret) -> Result<(), ClientError> {
        let room = self.showing_too(HOST_TOKEN, host_token)?;
        room.plane::<Success>(Method::DELETE, "", None::<&()>).await.map(drop)
    }

    /// Changes the room.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn change(
        &self,
        change: &ChangeRoom,
        host_token: &Secret,
    ) -> Result<RoomSummary, ClientError> {
        self.showing_too(HOST_TOKEN, host_token)?.plane(Method::PATCH, "", Some(change)).await
    }

    /// Removes a participant, with the host's token or the participant's own.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn remove(
        &self,
        participant: &str,
        token: RemovalToken<'_>,
    ) -> Result<(), ClientError> {
        let room = match token {
            RemovalToken::Host(token) => self.showing_too(HOST_TOKEN, token)?,
            RemovalToken::Session(token) => self.showing_too(SESSION, token)?,
        };
        let path = format!("/participants/{}", segment(participant));
        room.plane::<Success>(Method::DELETE, &path, None::<&()>).await.map(drop)
    }

    /// The events of the room, from now on or after the event with this id.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn watch(&self, after: Option<&str>) -> Result<RoomEvents, ClientError> {
        let after = after.map(|id| format!("&after={}", segment(id))).unwrap_or_default();
        let path = format!("/v1/rooms/{}/events?ids=true{after}", segment(&self.code));
        let body = self.connection.open(Method::GET, &path, None, DEADLINE).await?;
        Ok(RoomEvents::new(body, self.connection.shown()))
    }

    /// Sends a request in public: all watchers of the room get the answer, and so does the caller.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn ask(&self, request: &LlmRequest) -> Result<AnswerEvents, ClientError> {
        let message = protocol::room::ClientMessage::LlmRequest(request.clone());
        let body = self.connection.json(&message)?;
        let path = format!("/rooms/{}/messages", segment(&self.code));
        let body = self.connection.open(Method::POST, &path, Some(body), DEADLINE).await?;
        Ok(AnswerEvents::new(body, self.connection.shown()))
    }

    /// Sends a request in private, as Chat Completions: only the caller gets the answer. Stock
    /// servers support this, too.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn ask_privately(
        &self,
        selector: &str,
        prompt: &str,
    ) -> Result<AnswerEvents, ClientError> {
        let body = serde_json::json!({
            "model": selector,
            "stream": true,
            "stream_options": { "include_usage": true },
            "messages": [{ "role": "user", "content": prompt }],
        });
        self.post("/v1/chat/completions", body.to_string().into_bytes()).await
    }

    /// Posts a request to one of the room's consumer APIs, such as `/v1/chat/completions`, and
    /// streams the answer.
    ///
    /// # Errors
    /// When the server cannot be reached, or refuses.
    pub async fn post(&self, path: &str, body: Vec<u8>) -> Result<AnswerEvents, ClientError> {
        let path = format!("/rooms/{}{path}", segment(&self.code));
        let body = self.connection.open(Method::POST, &path, Some(body), PATIENCE).await?;
        Ok(AnswerEvents::new(body, self.connection.shown()))
    }

    /// The URL of the room, for people and for programs.
    pub fn url(&self) -> String {
        format!("{}/rooms/{}", self.connection.shown(), segment(&self.code))
    }

    fn showing_too(&self, name: &'static str, token: &Secret) -> Result<Self, ClientError> {
        let connection = self.connection.with_header(name, token)?;
        Ok(Self { connection, code: self.code.clone() })
    }

    async fn plane<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, ClientError> {
        let path = format!("/v1/rooms/{}{path}", segment(&self.code));
        plane(&self.connection, method, &path, body).await
    }
}

/// The token that permits the removal of a participant.
#[derive(Debug, Clone, Copy)]
pub enum RemovalToken<'a> {
    /// The token of the room's host.
    Host(&'a Secret),
    /// The participant's own token.
    Session(&'a Secret),
}

/// The deadline for the head of an answer: the request waits in a queue, and the model reads the
/// prompt.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The header with the token of a room's host.
const HOST_TOKEN: &str = "x-warren-host-token";

/// The header with a participant's own token.
const SESSION: &str = "x-warren-session";

async fn plane<T: DeserializeOwned>(
    connection: &Connection,
    method: Method,
    path: &str,
    body: Option<&impl Serialize>,
) -> Result<T, ClientError> {
    let body = body.map(|body| connection.json(body)).transpose()?;
    let (status, answer) = connection.exchange(method, path, body).await?;
    let no_rooms = || ClientError::NoRooms { url: connection.shown() };
    if status.is_success() {
        let envelope: Envelope<T> = serde_json::from_slice(&answer).map_err(|_| no_rooms())?;
        return Ok(envelope.data);
    }
    let is_theirs = serde_json::from_slice::<ErrorEnvelope>(&answer).is_ok();
    // A proxy on the way may refuse in its own form. But a 404 that is not in the form of rooms
    // means that there are no rooms.
    if is_theirs || status != StatusCode::NOT_FOUND {
        return Err(refusal(status, &answer));
    }
    Err(no_rooms())
}

#[cfg(test)]
mod tests {
    use testkit::{FakeHub, RawServer};

    use super::*;

    #[tokio::test]
    async fn a_hub_lists_its_rooms_and_its_refusals_are_errors() {
        let hub = FakeHub::start_with("ABC123", Some("pw")).await;
        let warren = Warren::new(&hub.url(), Some(&"key".into())).unwrap();
        assert_eq!(warren.rooms_health().await.unwrap().status, "ok");
        assert_eq!(warren.rooms().await.unwrap()[0].room.code, "ABC123");
        let room = warren.room(" ABC123 ", Some(&"pw".into())).unwrap();
        assert!(room.summary().await.unwrap().room.password_protected);
        assert!(room.participants().await.unwrap().is_empty());
        let shown = hub.heard_at("GET /v1/rooms/ABC123/participants");
        assert_eq!(shown[0].authorization.as_deref(), Some("Bearer pw"), "not the server's key");
        let missing = warren.room("NOSUCH", None).unwrap().summary().await.unwrap_err();
        assert!(missing.is_not_found(), "{missing}");
        assert_eq!(room.url(), format!("{}/rooms/ABC123", hub.url()));
    }

    #[tokio::test]
    async fn a_server_without_rooms_differs_from_a_missing_room() {
        for (status, body) in [("404 Not Found", "404 page not found"), ("200 OK", "{}")] {
            let server = RawServer::start().await;
            let warren = Warren::new(&server.url(), None).unwrap();
            let room = warren.room("ABC123", None).unwrap();
            let answer = async {
                let (mut connection, _) = server.request().await;
                let length = body.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}");
                connection.write(head).await;
                connection
            };
            let (summary, _connection) = tokio::join!(room.summary(), answer);
            assert!(matches!(summary, Err(ClientError::NoRooms { .. })), "{summary:?}");
        }
    }
}
