//! Event streams: of one room as the spec's messages or as named events, and of all rooms.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use access::Moment;
use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use http::{StatusCode, request::Parts};
use protocol::room::{RoomEvent, event::Connected, plane::ErrorCode};
use rooms::{Form, Next, Room, Source, Subscription};

use super::{
    access::{Viewer, enter, enter_by_id, parameter},
    failure::Failure,
    stream::{EventStream, Frames},
    watchers::{TooManyWatchers, WatcherPlace},
};
use crate::state::Api;

type Code = Result<Path<String>, PathRejection>;

/// The `retry-after` for a watcher that is one too many.
const AGAIN: Duration = Duration::from_secs(10);

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/events", get(of_role))
        .route("/rooms/{code}/events", get(messages))
        .route("/v1/rooms/{code}/events", get(named))
}

/// `GET /rooms/{code}/events`: the spec's messages as unnamed events.
async fn messages(State(api): State<Api>, code: Code, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let watching = match code {
        Ok(Path(code)) => in_room(&api, &parts, &code, Form::Messages).await,
        Err(_) => Err(Failure::no_route()),
    };
    watching.unwrap_or_else(Failure::plain)
}

/// `GET /v1/rooms/{code}/events`: named events as stock clients read them; with `?ids=true` they have ids.
async fn named(State(api): State<Api>, code: Code, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let with_ids = parameter(&parts.uri, "ids").is_some_and(|ids| ids == "true" || ids == "1");
    let form = if with_ids { Form::NamedWithIds } else { Form::Named };
    let watching = match code {
        Ok(Path(code)) => in_room(&api, &parts, &code, form).await,
        Err(_) => Err(Failure::no_route()),
    };
    watching.unwrap_or_else(IntoResponse::into_response)
}

async fn in_room(api: &Api, parts: &Parts, code: &str, form: Form) -> Result<Response, Failure> {
    let room = enter(api, parts, code).await?;
    watch(api, parts, &room, form)
}

/// `GET /events?role=tui`: the events of all rooms that the caller may see. `?role=host&room=…`:
/// those of one room, named by its code or id.
async fn of_role(State(api): State<Api>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let (role, room) = (parameter(&parts.uri, "role"), parameter(&parts.uri, "room"));
    let watching = match (role.as_deref(), room) {
        (Some("tui") | None, None) => watch_all(&api, &parts),
        (Some("host" | "tui") | None, Some(room)) => match enter_by_id(&api, &parts, &room).await {
            Ok(room) => watch(&api, &parts, &room, Form::Messages),
            Err(refused) => Err(refused.into()),
        },
        (Some("host"), None) => {
            Err(Failure::invalid("A host watches one room: add `&room=CODE`, or the room's id."))
        }
        (Some(_), _) => {
            Err(Failure::invalid("There is no such role: use `role=tui` or `role=host&room=CODE`."))
        }
    };
    watching.unwrap_or_else(Failure::message)
}

fn watch(api: &Api, parts: &Parts, room: &Arc<Room>, form: Form) -> Result<Response, Failure> {
    let watching = api.watchers().add(Some(room.id()))?;
    let subscription = room.subscribe(form, after(parts));
    let first = match form {
        Form::Messages => None,
        Form::Named => Some(connected(room, None)),
        // The id lets a client resume when it loses the connection before any event.
        Form::NamedWithIds => Some(connected(room, Some(subscription.last_id()))),
    };
    let watch = Watch { subscription, _watching: watching };
    Ok(EventStream::new(watch).beginning_with(first).until(api.draining()).response())
}

fn watch_all(api: &Api, parts: &Parts) -> Result<Response, Failure> {
    let watching = api.watchers().add(None)?;
    // Taken before the viewer's rights are judged: a key that is revoked in between ends the stream, too.
    let end = end_of_credential(api, parts);
    let viewer = Viewer::of(api, parts);
    let may_see = move |room: &Source| viewer.sight(room);
    let subscription = api.rooms().rooms.subscribe(may_see, after(parts));
    let watch = Watch { subscription, _watching: watching };
    Ok(EventStream::new(watch).until(api.draining()).or_until(end).response())
}

/// Waits until the key or the session of the page that a request came with has ended.
fn end_of_credential(api: &Api, parts: &Parts) -> impl Future<Output = ()> + Send + use<> {
    let presented = access::presented(&parts.headers);
    let end = presented.map(|text| api.keys().end_of(text, Moment::now()));
    async move {
        match end {
            Some(end) => end.await,
            None => std::future::pending().await,
        }
    }
}

/// The first event of named streams.
fn connected(room: &Room, id: Option<u64>) -> Bytes {
    let connected = RoomEvent::Connected(Connected { client_id: rooms::uuid() });
    connected.frame(id, Moment::now().wall_ms, room.short_code()).into()
}

/// The id of the last event that a client has seen. Without an id, or with one that is not a number, the stream begins
/// now.
fn after(parts: &Parts) -> Option<u64> {
    let header = parts.headers.get("last-event-id").and_then(|id| id.to_str().ok());
    if let Some(id) = header {
        return id.trim().parse().ok();
    }
    let id = parameter(&parts.uri, "lastEventId").or_else(|| parameter(&parts.uri, "after"));
    id.and_then(|id| id.trim().parse().ok())
}

struct Watch {
    subscription: Subscription,
    _watching: WatcherPlace,
}

impl Frames for Watch {
    fn poll_frames(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        Poll::Ready(match ready!(self.subscription.poll_next(cx)) {
            Next::Frames(frames) | Next::Lagged(frames) => Some(frames),
            Next::Closed => None,
        })
    }
}

impl From<TooManyWatchers> for Failure {
    fn from(_: TooManyWatchers) -> Self {
        let (status, code) = (StatusCode::SERVICE_UNAVAILABLE, ErrorCode::TooMany);
        Self::new(status, code, "Too many watch already.").retry_after(AGAIN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_seen(uri: &str, header: Option<&str>) -> Option<u64> {
        let request = http::Request::get(uri);
        let request = match header {
            Some(id) => request.header("last-event-id", id),
            None => request,
        };
        after(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn the_last_event_is_told_in_a_header_or_in_the_query() {
        assert_eq!(last_seen("/events", None), None);
        assert_eq!(last_seen("/events?after=3", Some("7")), Some(7));
        assert_eq!(last_seen("/events?role=tui&lastEventId=5", None), Some(5));
        assert_eq!(last_seen("/events?after=3", None), Some(3));
        for odd in ["", "-1", "abc", "99999999999999999999"] {
            assert_eq!(last_seen("/events", Some(odd)), None, "{odd:?}");
        }
    }
}
