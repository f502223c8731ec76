//! A provider's place in a room.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use access::Moment;
use base::{Endpoint, ModelName};
use http::Method;
use protocol::room::{RuntimeConfig, defaults, selector, tunnel::close};
use rooms::{Connection, Room, participant::Ended, room::Served};
use scheduler::{JobRequest, RequestEdit, Terms};
use tokio::time::Instant;

/// Who in a room a provider is.
#[derive(Clone)]
pub(crate) struct Member {
    room: Arc<Room>,
    id: String,
}

impl Member {
    pub(crate) fn new(room: Arc<Room>, id: String) -> Self {
        Self { room, id }
    }

    /// The room.
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Its id in the room.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What the room knows of it; `None` once it is not in the room any more.
    pub(crate) fn served(&self) -> Option<Served> {
        self.room.served(&self.id)
    }

    /// The names under which it offers these models to the dispatcher; none, if it has none.
    pub(crate) fn offered(&self, models: &[String]) -> Vec<ModelName> {
        if models.is_empty() {
            return Vec::new();
        }
        let names = selector::offered_names(&self.id, models);
        names.into_iter().map(ModelName::from).collect()
    }

    /// On which terms it serves a job that found it under this name: asked for its own model, with
    /// its defaults, and the room's, where the request says nothing.
    pub(crate) fn terms(&self, name: ModelName) -> Terms {
        let Some(served) = self.served() else { return Terms { model: name, edit: None } };
        let real = selector::real_model(name.as_str(), &served.models).map(ModelName::from);
        let defaults = Some(served.defaults).filter(|defaults| !defaults.is_empty());
        let edit = defaults.map(|defaults| Arc::new(Defaults(defaults)) as Arc<dyn RequestEdit>);
        Terms { model: real.unwrap_or(name), edit }
    }
}

/// Completes requests with what the room and the participant generate by default.
struct Defaults(RuntimeConfig);

impl RequestEdit for Defaults {
    fn apply(&self, request: Arc<JobRequest>, endpoint: Endpoint) -> Arc<JobRequest> {
        if !generates(&request, endpoint) {
            return request;
        }
        match defaults::complete(&request.body, endpoint, &self.0) {
            Some(body) => Arc::new(JobRequest { body, ..JobRequest::clone(&request) }),
            None => request,
        }
    }
}

/// Whether a request asks for something new, and not about an earlier answer.
fn generates(request: &JobRequest, endpoint: Endpoint) -> bool {
    let path = request.path_and_query.split('?').next().unwrap_or_default();
    request.method == Method::POST && path == endpoint.path()
}

/// A participant's connection, as its room sees it: it stands until this is dropped.
pub(crate) struct Presence {
    connection: Connection,
    /// When it was last heard of.
    last: Mutex<Instant>,
}

impl Presence {
    /// A connection that the room has been told of just now.
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, last: Mutex::new(Instant::now()) }
    }

    /// It was heard of.
    pub(crate) fn heard(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.connection.heard(now_ms());
    }

    /// For how long it was not heard of.
    pub(crate) fn silence(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// It has these models from now on.
    pub(crate) fn models(&self, models: Vec<String>) {
        self.connection.models(models, now_ms());
    }

    /// Until its participant has joined anew as something else. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.connection.changed().await;
    }

    /// Until it has to end: the code to close its link with, and why. Cancel safe.
    pub(crate) async fn ended(&self) -> (u16, &'static str) {
        match self.connection.ended().await {
            Ended::Superseded => close::SUPERSEDED,
            Ended::Removed => close::REMOVED,
            Ended::RoomClosed => (close::CLOSING.0, "the room was closed"),
        }
    }
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    Moment::now().wall_ms
}
