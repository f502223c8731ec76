//! Answers as frames of a participant's tunnel.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use protocol::{
    relay::JobFailure,
    room::tunnel::{FromParticipant, ResponseChunk, ResponseEnd, ResponseError, ResponseStart},
};
use wire::{Closed, Outbox};

use super::json::joined;

/// The most bytes of an answer in one frame, before base64.
const FRAME: usize = 48 * 1024;

/// Where an answer failed, as stock participants say it.
const STAGE: &str = "proxy";

#[derive(Debug)]
pub(crate) struct TunnelReply {
    outbox: Outbox,
    request_id: String,
}

impl TunnelReply {
    pub(crate) fn new(outbox: Outbox, request_id: String) -> Self {
        Self { outbox, request_id }
    }

    pub(super) async fn head(
        &self,
        status: StatusCode,
        mut headers: HeaderMap,
    ) -> Result<(), Closed> {
        // Its frames have no length as a whole.
        headers.remove(header::CONTENT_LENGTH);
        let (request_id, headers) = (self.request_id.clone(), joined(&headers));
        let start = ResponseStart { request_id, status: status.as_u16(), headers };
        self.send(&FromParticipant::Start(start)).await
    }

    pub(super) async fn chunk(&self, mut bytes: Bytes) -> Result<(), Closed> {
        while !bytes.is_empty() {
            let chunk = bytes.split_to(bytes.len().min(FRAME));
            let request_id = self.request_id.clone();
            self.send(&FromParticipant::Chunk(ResponseChunk { request_id, chunk })).await?;
        }
        Ok(())
    }

    pub(super) async fn end(&self) -> Result<(), Closed> {
        let request_id = self.request_id.clone();
        self.send(&FromParticipant::End(ResponseEnd { request_id })).await
    }

    pub(super) fn fail(&self, failure: JobFailure) -> Result<(), Closed> {
        self.outbox.push(failed(self.request_id.clone(), failure.message).encode())
    }

    async fn send(&self, frame: &FromParticipant) -> Result<(), Closed> {
        self.outbox.send(frame.encode()).await
    }
}

/// A request that has no answer, or not a whole one.
pub(crate) fn failed(request_id: String, message: String) -> FromParticipant {
    FromParticipant::Error(ResponseError { request_id, stage: STAGE.to_owned(), message })
}
