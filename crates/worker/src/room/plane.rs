//! Requests to a room's server over HTTP.

use std::{sync::Arc, time::Duration};

use backend::{
    Answer, AnswerBody, BackendConfig, BackendError, BackendRequest, HttpBackend, NotABackend,
    Timeouts,
};
use base::{Fingerprint, Secret};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{
    json::clip,
    room::plane::{ErrorCode, ErrorEnvelope, PlaneError, PutParticipant, TunnelPlace},
};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::timeout;
use url::{Url, form_urlencoded::byte_serialize};

use super::GiveUpReason;
use crate::{config::ServerTarget, outcome::Outcome};

/// How long to wait for a connection to a server, and for a whole answer.
const CONNECT: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(10);

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// The most bytes of a server's own text that are repeated in messages.
const MAX_WORDS: usize = 300;

/// One room of a server, over HTTP.
#[derive(Debug)]
pub(super) struct Plane {
    server: HttpBackend,
    /// The server's address, for a second client with the participant's token.
    url: String,
    pin: Option<Fingerprint>,
    /// The room's path.
    room: String,
}

/// The answer to a participant that has joined.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JoinAnswer {
    pub(crate) tunnel: TunnelPlace,
    #[serde(default)]
    pub(crate) session_token: Option<Secret>,
}

/// The parts of a room's description that a worker needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Only a Warren's rooms have one.
    pub(super) spoken_code: Option<String>,
}

/// Why a heartbeat had no good answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeartbeatFailure {
    /// The server no longer knows the participant, or the room.
    Forgotten,
    /// Any other failure, which may be over by the next heartbeat.
    Missed(String),
}

/// Why there is no good answer.
enum AskFailure {
    /// The server refused, and may have said why.
    Refused(StatusCode, Option<PlaneError>),
    /// No answer came, or one that cannot be read.
    NoAnswer(String),
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

impl Plane {
    pub(super) fn new(server: &ServerTarget, code: &str) -> Result<Self, NotABackend> {
        let url = over_http(&server.url);
        let client = client(&url, server.pin, None)?;
        Ok(Self {
            server: client,
            url,
            pin: server.pin,
            room: format!("/v1/rooms/{}", segment(code)),
        })
    }

    /// Asks for the room's summary.
    pub(super) async fn summary(&self) -> Result<Summary, Outcome> {
        let answer = ask(&self.server, Method::GET, self.room.clone(), Vec::new()).await;
        read(answer).map_err(AskFailure::outcome)
    }

    /// Joins, or replaces what the participant said about itself before.
    pub(super) async fn put(&self, id: &str, body: &PutParticipant) -> Result<JoinAnswer, Outcome> {
        let json = serde_json::to_vec(body).unwrap_or_default();
        let answer = ask(&self.server, Method::PUT, self.participant(id), json).await;
        read(answer).map_err(AskFailure::outcome)
    }

    /// Sends a heartbeat of the participant.
    pub(super) async fn heartbeat(&self, id: &str) -> Result<(), HeartbeatFailure> {
        let path = format!("{}/heartbeat", self.participant(id));
        let answer = ask(&self.server, Method::POST, path, Vec::new()).await;
        match read::<serde::de::IgnoredAny>(answer) {
            Ok(_) => Ok(()),
            Err(AskFailure::Refused(StatusCode::NOT_FOUND, _)) => Err(HeartbeatFailure::Forgotten),
            Err(failed) => Err(HeartbeatFailure::Missed(failed.words())),
        }
    }

    /// Takes the participant out of the room.
    pub(super) async fn leave(&self, id: &str, token: Option<&Secret>) -> Result<(), String> {
        let own = token.map(|token| client(&self.url, self.pin, Some(token.clone()))).transpose();
        let own = own.map_err(|error| error.to_string())?;
        let server = own.as_ref().unwrap_or(&self.server);
        let answer = ask(server, Method::DELETE, self.participant(id), Vec::new()).await;
        read::<serde::de::IgnoredAny>(answer).map(drop).map_err(|failed| failed.words())
    }

