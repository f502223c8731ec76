//! Headers on their way in and out.

use axum::{body::Body, response::Response};
use base::{JobId, Scope};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use protocol::{
    headers::{ROUTE, is_hop_by_hop, named_by_connection, stays_at_server},
    via::{Loop, Marks, VIA},
};
use rand::RngExt;
use scheduler::{Head, exchange::USAGE_HEADER};

use crate::shape::Shape;

/// The header by which a consumer names the only provider that may serve its request.
pub(crate) const PIN: &str = "x-warren-provider";

/// The header about streamed answers whose provider is lost. In a request it says what the client wants to be done
/// then; in a response it says that another provider may go on with this answer.
pub(crate) const RESUME: &str = "x-warren-resume";

/// The header with the job's id, for every client.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The headers for a provider: all but the connection's own headers, the client's credentials and
/// cookies, and headers that show the client's address.
pub(crate) fn for_provider(mut headers: HeaderMap) -> HeaderMap {
    let stays = |name: &str| is_hop_by_hop(name) || stays_at_server(name);
    let staying = headers.keys().filter(|name| stays(name.as_str())).cloned();
    let dropped: Vec<HeaderName> = staying.chain(named(&headers)).collect();
    for name in dropped {
        headers.remove(name);
    }
    headers
}

/// The headers for another server, which serves the request in this one's place: those for a provider, and what the
/// client asks a server for.
pub(crate) fn for_other_server(headers: HeaderMap) -> HeaderMap {
    let wishes = [ROUTE, PIN, RESUME].map(|name| (name, headers.get(name).cloned()));
    let mut headers = for_provider(headers);
    for (name, value) in wishes {
        headers.extend(value.map(|value| (HeaderName::from_static(name), value)));
    }
    headers
}

/// Drops the headers of an answer that concern only the connection on which it came.
pub(crate) fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let all = headers.keys().filter(|name| is_hop_by_hop(name.as_str()));
    let dropped: Vec<HeaderName> = all.cloned().collect();
    dropped.iter().for_each(|name| drop(headers.remove(name)));
}

/// The [`VIA`] header that a request gets as it passes this scope. `own`: the ready header for a request in the
/// server's own scope that has passed no other server.
///
/// # Errors
/// [`Loop`] when the request has passed this scope before.
pub(crate) fn via(
    marks: &Marks,
    own: Option<&HeaderValue>,
    scope: &Scope,
    headers: &HeaderMap,
) -> Result<Option<HeaderValue>, Loop> {
    if !headers.contains_key(VIA) && *scope == Scope::server() {
        return Ok(own.cloned());
    }
    let before = headers.get_all(VIA).iter().filter_map(|value| value.to_str().ok());
    // The marks consist of digits and commas, so the value is valid.
    Ok(HeaderValue::try_from(marks.pass(scope, before)?).ok())
}

/// The same headers, with the request's [`VIA`] header.
pub(crate) fn put_via(mut headers: HeaderMap, via: Option<HeaderValue>) -> HeaderMap {
    headers.extend(via.map(|via| (HeaderName::from_static(VIA), via)));
    headers
}

fn named(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> + '_ {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(named_by_connection)
        .filter_map(|name| HeaderName::try_from(name).ok())
}

/// The response to a client: the backend's status and headers, the job's id where `shape`'s clients
/// look for it, and a header that keeps proxies from buffering a stream.
pub(crate) fn for_client(head: Head, shape: &dyn Shape, id: JobId, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    let headers = response.headers_mut();
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    put_job_id(headers, shape, id);
    response
}

/// Adds the job's id. If the API has its own header for an id, the backend's id stays there,
/// because the backend's logs have that id; `x-request-id` carries the job's.
pub(crate) fn put_job_id(headers: &mut HeaderMap, shape: &dyn Shape, id: JobId) {
    put_request_id(headers, id);
    if let (Some(name), Some(id)) = (shape.id_header(), headers.get(REQUEST_ID).cloned()) {
        headers.entry(HeaderName::from_static(name)).or_insert(id);
    }
}

/// A new id for a job, which is also the id of its request.
pub(crate) fn new_id() -> JobId {
    JobId::from_random(rand::rng().random())
}

fn put_request_id(headers: &mut HeaderMap, id: JobId) {
    if let Ok(id) = HeaderValue::from_bytes(&id.text()) {
        headers.insert(REQUEST_ID, id);
    }
}

/// Adds an id to a response without a job, so that people can refer to any request.
pub fn with_request_id<B>(mut response: http::Response<B>) -> http::Response<B> {
    if !response.headers().contains_key(REQUEST_ID) {
        put_request_id(response.headers_mut(), new_id());
    }
    response
}

