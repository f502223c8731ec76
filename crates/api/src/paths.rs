//! The path of a request without its room, and paths that a client has put together from a wrong base URL.
//!
//! Some clients add `/v1/messages` to their base URL, others `/messages`: with the wrong base URL, `/v1` is in the
//! path twice or not at all. Such a path can mean only one thing. This is about the paths of consumers alone, also
//! below a room's base URL.

use base::Endpoint;
use http::{HeaderMap, Uri};

/// The header that every client of Anthropic's API sends.
const ANTHROPIC: &str = "anthropic-version";

/// The version, as a part of paths.
const V1: &str = "/v1";

/// Gemini's version, which is the beginning of all its paths.
const V1BETA: &str = "/v1beta";

/// The path to which Cohere's newer clients post documents to be ranked.
const RERANK_2: &str = "/v2/rerank";

/// The same path without its version.
const RERANK: &str = "/rerank";

/// Anthropic's Messages without the version. It is also the path of rooms' messages.
const MESSAGES: &str = "/messages";

/// The path that a client meant with the path of its request, if that is another one.
pub fn meant(path: &str, headers: &HeaderMap) -> Option<String> {
    let (room, given) = split_room(path);
    if is_served(given) || (given == MESSAGES && !headers.contains_key(ANTHROPIC)) {
        return None;
    }
    let (version, rest) = last_of(given)?;
    Some(format!("{room}{version}{rest}"))
}

/// The last path of consumers within this path, after the version that it needs in front. Before it, `path` may have
/// versions and the paths of endpoints, but nothing else.
fn last_of(path: &str) -> Option<(&'static str, &str)> {
    let mut rest = path;
    loop {
        rest = without_versions(rest);
        if is_geminis(rest) {
            return Some(("", rest));
        }
        if rest == RERANK_2 {
            return Some((V1, RERANK));
        }
        if is_served_below_v1(rest) {
            return Some((V1, rest));
        }
        if is_served_without_v1(rest) {
            return Some(("", rest));
        }
        rest = after_endpoint(rest)?;
    }
}

fn without_versions(mut path: &str) -> &str {
    loop {
        let after =
            |version| path.strip_prefix(version).filter(|rest: &&str| rest.starts_with('/'));
        // Gemini's version belongs to its paths: it is too much only if another version follows.
        let doubled = || after(V1BETA).filter(|rest| rest.starts_with(V1));
        match after(V1).or_else(doubled) {
            Some(rest) => path = rest,
            None => return path,
        }
    }
}

/// The rest of the path after the path of an endpoint. A base URL that names the endpoint puts that in front.
fn after_endpoint(path: &str) -> Option<&str> {
    let after = |endpoint| path.strip_prefix(below_v1(endpoint)?);
    Endpoint::ALL.into_iter().filter_map(after).find(|rest| rest.starts_with('/'))
}

/// Whether an API serves this path.
pub(crate) fn is_served(path: &str) -> bool {
    is_served_without_v1(path)
        || is_geminis(path)
        || path.strip_prefix(V1).is_some_and(is_served_below_v1)
}

/// Whether this is the whole path of an endpoint of an API whose paths do not begin with `/v1`.
fn is_served_without_v1(path: &str) -> bool {
    Endpoint::of_path(path).is_some_and(|endpoint| below_v1(endpoint).is_none())
}

/// Whether an API serves this path once `/v1` is put in front of it.
fn is_served_below_v1(path: &str) -> bool {
    let is_endpoint = |endpoint| below_v1(endpoint) == Some(path);
    Endpoint::ALL.into_iter().any(is_endpoint) || is_models(path) || is_response(path)
}

fn is_models(path: &str) -> bool {
    path.strip_prefix("/models").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether this is the path of an earlier response, and not the path of the Responses API written twice.
fn is_response(path: &str) -> bool {
    path.strip_prefix("/responses/").is_some_and(|id| id != "responses" && id != "v1/responses")
}

/// Whether this is the path of one of Gemini's models or calls, with no other version in front of Gemini's own.
fn is_geminis(path: &str) -> bool {
    let below = path.strip_prefix(V1BETA).and_then(|rest| rest.strip_prefix('/'));
    let is_of = |rest: &str| {
        let collection = rest.split(['/', ':']).next().unwrap_or_default();
        matches!(collection, "models" | "tunedModels")
    };
    below.is_some_and(is_of)
}

fn below_v1(endpoint: Endpoint) -> Option<&'static str> {
    endpoint.path().strip_prefix(V1).filter(|rest| rest.starts_with('/'))
}

/// The path of a request without its room, whose code is a credential: `/rooms/CODE/v1/models`
/// becomes `/v1/models`.
pub(crate) fn path(uri: &Uri) -> &str {
    match split_room(uri.path()) {
        (_, "") => "/",
        (_, path) => path,
    }
}

/// A path in two parts: the room's, such as `/rooms/CODE`, which is empty on other paths; and the rest.
pub(crate) fn split_room(path: &str) -> (&str, &str) {
    const ROOMS: &str = "/rooms/";
    let Some(in_room) = path.strip_prefix(ROOMS) else { return ("", path) };
    path.split_at(in_room.find('/').map_or(path.len(), |end| ROOMS.len() + end))
}

