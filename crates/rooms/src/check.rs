//! Validation of input to rooms; the bounds are the protocol's.

use protocol::room::{
    RuntimeConfig,
    limits::{self, MAX_MODELS, Unfit},
};

use crate::{
    error::RoomError,
    participant::{JoinRequest, Kind},
};

pub(crate) fn join_request(request: &JoinRequest) -> Result<(), RoomError> {
    field("id", limits::id(&request.id))?;
    field("nickname", limits::nickname(&request.nickname))?;
    field("endpoint", limits::endpoint(&request.endpoint))?;
    // A worker may learn its models later.
    if request.models.is_empty() && request.kind != Kind::Worker {
        return field("model", Err(Unfit::Empty));
    }
    if request.models.len() > MAX_MODELS {
        return field("model", Err(Unfit::TooMany(MAX_MODELS)));
    }
    request.models.iter().try_for_each(|name| model(name))?;
    request.specs.check().map_err(|error| RoomError::Invalid(format!("`specs`: {error}")))?;
    config("config", &request.config)
}

/// Checks the name of a model in a room. `*` means every model elsewhere; here it would match other
/// participants.
pub(crate) fn model(name: &str) -> Result<(), RoomError> {
    if name == "*" {
        return Err(RoomError::Invalid("`model` must be a model's name, not `*`".to_owned()));
    }
    field("model", limits::model(name))
}

/// A room's name, without the white space around it.
pub(crate) fn room_name(name: &str) -> Result<String, RoomError> {
    field("name", limits::room_name(name))?;
    Ok(name.trim().to_owned())
}

/// Checks default parameters.
pub(crate) fn config(name: &str, config: &RuntimeConfig) -> Result<(), RoomError> {
    config.check().map_err(|error| RoomError::Invalid(format!("`{name}`: {error}")))
}

fn field(name: &str, fit: Result<(), Unfit>) -> Result<(), RoomError> {
    fit.map_err(|unfit| RoomError::Invalid(format!("`{name}` {unfit}")))
}
