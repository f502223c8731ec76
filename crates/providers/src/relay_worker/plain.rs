//! Answers in JSON messages, as stock workers send them.
//!
//! Such a worker reports the status of a stream only after its last chunk, and sends the body of a
//! backend's error as a chunk too. So an answer whose first bytes look like a stream begins at
//! once, with status 200; any other is kept until `response_complete` reports its status.

use bytes::Bytes;
use protocol::{relay::message::ResponseComplete, sse::looks_like_sse, usage::Usage};
use scheduler::{Head, WriteError};

use crate::{head, incoming::Incoming};

/// A streamed answer that does not look like a stream is kept up to this size, then passed on as a
/// stream.
const KEPT_OF_STREAM: usize = 256 * 1024;

/// The chunks of an answer that is not streamed are kept up to this size.
const KEPT_OF_BODY: usize = 64 * 1024 * 1024;

/// A job of a worker, and the kept part of its answer in the JSON form.
pub(super) struct PlainJob {
    pub(super) incoming: Incoming,
    streaming: bool,
    body_so_far: Vec<u8>,
}

/// Why a part of an answer was not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerError {
    Write(WriteError),
    /// It must be kept until it is complete, and is too long for that.
    TooLong,
}

impl From<WriteError> for AnswerError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl PlainJob {
    pub(super) fn new(incoming: Incoming, streaming: bool) -> Self {
        Self { incoming, streaming, body_so_far: Vec::new() }
    }

    /// Handles `response_chunk`.
    pub(super) fn chunk(&mut self, chunk: String) -> Result<(), AnswerError> {
        if self.incoming.writer.has_begun() {
            self.incoming.writer.chunk(chunk.into())?;
            return Ok(());
        }
        self.body_so_far.extend_from_slice(chunk.as_bytes());
        if !self.streaming {
            let too_long = self.body_so_far.len() > KEPT_OF_BODY;
            return if too_long { Err(AnswerError::TooLong) } else { Ok(()) };
        }
        if looks_like_sse(&self.body_so_far) || self.body_so_far.len() > KEPT_OF_STREAM {
            let body = std::mem::take(&mut self.body_so_far);
            self.incoming.writer.head(head::assumed_stream())?;
            self.incoming.writer.chunk(body.into())?;
        }
        Ok(())
    }

    /// The whole body of an answer that has not begun for the client.
    pub(super) fn body<'a>(&'a self, complete: &'a ResponseComplete) -> &'a [u8] {
        match &complete.body {
            Some(body) if !body.is_empty() => body.as_bytes(),
            _ => &self.body_so_far,
        }
    }

    /// Passes the job to another provider. Returns it if there is none.
    pub(super) fn pass_on(self) -> Option<Self> {
        let Self { incoming, streaming, body_so_far } = self;
        incoming.pass_on().map(|incoming| Self { incoming, streaming, body_so_far })
    }

    /// Handles `response_complete`: the end of a stream that has begun, or else the whole answer.
    pub(super) fn complete(mut self, complete: ResponseComplete) {
        if let Some(counts) = complete.token_counts {
            self.incoming.writer.report(Usage::from(counts));
        }
        if self.incoming.writer.has_begun() {
            return self.incoming.writer.end();
        }
        let headers = complete.headers.iter().filter(|(name, _)| !is_length(name));
        let headers = headers.map(|(name, value)| (&**name, value.clone().into_bytes()));
        let mut head = match head::head(complete.status_code, headers, Bytes::from) {
            Ok(head) => head,
            Err(bad) => return self.incoming.writer.fail(&bad.to_string()),
        };
        let body = match complete.body {
            Some(body) if !body.is_empty() => Bytes::from(body),
            _ => Bytes::from(std::mem::take(&mut self.body_so_far)),
        };
        describe(&mut head, body.len());
        let written =
            self.incoming.writer.head(head).and_then(|()| self.incoming.writer.chunk(body));
        self.incoming.finish(written.map(|_| ()));
    }
}

fn is_length(name: &str) -> bool {
    name.eq_ignore_ascii_case(http::header::CONTENT_LENGTH.as_str())
}

/// Replaces the worker's length with the actual one.
fn describe(head: &mut Head, length: usize) {
    head.headers.insert(http::header::CONTENT_LENGTH, length.into());
    head.headers
        .entry(http::header::CONTENT_TYPE)
        .or_insert(http::HeaderValue::from_static("application/json"));
}