/// Path and query for a provider: without the room and its password.
pub(crate) fn without_room(uri: &Uri) -> String {
    let path = path(uri);
    if path.len() == uri.path().len() {
        return uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    }
    let query = uri.query().map(without_password).unwrap_or_default();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// The parameter's name is compared decoded, as in the check of the password: it may be
/// percent-encoded.
fn without_password(query: &str) -> String {
    let is_password = |pair: &&str| {
        let mut parsed = form_urlencoded::parse(pair.as_bytes());
        parsed.next().is_some_and(|(name, _)| name == "password")
    };
    query.split('&').filter(|pair| !is_password(pair)).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant_by(path: &str) -> Option<String> {
        meant(path, &HeaderMap::new())
    }

    #[test]
    fn every_consumers_path_is_found_with_its_version_missing_or_doubled() {
        let endpoints = Endpoint::ALL.map(Endpoint::path);
        for path in endpoints.into_iter().chain(["/v1/models", "/v1/models/a/b:c"]) {
            for room in ["", "/rooms/AB12CD"] {
                let whole = format!("{room}{path}");
                assert_eq!(meant_by(&whole), None, "{whole} is what it says");
                for wrong in [format!("{room}/v1{path}"), format!("{room}/v1/v1{path}")] {
                    assert_eq!(meant_by(&wrong), Some(whole.clone()), "{wrong}");
                }
                let bare = path.strip_prefix("/v1").filter(|bare| bare.starts_with('/'));
                let Some(bare) = bare.filter(|bare| *bare != MESSAGES) else { continue };
                assert_eq!(meant_by(&format!("{room}{bare}")), Some(whole.clone()), "{bare}");
            }
        }
    }

    #[test]
    fn a_base_that_names_an_endpoint_is_understood() {
        for (given, whole) in [
            ("/v1/chat/completions/chat/completions", "/v1/chat/completions"),
            ("/v1/chat/completions/v1/chat/completions", "/v1/chat/completions"),
            ("/v1/chat/completions/models", "/v1/models"),
            ("/v1/messages/v1/messages", "/v1/messages"),
            ("/v1/messages/messages/count_tokens", "/v1/messages/count_tokens"),
            ("/v1/responses/responses", "/v1/responses"),
            ("/v2/rerank", "/v1/rerank"),
            ("/v1/v2/rerank", "/v1/rerank"),
            ("/rooms/A/v2/rerank", "/rooms/A/v1/rerank"),
            ("/rooms/A/v1/responses/v1/responses", "/rooms/A/v1/responses"),
        ] {
            assert_eq!(meant_by(given).as_deref(), Some(whole), "{given}");
        }
    }

    #[test]
    fn a_version_before_geminis_is_one_too_many() {
        let call = "/v1beta/models/m:generateContent";
        for (given, whole) in [
            (format!("/v1{call}"), call),
            (format!("/v1beta{call}"), call),
            (format!("/v1/chat/completions{call}"), call),
            ("/v1beta/v1/models/m:countTokens".to_owned(), "/v1/models/m:countTokens"),
            ("/v1/v1/models/m:countTokens".to_owned(), "/v1/models/m:countTokens"),
            ("/v1/v1beta/models".to_owned(), "/v1beta/models"),
        ] {
            assert_eq!(meant_by(&given).as_deref(), Some(whole), "{given}");
            assert_eq!(meant_by(whole), None);
        }
        assert_eq!(meant_by("/v1beta/files"), None);
    }

    #[test]
    fn messages_alone_are_anthropics_only_with_its_header() {
        let header = (http::HeaderName::from_static(ANTHROPIC), "2023-06-01".parse().unwrap());
        let headers = HeaderMap::from_iter([header]);
        for (given, whole) in
            [("/messages", "/v1/messages"), ("/rooms/A/messages", "/rooms/A/v1/messages")]
        {
            assert_eq!(meant(given, &headers).as_deref(), Some(whole));
            assert_eq!(meant_by(given), None);
        }
    }

    #[test]
    fn no_other_path_is_changed() {
        for path in [
            "/",
            "*",
            "/admin/keys",
            "/v1/v1/admin/keys",
            "/v1/admin/keys",
            "/v1/rooms",
            "/v1/rooms/A/participants",
            "/v1/v1/rooms",
            "/rooms",
            "/rooms/A",
            "/rooms/A/events",
            "/v1/responses/resp_1",
            "/rooms/A/v1/responses/resp_1/cancel",
            "/v1/health",
            "/v1/worker/connect",
            "/ws",
            "/chat",
            "/v1",
            "/v1/v1",
            "/v1x/models",
            "/modelsx",
            "/v1/chat/completions/x",
            "/v2/chat",
            "/v2/rerank/x",
        ] {
            assert_eq!(meant_by(path), None, "{path}");
        }
    }

    #[test]
    fn the_longest_path_is_read_in_one_go() {
        let path = "/v1/chat/completions".repeat(3_000);
        assert_eq!(meant_by(&path).as_deref(), Some("/v1/chat/completions"));
        assert_eq!(meant_by(&format!("{path}/x")), None);
    }

    #[test]
    fn neither_the_room_nor_its_password_is_passed_on() {
        let cases = [
            ("/v1/messages?beta=true", "/v1/messages?beta=true"),
            ("/v1/messages", "/v1/messages"),
            ("/rooms/AB12CD/v1/messages?password=x&beta=true", "/v1/messages?beta=true"),
            ("/rooms/AB12CD/v1/messages?password=x", "/v1/messages"),
            ("/rooms/AB12CD/v1/messages?b=1&p%61ssword=x", "/v1/messages?b=1"),
            ("/rooms/AB12CD", "/"),
            ("http://host/rooms/a/api/chat?a=1", "/api/chat?a=1"),
        ];
        for (given, sent) in cases {
            assert_eq!(without_room(&given.parse().unwrap()), sent);
        }
    }
}
