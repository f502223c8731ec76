//! Answers on their way back to the client: translated from another shape, or passed on up to their logical end,
//! without usage that only the server asked for.

use std::time::Instant;

use base::{Endpoint, JobId};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use protocol::{openai::UsageFilter, sse::StreamEnd};
use scheduler::{AnswerMap, Head, Unreadable};
use translate::{Answer, BadAnswer, Body};

use crate::head::is_plain_event_stream;

/// Makes the client's answer, with its head, from a provider's answer in another shape.
pub(super) struct TranslatedAnswer {
    map: Box<dyn Answer>,
    /// The kind of the client's body, once the head has come.
    body: Option<Body>,
    /// When the job was accepted.
    since: Instant,
}

impl TranslatedAnswer {
    /// A translated answer. `since`: when the job was accepted.
    pub(super) fn new(map: Box<dyn Answer>, since: Instant) -> Self {
        Self { map, body: None, since }
    }

    /// The bytes for the client. After a fault, a stream's client still gets what was read before it; half a JSON
    /// value is of no use to anybody.
    fn written(&self, out: Vec<u8>, read: Result<(), BadAnswer>) -> Result<Bytes, Unreadable> {
        let Err(BadAnswer(why)) = read else { return Ok(out.into()) };
        let before = if self.gathers() { Bytes::new() } else { out.into() };
        Err(Unreadable { before, why })
    }
}

impl AnswerMap for TranslatedAnswer {
    fn head(&mut self, mut head: Head) -> Head {
        self.map.passed(self.since.elapsed());
        let (status, body) = self.map.head(head.status.as_u16(), kind(&head.headers));
        self.body = Some(body);
        // If the translated status is not valid, the provider's stays.
        head.status = StatusCode::from_u16(status).unwrap_or(head.status);
        for name in OF_THE_OTHER_BYTES {
            head.headers.remove(name);
        }
        head.headers.insert(header::CONTENT_TYPE, content_type(body));
        head
    }

    fn gathers(&self) -> bool {
        self.body == Some(Body::Json)
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Unreadable> {
        let mut out = Vec::new();
        self.map.passed(self.since.elapsed());
        let read = self.map.feed(&chunk, &mut out);
        self.written(out, read)
    }

    fn is_complete(&self) -> bool {
        self.map.is_over()
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        let mut out = Vec::new();
        self.map.passed(self.since.elapsed());
        let read = self.map.end(&mut out);
        self.written(out, read)
    }
}

/// Headers that describe the provider's bytes. The client gets other bytes.
const OF_THE_OTHER_BYTES: [HeaderName; 5] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::ACCEPT_RANGES,
    header::ETAG,
];

/// The kind of the provider's body. Anything but an event stream is read as one JSON value: an error page then fails
/// to be read, and is reported as such.
fn kind(headers: &HeaderMap) -> Body {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start().to_ascii_lowercase();
    if kind.starts_with("text/event-stream") { Body::Events } else { Body::Json }
}

/// Stock servers of the node protocol call their lines an event stream, and so does this.
fn content_type(body: Body) -> HeaderValue {
    HeaderValue::from_static(match body {
        Body::Json | Body::Array => "application/json",
        Body::Events | Body::Lines => "text/event-stream",
        Body::NdJson => "application/x-ndjson",
    })
}

/// Passes on an answer in the client's own shape: up to its logical end, without usage that the client did not ask
/// for. An error that agents act on is put into the words of their API.
pub(super) struct PassedOn {
    endpoint: Endpoint,
    /// The job's id, for an error that is written in other words.
    job: JobId,
    /// Whether to take usage out of a stream.
    strips_usage: bool,
    kind: Kind,
}

/// The sort of answer, which its head shows.
enum Kind {
    /// It passes unchanged.
    Unchanged,
    /// A stream of events.
    Stream { end: StreamEnd, usage: Option<UsageFilter> },
    /// An error with this status, and its body so far.
    Error { status: u16, body: Vec<u8> },
}

/// The longest error that is read, in bytes. A longer one passes unchanged.
const MAX_ERROR: usize = 64 * 1024;

impl PassedOn {
    pub(super) fn new(endpoint: Endpoint, job: JobId, strips_usage: bool) -> Self {
        Self { endpoint, job, strips_usage, kind: Kind::Unchanged }
    }
}

impl AnswerMap for PassedOn {
    fn head(&mut self, mut head: Head) -> Head {
        let status = head.status.as_u16();
        if is_plain_event_stream(&head) {
            let usage = self.strips_usage.then(UsageFilter::default);
            self.kind = Kind::Stream { end: StreamEnd::of(self.endpoint), usage };
        } else if matches!(status, 400 | 413 | 422 | 500) && is_plain(&head) {
            self.kind = Kind::Error { status, body: Vec::new() };
        } else {
            return head;
        }
        // The client's answer may have another length than the provider announced.
        head.headers.remove(header::CONTENT_LENGTH);
        head
    }

    fn gathers(&self) -> bool {
        matches!(self.kind, Kind::Error { .. })
    }

    fn chunk(&mut self, mut chunk: Bytes) -> Result<Bytes, Unreadable> {
        match &mut self.kind {
            Kind::Unchanged => Ok(chunk),
            Kind::Stream { end, usage } => {
                chunk.truncate(end.feed(&chunk));
                let passed = match usage {
                    Some(usage) => usage.feed(chunk),
                    None => chunk,
                };
                let rest = if end.is_over() { last(end, usage.as_mut()) } else { Bytes::new() };
                Ok(if rest.is_empty() { passed } else { [passed, rest].concat().into() })
            }
            Kind::Error { body, .. } => {
                body.extend_from_slice(&chunk);
                if body.len() <= MAX_ERROR {
                    return Ok(Bytes::new());
                }
                let body = std::mem::take(body);
                self.kind = Kind::Unchanged;
                Ok(body.into())
            }
        }
    }

    fn is_complete(&self) -> bool {
        matches!(&self.kind, Kind::Stream { end, .. } if end.is_over())
    }

    fn end(&mut self) -> Result<Bytes, Unreadable> {
        Ok(match &mut self.kind {
            Kind::Unchanged => Bytes::new(),
            Kind::Stream { usage, .. } => usage.as_mut().map(UsageFilter::end).unwrap_or_default(),
            Kind::Error { status, body } => {
                let request_id = self.job.to_string();
                let text = translate::api_error(self.endpoint, *status, body, &request_id);
                text.map_or_else(|| std::mem::take(body).into(), Bytes::from)
            }
        })
    }

    fn broken_off(&mut self) -> Bytes {
        match &mut self.kind {
            Kind::Stream { usage: Some(usage), .. } => usage.broken_off(),
            _ => Bytes::new(),
        }
    }
}

/// The last bytes for the client of a stream whose last event has come.
fn last(end: &StreamEnd, usage: Option<&mut UsageFilter>) -> Bytes {
    let closing = Bytes::from_static(end.closing());
    match usage {
        Some(usage) => [usage.feed(closing), usage.end()].concat().into(),
        None => closing,
    }
}

/// Whether a body is neither compressed nor only a part of one.
fn is_plain(head: &Head) -> bool {
    let odd = [header::CONTENT_ENCODING, header::CONTENT_RANGE];
    odd.iter().all(|name| !head.headers.contains_key(name))
}
