//! `/v1/rooms` and `/v1/rooms/{code}`.

use std::sync::Arc;

use access::Moment;
use axum::extract::{Request, State};
use http::{StatusCode, request::Parts};
use protocol::room::plane::{ChangeRoom, CreateRoom, CreatedRoom, ErrorCode, Success};
use rooms::{HostedRoom, NewRoom, Room};

use super::{Answer, Code, good, named};
use crate::{
    admin::{blocking, failed, operator_if_any},
    error::ApiError,
    room::{
        access::{Viewer, check_key, find, from, host_token, maker},
        failure::Failure,
        read_body,
    },
    state::Api,
};

pub(super) async fn create(State(api): State<Api>, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let (body, _held) = read_body(&api, &parts, body).await?;
    let owner = maker(&api, &parts)?;
    let new = NewRoom::from_request(CreateRoom::decode(&body)?, owner);
    let HostedRoom { room, host_token } = make(&api, &parts, new).await?;
    let (room, host_token) = (room.summary(), Some(host_token.expose().to_owned()));
    let host_id = room.room.host_id.clone();
    Ok(good(StatusCode::CREATED, CreatedRoom { room, host_id, host_token }))
}

/// Makes a room, and notes that its maker's address knows the code: the maker can enter even after too many wrong
/// codes came from that address.
pub(in crate::room) async fn make(
    api: &Api,
    parts: &Parts,
    new: NewRoom,
) -> Result<HostedRoom, Failure> {
    let rooms = api.rooms().rooms.clone();
    let created = blocking(move || rooms.create(new, Moment::now().wall_ms)).await??;
    api.rooms().rooms.knows_code(&created.room, from(parts));
    Ok(created)
}

pub(super) async fn list(State(api): State<Api>, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    check_key(&api, &parts)?;
    let rooms = Viewer::of(&api, &parts).listed(&api).await;
    let summaries: Vec<_> = rooms.iter().map(|room| room.summary()).collect();
    Ok(good(StatusCode::OK, summaries))
}

/// `GET /v1/rooms/{code}`: needs only the code, so that a client can see whether there is a
/// password.
pub(super) async fn show(State(api): State<Api>, code: Code, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let room = find(&api, &parts, &named(code)?)?;
    Ok(good(StatusCode::OK, room.summary()))
}

/// `PATCH /v1/rooms/{code}`: for the host only.
pub(super) async fn change(State(api): State<Api>, code: Code, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let (body, _held) = read_body(&api, &parts, body).await?;
    let room = find(&api, &parts, &named(code)?)?;
    let shown = host_token(&parts.headers).map(str::to_owned);
    if !room.is_host(shown.as_deref()) {
        return Err(not_host(shown.as_deref()));
    }
    let change = ChangeRoom::decode(&body)?;
    let summary = blocking(move || room.change(change, shown.as_deref())).await??;
    Ok(good(StatusCode::OK, summary))
}

/// `DELETE /v1/rooms/{code}`: for the host and the operator.
pub(super) async fn close(State(api): State<Api>, code: Code, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let room = find(&api, &parts, &named(code)?)?;
    let shown = host_token(&parts.headers);
    if room.is_host(shown) {
        end(&api, room, "its host closed it").await?;
    } else {
        let operator = operator_if_any(&api, &parts.headers).ok_or_else(|| not_host(shown))?;
        let id = room.id().clone();
        let went = end(&api, room, "the server's operator closed it").await;
        operator.record(&api, "room.close", id.as_str(), &went).await;
        went?;
    }
    Ok(good(StatusCode::OK, Success { success: true }))
}

async fn end(api: &Api, room: Arc<Room>, reason: &'static str) -> Result<(), ApiError> {
    let (rooms, scope) = (api.rooms().rooms.clone(), room.scope());
    // Before the room's watchers are closed, so that they see the end of its jobs.
    api.scheduler().close(&scope);
    let ended = blocking(move || rooms.close(room.id(), reason)).await?;
    // Once more, for jobs that were submitted in between: no provider would ever take them.
    api.scheduler().close(&scope);
    ended.map_err(|error| failed(&error))
}

fn not_host(shown: Option<&str>) -> Failure {
    let (status, words) = match shown {
        Some(_) => (StatusCode::FORBIDDEN, "This is not the room's host token."),
        None => (StatusCode::UNAUTHORIZED, "Only the room's host may do this."),
    };
    let hint = "Send the `hostToken` that the answer to the room's creation had, as \
                `Authorization: Bearer TOKEN` or as `x-warren-host-token`.";
    Failure::new(status, ErrorCode::Unauthorized, words).hint(hint)
}
