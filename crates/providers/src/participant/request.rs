//! A job as a frame.

use std::{borrow::Cow, collections::BTreeMap};

use base::JobId;
use protocol::room::tunnel::{ToParticipant, TunnelRequest, operation};
use scheduler::JobRequest;
use serde_json::value::RawValue;
use wire::{Frame, FrameSource};

use crate::unsent::Unsent;

/// The id of a request, never used before on any tunnel: a job may come back to the participant that
/// had it.
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
        headers: if body.is_some() { stock_headers() } else { BTreeMap::new() },
        body,
        stream: request.streaming,
    });
    Ok(frame.encode())
}

/// With the capitals that stock servers write.
fn stock_headers() -> BTreeMap<String, String> {
    BTreeMap::from([("Content-Type".to_owned(), "application/json".to_owned())])
}

/// A frame that is sent when the socket takes it, unless its job is cancelled before.
pub(super) struct Sending(pub(super) Unsent<String>);

impl FrameSource for Sending {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        Some((self.0.take()?.into(), false))
    }
}
