//! The spec's messages: `POST /messages`, and `POST /rooms/{code}/messages` for one room. The
//! answer to each is the message that the spec defines for it.
//!
//! - `llm`: requests to models

mod llm;

use std::borrow::Cow;

use access::is_forwarded;
use axum::{
    Json, Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::post,
};
use base::Endpoint;
use http::{StatusCode, request::Parts};
use protocol::room::{
    BadMessage, Capabilities, ClientMessage, ParticipantInfo, RoomSummary, ServerMessage,
    message::{
        HostRegister, HostRegistered, JoiningParticipant, ListRoomsResponse, RoomCreated, RoomJoin,
        RoomJoined, TuiRegister, TuiRegistered,
    },
    plane::{CreateRoom, ErrorCode},
};
use rooms::{
    Endpoints, HostedRoom, JoinRequest, NewRoom, ResolvedEndpoint, Room, RoomError, Sight,
};
use serde::de::IgnoredAny;

use super::{
    access::{ListedRoom, Viewer, caller, enter, enter_by_id, enter_with, maker, peer, session},
    failure::Failure,
    homes::carry_message,
    plane::{participants::join, rooms::make},
    read_body,
};
use crate::{
    error::{ApiError, Kind},
    head::new_id,
    shape,
    state::Api,
};

/// The most participants that one answer lists, of all rooms together.
const TOLD: usize = 10_000;

type Code = Result<Path<String>, PathRejection>;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/messages", post(post_anywhere))
        .route("/rooms/{code}/messages", post(post_in_room))
}

async fn post_anywhere(State(api): State<Api>, request: Request) -> Response {
    take(&api, request, None).await
}

async fn post_in_room(State(api): State<Api>, code: Code, request: Request) -> Response {
    match code {
        Ok(Path(code)) => take(&api, request, Some(&code)).await,
        Err(_) => Failure::no_route().message(),
    }
}

async fn take(api: &Api, request: Request, code: Option<&str>) -> Response {
    let (parts, body) = request.into_parts();
    match read_body(api, &parts, body).await {
        Ok((body, _held)) => Post { api, parts: &parts, code }.take(&body).await,
        Err(failure) => failure.message(),
    }
}

/// The request by which a message was posted.
struct Post<'a> {
    api: &'a Api,
    parts: &'a Parts,
    /// The code in the path, if it has one: the only room that the message may concern.
    code: Option<&'a str>,
}

