//! Where a request is served, the server or one room, and which key it counts for.

use std::sync::Arc;

use access::{Admitted, Key, Moment};
use base::{KeyId, ModelName, PageSessionId, RoomId, Scope};
use http::{StatusCode, request::Parts};
use protocol::room::{Selector, selector::participant_name};
use rooms::{Room, room::Available};

use crate::{
    admission::not_allowed,
    error::{ApiError, Kind},
    models::served,
    state::{Api, Peer},
};

/// Where a request is served, and which key it counts for.
pub(crate) struct RequestScope {
    scope: Scope,
    room: Option<Arc<Room>>,
    admitted: Admitted,
}

/// The models that a request's model name stands for.
pub(crate) struct Targets {
    /// The name that the request is counted for: an alias, or a model by the name that it is served by.
    pub(crate) name: ModelName,
    /// The names for the dispatcher, in order of preference. Not empty.
    pub(crate) models: Vec<ModelName>,
    /// Whether the request may be queued when no provider serves any of the models now.
    pub(crate) known: bool,
}

impl RequestScope {
    /// The scope of a request to a path without a room: the server, or the room that its key is bound to.
    ///
    /// # Errors
    /// 401 or 403 when the caller may not use models, 403 when the room of its key is closed.
    pub(crate) fn of_plain(api: &Api, parts: &Parts) -> Result<Self, ApiError> {
        let peer = Peer::of(&parts.extensions);
        Self::of(api, api.rules().admit(peer, &parts.uri, &parts.headers, Moment::now())?)
    }

    /// The scope of an admitted request to a path without a room.
    ///
    /// # Errors
    /// 403 when the room of its key is closed.
    pub(crate) fn of(api: &Api, admitted: Admitted) -> Result<Self, ApiError> {
        let Some(id) = admitted.key.as_ref().and_then(|key| key.room()) else {
            return Ok(Self { scope: Scope::server(), room: None, admitted });
        };
        let room = api.rooms().rooms.get(id.as_str()).ok_or_else(|| closed(id))?;
        Ok(Self::in_room(room, admitted))
    }

    /// A room, for a caller with a key that is bound to it.
    pub(crate) fn with_key(
        room: Arc<Room>,
        key: Arc<Key>,
        page_session: Option<PageSessionId>,
    ) -> Self {
        Self::in_room(room, Admitted { id: key.id().clone(), key: Some(key), page_session })
    }

    /// A room, for a request without a key. It counts for the room's id, because the room's code is
    /// a credential and must not be logged.
    pub(crate) fn for_anybody(room: Arc<Room>) -> Self {
        let id = KeyId::from(room.scope().as_str());
        Self::in_room(room, Admitted::without_key(id))
    }

    fn in_room(room: Arc<Room>, admitted: Admitted) -> Self {
        Self { scope: room.scope(), room: Some(room), admitted }
    }

    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    pub(crate) fn room(&self) -> Option<&Arc<Room>> {
        self.room.as_ref()
    }

    pub(crate) fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// The targets of a request for `model`.
    ///
    /// # Errors
    /// 403 when the key is not for this model; in a room 404 when no participant matches it, and 503
    /// when the one that matches is not connected or nobody lends a model.
    pub(crate) fn resolve(&self, api: &Api, model: &ModelName) -> Result<Targets, ApiError> {
        match &self.room {
            Some(room) => self.resolve_in(room, model),
            None => self.resolve_here(api, model),
        }
    }

    fn resolve_here(&self, api: &Api, model: &ModelName) -> Result<Targets, ApiError> {
        if self.may_not_use(model.as_str()) {
            return Err(not_allowed(model));
        }
        let aliases = api.aliases();
        let alias = served::alias_of(api, &aliases, model);
        let targets = alias.map(|(_, alias)| alias.targets.as_slice());
        let wanted = targets.unwrap_or(std::slice::from_ref(model)).iter();
        let models: Vec<ModelName> =
            wanted.map(|target| served::known_as(api, &self.scope, target)).collect();
        let name = alias.map_or_else(|| models[0].clone(), |(name, _)| name.clone());
        let known = models.iter().any(|target| api.models().knows(&self.scope, target));
        Ok(Targets { name, models, known })
    }

    fn resolve_in(&self, room: &Room, model: &ModelName) -> Result<Targets, ApiError> {
        let find = |model: &ModelName| {
            let selector = Selector::parse(model.as_str());
            let found = room.find(&selector, Moment::now().wall_ms);
            (selector, found)
        };
        let (selector, found) = match (find(model), model.with_or_without_latest()) {
            ((_, Available::Nobody | Available::Empty), Some(other)) => find(&other),
            (found, _) => found,
        };
        match found {
            Available::Known(name) if self.may_not_use(&judged(room, &selector, &name)) => {
                Err(not_allowed(model))
            }
            Available::Known(name) => {
                let (name, models) = (model.clone(), vec![name.into()]);
                Ok(Targets { name, models, known: true })
            }
            Available::Disconnected { .. } => Err(disconnected()),
            Available::Nobody => Err(nobody()),
            Available::Empty => Err(empty()),
        }
    }

    fn may_not_use(&self, model: &str) -> bool {
        self.admitted.key.as_ref().is_some_and(|key| !key.allows(model))
    }
}

/// The name to look up in a key's list of models: a participant's own model, or `*` for any
/// participant, which only a key for every model may use.
fn judged(room: &Room, selector: &Selector, found: &str) -> String {
    match selector {
        Selector::Any => "*".to_owned(),
        Selector::Named(id) if participant_name(id) == found => {
            room.participant(id).map_or_else(String::new, |participant| participant.model)
        }
        _ => found.to_owned(),
    }
}

/// The message is that of stock servers, as in [`disconnected`].
fn nobody() -> ApiError {
    let words = "No available participant for the requested model";
    ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
}

/// The message does not name the room's code, which the holder of a key that is bound to the room may not know.
fn empty() -> ApiError {
    let words = "nobody lends a model in this room: `warren room join CODE`, on a machine with a model server, \
                 lends one";
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Server, words);
    ApiError { code: Some("nobody_lends"), ..error }
}

pub(crate) fn disconnected() -> ApiError {
    let words = "Participant tunnel is not connected";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Server, words)
}

fn closed(id: &RoomId) -> ApiError {
    let words = format!("the API key is bound to a room that was closed ({id}): ask for another");
    let error = ApiError::new(StatusCode::FORBIDDEN, Kind::Permission, words);
    ApiError { code: Some("room_closed"), ..error }
}
