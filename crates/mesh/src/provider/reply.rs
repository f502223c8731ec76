//! The chunks of an answer as a client gets them: as events, or put together into one.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::openai::{Gather, chunk};
use scheduler::Head;

/// A peer's answer in the form that the client gets. Pure.
pub(super) struct Reply {
    kind: Kind,
    /// Whether a chunk has come.
    begun: bool,
    /// Whether the model has finished.
    finished: bool,
}

enum Kind {
    Events,
    Whole(Gather),
}

impl Reply {
    /// A reply for a client that wants a stream (`streaming`) or one answer.
    pub(super) fn new(streaming: bool) -> Self {
        let kind = if streaming { Kind::Events } else { Kind::Whole(Gather::default()) };
        Self { kind, begun: false, finished: false }
    }

    /// The head of a good answer.
    pub(super) fn head(&self) -> Head {
        let kind = match self.kind {
            Kind::Events => "text/event-stream",
            Kind::Whole(_) => "application/json",
        };
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        if matches!(self.kind, Kind::Events) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        Head { status: StatusCode::OK, headers }
    }

    /// The client's bytes for the next chunk; empty while a whole answer is gathered.
    ///
    /// # Errors
    /// Why the text is not a chunk.
    pub(super) fn chunk(&mut self, chunk: &str) -> Result<Bytes, String> {
        let look = chunk::look(chunk).map_err(|bad| bad.to_string())?;
        self.begun = true;
        // Stock nodes whose backend does not stream send the answer as one chunk. It has the usage,
        // but no finish reason.
        self.finished |= look.finishes || look.tells_usage;
        match &mut self.kind {
            Kind::Events => Ok(event(chunk)),
            Kind::Whole(gather) => {
                gather.chunk(chunk).map_err(|bad| bad.to_string())?;
                Ok(Bytes::new())
            }
        }
    }

    /// Whether the model finished. A backend that dies reports neither a finish reason nor its
    /// usage.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// The client's last bytes, when the peer says that the answer is complete.
    ///
    /// # Errors
    /// If no chunk has come. A stock peer calls an answer complete even if its backend has failed.
    pub(super) fn end(&mut self) -> Result<Bytes, String> {
        if !self.begun {
            return Err("the peer's answer is empty".to_owned());
        }
        match &mut self.kind {
            Kind::Events => Ok(Bytes::from_static(b"data: [DONE]\n\n")),
            Kind::Whole(gather) => {
                let whole = std::mem::take(gather).finish().map_err(|bad| bad.to_string())?;
                Ok(whole.into())
            }
        }
    }
}

/// A chunk as an event. In JSON a line end can only stand between two tokens, where a space means
/// the same.
fn event(chunk: &str) -> Bytes {
    let mut event = Vec::with_capacity(chunk.len() + 8);
    event.extend_from_slice(b"data: ");
    let plain = |byte: u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte };
    event.extend(chunk.bytes().map(plain));
    event.extend_from_slice(b"\n\n");
    event.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"é"},"finish_reason":null}]}"#;

    #[test]
    fn a_stream_gets_the_chunks_as_they_are() {
        let mut reply = Reply::new(true);
        assert_eq!(reply.chunk(CHUNK).unwrap(), format!("data: {CHUNK}\n\n"));
        assert_eq!(
            reply.chunk("{\n\"choices\":\r\n[{}]}").unwrap(),
            "data: { \"choices\":  [{}]}\n\n"
        );
        assert_eq!(reply.end().unwrap(), "data: [DONE]\n\n");
        assert_eq!(reply.head().headers["content-type"], "text/event-stream");
    }

    #[test]
    fn a_request_without_stream_gets_one_answer_at_the_end() {
        let mut reply = Reply::new(false);
        assert!(reply.chunk(CHUNK).unwrap().is_empty());
        assert!(reply.chunk(CHUNK).unwrap().is_empty());
        let whole: serde_json::Value = serde_json::from_slice(&reply.end().unwrap()).unwrap();
        assert_eq!(whole["choices"][0]["message"]["content"], "éé");
        assert_eq!(whole["object"], "chat.completion");
        assert_eq!(reply.head().headers["content-type"], "application/json");
    }

    #[test]
    fn an_answer_is_finished_by_its_reason_or_its_usage() {
        let stopped = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        let whole = r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}],"usage":{"total_tokens":2}}"#;
        for last in [stopped, whole] {
            let mut reply = Reply::new(true);
            reply.chunk(CHUNK).unwrap();
            assert!(!reply.is_finished());
            reply.chunk(last).unwrap();
            assert!(reply.is_finished(), "{last}");
        }
    }

    #[test]
    fn a_message_that_is_no_answer_is_no_end() {
        for streaming in [true, false] {
            assert!(Reply::new(streaming).end().is_err(), "nothing came");
            for bad in [r#"{"error":{"message":"boom"}}"#, "null", "[]", "\"x\""] {
                assert!(Reply::new(streaming).chunk(bad).is_err(), "{bad}");
            }
        }
        let mut reply = Reply::new(false);
        reply.chunk(r#"{"choices":[],"usage":{}}"#).unwrap();
        assert!(reply.end().is_err(), "only usage came");
    }
}
