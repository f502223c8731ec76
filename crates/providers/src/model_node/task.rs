//! One task and its answer.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use scheduler::{AnswerWriter, Head, Usage, WriteError};
use translate::{
    BadAnswer, Body,
    chat_node::{Next, NodeAnswer},
};

/// Tells the client that the token count is an estimate.
const USAGE: HeaderName = HeaderName::from_static("x-warren-usage");

pub(super) struct Task {
    pub(super) writer: AnswerWriter,
    pub(super) answer: NodeAnswer,
}

/// Why a part of an answer was not passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerError {
    Write(WriteError),
    Bad(BadAnswer),
}

impl From<WriteError> for AnswerError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<BadAnswer> for AnswerError {
    fn from(bad: BadAnswer) -> Self {
        Self::Bad(bad)
    }
}

impl Task {
    pub(super) fn more(&mut self, text: &[u8]) -> Result<Next, AnswerError> {
        let mut out = String::new();
        let next = self.answer.feed(text, &mut out)?;
        self.report();
        if !out.is_empty() {
            self.begin(None)?;
            self.writer.chunk(Bytes::from(out))?;
        }
        Ok(next)
    }

    /// Sends the rest of an answer that is complete or stopped here. The caller then ends the
    /// writer.
    pub(super) fn rest(&mut self, next: Next) -> Result<(), AnswerError> {
        let mut out = String::new();
        self.answer.end(next, &mut out)?;
        self.report();
        self.begin(Some(out.len()))?;
        self.writer.chunk(Bytes::from(out))?;
        Ok(())
    }

    /// Writes the head, unless it was already written. `length` is the length of the whole body, if
    /// all of it is here.
    fn begin(&mut self, length: Option<usize>) -> Result<(), AnswerError> {
        if self.writer.has_begun() {
            return Ok(());
        }
        let length = length.filter(|_| self.answer.body() == Body::Json);
        Ok(self.writer.head(head(self.answer.body(), length))?)
    }

    /// Keeps the token count current, so that a client that leaves early is charged for what it
    /// received.
    fn report(&self) {
        self.writer.report(Usage { estimated: true, ..self.answer.usage() });
    }
}

fn head(body: Body, length: Option<usize>) -> Head {
    let mut headers = HeaderMap::new();
    headers.insert(USAGE, HeaderValue::from_static("estimated"));
    if body == Body::Events {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    } else {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(length) = length {
        headers.insert(header::CONTENT_LENGTH, length.into());
    }
    Head { status: StatusCode::OK, headers }
}
