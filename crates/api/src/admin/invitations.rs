//! `/admin/invitations`: makes, lists and revokes invitations.

use std::time::Duration;

use access::{InvitationError, Moment, invitations::WithKey};
use axum::{
    Json,
    extract::{Path, Request, State, rejection::PathRejection},
    response::IntoResponse,
};
use http::{HeaderMap, StatusCode};
use protocol::admin::invitations::{
    CreateInvitation, InvitationJson, InvitationList, InviteToRoom, RoomCode,
};
use rooms::{Caller, EntryError, Place};
use serde::de::DeserializeOwned;
use store::InvitationRecord;

use super::{Operator, blocking, failed, keys::timestamp, operator, posted};
use crate::{
    error::{ApiError, Kind},
    state::{Api, Client},
};

/// How long an invitation is valid, unless the request says otherwise.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The longest body of a request, in bytes.
const LONGEST: usize = 16 * 1024;

pub(crate) async fn list(
    State(api): State<Api>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    operator(&api, &headers)?;
    let all = api.joining().invitations.list();
    Ok(Json(InvitationList { invitations: all.iter().map(|one| shown(&api, one)).collect() }))
}

pub(crate) async fn create(
    State(api): State<Api>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let (operator, request) = operator_and_request::<CreateInvitation>(&api, request).await?;
    let lasts = request.expires_in_secs.map_or(A_DAY, Duration::from_secs);
    let of = api.clone();
    let made =
        blocking(move || of.joining().invite(request.name, lasts, request.url, true)).await?;
    let made = made.map_err(ApiError::from).map(|(record, code)| {
        let shown = shown(&api, &(record, None));
        InvitationJson { code: Some(code.text.expose().to_owned()), urls: code.urls, ..shown }
    });
    let target = made.as_ref().map_or("", |made| made.id.as_str());
    operator.record(&api, "invitation.create", target, &made).await;
    Ok((StatusCode::CREATED, Json(made?)))
}

pub(crate) async fn create_for_room(
    State(api): State<Api>,
    request: Request,
) -> Result<impl IntoResponse, ApiError> {
    let caller = Caller { from: Client::of(request.extensions()), token: None };
    let (_, InviteToRoom { room, password, url }) = operator_and_request(&api, request).await?;
    let password = password.filter(|password| !password.is_empty());
    let found = spoken_code(&api, &room, password.as_deref(), caller).await;
    let found = found.map_err(|refused| {
        if matches!(refused, EntryError::TooMany { .. }) {
            return ApiError::from(refused);
        }
        let words = format!(
            "{refused}: name a room of `warren room list`, and its password with --password"
        );
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    })?;
    let has_password = password.is_some();
    let code = api.joining().invite_to_room(found, password, url)?;
    Ok(Json(RoomCode { code: code.text.expose().to_owned(), has_password, urls: code.urls }))
}

/// Checks the password of a room of this server or of a fellow. Returns the room's spoken code.
async fn spoken_code(
    api: &Api,
    code: &str,
    password: Option<&str>,
    caller: Caller<'_>,
) -> Result<String, EntryError> {
    let rooms = &api.rooms().rooms;
    if let Place::There(known) = rooms.place(code) {
        rooms.verify_elsewhere(&known, password).await?;
        return Ok(known.spoken_code().to_owned());
    }
    Ok(rooms.enter(code, password, caller).await?.spoken_code().to_owned())
}

pub(crate) async fn revoke(
    State(api): State<Api>,
    meant: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, ApiError> {
    let operator = operator(&api, &headers)?;
    let Path(meant) =
        meant.map_err(|_| ApiError::from(InvitationError::NotFound(String::new())))?;
    let (invitations, named) = (api.joining().invitations.clone(), meant.clone());
    let revoked = blocking(move || invitations.revoke(&named, Moment::now())).await?;
    let revoked = revoked.map_err(ApiError::from);
    let key = revoked.as_ref().ok().and_then(|(record, _)| record.key.as_ref());
    key.into_iter().for_each(|key| api.scheduler().revoke(key));
    operator.record(&api, "invitation.revoke", protocol::json::clip(&meant, 64), &revoked).await;
    Ok(Json(shown(&api, &revoked?)))
}

async fn operator_and_request<T: DeserializeOwned>(
    api: &Api,
    request: Request,
) -> Result<(Operator, T), ApiError> {
    let (operator, body) = posted(api, request, LONGEST).await?;
    let body = if body.is_empty() { b"{}".as_slice() } else { &body };
    let request = serde_json::from_slice(body).map_err(|error| {
        let words = format!("that is no invitation to be made: {error}");
        ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
    })?;
    Ok((operator, request))
}

fn shown(api: &Api, (record, key): &WithKey) -> InvitationJson {
    let InvitationRecord { id, name, created, expires, used, .. } = record;
    let state = api.joining().invitations.state(record, Moment::now());
    InvitationJson {
        id: id.clone(),
        name: key.as_ref().map(|key| key.name.clone()).or_else(|| name.clone()),
        state: state.as_str().to_owned(),
        created_at: timestamp(*created),
        expires_at: timestamp(*expires),
        joined_at: used.map(timestamp),
        key_id: record.key.as_ref().map(ToString::to_string),
        last_seen_at: key.as_ref().and_then(|key| key.last_used).map(timestamp),
        code: None,
        urls: Vec::new(),
    }
}

impl From<InvitationError> for ApiError {
    fn from(error: InvitationError) -> Self {
        let (status, kind) = match error {
            InvitationError::Invalid(_) => (StatusCode::BAD_REQUEST, Kind::Invalid),
            InvitationError::NotFound(_) => (StatusCode::NOT_FOUND, Kind::NotFound),
            InvitationError::TooMany | InvitationError::Ambiguous(_) => {
                (StatusCode::CONFLICT, Kind::Invalid)
            }
            InvitationError::Key(error) => return error.into(),
            InvitationError::Store(error) => return failed(&error),
        };
        Self::new(status, kind, error.to_string())
    }
}