impl Post<'_> {
    async fn take(&self, body: &[u8]) -> Response {
        let message = match ClientMessage::decode(body) {
            Ok(message) => message,
            Err(bad) => return misread(self.parts, body, bad),
        };
        if let Some(name) = named(&message).filter(|_| self.code.is_none())
            && let Some(response) = carry_message(self.api, self.parts, name, body).await
        {
            return response;
        }
        let answer = match message {
            ClientMessage::RoomCreate(create) => self.create(create).await,
            ClientMessage::RoomJoin(join) => self.join(join).await,
            ClientMessage::LlmRequest(request) => return self.ask(request).await,
            ClientMessage::TuiRegister(register) => self.tui(&register).await,
            ClientMessage::HostRegister(register) => self.host(&register).await,
            ClientMessage::ListRooms(_) => self.list().await,
        };
        answer.unwrap_or_else(Failure::message)
    }

    async fn create(&self, create: CreateRoom) -> Result<Response, Failure> {
        if self.code.is_some() {
            return Err(Failure::invalid("This is the path of one room: post to /messages."));
        }
        let owner = maker(self.api, self.parts)?;
        let new = NewRoom::from_request(create, owner);
        let HostedRoom { room, host_token } = make(self.api, self.parts, new).await?;
        let created = RoomCreated {
            code: room.spoken_code().to_owned(),
            room_id: room.id().to_string(),
            short_code: room.short_code().to_owned(),
            host_token: host_token.expose().to_owned(),
        };
        Ok(response(StatusCode::CREATED, ServerMessage::RoomCreated(created)))
    }

    /// The endpoint of a participant that joins, if the server may call it. If the server calls only endpoints at the
    /// participant's own address, a request through a proxy is refused, because its address is the proxy's. A page of
    /// another origin is refused, because it can make a browser send a request that its user knows nothing of. On this
    /// machine such a page may even have a host name that leads here, and so be of the same origin: the request must
    /// then count as local.
    async fn reach(&self, endpoint: &str) -> Result<ResolvedEndpoint, Failure> {
        let endpoints = self.api.rooms().permissions.copied().endpoints;
        if endpoints == Endpoints::Own && is_forwarded(&self.parts.headers) {
            let words = "an endpoint is not called for who comes by way of a proxy".to_owned();
            return Err(not_called(RoomError::Invalid(words)));
        }
        let (rules, uri) = (self.api.rules(), &self.parts.uri);
        let is_here = peer(self.parts).to_canonical().is_loopback();
        let is_own_page = match is_here && endpoints == Endpoints::Own {
            true => rules.local.is_local(peer(self.parts), uri, &self.parts.headers),
            false => rules.local.takes_page(uri, &self.parts.headers),
        };
        if !is_own_page {
            let words = "an endpoint is not called for a page of another origin, nor for who asks \
                         this machine by a name that is not in `--allow-host`";
            return Err(not_called(RoomError::Invalid(words.to_owned())));
        }
        let own = self.api.address();
        endpoints.reach(endpoint, peer(self.parts), own).await.map_err(not_called)
    }

    async fn join(&self, joining: RoomJoin) -> Result<Response, Failure> {
        let RoomJoin { code, participant, password } = joining;
        let room = enter_with(self.api, self.parts, &code, password.as_deref()).await?;
        self.expect(&room)?;
        let reached = self.reach(&participant.endpoint).await?;
        let session = session(&self.parts.headers).map(str::to_owned);
        let joining = by_endpoint(participant, rooms::Kind::Endpoint(reached.address), session);
        let joined = join(&room, joining, self.parts).await?;
        let status = if joined.created { StatusCode::CREATED } else { StatusCode::OK };
        let answer = RoomJoined {
            room_id: room.id().to_string(),
            participants: room.participants(),
            session_token: Some(joined.session.expose().to_owned()),
        };
        Ok(response(status, ServerMessage::RoomJoined(answer)))
    }

    /// Checks that a message on the path of one room concerns that room.
    fn expect(&self, room: &Room) -> Result<(), Failure> {
        let Some(code) = self.code else { return Ok(()) };
        let meant = self.api.rooms().rooms.find(code, caller(self.parts))?;
        if meant.id() == room.id() {
            return Ok(());
        }
        Err(Failure::invalid("The path and the message name different rooms."))
    }

    async fn tui(&self, register: &TuiRegister) -> Result<Response, Failure> {
        let (rooms, participants) = match register.room_code.as_deref().or(self.code) {
            Some(code) => {
                let room = enter(self.api, self.parts, code).await?;
                self.expect(&room)?;
                (vec![room.info()], room.participants())
            }
            None => self.seen().await,
        };
        let registered = TuiRegistered { rooms, participants };
        Ok(response(StatusCode::OK, ServerMessage::TuiRegistered(registered)))
    }

    /// The rooms that are listed for the caller, and those of their participants that it may see.
    async fn seen(&self) -> (Vec<protocol::room::RoomInfo>, Vec<ParticipantInfo>) {
        let viewer = Viewer::of(self.api, self.parts);
        let rooms = viewer.listed(self.api).await;
        let shown = rooms.iter().filter(|room| viewer.sight(room.source()) == Sight::All);
        let participants = shown.flat_map(|room| room.participants()).take(TOLD).collect();
        (rooms.iter().map(|room| room.info()).collect(), participants)
    }

    async fn host(&self, register: &HostRegister) -> Result<Response, Failure> {
        let room = enter_by_id(self.api, self.parts, &register.room_id).await?;
        self.expect(&room)?;
        let registered = HostRegistered { room: room.info(), participants: room.participants() };
        Ok(response(StatusCode::OK, ServerMessage::HostRegistered(registered)))
    }

    async fn list(&self) -> Result<Response, Failure> {
        let rooms = match self.code {
            Some(code) => vec![ListedRoom::Here(enter(self.api, self.parts, code).await?)],
            None => Viewer::of(self.api, self.parts).listed(self.api).await,
        };
        let rooms = rooms.iter().map(summary).collect();
        Ok(response(StatusCode::OK, ServerMessage::ListRooms(ListRoomsResponse { rooms })))
    }
}

