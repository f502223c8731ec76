//! The rights of keys and members in a room.
//!
//! The code of a room is a credential, and so is its password. Keys of the server and local requests give rights only
//! to make and list rooms; but a key that is bound to a room also counts for inference there.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use access::{Denied, Foreign, Key, Moment};
use base::{ClientAddress, KeyId, KeyScope};
use http::{HeaderMap, StatusCode, Uri, request::Parts};
use protocol::room::{ParticipantInfo, RoomInfo, RoomSummary, plane::ErrorCode};
use rooms::{Caller, EntryError, KnownRoom, Room, Sight, Source};

use super::failure::Failure;
use crate::{
    admin::{self, blocking},
    state::{Api, Client, Peer},
};

/// The header with the token of a room's host, which leaves the place of keys free for the password.
const HOST_TOKEN: &str = "x-warren-host-token";

/// The header with a participant's token.
const SESSION: &str = "x-warren-session";

/// The room of a code. The password is read from where keys are sent, or from `?password=`, because pages cannot add
/// headers to a stream of events.
///
/// # Errors
/// [`EntryError`].
pub(crate) async fn enter(api: &Api, parts: &Parts, code: &str) -> Result<Arc<Room>, EntryError> {
    enter_with(api, parts, code, None).await
}

/// The same for a request whose body may have the password, which then counts.
///
/// # Errors
/// [`EntryError`].
pub(super) async fn enter_with(
    api: &Api,
    parts: &Parts,
    code: &str,
    password: Option<&str>,
) -> Result<Arc<Room>, EntryError> {
    let shown = password.map(Cow::Borrowed).or_else(|| password_of(parts));
    api.rooms().rooms.enter(code, shown.as_deref(), caller(parts)).await
}

/// The same for a room that is named by its id or its code. An unknown id counts as a wrong code.
///
/// # Errors
/// [`EntryError`].
pub(super) async fn enter_by_id(
    api: &Api,
    parts: &Parts,
    id: &str,
) -> Result<Arc<Room>, EntryError> {
    let room = api.rooms().rooms.get(id);
    enter(api, parts, room.as_ref().map_or(id, |room| room.short_code())).await
}

/// The room of a code, for requests that need no password.
///
/// # Errors
/// [`EntryError`].
pub(super) fn find(api: &Api, parts: &Parts, code: &str) -> Result<Arc<Room>, EntryError> {
    api.rooms().rooms.find(code, caller(parts))
}

/// Where a request's client is, for everything that is counted by address.
pub(super) fn from(parts: &Parts) -> ClientAddress {
    Client::of(&parts.extensions)
}

/// The far end of a request's connection.
pub(super) fn peer(parts: &Parts) -> IpAddr {
    Peer::of(&parts.extensions)
}

/// The client of a request, with the host's or participant's token in the request, if it has one.
pub(super) fn caller(parts: &Parts) -> Caller<'_> {
    Caller { from: from(parts), token: host_or_session(&parts.headers) }
}

fn password_of(parts: &Parts) -> Option<Cow<'_, str>> {
    let key = shown(&parts.headers).map(Cow::Borrowed);
    key.or_else(|| parameter(&parts.uri, "password"))
}

/// A parameter of a query, unless it is empty.
pub(super) fn parameter<'a>(uri: &'a Uri, name: &str) -> Option<Cow<'a, str>> {
    let query = uri.query().unwrap_or_default();
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let (_, value) = parameters.find(|(parameter, _)| parameter == name)?;
    Some(value).filter(|value| !value.is_empty())
}

/// The host's token in a request.
pub(super) fn host_token(headers: &HeaderMap) -> Option<&str> {
    header(headers, HOST_TOKEN).or_else(|| shown(headers))
}

/// The participant's token in a request.
pub(super) fn session(headers: &HeaderMap) -> Option<&str> {
    header(headers, SESSION)
}

/// The host's or the participant's token in a request.
pub(super) fn host_or_session(headers: &HeaderMap) -> Option<&str> {
    let own = header(headers, HOST_TOKEN).or_else(|| session(headers));
    own.or_else(|| shown(headers))
}

/// The password or token of a room in the place where keys are sent. A session of the page is neither: a browser sends
/// its cookie with every request.
fn shown(headers: &HeaderMap) -> Option<&str> {
    access::presented(headers).filter(|text| !access::has_session_form(text))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let value = headers.get(name)?.to_str().ok()?.trim();
    Some(value).filter(|value| !value.is_empty())
}

