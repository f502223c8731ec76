//! `/admin/keys`: creates, lists, rotates and revokes keys.

use access::{KeyError, Keys, Moment, NewKey};
use axum::{
    Json,
    body::Body,
    extract::{Path, Request, State, rejection::PathRejection},
    response::IntoResponse,
};
use base::{KeyId, KeyScope, RoomId};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use protocol::admin::{CreateKey, KeyJson, KeyList};
use store::KeyRecord;

use super::{
    Operator, blocking,
    bound::{RoomName, RoomNames},
    failed, operator,
};
use crate::{
    error::{ApiError, Kind},
    read,
    state::Api,
};

/// The longest body of a request for a key, in bytes: a key may name many models.
const LONGEST: usize = 1024 * 1024;

type Id = Result<Path<String>, PathRejection>;

pub(crate) async fn list(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let (keys, rooms) = (api.keys().list(), rooms(&api));
    let shown = keys.iter().map(|key| rooms.show(shown(key)));
    Ok(Json(KeyList { keys: shown.collect() }))
}

pub(crate) async fn show(
    State(api): State<Api>,
    id: Id,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let id = key_id(id)?;
    let found = api.keys().list().into_iter().find(|key| key.id == id);
    let key = found.map(|key| rooms(&api).show(shown(&key)));
    key.map(Json).ok_or_else(|| KeyError::NotFound(id).into())
}

pub(crate) async fn create(
    State(api): State<Api>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let (parts, mut body) = request.into_parts();
    let (operator, request) = match operator_and_request(&api, &parts.headers, &mut body).await {
        Ok(request) => request,
        Err(error) => {
            read::discard(&parts.headers, body).await;
            return Err(error);
        }
    };
    let rooms = rooms(&api);
    let made = change(&api, move |keys| made(&keys, request, &rooms, Moment::now())).await;
    let target = made.as_ref().map_or("", |key| key.id.as_str());
    operator.record(&api, "key.create", target, &made).await;
    Ok((StatusCode::CREATED, Json(made?)))
}

/// Checks the caller's rights before it reads the body: a stranger's body is not read.
async fn operator_and_request(
    api: &Api,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<(Operator, CreateKey), ApiError> {
    let operator = operator(api, headers)?;
    let body = read::read(headers, body, LONGEST, &mut api.uploads().hold()).await?;
    let request = serde_json::from_slice(&body).map_err(|error| {
        let words = format!("that is no key to be made: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    })?;
    Ok((operator, request))
}

pub(crate) async fn rotate(
    State(api): State<Api>,
    id: Id,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let id = key_id(id)?;
    let target = id.clone();
    let rotated = change(&api, move |keys| rotated(&keys, &target)).await;
    operator.record(&api, "key.rotate", id.as_str(), &rotated).await;
    Ok(Json(rotated?))
}

pub(crate) async fn revoke(
    State(api): State<Api>,
    id: Id,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let id = key_id(id)?;
    let target = id.clone();
    let revoked = change(&api, move |keys| revoked(&keys, &target, Moment::now())).await;
    // Also when the store failed, because in memory the key is already revoked.
    api.scheduler().revoke(&id);
    operator.record(&api, "key.revoke", id.as_str(), &revoked).await;
    Ok(Json(revoked?))
}

/// Creates a key. Its text is shown in this answer only.
///
/// # Errors
/// [`KeyError`] when it cannot be created, or its room does not exist.
pub fn made(
    keys: &Keys,
    request: CreateKey,
    rooms: &RoomNames,
    now: Moment,
) -> Result<KeyJson, KeyError> {
    let room = request.room.map(|code| rooms.meant(&code)).transpose()?;
    let new = NewKey {
        name: request.name,
        scopes: request.scopes.unwrap_or_else(|| vec![KeyScope::Inference]),
        models: request.models.unwrap_or_default(),
        limits: request.limits.unwrap_or_default(),
        expires: request.expires_at.map(seconds),
        room,
    };
    let (record, text) = keys.create(new, now)?;
    Ok(KeyJson { key: Some(text.expose().to_owned()), ..shown(&record) })
}

/// Gives a key a new text, which is shown in this answer only.
///
/// # Errors
/// [`KeyError`] when it cannot be rotated.
pub fn rotated(keys: &Keys, id: &KeyId) -> Result<KeyJson, KeyError> {
    let (record, text) = keys.rotate(id)?;
    Ok(KeyJson { key: Some(text.expose().to_owned()), ..shown(&record) })
}

/// Revokes a key.
///
/// # Errors
/// [`KeyError`] when the key does not exist, or the change cannot be written.
pub fn revoked(keys: &Keys, id: &KeyId, now: Moment) -> Result<KeyJson, KeyError> {
    keys.revoke(id, now).map(|record| shown(&record))
}

/// A key as it is shown, with the id of its room.
pub fn shown(key: &KeyRecord) -> KeyJson {
    KeyJson {
        id: key.id.to_string(),
        name: key.name.clone(),
        prefix: key.prefix.clone(),
        scopes: key.scopes.clone(),
        models: key.models.clone(),
        limits: key.limits,
        room: key.room.as_ref().map(ToString::to_string),
        created_at: timestamp(key.created),
        expires_at: key.expires.map(timestamp),
        revoked_at: key.revoked.map(timestamp),
        last_used_at: key.last_used.map(timestamp),
        key: None,
    }
}

/// The time that is this many seconds after the start of 1970, or the calendar's last time if that is too late for it.
pub(crate) fn timestamp(seconds: u64) -> Timestamp {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}

/// Seconds since 1970, or 0 for a time before that.
fn seconds(at: Timestamp) -> u64 {
    u64::try_from(at.as_second()).unwrap_or(0)
}

async fn change(
    api: &Api,
    change: impl FnOnce(Keys) -> Result<KeyJson, KeyError> + Send + 'static,
) -> Result<KeyJson, ApiError> {
    let keys = api.keys().clone();
    let changed = blocking(move || change(keys)).await?;
    Ok(rooms(api).show(changed?))
}

fn rooms(api: &Api) -> RoomNames {
    let (rooms, name) = (&api.rooms().rooms, |id: &RoomId, short: &str, spoken: &str| RoomName {
        id: id.clone(),
        short_code: short.to_owned(),
        spoken_code: spoken.to_owned(),
    });
    let here = rooms.list().into_iter();
    let here = here.map(|room| name(room.id(), room.short_code(), room.spoken_code()));
    let there = rooms.list_elsewhere().into_iter();
    let there = there.map(|room| name(room.id(), room.short_code(), room.spoken_code()));
    here.chain(there).collect()
}

fn key_id(id: Id) -> Result<KeyId, ApiError> {
    let Path(id) = id.map_err(|_| {
        let words = "that is no key's id";
        ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words)
    })?;
    if access::has_key_form(&id) {
        // The client sent a key where its id belongs: the key is neither repeated nor logged.
        let words = "that is a key, not its id, which begins with k-: GET /admin/keys tells it";
        return Err(ApiError::new(StatusCode::NOT_FOUND, Kind::NotFound, words));
    }
    Ok(KeyId::from(id))
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        let (status, kind) = match &error {
            KeyError::Invalid(_) => (StatusCode::BAD_REQUEST, Kind::Invalid),
            KeyError::NotFound(_) => (StatusCode::NOT_FOUND, Kind::NotFound),
            KeyError::Revoked(_) | KeyError::TooMany => (StatusCode::CONFLICT, Kind::Invalid),
            KeyError::Store(_) | KeyError::NotWritten(_) => return failed(&error),
        };
        Self::new(status, kind, error.to_string())
    }
}
