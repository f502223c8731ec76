//! Answers on their way back: translated from another shape, and without usage that only the server
//! asked for.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use protocol::openai::UsageFilter;
use scheduler::{AnswerMap, Head, Untranslatable};
use translate::{Answer, BadAnswer, Body};

use crate::head::is_plain_event_stream;

/// Makes the client's answer, its head included.
pub(super) struct TranslatedAnswer {
    map: Box<dyn Answer>,
    /// The kind of the client's body, once the head is there.
    body: Option<Body>,
}

impl TranslatedAnswer {
    pub(super) fn new(map: Box<dyn Answer>) -> Self {
        Self { map, body: None }
    }
}

impl AnswerMap for TranslatedAnswer {
    fn head(&mut self, mut head: Head) -> Head {
        let (status, body) = self.map.head(head.status.as_u16(), kind(&head.headers));
        self.body = Some(body);
        // An invalid status stays the provider's.
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

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Untranslatable> {
        let mut out = Vec::new();
        self.map.feed(&chunk, &mut out).map_err(unreadable)?;
        Ok(out.into())
    }

    fn end(&mut self) -> Result<Bytes, Untranslatable> {
        let mut out = Vec::new();
        self.map.end(&mut out).map_err(unreadable)?;
        Ok(out.into())
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

fn unreadable(BadAnswer(why): BadAnswer) -> Untranslatable {
    Untranslatable(why)
}

/// Reads anything but the two kinds of stream as one JSON value. An error page fails there and is
/// reported as such.
fn kind(headers: &HeaderMap) -> Body {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start().to_ascii_lowercase();
    if kind.starts_with("text/event-stream") { Body::Events } else { Body::Json }
}

/// Lines are named as stock servers of the node protocol name them.
fn content_type(body: Body) -> HeaderValue {
    HeaderValue::from_static(match body {
        Body::Json => "application/json",
        Body::Events | Body::Lines => "text/event-stream",
    })
}

/// Removes the chunk with the usage from a stream. All other bytes, and answers that are no stream, pass
/// unchanged.
#[derive(Default)]
pub(super) struct StripUsage(Option<UsageFilter>);

impl AnswerMap for StripUsage {
    fn head(&mut self, mut head: Head) -> Head {
        if is_plain_event_stream(&head) {
            self.0 = Some(UsageFilter::default());
            // The answer may be shorter than announced.
            head.headers.remove(header::CONTENT_LENGTH);
        }
        head
    }

    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, Untranslatable> {
        Ok(match &mut self.0 {
            Some(filter) => filter.feed(chunk),
            None => chunk,
        })
    }

    fn end(&mut self) -> Result<Bytes, Untranslatable> {
        Ok(self.0.as_mut().map(UsageFilter::end).unwrap_or_default())
    }
}
