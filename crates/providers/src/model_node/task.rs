//! One task and its answer, and the ids of tasks.

use std::sync::atomic::{AtomicU32, Ordering};

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

/// Assigns positive ids. Each differs from the two thousand million ids before it, on all
/// connections.
///
/// A stock node keeps its tasks over a reconnect, and sends results that failed on the old socket
/// on the new one. If ids restarted with each connection, or with the server, results of an old
/// task would end up in the answer of a new one.
pub(super) struct Numbers(AtomicU32);

impl Numbers {
    /// Starts at a random number.
    pub(super) fn from_random(start: u32) -> Self {
        Self(AtomicU32::new(start))
    }

    /// The next id, from 1 to 2³¹ − 1.
    pub(super) fn next(&self) -> i32 {
        loop {
            let bits = self.0.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff;
            match i32::try_from(bits) {
                Ok(id) if id > 0 => return id,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_stay_positive_when_they_begin_again() {
        let near_the_top_bit = Numbers::from_random(0x7fff_fffe);
        let ids: Vec<i32> = (0..3).map(|_| near_the_top_bit.next()).collect();
        assert_eq!(ids, [i32::MAX - 1, i32::MAX, 1]);
        let near_the_end = Numbers::from_random(u32::MAX);
        assert_eq!([near_the_end.next(), near_the_end.next()], [i32::MAX, 1]);
    }
}
