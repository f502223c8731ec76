//! A room with participants in the hands of the test.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use access::{Moment, NewKey};
use axum::body::Body;
use base::{Endpoint, JobId, KeyScope, ModelName, ProviderId, Secret};
use http::{Request, Response, header};
use protocol::room::{
    Capabilities, MachineSpecs, RuntimeConfig,
    selector::{offered_names, real_model},
};
use rooms::{Connection, JoinRequest, Kind, NewRoom, Room};
use scheduler::{Assignment, CancelReason, Membership, Offer, Provider, Terms};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::kit::{Kit, json_of, offer};

pub(crate) const EVENTS: (&str, &str) = ("content-type", "text/event-stream");
pub(crate) const JSON: (&str, &str) = ("content-type", "application/json");

/// A participant that is connected, until this is dropped.
pub(crate) struct Lent {
    pub(crate) provider: ProviderId,
    _membership: Membership,
    _connection: Connection,
}

struct Participant {
    sender: mpsc::Sender<Assignment>,
    id: String,
    models: Vec<String>,
}

impl Provider for Participant {
    fn name(&self) -> &str {
        &self.id
    }
    fn assign(&self, assignment: Assignment) {
        self.sender.try_send(assignment).ok();
    }
    fn cancel(&self, _: JobId, _: CancelReason) {}
    fn drain(&self, _: &str, _: Duration) {}
    fn retire(&self, _: bool) {}
    fn refresh(&self, _: &str) {}
    fn terms(&self, model: ModelName) -> Terms {
        let real = real_model(model.as_str(), &self.models).unwrap_or_default();
        Terms { model: real.into(), edit: None }
    }
}

pub(crate) fn now() -> u64 {
    Moment::now().wall_ms
}

impl Kit {
    /// A new room.
    pub(crate) fn room(&self, password: Option<&str>) -> Arc<Room> {
        let password = password.map(Secret::from);
        let new = NewRoom { name: "room".to_owned(), password, ..NewRoom::default() };
        self.rooms.create(new, now()).unwrap().room
    }

    /// Somebody who has joined, but is not connected.
    pub(crate) fn joins(&self, room: &Room, id: &str, models: &[&str]) {
        let joining = JoinRequest {
            id: id.to_owned(),
            nickname: format!("{id}'s"),
            models: models.iter().map(|&model| model.to_owned()).collect(),
            endpoint: "http://127.0.0.1:1".to_owned(),
            specs: MachineSpecs::default(),
            config: RuntimeConfig::default(),
            capabilities: Capabilities::default(),
            kind: Kind::Tunnel,
            max_concurrent: 1,
            session: None,
        };
        room.join(joining, IpAddr::from(Ipv4Addr::LOCALHOST), now()).unwrap();
    }

    /// A participant that serves these endpoints.
    pub(crate) fn lends(
        &self,
        room: &Arc<Room>,
        id: &str,
        models: &[&str],
        endpoints: &[Endpoint],
    ) -> Lent {
        self.joins(room, id, models);
        let models: Vec<String> = models.iter().map(|&model| model.to_owned()).collect();
        let names = offered_names(id, &models);
        let provider = ProviderId::from_random(u64::from_le_bytes(padded(id)));
        let connection = room.connect(id, provider, now()).unwrap();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let endpoints = endpoints.iter().copied().collect();
        let (scope, max_concurrent) = (room.scope(), 1);
        let offer = Offer { scope, max_concurrent, endpoints, ..offer(&names) };
        let participant = Participant { sender: self.sender.clone(), id: id.to_owned(), models };
        let membership = self.scheduler.join(provider, offer, Arc::new(participant));
        Lent { provider, _membership: membership, _connection: connection }
    }

    /// A key for inference, bound to a room or not.
    pub(crate) fn key(&self, room: Option<&Room>, models: &[&str]) -> Secret {
        let new = NewKey {
            name: "k".to_owned(),
            scopes: vec![KeyScope::Inference],
            models: models.iter().map(|&model| model.to_owned()).collect(),
            room: room.map(|room| room.id().clone()),
            ..NewKey::default()
        };
        self.keys.create(new, Moment::now()).unwrap().1
    }

    /// The status and the JSON of what a request is answered with.
    pub(crate) async fn answer(&self, request: Request<Body>) -> (u16, Value) {
        answer_of(self.send(request).await).await
    }
}

/// The status and the JSON of a response.
pub(crate) async fn answer_of(response: Response<Body>) -> (u16, Value) {
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    json_of(response).await
}

fn padded(id: &str) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes.iter_mut().zip(id.bytes()).for_each(|(to, from)| *to = from);
    bytes
}

/// The path of a room's API.
pub(crate) fn path(room: &Room, rest: &str) -> String {
    format!("/rooms/{}{rest}", room.short_code())
}

/// A request for a chat with whom `model` selects.
pub(crate) fn chat(room: &Room, model: &str) -> Request<Body> {
    let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"hi"}}]}}"#);
    post(&path(room, "/v1/chat/completions"), body)
}

pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path).body(Body::empty()).unwrap()
}

pub(crate) fn post(path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path).body(body.into()).unwrap()
}

/// Bodies that are nothing.
pub(crate) fn nonsense() -> Vec<Vec<u8>> {
    let texts = ["", " ", "null", "7", "\"text\"", "[]", "{", "{}}", "{\"type\"", "<html>"];
    let deep =
        ["[", "{\"a\":", "{\"name\":[", "{\"participant\":{"].map(|open| open.repeat(50_000));
    let mut bodies: Vec<Vec<u8>> = texts.into_iter().map(Into::into).collect();
    bodies.extend(deep.map(String::into_bytes));
    bodies.push(b"{\"name\":\"\xff\xfe\",\"type\":\"room:create\",\"model\":\"m\"}".to_vec());
    bodies.push(b"{\"name\":\"\\ud800\",\"type\":\"room:create\",\"model\":\"\\ud800\"}".to_vec());
    bodies.push(vec![0; 1000]);
    bodies
}

/// The same request with a credential.
pub(crate) fn with_bearer(mut request: Request<Body>, credential: &str) -> Request<Body> {
    let value = format!("Bearer {credential}").parse().unwrap();
    request.headers_mut().insert(header::AUTHORIZATION, value);
    request
}
