//! A request cut into frames as the socket takes them.

use std::{borrow::Cow, sync::Arc};

use base::JobId;
use http::HeaderMap;
use protocol::relay::{
    BODY_PIECE, Headers,
    binary::{self, RequestHead, ServerFrame, Version},
    encode_request,
};
use scheduler::JobRequest;
use wire::{Frame, FrameSource};

/// The unsent part of a request to a worker.
pub(super) type UnsentRequest = crate::unsent::UnsentRequest<Arc<JobRequest>>;

/// One JSON message (walkthroughs 2 and 3), created when the socket takes it.
pub(super) struct PlainRequest {
    pub(super) id: JobId,
    pub(super) unsent: UnsentRequest,
}

impl FrameSource for PlainRequest {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        let request = self.unsent.take()?;
        // The API has checked that the body is UTF-8; nothing is replaced here.
        let body: Cow<'_, str> = String::from_utf8_lossy(&request.body);
        let text = encode_request(
            &self.id.to_string(),
            request.model.as_str(),
            &request.path_and_query,
            request.streaming,
            &body,
            &joined(&request.headers),
        );
        Some((text.into(), false))
    }
}

/// Joins repeated headers into one header with a list (RFC 9110 section 5.3); values that are not
/// text cannot be sent in this form.
fn joined(headers: &HeaderMap) -> Headers {
    let mut joined = Headers::new();
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|list| {
                list.push_str(", ");
                list.push_str(value);
            })
            .or_insert_with(|| value.to_owned());
    }
    joined
}

/// Binary frames: the head with the first piece of the body, then further pieces. Other jobs'
/// frames may go between them.
pub(super) struct BinaryRequest {
    version: Version,
    number: u32,
    id: JobId,
    unsent: UnsentRequest,
    /// The number of body bytes sent; `None` before the head.
    sent: Option<usize>,
}

impl BinaryRequest {
    pub(super) fn new(version: Version, number: u32, id: JobId, unsent: UnsentRequest) -> Self {
        Self { version, number, id, unsent, sent: None }
    }
}

impl FrameSource for BinaryRequest {
    fn next_frame(&mut self) -> Option<(Frame, bool)> {
        let request = self.unsent.get()?;
        let from = self.sent.unwrap_or(0);
        let to = request.body.len().min(from.saturating_add(BODY_PIECE));
        let piece = request.body.slice(from..to);
        let frame = match self.sent.replace(to) {
            None => {
                let id = self.id.to_string();
                binary::encode_request(self.version, self.number, &head(&id, &request), &piece)
            }
            Some(_) => ServerFrame::Body { job: self.number, piece }.encode(self.version),
        };
        let more = to < request.body.len();
        if !more {
            self.unsent.clear();
        }
        Some((frame.into(), more))
    }
}

fn head<'a>(id: &'a str, request: &'a JobRequest) -> RequestHead<&'a str> {
    RequestHead {
        request_id: id,
        model: request.model.as_str(),
        endpoint_path: &request.path_and_query,
        is_streaming: request.streaming,
        headers: request.headers.iter().collect(),
        body_len: request.body.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(body: usize) -> Arc<JobRequest> {
        let mut headers = HeaderMap::new();
        headers.append("x-foo", "1".parse().unwrap());
        headers.append("x-foo", "2".parse().unwrap());
        Arc::new(JobRequest {
            method: http::Method::POST,
            path_and_query: "/v1/chat/completions?a=b".into(),
            model: "m".into(),
            streaming: true,
            headers,
            body: vec![b'x'; body].into(),
        })
    }

    #[test]
    fn a_long_body_goes_in_pieces_and_stops_when_canceled() {
        let id = JobId::from_random(1);
        let request = request(2 * BODY_PIECE + 1);
        let unsent = UnsentRequest::new(Arc::clone(&request));
        let mut source = BinaryRequest::new(Version::Three, 7, id, unsent.clone());
        let (first, more) = source.next_frame().unwrap();
        let Frame::Binary(first) = first else { panic!("not binary") };
        let ServerFrame::Request { job, head, body } = ServerFrame::decode(first).unwrap() else {
            panic!("not a request")
        };
        assert!(more && job == 7 && body.len() == BODY_PIECE);
        assert_eq!(head.body_len, 2 * BODY_PIECE as u64 + 1);
        assert_eq!(head.headers.iter().count(), 2);
        assert!(source.next_frame().unwrap().1);
        assert_eq!(Arc::strong_count(&request), 2);
        unsent.clear();
        assert_eq!(Arc::strong_count(&request), 1, "the queue keeps nothing of it");
        assert!(source.next_frame().is_none());
    }

    #[test]
    fn a_sent_body_is_not_kept() {
        let id = JobId::from_random(1);
        for (body, frames) in [(0, 1), (BODY_PIECE, 1), (BODY_PIECE + 1, 2)] {
            let request = request(body);
            let unsent = UnsentRequest::new(Arc::clone(&request));
            let mut source = BinaryRequest::new(Version::Three, 7, id, unsent);
            assert_eq!(std::iter::from_fn(|| source.next_frame()).count(), frames);
            assert_eq!(Arc::strong_count(&request), 1);
        }
    }

    #[test]
    fn a_plain_request_is_one_message_with_joined_headers() {
        let id = JobId::from_random(1);
        let request = request(3);
        let mut source = PlainRequest { id, unsent: UnsentRequest::new(Arc::clone(&request)) };
        let (Frame::Text(text), more) = source.next_frame().unwrap() else { panic!("not text") };
        let value: serde_json::Value = serde_json::from_str(text.as_str()).unwrap();
        assert!(!more && source.next_frame().is_none());
        assert_eq!(Arc::strong_count(&request), 1);
        assert_eq!(value["headers"]["x-foo"], "1, 2");
        assert_eq!(value["endpoint_path"], "/v1/chat/completions?a=b");
        assert_eq!(value["body"], "xxx");
    }
}