/// Drops an invalid `content-length`, with which an answer could not be sent at all.
pub(crate) fn drop_bad_length(headers: &mut HeaderMap) {
    let is_length = |value: &HeaderValue| {
        value.as_bytes().iter().all(u8::is_ascii_digit)
            && value.to_str().is_ok_and(|value| value.parse::<u64>().is_ok())
    };
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let good = lengths.next().is_none_or(is_length) && lengths.next().is_none();
    if !good {
        headers.remove(header::CONTENT_LENGTH);
    }
}

/// Keeps only the headers that are needed to read an untrusted answer: other headers, such as those that set
/// cookies, would act in this server's name. A content type that browsers show as a page becomes plain text.
pub(crate) fn keep_content_only(headers: &mut HeaderMap) {
    const KEPT: [HeaderName; 5] = [
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::CONTENT_ENCODING,
        header::RETRY_AFTER,
        USAGE_HEADER,
    ];
    let content =
        KEPT.into_iter().filter_map(|name| headers.remove(&name).map(|value| (name, value)));
    let mut content: HeaderMap = content.collect();
    if !content.get(header::CONTENT_TYPE).is_some_and(is_data) {
        content.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    let nosniff = HeaderValue::from_static("nosniff");
    content.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    *headers = content;
}

/// Whether a content type is plain data: browsers do not show it as a page.
fn is_data(kind: &HeaderValue) -> bool {
    let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.ends_with("+json")
        || matches!(kind, "application/json" | "application/x-ndjson" | "text/event-stream")
        || kind == "text/plain"
        || kind.starts_with("audio/")
}

/// Whether a head announces an event stream to which bytes can be added: not compressed, and of no announced length.
pub(crate) fn is_event_stream(head: &Head) -> bool {
    is_plain_event_stream(head) && !head.headers.contains_key(header::CONTENT_LENGTH)
}

/// Whether a head announces JSON.
pub(crate) fn is_json(head: &Head) -> bool {
    begins_with(&head.headers, "application/json")
}

/// Whether a head announces a stream of events, or of lines, that is not compressed.
pub(crate) fn is_plain_event_stream(head: &Head) -> bool {
    ["text/event-stream", "application/x-ndjson"].iter().any(|it| begins_with(&head.headers, it))
        && !head.headers.contains_key(header::CONTENT_ENCODING)
}

/// Whether the content type begins in this way, whatever the case of its letters.
fn begins_with(headers: &HeaderMap, beginning: &str) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let begins = kind.and_then(|kind| kind.trim_start().get(..beginning.len()));
    begins.is_some_and(|begins| begins.eq_ignore_ascii_case(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_that_is_none_is_dropped() {
        let is_kept = |lengths: &[&'static str]| {
            let length = |value: &&'static str| HeaderValue::from_static(value);
            let mut headers: HeaderMap =
                lengths.iter().map(|value| (header::CONTENT_LENGTH, length(value))).collect();
            drop_bad_length(&mut headers);
            !headers.is_empty()
        };
        assert!(is_kept(&["2"]));
        for bad in [&["abc"][..], &["2, 2"], &["+2"], &[""], &["99999999999999999999"]] {
            assert!(!is_kept(bad), "{bad:?}");
        }
        let mut twice = HeaderMap::new();
        twice.append(header::CONTENT_LENGTH, HeaderValue::from_static("2"));
        twice.append(header::CONTENT_LENGTH, HeaderValue::from_static("3"));
        drop_bad_length(&mut twice);
        assert!(twice.is_empty());
    }

    #[test]
    fn a_strangers_answer_speaks_only_of_its_content() {
        let given = [
            ("content-type", "text/html"),
            ("content-length", "2"),
            ("set-cookie", "a=b"),
            ("access-control-allow-origin", "*"),
            ("x-of-backend", "1"),
        ];
        let given = given
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let mut headers: HeaderMap = given.into_iter().collect();
        keep_content_only(&mut headers);
        assert_eq!(headers.len(), 3, "{headers:?}");
        assert_eq!(headers["content-type"], "text/plain; charset=utf-8");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        for kind in ["application/problem+json", "text/event-stream; charset=utf-8", "audio/mpeg"] {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            keep_content_only(&mut headers);
            assert_eq!(headers["content-type"], kind);
        }
    }

    #[test]
    fn an_id_is_told_once() {
        let response = with_request_id(http::Response::new(()));
        let id = response.headers()["x-request-id"].clone();
        assert_eq!(with_request_id(response).headers()["x-request-id"], id);
    }

    #[test]
    fn credentials_and_connection_headers_stay_here() {
        let given = [
            ("authorization", "Bearer k"),
            ("cookie", "a=b"),
            ("x-api-key", "k"),
            ("connection", "keep-alive, x-hop"),
            ("x-hop", "1"),
            ("te", "trailers"),
            ("host", "localhost"),
            ("anthropic-version", "2023-06-01"),
            ("x-foo", "1"),
        ];
        let given = given
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let sent = for_provider(given.into_iter().collect());
        let mut names: Vec<_> = sent.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["anthropic-version", "x-foo"]);
    }
}
