//! Answers as binary frames: bytes as they are, within the job's credit.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use protocol::relay::{
    BODY_PIECE, JobFailure, ResponseEnd, ResponseHead, WorkerFrame, header_text,
};
use wire::{Closed, Outbox};

use crate::credit::Credit;

#[derive(Debug)]
pub(crate) struct BinaryReply {
    outbox: Outbox,
    job: u32,
    credit: Arc<Credit>,
}

impl BinaryReply {
    pub(crate) fn new(outbox: Outbox, job: u32, credit: Arc<Credit>) -> Self {
        Self { outbox, job, credit }
    }

    pub(super) async fn head(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), Closed> {
        let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), header_text(value.as_bytes()))
        };
        let headers = headers.iter().map(pair).collect();
        let head = ResponseHead { status_code: status.as_u16(), headers };
        self.send(WorkerFrame::Head { job: self.job, head }).await
    }

    /// While there is no credit this waits, and the backend's stream is simply not read.
    pub(super) async fn chunk(&self, mut bytes: Bytes) -> Result<(), Closed> {
        while !bytes.is_empty() {
            let length = self.credit.take(bytes.len().min(BODY_PIECE)).await;
            let piece = bytes.split_to(length);
            self.send(WorkerFrame::Chunk { job: self.job, bytes: piece }).await?;
        }
        Ok(())
    }

    pub(super) async fn end(&self) -> Result<(), Closed> {
        self.send(WorkerFrame::End { job: self.job, end: ResponseEnd::default() }).await
    }

    pub(super) fn fail(&self, failure: JobFailure) -> Result<(), Closed> {
        self.outbox.push(WorkerFrame::Fail { job: self.job, failure }.encode())
    }

    async fn send(&self, frame: WorkerFrame) -> Result<(), Closed> {
        self.outbox.send(frame.encode()).await
    }
}
