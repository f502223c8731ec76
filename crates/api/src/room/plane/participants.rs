//! `/v1/rooms/{code}/participants…`.

use std::sync::Arc;

use access::Moment;
use axum::extract::{Request, State};
use http::{HeaderMap, StatusCode, header, request::Parts};
use protocol::room::plane::{
    HeartbeatAnswer, PutParticipant, PutParticipantAnswer, Success, TunnelPlace,
};
use rooms::{JoinAnswer, JoinRequest, Kind, Room};

use super::{Answer, Code, Ids, good, named};
use crate::{
    admin::blocking,
    room::{
        access::{enter, enter_with, find, from, host_or_session, session},
        failure::Failure,
        homes::PassedOn,
        read_body,
    },
    state::Api,
};

/// `GET /v1/rooms/{code}/participants`.
pub(super) async fn list(State(api): State<Api>, code: Code, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let room = enter(&api, &parts, &named(code)?).await?;
    Ok(good(StatusCode::OK, room.participants()))
}

/// `GET /v1/rooms/{code}/participants/{id}`.
pub(super) async fn show(State(api): State<Api>, ids: Ids, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let (code, id) = named(ids)?;
    let room = enter(&api, &parts, &code).await?;
    let participant = room.participant(&id).ok_or_else(Failure::no_participant)?;
    Ok(good(StatusCode::OK, participant))
}

/// `PUT /v1/rooms/{code}/participants/{id}`: joins, or changes the participant's own description.
pub(super) async fn put(State(api): State<Api>, ids: Ids, request: Request) -> Answer {
    let (parts, body) = request.into_parts();
    let (body, _held) = read_body(&api, &parts, body).await?;
    let (code, id) = named(ids)?;
    // Checked before the body is: without the right code, a client learns nothing about the room.
    find(&api, &parts, &code)?;
    let request = PutParticipant::decode(&body)?;
    let room = enter_with(&api, &parts, &code, request.password.as_deref()).await?;
    let server = server_url(&api, &parts)?;
    let joined = join(&room, joining(id, request, &parts.headers), &parts).await?;
    let tunnel = tunnel(&server, &room, &joined.participant.id)?;
    let status = if joined.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(good(status, answer(&room, joined, tunnel)))
}

fn joining(id: String, request: PutParticipant, headers: &HeaderMap) -> JoinRequest {
    JoinRequest {
        id,
        nickname: request.nickname,
        models: vec![request.model],
        endpoint: request.endpoint,
        specs: request.specs.unwrap_or_default(),
        config: request.config.unwrap_or_default(),
        capabilities: request.capabilities.unwrap_or_default(),
        kind: Kind::Tunnel,
        max_concurrent: request.max_concurrent.unwrap_or(1),
        session: request.session_token.or_else(|| session(headers).map(str::to_owned)),
    }
}

/// Adds a participant to a room.
pub(in crate::room) async fn join(
    room: &Arc<Room>,
    joining: JoinRequest,
    parts: &Parts,
) -> Result<JoinAnswer, Failure> {
    let (room, from) = (Arc::clone(room), from(parts));
    Ok(blocking(move || room.join(joining, from, Moment::now().wall_ms)).await??)
}

fn answer(room: &Room, joined: JoinAnswer, tunnel: TunnelPlace) -> PutParticipantAnswer {
    PutParticipantAnswer {
        participant: joined.participant,
        room_id: room.id().to_string(),
        tunnel,
        session_token: Some(joined.session.expose().to_owned()),
    }
}

/// The URL at which a participant opens its tunnel, with the token for that.
fn tunnel(server: &str, room: &Room, id: &str) -> Result<TunnelPlace, Failure> {
    let token = room.tunnel_token(id, Moment::now().wall_ms)?.expose().to_owned();
    let (code, id) = (room.short_code(), in_path(id));
    Ok(TunnelPlace { token, url: format!("{server}/v1/rooms/{code}/participants/{id}/tunnel") })
}

/// The URL of this server's WebSockets, with the host name that the client used.
fn server_url(api: &Api, parts: &Parts) -> Result<String, Failure> {
    let scheme = if is_secure(api, parts) { "wss" } else { "ws" };
    Ok(format!("{scheme}://{}", host(parts)?))
}

/// Whether the client speaks TLS, with the server that it reached or with a proxy in front of it. The proxy's header
/// is trusted, because it only changes the URL in the answer to its own client.
fn is_secure(api: &Api, parts: &Parts) -> bool {
    let forwarded = parts.headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let first = forwarded.and_then(|protocols| protocols.split(',').next()).map(str::trim);
    let by_server = || PassedOn::tells_of_tls(&parts.extensions).unwrap_or(api.rooms().tls);
    first.map_or_else(by_server, |protocol| protocol.eq_ignore_ascii_case("https"))
}

fn host(parts: &Parts) -> Result<&str, Failure> {
    let header = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = header.or_else(|| Some(parts.uri.authority()?.as_str()));
    host.filter(|host| host.parse::<http::uri::Authority>().is_ok()).ok_or_else(|| {
        Failure::invalid("The request has no Host: where its tunnel is opened cannot be told.")
    })
}

/// A text as a segment of a path.
fn in_path(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let encoded = text.bytes().map(|byte| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    encoded.collect()
}

/// `DELETE /v1/rooms/{code}/participants/{id}`: for the participant itself and the host.
pub(super) async fn remove(State(api): State<Api>, ids: Ids, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let (code, id) = named(ids)?;
    let room = find(&api, &parts, &code)?;
    let (shown, from) = (host_or_session(&parts.headers).map(str::to_owned), from(&parts));
    blocking(move || room.leave(&id, shown.as_deref(), from)).await??;
    Ok(good(StatusCode::OK, Success { success: true }))
}

/// `POST /v1/rooms/{code}/participants/{id}/heartbeat`.
pub(super) async fn heartbeat(State(api): State<Api>, ids: Ids, request: Request) -> Answer {
    let (parts, _) = request.into_parts();
    let (code, id) = named(ids)?;
    let last_seen = Moment::now().wall_ms;
    let status = find(&api, &parts, &code)?.heartbeat(&id, last_seen)?;
    Ok(good(StatusCode::OK, HeartbeatAnswer { success: true, status, last_seen }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stays_within_its_segment_of_a_path() {
        assert_eq!(in_path("worker-1_a.b~c"), "worker-1_a.b~c");
        assert_eq!(in_path("a/b?c d%é"), "a%2Fb%3Fc%20d%25%C3%A9");
    }
}
