//! A job as a frame.

use std::borrow::Cow;

use base::JobId;
use http::{HeaderName, HeaderValue, header};
use protocol::{
    room::tunnel::{ToParticipant, TunnelRequest, operation},
    via::VIA,
};
use scheduler::JobRequest;
use serde_json::value::RawValue;
use wire::{Frame, FrameSource};

use crate::unsent::UnsentRequest;

/// The id of a request, never used before on any tunnel: a job may come back to a participant that
/// had it before.
pub(super) fn id(job: JobId, attempt: u32) -> String {
    if attempt == 0 { job.to_string() } else { format!("{job}.{attempt}") }
}

/// The frame's text.
///
/// # Errors
/// When the body is not JSON, which is all that a frame can hold.
pub(super) fn encode(id: &str, request: &JobRequest) -> Result<String, serde_json::Error> {
    let body: Option<&RawValue> = match &*request.body {
        [] => None,
        body => Some(serde_json::from_slice(body)?),
    };
    let method = request.method.as_str();
    let frame = ToParticipant::Request(TunnelRequest {
        request_id: Cow::Borrowed(id),
        operation: Cow::Borrowed(operation(method, &request.path_and_query)),
        method: Cow::Borrowed(method),
        path: Cow::Borrowed(&request.path_and_query),
        headers: sent_headers(request).filter_map(in_stock_words).collect(),
        body,
        stream: request.streaming,
    });
    Ok(frame.encode())
}

/// The headers that a participant gets: those that stock servers send, and the marks of the scopes
/// that the request has passed.
pub(super) fn sent_headers(
    request: &JobRequest,
) -> impl Iterator<Item = (HeaderName, HeaderValue)> + '_ {
    let json = (!request.body.is_empty()).then_some(HeaderValue::from_static("application/json"));
    let via = request.headers.get(VIA).cloned();
    let json = json.map(|json| (header::CONTENT_TYPE, json));
    json.into_iter().chain(via.map(|via| (HeaderName::from_static(VIA), via)))
}

/// Writes this name with capitals, as stock servers do.
fn in_stock_words((name, value): (HeaderName, HeaderValue)) -> Option<(String, String)> {
    let value = value.to_str().ok()?.to_owned();
    let name = if name == header::CONTENT_TYPE { "Content-Type" } else { name.as_str() };
    Some((name.to_owned(), value))
}

/// A frame that is sent when the socket takes it, unless its job is cancelled first.
pub(super) struct RequestFrame(pub(super) UnsentRequest<String>);

impl FrameSource for RequestFrame {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        Some((self.0.take()?.into(), false))
    }
}
