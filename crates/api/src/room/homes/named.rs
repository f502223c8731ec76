//! Which room a request is about: by the code in its path or query, or by a key that is bound to a room.

use access::Moment;
use axum::{RequestPartsExt, extract::RawPathParams};
use base::RoomId;
use http::request::Parts;

use crate::{paths, room::access::parameter, state::Api};

/// The name of the parameter for the code, in the routes of a single room.
const CODE: &str = "code";

/// The paths whose query names a room, each with the parameter's name.
const IN_QUERY: [(&str, &str); 2] = [("/v1/worker/connect", "room"), ("/events", "room")];

/// The paths of Ollama's API.
const OLLAMA: &str = "/api/";

/// How a request names its room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RoomReference {
    /// By its code or its id.
    Code(String),
    /// By a key that is bound to it.
    Bound(RoomId),
}

/// The room that a request names. Called after routing, which finds the parameters of the path.
pub(super) async fn of(api: &Api, parts: &mut Parts) -> Option<RoomReference> {
    if let Some(code) = in_path(parts).await.or_else(|| in_query(parts)) {
        return Some(RoomReference::Code(code));
    }
    let shown = access::presented(&parts.headers).filter(|_| is_of_an_api(parts.uri.path()))?;
    api.rules().keys.room_of(shown, Moment::now()).map(RoomReference::Bound)
}

/// Whether a path belongs to an API: only there does a key that is bound to a room lead to the room's home. Every
/// server has the page's own files.
fn is_of_an_api(path: &str) -> bool {
    paths::is_served(path) || path.starts_with(OLLAMA)
}

async fn in_path(parts: &mut Parts) -> Option<String> {
    if !parts.uri.path().contains("/rooms/") {
        return None;
    }
    let params = parts.extract::<RawPathParams>().await.ok()?;
    params.iter().find(|(name, _)| *name == CODE).map(|(_, code)| code.to_owned())
}

fn in_query(parts: &Parts) -> Option<String> {
    let (_, name) = IN_QUERY.into_iter().find(|(path, _)| parts.uri.path() == *path)?;
    parameter(&parts.uri, name).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leads_to_its_room_at_the_paths_of_apis_only() {
        for path in ["/v1/chat/completions", "/v1/models/m", "/v1/responses/r1", "/api/tags"] {
            assert!(is_of_an_api(path), "{path}");
        }
        for path in
            ["/", "/admin/keys", "/v1/rooms", "/v1/rooms/A/events", "/assets/a.js", "/events"]
        {
            assert!(!is_of_an_api(path), "{path}");
        }
    }
}
