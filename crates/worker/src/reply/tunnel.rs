//! Answers as frames of a participant's tunnel.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use protocol::{
    failure::{self, PassedStream},
    relay::{FailureCode, JobFailure},
    room::tunnel::{FromParticipant, ResponseChunk, ResponseEnd, ResponseError, ResponseStart},
};
use wire::{Outbox, OutboxClosed};

use super::json::joined;

/// The most bytes of an answer in one frame, before base64.
const FRAME: usize = 48 * 1024;

/// The phase in which an answer failed, in the words of stock participants.
const STAGE: &str = "proxy";

#[derive(Debug)]
pub(crate) struct TunnelReply {
    outbox: Outbox,
    request_id: String,
    /// The requested path, if this worker must tell the client of a failure in the middle of the
    /// answer.
    tells: Option<String>,
    /// The state of the client's event stream; `None` before its first chunk, and if the answer is
    /// not an event stream.
    passed: Option<PassedStream>,
    is_stream: bool,
}

impl TunnelReply {
    pub(crate) fn new(outbox: Outbox, request_id: String, tells: Option<String>) -> Self {
        Self { outbox, request_id, tells, passed: None, is_stream: false }
    }

    pub(super) async fn head(
        &mut self,
        status: StatusCode,
        mut headers: HeaderMap,
    ) -> Result<(), OutboxClosed> {
        // The tunnel's frames carry no total length.
        headers.remove(header::CONTENT_LENGTH);
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        self.is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let (request_id, headers) = (self.request_id.clone(), joined(&headers));
        let start = ResponseStart { request_id, status: status.as_u16(), headers };
        self.send(&FromParticipant::Start(start)).await
    }

    pub(super) async fn chunk(&mut self, mut bytes: Bytes) -> Result<(), OutboxClosed> {
        if self.is_stream && self.tells.is_some() {
            self.passed.get_or_insert_default().feed(&bytes);
        }
        while !bytes.is_empty() {
            let chunk = bytes.split_to(bytes.len().min(FRAME));
            self.send(&self.chunk_of(chunk)).await?;
        }
        Ok(())
    }

    pub(super) async fn end(&self) -> Result<(), OutboxClosed> {
        let request_id = self.request_id.clone();
        self.send(&FromParticipant::End(ResponseEnd { request_id })).await
    }

    /// A stock hub ends a failed stream like a good one. So the last chunk of a failed stream is an
    /// error event of the requested API.
    pub(super) fn fail(&self, failure: JobFailure) -> Result<(), OutboxClosed> {
        if let Some(event) = self.last_event(&failure) {
            self.outbox.push(self.chunk_of(event.into()).encode())?;
        }
        self.outbox.push(failed(self.request_id.clone(), failure.message).encode())
    }

    fn chunk_of(&self, chunk: Bytes) -> FromParticipant {
        FromParticipant::Chunk(ResponseChunk { request_id: self.request_id.clone(), chunk })
    }

    fn last_event(&self, failure: &JobFailure) -> Option<String> {
        let passed = self.passed.as_ref().filter(|_| failure.code != FailureCode::Canceled)?;
        Some(failure::last_event(self.tells.as_deref()?, &self.request_id, failure, passed))
    }

    async fn send(&self, frame: &FromParticipant) -> Result<(), OutboxClosed> {
        self.outbox.send(frame.encode()).await
    }
}

/// The frame for a request that gets no answer, or an incomplete one.
pub(crate) fn failed(request_id: String, message: String) -> FromParticipant {
    FromParticipant::Error(ResponseError { request_id, stage: STAGE.to_owned(), message })
}
