//! A provider as a member of a room.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use access::Moment;
use base::{Endpoint, ModelName};
use http::Method;
use protocol::room::{RuntimeConfig, defaults, selector, tunnel::close};
use rooms::{Connection, Room, participant::ConnectionEnd, room::ServedParticipant};
use scheduler::{JobRequest, RequestEdit, Terms};
use tokio::time::Instant;

/// A provider's identity in a room.
#[derive(Clone)]
pub(crate) struct Member {
    room: Arc<Room>,
    id: String,
}

impl Member {
    pub(crate) fn new(room: Arc<Room>, id: String) -> Self {
        Self { room, id }
    }

    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The room's data about it; `None` once it has left.
    pub(crate) fn served(&self) -> Option<ServedParticipant> {
        self.room.served(&self.id)
    }

    /// The names under which it offers these models to the dispatcher.
    pub(crate) fn offered(&self, models: &[String]) -> Vec<ModelName> {
        if models.is_empty() {
            return Vec::new();
        }
        let names = selector::offered_names(&self.id, models);
        names.into_iter().map(ModelName::from).collect()
    }

    /// The terms for a job that uses this name: the participant's own model name, and the defaults
    /// of the participant and the room for parameters that the request does not set.
    pub(crate) fn terms(&self, name: ModelName) -> Terms {
        let Some(served) = self.served() else { return Terms { model: name, edit: None } };
        let real = selector::real_model(name.as_str(), &served.models).map(ModelName::from);
        let defaults = Some(served.defaults).filter(|defaults| !defaults.is_empty());
        let edit = defaults.map(|defaults| Arc::new(Defaults(defaults)) as Arc<dyn RequestEdit>);
        Terms { model: real.unwrap_or(name), edit }
    }
}

/// Adds the defaults of the room and of the participant to requests.
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

/// Whether a request generates an answer, rather than querying an earlier one.
fn generates(request: &JobRequest, endpoint: Endpoint) -> bool {
    let path = request.path_and_query.split('?').next().unwrap_or_default();
    request.method == Method::POST && path == endpoint.path()
}

/// A participant's presence in its room, until this is dropped.
pub(crate) struct Presence {
    connection: Connection,
    last: Mutex<Instant>,
}

impl Presence {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, last: Mutex::new(Instant::now()) }
    }

    pub(crate) fn heard(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.connection.heard(now_ms());
    }

    pub(crate) fn silence(&self) -> Duration {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Changes its models.
    pub(crate) fn models(&self, models: Vec<String>) {
        self.connection.models(models, now_ms());
    }

    /// Resolves when the participant has joined again with another description. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.connection.changed().await;
    }

    /// Resolves when the link must end. Returns the close code and reason.
    pub(crate) async fn ended(&self) -> (u16, &'static str) {
        match self.connection.ended().await {
            ConnectionEnd::Superseded => close::SUPERSEDED,
            ConnectionEnd::Removed => close::REMOVED,
            ConnectionEnd::RoomClosed => (close::CLOSING.0, "the room was closed"),
            ConnectionEnd::Moved => (close::CLOSING.0, "another server has taken the room over"),
        }
    }
}

/// The current time, in milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    Moment::now().wall_ms
}
