//! Answers as binary frames: bytes as they are, within the job's credit.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use protocol::relay::{
    BODY_PIECE, FailureCode, JobFailure, ResponseEnd, ResponseHead, WorkerFrame, header_text,
};
use tokio::time::timeout;
use wire::{Outbox, OutboxClosed};

use super::ReplyError;
use crate::credit::Credit;

/// How long a job holds its slot for a server that takes nothing of it. The server has shorter
/// time-outs of its own; this one is for a server that has forgotten the job.
const CREDIT_DEADLINE: Duration = Duration::from_secs(15 * 60);

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

    pub(super) async fn head(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), OutboxClosed> {
        let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), header_text(value.as_bytes()))
        };
        let headers = headers.iter().map(pair).collect();
        let head = ResponseHead { status_code: status.as_u16(), headers };
        self.send(WorkerFrame::Head { job: self.job, head }).await
    }

    /// While there is no credit this waits, and the backend's stream is simply not read.
    pub(super) async fn chunk(&self, mut bytes: Bytes) -> Result<(), ReplyError> {
        while !bytes.is_empty() {
            let credit = self.credit.take(bytes.len().min(BODY_PIECE));
            let length = timeout(CREDIT_DEADLINE, credit).await.map_err(|_| forgotten())?;
            let piece = bytes.split_to(length);
            self.send(WorkerFrame::Chunk { job: self.job, bytes: piece }).await?;
        }
        Ok(())
    }

    pub(super) async fn end(&self) -> Result<(), OutboxClosed> {
        self.send(WorkerFrame::End { job: self.job, end: ResponseEnd::default() }).await
    }

    pub(super) fn fail(&self, failure: JobFailure) -> Result<(), OutboxClosed> {
        self.outbox.push(WorkerFrame::Fail { job: self.job, failure }.encode())
    }

    async fn send(&self, frame: WorkerFrame) -> Result<(), OutboxClosed> {
        self.outbox.send(frame.encode()).await
    }
}

fn forgotten() -> ReplyError {
    let message = format!("the server took nothing of the answer for {CREDIT_DEADLINE:?}");
    ReplyError::Failed(JobFailure { code: FailureCode::Canceled, message })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use wire::{Link, Role};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_job_that_the_server_has_forgotten_gives_up_its_slot() {
        let (near, _far) = tokio::io::duplex(64);
        let (_link, outbox) = Link::new(Box::pin(near), Role::Client);
        let reply = BinaryReply::new(outbox, 1, Arc::new(Credit::new(2)));
        let start = Instant::now();
        let Err(ReplyError::Failed(failure)) = reply.chunk(Bytes::from_static(b"abc")).await else {
            panic!();
        };
        assert_eq!((failure.code, start.elapsed()), (FailureCode::Canceled, CREDIT_DEADLINE));
    }
}