/// The key that a new room counts for. A room may be made with a key of scope `rooms`, by local requests,
/// by administrators, and on a server with open rooms by anybody.
///
/// # Errors
/// 401 or 403, with words on what to do.
pub(super) fn maker(api: &Api, parts: &Parts) -> Result<Option<KeyId>, Failure> {
    let key = match key(api, parts) {
        Ok(Some(key)) => return Ok(Some(key.id().clone())),
        other => other,
    };
    check_key(api, parts)?;
    if api.rooms().permissions.copied().open || sees_all(api, parts) {
        return Ok(None);
    }
    let unknown =
        access::presented(&parts.headers).map_or(Denied::KeyMissing, |_| Denied::KeyUnknown);
    let foreign = || Foreign::of_local(&api.rules().local, peer(parts), &parts.uri, &parts.headers);
    let denied = match key.err() {
        Some(denied) => denied,
        None => match foreign() {
            Some(foreign) => return Err(Denied::Foreign(foreign.into()).into()),
            None => unknown,
        },
    };
    let status = match denied {
        Denied::Scope(_) => StatusCode::FORBIDDEN,
        _ => StatusCode::UNAUTHORIZED,
    };
    let words = format!("Making a room from another machine needs a key of scope rooms: {denied}.");
    let hint = "Make one with `warren key create --scope rooms` on the server, or start the server \
                with `--open-rooms`.";
    Err(Failure::new(status, ErrorCode::Unauthorized, words).hint(hint))
}

/// Checks that the request's key, if any, is valid.
///
/// # Errors
/// 401 when it is not.
pub(super) fn check_key(api: &Api, parts: &Parts) -> Result<(), Failure> {
    let is_operator = || admin::operator_if_any(api, &parts.headers).is_some();
    match api.rules().check_key(&parts.headers, Moment::now()) {
        Err(denied) if !is_operator() => Err(denied.into()),
        _ => Ok(()),
    }
}

/// The key of scope `rooms` that a request carries.
fn key(api: &Api, parts: &Parts) -> Result<Option<Arc<Key>>, Denied> {
    let Some(shown) = access::presented(&parts.headers) else { return Ok(None) };
    api.keys().present(shown, KeyScope::Rooms, Moment::now())
}

/// Whether all rooms are listed for a request: it is local, or the operator's.
fn sees_all(api: &Api, parts: &Parts) -> bool {
    is_local(api, parts) || admin::operator_if_any(api, &parts.headers).is_some()
}

fn is_local(api: &Api, parts: &Parts) -> bool {
    api.rules().is_local(peer(parts), &parts.uri, &parts.headers, Moment::now())
}

/// A room in a list.
pub(super) enum ListedRoom {
    /// A room of this server.
    Here(Arc<Room>),
    /// A room of a fellow.
    There(Arc<KnownRoom>),
}

impl ListedRoom {
    /// The room's fields that decide who may see it.
    pub(super) fn source(&self) -> &Source {
        match self {
            Self::Here(room) => room.source(),
            Self::There(room) => room.source(),
        }
    }

    pub(super) fn summary(&self) -> RoomSummary {
        match self {
            Self::Here(room) => room.summary(),
            Self::There(room) => room.summary(),
        }
    }

    pub(super) fn info(&self) -> RoomInfo {
        match self {
            Self::Here(room) => room.info(),
            Self::There(room) => room.info(),
        }
    }

    /// The room's participants; this server does not know those of a fellow's room.
    pub(super) fn participants(&self) -> Vec<ParticipantInfo> {
        match self {
            Self::Here(room) => room.participants(),
            Self::There(_) => Vec::new(),
        }
    }
}

/// A client that lists rooms.
#[derive(Debug, Clone)]
pub(super) struct Viewer {
    all: bool,
    administers: bool,
    key: Option<KeyId>,
}

impl Viewer {
    /// The client that sends this request.
    pub(super) fn of(api: &Api, parts: &Parts) -> Self {
        let key = key(api, parts).ok().flatten().map(|key| key.id().clone());
        let administers = admin::operator_if_any(api, &parts.headers).is_some();
        Self { all: administers || is_local(api, parts), administers, key }
    }

    /// The rooms that are listed for this client, the oldest first: those of this server and of its fellows.
    pub(super) async fn listed(&self, api: &Api) -> Vec<ListedRoom> {
        let rooms = &api.rooms().rooms;
        let mut listed: Vec<_> = rooms.list().into_iter().map(ListedRoom::Here).collect();
        if api.room_homes().is_some() {
            let asking = rooms.clone();
            // If the store cannot be asked how fellows' rooms are used, they are shown with what was known before.
            let _asked = blocking(move || asking.refresh_uses()).await;
            listed.extend(rooms.list_elsewhere().into_iter().map(ListedRoom::There));
            listed.sort_by_cached_key(|room| room.info().created_at);
        }
        listed.retain(|room| room.source().is_public() || self.is_at_home(room.source()));
        listed
    }

    /// How much of a room's participants and events this client sees without a password.
    pub(super) fn sight(&self, room: &Source) -> Sight {
        match (self.is_at_home(room), room.is_guarded()) {
            _ if self.administers => Sight::All,
            (true, true) => Sight::Stirrings,
            (true, false) => Sight::All,
            (false, guarded) if guarded || !room.is_public() => Sight::Nothing,
            (false, _) => Sight::All,
        }
    }

    fn is_at_home(&self, room: &Source) -> bool {
        self.all || (self.key.is_some() && self.key.as_ref() == room.owner())
    }
}
