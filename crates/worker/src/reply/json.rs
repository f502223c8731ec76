//! Answers as JSON text, for stock servers.
//!
//! A stream is sent chunk by chunk, and its status and headers at the end. Any other answer is one
//! message, so that its status and headers reach the client: above all, an error that answers a
//! request for a stream.

use http::{HeaderMap, StatusCode, header};
use protocol::{
    failure::{self, PassedStream},
    relay::{
        FailureCode, Headers, JobFailure, ResponseChunk, ResponseComplete, STOCK_MAX_REQUEST,
        WorkerMessage, header_text, json_escaped_len,
    },
};
use wire::{Outbox, OutboxClosed};

use super::{ReplyError, utf8::Utf8Joiner};

/// The longest answer that fits into one message, in bytes of JSON text.
const MAX_WHOLE: usize = STOCK_MAX_REQUEST as usize;

/// The status for a client that left. No client sees it.
const CLIENT_CLOSED: u16 = 499;

#[derive(Debug)]
pub(crate) struct JsonReply {
    outbox: Outbox,
    request_id: String,
    path: String,
    streaming: bool,
    /// The state of the client's stream; `None` before its first chunk.
    passed: Option<PassedStream>,
    status: u16,
    headers: Headers,
    text: Utf8Joiner,
    whole: String,
    /// The length of `whole` as a JSON string, in bytes.
    escaped: usize,
}

impl JsonReply {
    pub(crate) fn new(outbox: Outbox, request_id: String, path: &str, streaming: bool) -> Self {
        Self {
            outbox,
            request_id,
            path: path.to_owned(),
            streaming,
            passed: None,
            status: 0,
            headers: Headers::new(),
            text: Utf8Joiner::default(),
            whole: String::new(),
            escaped: 0,
        }
    }

    pub(super) fn head(&mut self, status: StatusCode, mut headers: HeaderMap) {
        // The answer becomes text, whose length may differ, and a stock server would pass the wrong
        // length on.
        headers.remove(header::CONTENT_LENGTH);
        // A refusal is sent as one message, since only that carries its status to the client.
        self.streaming &= status.is_success();
        self.status = status.as_u16();
        self.headers = joined(&headers);
    }

    pub(super) async fn chunk(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        let text = self.text.push(bytes);
        self.pass_on(text).await
    }

    pub(super) async fn end(&mut self) -> Result<(), ReplyError> {
        let rest = self.text.finish();
        self.pass_on(rest).await?;
        let complete = ResponseComplete {
            request_id: self.request_id.clone(),
            status_code: self.status,
            headers: self.headers.clone(),
            body: Some(std::mem::take(&mut self.whole)),
            token_counts: None,
        };
        Ok(self.outbox.send(WorkerMessage::ResponseComplete(complete).encode()).await?)
    }

    /// A stock server passes a status on only before the first chunk. After it, the client would take
    /// the end of the stream for a good one. So the last chunk is then an error event of the client's
    /// API.
    pub(super) fn fail(&self, failure: &JobFailure) -> Result<(), OutboxClosed> {
        if let Some(event) = self.last_event(failure) {
            self.outbox.push(self.chunk_of(event).encode())?;
        }
        let json = ("content-type".to_owned(), "application/json".to_owned());
        let complete = ResponseComplete {
            request_id: self.request_id.clone(),
            status_code: status(&failure.code),
            headers: [json].into(),
            body: Some(failure::body(&self.path, &self.request_id, failure)),
            token_counts: None,
        };
        self.outbox.push(WorkerMessage::ResponseComplete(complete).encode())
    }

    async fn pass_on(&mut self, chunk: String) -> Result<(), ReplyError> {
        if chunk.is_empty() {
            return Ok(());
        }
        if !self.streaming {
            return self.gather(&chunk);
        }
        self.passed.get_or_insert_default().feed(chunk.as_bytes());
        Ok(self.outbox.send(self.chunk_of(chunk).encode()).await?)
    }

    fn chunk_of(&self, chunk: String) -> WorkerMessage {
        WorkerMessage::ResponseChunk(ResponseChunk { request_id: self.request_id.clone(), chunk })
    }

    /// The error event that ends a begun stream; `None` for a client that left.
    fn last_event(&self, failure: &JobFailure) -> Option<String> {
        let passed = self.passed.as_ref().filter(|_| failure.code != FailureCode::Canceled)?;
        Some(failure::last_event(&self.path, &self.request_id, failure, passed))
    }

    fn gather(&mut self, chunk: &str) -> Result<(), ReplyError> {
        // Bounded by its length as JSON, because a stock server takes no longer message.
        self.escaped += json_escaped_len(chunk);
        if self.escaped > MAX_WHOLE {
            let message = format!("the backend's answer is longer than {MAX_WHOLE} bytes");
            return Err(ReplyError::Failed(JobFailure {
                code: FailureCode::BackendBroke,
                message,
            }));
        }
        self.whole.push_str(chunk);
        Ok(())
    }
}

fn status(code: &FailureCode) -> u16 {
    match code {
        FailureCode::BadRequest => 400,
        FailureCode::Canceled => CLIENT_CLOSED,
        FailureCode::Draining => 503,
        FailureCode::BackendTimeout => 504,
        FailureCode::BackendUnreachable
        | FailureCode::BackendBroke
        | FailureCode::EngineFailed
        | FailureCode::Other(_) => 502,
    }
}

/// The headers with one value for each name; several are joined by commas.
pub(super) fn joined(headers: &HeaderMap) -> Headers {
    let mut joined = Headers::new();
    for (name, value) in headers {
        let value = header_text(value.as_bytes());
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|all| {
                all.push_str(", ");
                all.push_str(&value);
            })
            .or_insert(value);
    }
    joined
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use wire::{Link, Role};

    use super::*;

    fn reply(streaming: bool) -> (Link, JsonReply) {
        let (near, _) = tokio::io::duplex(64);
        let (link, outbox) = Link::new(Box::pin(near), Role::Client);
        (link, JsonReply::new(outbox, "r-1".to_owned(), "/v1/x", streaming))
    }

    #[tokio::test]
    async fn a_whole_answer_that_fits_no_message_is_given_up() {
        let (_link, mut reply) = reply(false);
        reply.head(StatusCode::OK, HeaderMap::new());
        // Six bytes each in JSON.
        let control = vec![1; MAX_WHOLE / 6];
        reply.chunk(&control).await.unwrap();
        let Err(ReplyError::Failed(failure)) = reply.chunk(b"x").await else { panic!() };
        assert_eq!((failure.code, reply.whole.len()), (FailureCode::BackendBroke, control.len()));
    }

    #[test]
    fn repeated_headers_become_one_value() {
        let mut headers = HeaderMap::new();
        for value in ["a", "b"] {
            headers.append("x-many", HeaderValue::from_static(value));
        }
        headers.insert("x-latin", HeaderValue::from_bytes(b"caf\xe9").unwrap());
        let joined = joined(&headers);
        assert_eq!((joined["x-many"].as_str(), joined["x-latin"].as_str()), ("a, b", "café"));
    }

    #[test]
    fn every_failure_has_its_status() {
        let expected = [
            (FailureCode::BackendUnreachable, 502),
            (FailureCode::BackendBroke, 502),
            (FailureCode::BackendTimeout, 504),
            (FailureCode::Canceled, 499),
            (FailureCode::Draining, 503),
            (FailureCode::BadRequest, 400),
        ];
        for (code, expected) in expected {
            assert_eq!(status(&code), expected, "{code}");
        }
    }
}