    fn participant(&self, id: &str) -> String {
        format!("{}/participants/{}", self.room, segment(id))
    }
}

fn client(
    url: &str,
    pin: Option<Fingerprint>,
    api_key: Option<Secret>,
) -> Result<HttpBackend, NotABackend> {
    let timeouts = Timeouts { connect: CONNECT, first_byte: DEADLINE, idle: DEADLINE };
    HttpBackend::new(&BackendConfig { pin, api_key, timeouts, ..BackendConfig::new(url) })
}

/// The server's address with a scheme of HTTP, without query and fragment.
fn over_http(url: &Url) -> String {
    let mut url = url.clone();
    let secure = matches!(url.scheme(), "https" | "wss");
    // Cannot fail: the URL may switch between these four schemes.
    let _ = url.set_scheme(if secure { "https" } else { "http" });
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// Encodes a text as one segment of a path.
fn segment(text: &str) -> String {
    byte_serialize(text.as_bytes()).map(|piece| if piece == "+" { "%20" } else { piece }).collect()
}

async fn ask(
    server: &HttpBackend,
    method: Method,
    path: String,
    body: Vec<u8>,
) -> Result<(StatusCode, Vec<u8>), AskFailure> {
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let headers = if body.is_empty() { HeaderMap::new() } else { HeaderMap::from_iter([json]) };
    let body = if body.is_empty() { Vec::new() } else { vec![Bytes::from(body)] };
    let model = String::new();
    let ask = BackendRequest { method, path_and_query: path, model, headers, body };
    let asking = async {
        let Answer { status, body, .. } = server.send(ask).await?;
        Ok::<_, BackendError>((status, whole(body).await?))
    };
    match timeout(DEADLINE, asking).await {
        Ok(answer) => answer.map_err(|error| AskFailure::NoAnswer(unanswered(error))),
        Err(_) => {
            Err(AskFailure::NoAnswer(format!("the server did not answer within {DEADLINE:?}")))
        }
    }
}

/// Why a server did not answer. The client of backends is used here, but its errors would speak of
/// a backend.
fn unanswered(error: BackendError) -> String {
    match error {
        BackendError::Unreachable { backend, reason } => format!(
            "could not reach the server {backend}: {reason}; does it run, and is this its address?"
        ),
        BackendError::Timeout { backend, phase, after } => {
            format!("the server {backend} {phase} within {after:?}")
        }
        BackendError::Broke { backend, reason } => {
            format!("the server {backend} broke off: {reason}")
        }
        BackendError::KeyRefused { backend, status } => {
            format!("the server {backend} refuses the key ({status})")
        }
        BackendError::NoModels { reason, .. } | BackendError::BadAsk(reason) => reason,
        // Cannot happen: only model engines give this error.
        other @ BackendError::Engine { .. } => other.to_string(),
    }
}

async fn whole(mut body: AnswerBody) -> Result<Vec<u8>, BackendError> {
    let mut read = Vec::new();
    while let Some(bytes) = body.next().await {
        read.extend_from_slice(&bytes?);
        if read.len() > MAX_ANSWER {
            let reason = format!("its answer is longer than {MAX_ANSWER} bytes");
            return Err(BackendError::Broke { backend: Arc::from("the server"), reason });
        }
    }
    Ok(read)
}

fn read<T: DeserializeOwned>(
    answer: Result<(StatusCode, Vec<u8>), AskFailure>,
) -> Result<T, AskFailure> {
    let (status, body) = answer?;
    if !status.is_success() {
        let envelope = serde_json::from_slice::<ErrorEnvelope>(&body).ok();
        return Err(AskFailure::Refused(status, envelope.map(|envelope| envelope.error)));
    }
    match serde_json::from_slice::<Data<T>>(&body) {
        Ok(Data { data }) => Ok(data),
        Err(error) => {
            Err(AskFailure::NoAnswer(format!("what the server answered is no answer: {error}")))
        }
    }
}

impl AskFailure {
    fn words(&self) -> String {
        match self {
            Self::NoAnswer(words) => words.clone(),
            Self::Refused(status, None) => format!("the server answered {status}"),
            Self::Refused(status, Some(error)) => {
                let details = error.details.as_ref().map(|details| format!(" {details}"));
                let words = format!("{}{}", error.message, details.unwrap_or_default());
                format!("{status}: {}", clip(&words, MAX_WORDS))
            }
        }
    }

    /// The outcome for a participant that wants to join.
    fn outcome(self) -> Outcome {
        let code = match &self {
            Self::Refused(_, Some(error)) => Some(error.code),
            _ => None,
        };
        match (&self, code) {
            (_, Some(ErrorCode::RoomNotFound)) => Outcome::Over(GiveUpReason::NoRoom),
            (_, Some(ErrorCode::InvalidPassword)) => Outcome::Over(GiveUpReason::Password),
            (Self::Refused(StatusCode::NOT_FOUND, _), _) => Outcome::Over(GiveUpReason::NoRooms),
            (Self::Refused(StatusCode::TOO_MANY_REQUESTS, _), _) => Outcome::Refused(self.words()),
            (Self::Refused(status, _), _) if status.is_client_error() => {
                Outcome::Over(GiveUpReason::Refused(self.words()))
            }
            _ => Outcome::Lost { reason: self.words(), stood: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &str) -> Outcome {
        let status = StatusCode::from_u16(status).unwrap();
        match read::<Summary>(Ok((status, body.into()))) {
            Err(failed) => failed.outcome(),
            Ok(summary) => panic!("{summary:?}"),
        }
    }

    fn envelope(code: &str) -> String {
        format!(r#"{{"error":{{"code":"{code}","message":"words"}},"meta":{{"requestId":"1"}}}}"#)
    }

    #[tokio::test]
    async fn a_server_that_is_down_is_spoken_of_as_a_server() {
        let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", free.local_addr().unwrap());
        drop(free);
        let plane = Plane::new(&ServerTarget::new(&url, None).unwrap(), "ABC123").unwrap();
        let Err(Outcome::Lost { reason, .. }) = plane.summary().await else { panic!() };
        assert!(reason.starts_with("could not reach the server http://127.0.0.1:"), "{reason}");
        assert!(!reason.contains("backend") && !reason.contains("model"), "{reason}");
    }

    #[test]
    fn permanent_errors_give_the_room_up() {
        let over = |status, code: &str| match refused(status, &envelope(code)) {
            Outcome::Over(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(over(404, "ROOM_NOT_FOUND"), GiveUpReason::NoRoom);
        assert_eq!(over(401, "INVALID_PASSWORD"), GiveUpReason::Password);
        assert!(matches!(over(409, "PARTICIPANT_CONFLICT"), GiveUpReason::Refused(_)));
        assert!(matches!(over(400, "INVALID_REQUEST"), GiveUpReason::Refused(_)));
        assert_eq!(refused(404, "<html>"), Outcome::Over(GiveUpReason::NoRooms));
    }

    #[test]
    fn temporary_errors_are_tried_again() {
        assert!(matches!(refused(429, &envelope("TOO_MANY")), Outcome::Refused(_)));
        assert!(matches!(refused(502, "<html>"), Outcome::Lost { .. }));
        assert!(matches!(refused(200, "{}"), Outcome::Lost { .. }), "no envelope");
    }

    #[test]
    fn a_code_or_an_id_stays_within_its_segment_of_the_path() {
        assert_eq!(segment("a/b c?d"), "a%2Fb%20c%3Fd");
        assert_eq!(segment("swift-eagle_42"), "swift-eagle_42");
    }

    #[test]
    fn the_address_is_one_of_http() {
        let http = |url: &str| over_http(&Url::parse(url).unwrap());
        assert_eq!(http("ws://h:1/p?x=1"), "http://h:1/p");
        assert_eq!(http("wss://h"), "https://h/");
        assert_eq!(http("https://h/"), "https://h/");
    }
}
