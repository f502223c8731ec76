//! Answers in JSON messages, as stock workers send them.
//!
//! Such a worker tells the status of a stream only after its last chunk, and sends the body of a
//! backend's error as a chunk, too. So a stream whose first bytes look like one begins at once,
//! with status 200; anything else is kept until `response_complete` says what it was.

use bytes::Bytes;
use protocol::{relay::message::ResponseComplete, sse::looks_like_sse, usage::Usage};
use scheduler::Head;

use super::session::{self, Stop};
use crate::head;

/// What does not look like a stream is kept up to this size, then passed on as one.
const KEPT_OF_STREAM: usize = 256 * 1024;

/// Chunks of an answer that is no stream are kept up to this size.
const KEPT_OF_BODY: usize = 64 * 1024 * 1024;

/// The state of one answer.
pub(super) struct PlainAnswer {
    streaming: bool,
    kept: Vec<u8>,
}

impl PlainAnswer {
    pub(super) fn new(streaming: bool) -> Self {
        Self { streaming, kept: Vec::new() }
    }
}

impl session::Current {
    /// `response_chunk`.
    pub(super) fn plain_chunk(&mut self, chunk: String) -> Result<(), Stop> {
        if self.incoming.writer.has_begun() {
            self.incoming.writer.chunk(chunk.into())?;
            return Ok(());
        }
        let kept = &mut self.plain.kept;
        kept.extend_from_slice(chunk.as_bytes());
        if !self.plain.streaming {
            return if kept.len() > KEPT_OF_BODY { Err(Stop::TooLong) } else { Ok(()) };
        }
        if looks_like_sse(kept) || kept.len() > KEPT_OF_STREAM {
            let kept = std::mem::take(kept);
            self.incoming.writer.head(head::assumed_stream())?;
            self.incoming.writer.chunk(kept.into())?;
        }
        Ok(())
    }

    /// The whole body of an answer that nothing has been passed on of.
    pub(super) fn plain_body<'a>(&'a self, complete: &'a ResponseComplete) -> &'a [u8] {
        match &complete.body {
            Some(body) if !body.is_empty() => body.as_bytes(),
            _ => &self.plain.kept,
        }
    }

    /// `response_complete`: the end of a stream that has begun, else the whole answer.
    pub(super) fn plain_complete(mut self, complete: ResponseComplete) {
        if let Some(counts) = complete.token_counts {
            self.incoming.writer.report(session::usage(Usage::from(counts)));
        }
        if self.incoming.writer.has_begun() {
            return self.incoming.writer.end();
        }
        let headers = complete.headers.iter().filter(|(name, _)| !is_length(name));
        let headers = headers.map(|(name, value)| (&**name, value.clone().into_bytes()));
        let mut head = match head::head(complete.status_code, headers) {
            Ok(head) => head,
            Err(bad) => return self.incoming.writer.fail(&bad.to_string()),
        };
        let body = match complete.body {
            Some(body) if !body.is_empty() => Bytes::from(body),
            _ => Bytes::from(std::mem::take(&mut self.plain.kept)),
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

/// The length is what it is, whatever the worker said.
fn describe(head: &mut Head, length: usize) {
    head.headers.insert(http::header::CONTENT_LENGTH, length.into());
    head.headers
        .entry(http::header::CONTENT_TYPE)
        .or_insert(http::HeaderValue::from_static("application/json"));
}