/// The code or id of the room that a message is about.
fn named(message: &ClientMessage) -> Option<&str> {
    match message {
        ClientMessage::RoomJoin(join) => Some(&join.code),
        ClientMessage::LlmRequest(request) => request.room_code.as_deref(),
        ClientMessage::TuiRegister(register) => register.room_code.as_deref(),
        ClientMessage::HostRegister(register) => Some(&register.room_id),
        ClientMessage::RoomCreate(_) | ClientMessage::ListRooms(_) => None,
    }
}

/// A response with a message.
fn response(status: StatusCode, message: ServerMessage) -> Response {
    (status, Json(message)).into_response()
}

/// The error for an invalid message. If the message was meant as an `llm:request`, the error carries its request id.
fn misread(parts: &Parts, body: &[u8], bad: BadMessage) -> Response {
    if let Some(response) = for_anthropic(parts, body) {
        return response;
    }
    let failure = Failure::from(*bad.invalid);
    match (bad.kind, bad.request_id) {
        (Some("llm:request"), Some(id)) => llm::not_taken(&id, &failure),
        _ => failure.message(),
    }
}

/// The answer to a request whose body shows that it is meant for Anthropic's Messages. Its headers do not show that,
/// or the request would have been [led there](crate::paths).
fn for_anthropic(parts: &Parts, body: &[u8]) -> Option<Response> {
    #[derive(serde::Deserialize)]
    struct AnthropicRequest<'a> {
        #[serde(borrow, rename = "model")]
        _model: Cow<'a, str>,
        #[serde(rename = "messages")]
        _messages: Vec<IgnoredAny>,
        #[serde(rename = "type")]
        kind: Option<IgnoredAny>,
    }
    serde_json::from_slice::<AnthropicRequest<'_>>(body)
        .ok()
        .filter(|request| request.kind.is_none())?;
    let path = Endpoint::Messages.path();
    let base = parts.uri.path().trim_end_matches("/messages");
    let words = format!(
        "this path takes the messages of rooms; Anthropic's Messages are at {base}{path}: a client that adds \
         /messages to its base URL needs one that ends in {base}/v1, and a client that adds {path} one without /v1"
    );
    let error = ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words);
    Some(error.response(shape::of_path(path), new_id()))
}

fn by_endpoint(
    joining: JoiningParticipant,
    kind: rooms::Kind,
    session: Option<String>,
) -> JoinRequest {
    JoinRequest {
        id: joining.id,
        nickname: joining.nickname,
        models: vec![joining.model],
        endpoint: joining.endpoint,
        specs: joining.specs,
        config: joining.config,
        capabilities: Capabilities::default(),
        kind,
        max_concurrent: joining.max_concurrent.unwrap_or(1),
        session,
    }
}

/// The error for an endpoint that the server does not call.
fn not_called(error: RoomError) -> Failure {
    let failure = Failure::from(error);
    let hint = "To lend a model without being called, use `warren room join CODE` on its machine.";
    let (status, code) = (failure.status, ErrorCode::EndpointNotReachable);
    Failure::new(status, code, failure.error.message).hint(hint)
}

fn summary(room: &ListedRoom) -> RoomSummary {
    RoomSummary { room: room.info(), participant_count: room.summary().participant_count }
}
